//! `numalab advise`.

mod extent;
mod metric;
mod placements;
mod proof;

use std::path::Path;
use std::time::{Duration, Instant};

use numalab_analysis::advice::{Advice, AdvisedOption, Candidate, MachineCosts};
use numalab_formats::memory_emulator::{
    CacheScope, Curve, EmulatedMachine, MOST_BESIDE, parse_caches, parse_stages,
};
use numalab_guest::GuestError;
use numalab_guest::emulator::PLUGIN;
use numalab_guest::program::EmulatedProgram;
use numalab_host::{Interrupt, Ran, note};

use crate::args::{AdviseArgs, Tries};
use crate::command::emulate::longest;
use crate::failure::{Code, Failure};
use crate::output;
use crate::source::{describe, describe_guest};
use extent::Extent;
use metric::Judged;
use placements::placement;

/// A run under emulation at most.
const LONGEST_RUN: Duration = Duration::from_secs(3600);
/// A program that ends sooner, by the machine's time, hardly does more than start.
const SHORT_NS: u64 = 2_000_000;
/// Caches and stages where nothing is said of them.
const CACHES: &str = "32K,1M@4,16M@12.5";
const STAGES: &str = "core,owners,tlb";

/// Profiles, predicts, tries, and says what to use.
pub(crate) fn run(args: &AdviseArgs) -> Result<(), Failure> {
    let judged = Judged::of(args)?;
    let machine = machine(args)?;
    let costs = costs(&machine);
    let known = Candidate::of_machine(&costs);
    let beside = known.iter().filter_map(|of| placements::beside(of, &costs)).take(MOST_BESIDE);
    let beside = beside.collect();
    let asis = EmulatedProgram {
        plugin: PLUGIN.find().map_err(GuestError::from)?,
        threads: placements::spread(&machine),
        machine,
        policy: None,
        huge_always: false,
        beside: Vec::new(),
        command: args.command.clone(),
    };
    let profiled = EmulatedProgram { beside, ..asis.clone() };
    if args.dry_run {
        let words = profiled.command_line(Path::new("DIRECTORY"))?;
        return output::print(&output::shell_lines(&words));
    }
    let interrupt = Interrupt::install().map_err(numalab_host::Error::from)?;
    let begun = Instant::now();
    let (ran, report) = sample(&profiled, &interrupt)?;
    let took = begun.elapsed();
    let program = report.program().ok_or_else(|| Failure::new(Code::Failed, "no program ran"))?;
    if program.elapsed_ns < SHORT_NS {
        note(format!(
            "{} ends after {} us: what follows is of its start",
            args.command[0],
            program.elapsed_ns / 1000
        ));
    }
    let mut advice = Advice::of(&args.command, program, costs);
    let read = judged.read(&ran, program.elapsed_ns);
    let read = read.map_err(|error| Failure::new(Code::Failed, error))?;
    advice.metric = read.into_iter().map(|of| of.quantity).find(|_| judged.is_printed());
    for option in &mut advice.options {
        (option.command, option.without_numalab) =
            placements::commands(&option.candidate, &advice.machine, &args.command);
    }
    if !args.predict_only {
        let mut tried = tried(&advice, &asis, args.tries);
        let extent = extent(args, tried.len(), took);
        tried.truncate(extent.candidates);
        if !tried.is_empty() {
            let rules = proof::rules(extent.blocks, args.budget);
            proof::prove(&mut advice, &asis, &tried, (rules, judged, ran.stdout), &interrupt)?;
        }
    }
    deliver(args, &advice)
}

/// Which candidates are to be tried.
fn tried(advice: &Advice, asis: &EmulatedProgram, tries: Tries) -> Vec<Candidate> {
    let can_be =
        |option: &&AdvisedOption| placement(&option.candidate, &advice.machine, asis).is_some();
    let of = |option: &AdvisedOption| option.candidate.clone();
    match tries {
        Tries::Best(count) => advice.worth_a_trial().filter(can_be).take(count).map(of).collect(),
        Tries::All => advice.options.iter().filter(can_be).map(of).collect(),
    }
}

