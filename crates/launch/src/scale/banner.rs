//! The suite's text log, in the suite's wording, because other programs parse it.

use numalab_formats::ReadError;
use numalab_formats::architecture::Architecture;
use numalab_record::shell::command_line;

use super::directory::ResultDirectory;
use super::line::LaunchLine;
use super::manifest::Manifest;
use super::step::LaunchStep;

/// The line between parts of the log.
pub(super) const RULE: &str =
    "================================================================================";
const THIN: &str =
    "--------------------------------------------------------------------------------";

/// Returns the log of a run that starts nothing: the steps that have no result in `directory`.
///
/// # Errors
///
/// [`ReadError`] if the manifest's architecture is damaged.
pub fn dry_run(
    line: &LaunchLine<'_>,
    directory: Option<&ResultDirectory>,
) -> Result<String, ReadError> {
    let manifest = line.manifest;
    let architecture = manifest.architecture()?;
    let mut text = opening(&architecture);
    let end = manifest.workload.file_end();
    let is_done = |step: &LaunchStep| directory.is_some_and(|directory| directory.has(step, end));
    for step in manifest.steps.iter().filter(|step| !is_done(step)) {
        let command = command_line(&line.words(step));
        text.push_str(&step_heading(manifest, step, &command));
        text.push_str(&format!("{RULE}\n"));
    }
    Ok(text + &closing(manifest, &architecture, true))
}

/// Returns the head of the log: the architecture as read from its file.
pub(super) fn opening(architecture: &Architecture) -> String {
    let Architecture { system, partition, ccds_per_numa, skip_cores, machine } = architecture;
    let skipped = if skip_cores.is_empty() {
        "No SKIP_CORES directive found, using all cores".to_owned()
    } else {
        let cores: Vec<String> = skip_cores.iter().map(|cpu| cpu.to_string()).collect();
        format!("Found SKIP_CORES directive: {}", cores.join(" "))
    };
    format!(
        "\n{RULE}\n={title:^78}=\n{RULE}\n\n# Architecture Configuration \nSystem: {system}\n\
         Partition: {partition}\nCCDs per NUMA domain: {ccds_per_numa}\n\
         Detected {nodes} NUMA nodes\n{skipped}\n{THIN}\n",
        title = "NUMA-Aware Benchmark Configuration Tool (numalab)",
        nodes = machine.nodes.len(),
    )
}

/// Returns the heading of a step; `command` is its launch line.
pub(super) fn step_heading(manifest: &Manifest, step: &LaunchStep, command: &str) -> String {
    let list = |items: Vec<String>| items.join(",");
    let head = format!("[ {} RANKS ]", step.ranks);
    let domains = list(manifest.domains.iter().map(ToString::to_string).collect());
    let nodes = list(step.nodes.iter().map(ToString::to_string).collect());
    let cpus = list(step.cpus.iter().map(ToString::to_string).collect());
    format!(
        "\n{RULE}\n{head} Benchmark Configuration\n\
         {head} - Allocation Type  : {}\n{head} - Domains          : {domains}\n\
         {head} - Ranks per Domain : {}\n{head} NUMA binding: {nodes}\n\
         {head} CPU binding : {cpus}\n{head} Executing : {command}\n",
        manifest.mode, step.per_domain
    )
}

/// Returns the end of the log.
pub(super) fn closing(manifest: &Manifest, architecture: &Architecture, dry_run: bool) -> String {
    let Architecture { system, partition, ccds_per_numa, machine, .. } = architecture;
    let domains: Vec<String> = manifest.domains.iter().map(ToString::to_string).collect();
    let ranges: String = machine
        .nodes
        .iter()
        .map(|node| format!("    Domain {}: {}\n", node.id, node.cpus))
        .collect();
    format!(
        "\n{RULE}\n                     Benchmark Run Summary\n{RULE}\n\nConfiguration:\n{THIN}\n  \
         System: {system}\n  Partition: {partition}\n  NUMA Nodes: {}\n  \
         CCDs per NUMA domain: {ccds_per_numa}\n\n  CPU ranges:\n{ranges}\n  Mode: {}\n  \
         Domains: {}\n  Memory Sizes: {}\n  Dry Run: {dry_run}\n",
        machine.nodes.len(),
        manifest.mode,
        domains.join(","),
        manifest.memory_sizes,
    )
}
