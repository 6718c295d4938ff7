//! Candidates and trials in words.

use numalab_page::number::{count, size_words};

use crate::VerdictWord;
use crate::advice::{Advice, AdvisedOption, Candidate, Spread, Untried, cpu_list, node_list};

/// Returns the name of the metric that trials judge by.
pub(super) fn judged(advice: &Advice) -> String {
    match advice.metric.as_ref().map(|metric| metric.unit.as_str()) {
        None => "time".to_owned(),
        Some("") => "metric".to_owned(),
        Some(unit) => format!("metric ({unit})"),
    }
}

pub(super) fn signed(percent: f64) -> String {
    // A change that rounds to none has no sign.
    match format!("{percent:+.1}").as_str() {
        "+0.0" | "-0.0" => "0.0".to_owned(),
        signed => signed.to_owned(),
    }
}

fn on_nodes(nodes: &[u32]) -> String {
    let noun = if nodes.len() == 1 { "node" } else { "nodes" };
    format!("{noun} {}", node_list(nodes))
}

/// Returns an option in a few words.
pub fn what(candidate: &Candidate) -> String {
    let at = |line: &Option<String>| {
        line.as_ref().map_or_else(String::new, |line| format!(" ({})", file_and_line(line)))
    };
    match candidate {
        Candidate::Bind { node } => format!("Bind to node {node}"),
        Candidate::Interleave { nodes } => format!("Interleave over nodes {}", node_list(nodes)),
        Candidate::WeightedInterleave { weights } => {
            let weights: Vec<String> = weights.iter().map(u32::to_string).collect();
            format!("Interleave by bandwidth ({})", weights.join(":"))
        }
        Candidate::FastMemory { nodes } => format!("Memory of {} only", on_nodes(nodes)),
        Candidate::Pack => "Pack threads node by node (close)".to_owned(),
        Candidate::Cpus { spread, cpus } => {
            let words = match spread {
                Spread::Cores => "One thread per core",
                Spread::Siblings => "On SMT siblings",
                Spread::Groups => "Spread over L3 groups",
                Spread::OneGroup => "Packed into few L3 groups",
            };
            format!("{words} (cpus {})", cpu_list(cpus))
        }
        Candidate::Balancing { mode } => match mode {
            0 => "NUMA balancing off".to_owned(),
            1 => "NUMA balancing on".to_owned(),
            _ => "NUMA balancing by tier".to_owned(),
        },
        Candidate::HugePages => "Huge pages (THP)".to_owned(),
        Candidate::BindRegion { line, nodes, .. } => {
            let line = file_and_line(line);
            format!("One region on {} ({line})", on_nodes(nodes))
        }
        Candidate::PlaceFile { path, nodes, .. } => {
            format!("File on {} ({})", on_nodes(nodes), file_and_line(path))
        }
        Candidate::FirstTouch { line, .. } => format!("First touch by users{}", at(line)),
        Candidate::Replicate { line, .. } => format!("Copies of read-only data{}", at(line)),
        Candidate::SeparateLines { lines } => {
            let lines: Vec<&str> = lines.iter().map(|line| file_and_line(line)).collect();
            format!("Separate cache lines ({})", lines.join(", "))
        }
        Candidate::Ranks { options } => ranks(options),
    }
}

/// Returns the effect of `srun` options on ranks.
fn ranks(options: &[String]) -> String {
    let has = |value: &str| options.iter().any(|option| option.ends_with(value));
    match (has("=block:block"), has("=block:cyclic"), has("=ldoms")) {
        (true, ..) => "Ranks in blocks".to_owned(),
        (_, true, _) => "Ranks round-robin over sockets".to_owned(),
        (.., true) => "Ranks within NUMA domains".to_owned(),
        _ => format!("Ranks by {}", options.join(" ")),
    }
}

fn file_and_line(line: &str) -> &str {
    line.rsplit('/').next().unwrap_or(line)
}

pub(super) fn change_to_make(candidate: &Candidate) -> Option<String> {
    Some(match candidate {
        Candidate::FirstTouch { line: Some(line), .. } => {
            let line = file_and_line(line);
            format!("Let the threads that use this memory touch it first, instead of {line}.")
        }
        Candidate::SeparateLines { lines } if !lines.is_empty() => {
            let lines: Vec<&str> = lines.iter().map(|line| file_and_line(line)).collect();
            format!(
                "Give each thread a separate cache line (64 bytes) for the data stored at {}.",
                lines.join(" and ")
            )
        }
        Candidate::Replicate { line: Some(line), .. } => {
            format!("Make a copy of the data allocated at {} on each node.", file_and_line(line))
        }
        Candidate::BindRegion { line, nodes, .. } => {
            let call = match nodes[..] {
                [node] => format!("numa_tonode_memory(p, bytes, {node})"),
                _ => format!(
                    "numa_interleave_memory(p, bytes, numa_parse_nodestring(\"{}\"))",
                    node_list(nodes)
                ),
            };
            let line = file_and_line(line);
            format!(
                "After {line}, before the region is used, call {call} of libnuma (numa(3)) instead of \
                 any other call that places it."
            )
        }
        _ => return None,
    })
}

/// Returns the outcome of an option's trial in a word or two.
pub(super) fn verdict(option: &AdvisedOption) -> String {
    match (&option.measured, &option.untried) {
        (_, Some(untried)) => untried_words(untried),
        (Some(measured), None) if measured.out.is_some() => "out".to_owned(),
        (Some(measured), None) => match measured.verdict {
            VerdictWord::Better => "better",
            VerdictWord::Worse => "worse",
            VerdictWord::Equivalent => "equivalent",
            VerdictWord::Inconclusive => "inconclusive",
        }
        .to_owned(),
        (None, None) => String::new(),
    }
}

/// Returns the reason why a trial ended early, or why there was none.
pub(super) fn cut_short(advice: &Advice, option: &AdvisedOption) -> Option<String> {
    let name = what(&option.candidate);
    match &option.untried {
        Some(Untried::Failed(reason)) => return Some(format!("{name} failed: {reason}.")),
        Some(Untried::NoRoom { node, needed_bytes, left_bytes }) => {
            return Some(format!(
                "{name} is left out: node {node} has room for {}, not for {}.",
                size_words(*left_bytes),
                size_words(*needed_bytes)
            ));
        }
        Some(
            Untried::ProgramMustChange
            | Untried::NotEmulated
            | Untried::NotInTrials
            | Untried::NeedsRoot(_)
            | Untried::NotInKernel(_)
            | Untried::NoOpenMp,
        )
        | None => {}
    }
    let out = option.measured.as_ref()?.out?;
    let behind = out.behind.and_then(|at| advice.options.get(at));
    let why = behind.map_or_else(
        || "it gains less than 2 %".to_owned(),
        |better| format!("it is worse than {}", what(&better.candidate)),
    );
    Some(format!("{name} dropped out after {}: {why}.", count(out.blocks, "block")))
}

fn untried_words(untried: &Untried) -> String {
    match untried {
        Untried::ProgramMustChange => "program change".to_owned(),
        Untried::NotInTrials => "not in trials".to_owned(),
        Untried::NotEmulated => "not emulated".to_owned(),
        Untried::NeedsRoot(_) => "needs root".to_owned(),
        Untried::NotInKernel(setting) => format!("no {setting} here"),
        Untried::NoOpenMp => "OpenMP only".to_owned(),
        Untried::NoRoom { .. } => "no room".to_owned(),
        Untried::Failed(_) => "failed".to_owned(),
    }
}