/// How many of so many candidates are tried in how many blocks, by how long a run takes; says where
/// that is not what was asked for.
fn extent(args: &AdviseArgs, candidates: usize, run: Duration) -> Extent {
    let asked = Extent { candidates, blocks: args.blocks };
    if candidates == 0 {
        return asked;
    }
    let enough = asked.enough();
    if enough != asked {
        let Extent { blocks, .. } = enough;
        note(format!(
            "{} blocks are too few for a verdict on {candidates} candidates: running {blocks}",
            asked.blocks
        ));
    }
    let Some(budget) = args.budget else { return enough };
    let took = run.as_secs_f64();
    let Some(within) = enough.within(budget, run) else {
        note(format!(
            "the budget is too short for trials: a run takes {took:.1} s, and one candidate needs \
             {} runs; the results are predictions only",
            Extent::least().runs()
        ));
        return Extent { candidates: 0, ..enough };
    };
    if within != enough {
        let Extent { candidates, blocks } = within;
        note(format!(
            "to meet the budget, {candidates} of {} candidates run in {blocks} blocks: a run takes \
             {took:.1} s",
            asked.candidates
        ));
    }
    within
}

/// Runs the program once, with what the emulator saw of it.
fn sample(
    program: &EmulatedProgram,
    interrupt: &Interrupt,
) -> Result<(Ran, numalab_report::from::memory::MemoryReport), Failure> {
    let (ran, reports) = program.run_apart(LONGEST_RUN, interrupt)?;
    if !ran.status.success() {
        let said = ran.stderr.trim().lines().last().unwrap_or_default().to_owned();
        let message = format!("{} ended with {}: {said}", program.command[0], ran.status);
        return Err(Failure::new(Code::Failed, message));
    }
    if let Some(left) = ran.left.first() {
        let message = format!(
            "{} left {left} running, which was ended: expected a program that does its work \
             before it ends",
            program.command[0]
        );
        return Err(Failure::new(Code::Failed, message));
    }
    let report = longest(&reports)?;
    Ok((ran, report))
}

/// The machine that the advice is for.
fn machine(args: &AdviseArgs) -> Result<EmulatedMachine, Failure> {
    let described = match args.machine.emulate_like {
        Some(_) => describe(&args.machine)?,
        None => describe_guest(&args.machine)?,
    };
    described.findings.iter().for_each(note);
    let usual = described.file.is_none();
    let mut machine = described.emulated_memory(&args.costs)?;
    if usual && args.costs.emulate_cache.is_none() {
        machine.caches = parse_caches(CACHES).map_err(Failure::bad_input)?;
    }
    if usual && args.costs.emulate_stages.is_none() {
        let stages = parse_stages(STAGES).map_err(Failure::bad_input)?;
        machine = stages.iter().fold(machine, |machine, &stage| machine.with(stage));
    }
    Ok(machine)
}

fn costs(machine: &EmulatedMachine) -> MachineCosts {
    let cpus_of = |node: usize| machine.cpus.iter().filter(|of| **of == node).count();
    let levels = machine.caches.iter().filter(|level| level.scope == CacheScope::Group);
    let shared = levels.max_by_key(|level| level.level);
    let far = |rows: &[Vec<f64>]| rows.iter().flatten().copied().fold(0.0, f64::max);
    MachineCosts {
        nodes: machine.nodes.iter().map(|node| node.id).collect(),
        cpus: (0..machine.nodes.len()).map(cpus_of).collect(),
        latency_ns: machine.latency_ns.clone(),
        transfer_ns: machine.transfers.as_ref().map(|of| (of.group_ns, far(&of.node_ns))),
        shared_cache_ns: shared.map(|level| level.latency_ns),
        bandwidth_mb_s: bandwidths(machine),
        walks: machine.tlb.is_some(),
    }
}

/// What each node's memory gives at most, by its limit or its curve without writes.
fn bandwidths(machine: &EmulatedMachine) -> Vec<f64> {
    if let Some(limits) = &machine.node_bandwidth_mb_s {
        return limits.clone();
    }
    let most = |curves: &Vec<Curve>| {
        let points = curves.first().and_then(|curve| curve.points.last());
        points.map_or(0.0, |(mb_s, _)| *mb_s)
    };
    machine.node_load.as_ref().map_or_else(Vec::new, |nodes| nodes.iter().map(most).collect())
}

fn deliver(args: &AdviseArgs, advice: &Advice) -> Result<(), Failure> {
    if args.quiet {
        let best = advice.best().and_then(|option| option.command.clone());
        let asis = || output::shell_lines(&args.command).trim_end().to_owned();
        return output::print(&format!("{}\n", best.unwrap_or_else(asis)));
    }
    let text = output::render(advice, args.format)?;
    match &args.output {
        Some(file) => std::fs::write(file, text)
            .map_err(|error| Failure::new(Code::Failed, format!("{}: {error}", file.display()))),
        None => output::print(&text),
    }
}
