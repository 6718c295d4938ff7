//! The candidates that apply to a program on a machine.

use std::collections::BTreeSet;

use numalab_record::{ContendedLine, Placed, ProgramMemory, ProgramThread, Region, Sharing};

use super::Candidate;
use super::machine::MachineCosts;
use super::spread::spreads;
use crate::program::{is_runtimes_own, mapped_files, user_code};

/// Minimum share of the threads' time spent on a region's memory for the region to be named.
const NAMED_SHARE: f64 = 0.02;

/// Returns the candidates for a program on a machine.
pub fn candidates(program: &ProgramMemory, machine: &MachineCosts) -> Vec<Candidate> {
    let mut found = Candidate::of_machine(machine);
    found.retain(|of| *of != Candidate::Pack || can_pack(program, machine));
    found.extend(fast_memory(program, machine));
    found.extend(on_cpus(machine, Some(program.threads.len())));
    found.extend(balancing(machine));
    if machine.nodes.len() > 1 {
        found.extend(bind_region(program, machine));
        found.extend(place_file(program, machine));
        found.extend(first_touch(program));
        found.extend(replicate(program));
    }
    found.extend(separate_lines(program));
    found
}

/// Returns the candidates for a program without a profile.
pub fn candidates_unprofiled(machine: &MachineCosts, threads: Option<usize>) -> Vec<Candidate> {
    let mut found = Candidate::of_machine(machine);
    found.extend(on_cpus(machine, threads));
    found.extend(balancing(machine));
    found
}

/// Returns other ways to spread or pack threads.
fn on_cpus(machine: &MachineCosts, threads: Option<usize>) -> impl Iterator<Item = Candidate> {
    let found = spreads(machine, threads).into_iter();
    found.map(|(spread, cpus)| Candidate::Cpus { spread, cpus })
}

/// Returns the balancing modes that the kernel does not use already.
fn balancing(machine: &MachineCosts) -> Vec<Candidate> {
    if machine.memory_nodes(true).len() < 2 {
        return Vec::new();
    }
    let modes = match machine.kernel.balancing {
        Some(0) | None => [Some(1), machine.has_tiers().then_some(2)],
        Some(_) => [Some(0), None],
    };
    let is_of_nodes = |mode: &u8| *mode == 2 || machine.memory_nodes(false).len() > 1;
    let modes = modes.into_iter().flatten().filter(is_of_nodes);
    modes.map(|mode| Candidate::Balancing { mode }).collect()
}

/// Returns `true` if packing differs from binding to one node: the threads outnumber the first
/// node's cpus. Only runs with simulated cores can predict its effect.
fn can_pack(program: &ProgramMemory, machine: &MachineCosts) -> bool {
    let first = machine.cpus.iter().find(|cpus| **cpus > 0);
    let is_followed =
        |of: &ProgramThread| of.elsewhere.iter().any(|of| of.placed == Placed::Packed);
    first.is_some_and(|cpus| program.threads.len() > *cpus)
        && program.threads.iter().any(is_followed)
}

/// Returns the fast-memory candidate if pages are on nodes without cpus.
fn fast_memory(program: &ProgramMemory, machine: &MachineCosts) -> Option<Candidate> {
    let nodes = machine.memory_nodes(false);
    let is_slow = |node: u32| !nodes.contains(&node);
    let mut pages = program.regions.iter().flat_map(|region| &region.pages);
    let spills = pages.any(|pages| is_slow(pages.memory_node) && !pages.bound);
    (machine.has_tiers() && spills).then(|| Candidate::FastMemory { nodes: nodes.clone() })
}

fn busy_ns(program: &ProgramMemory) -> f64 {
    program.threads.iter().map(|thread| thread.busy_ns as f64).sum()
}

/// Returns the region with most of `waits_ns`, if that share is noticeable and the program's own
/// code could place the region.
fn region(program: &ProgramMemory, waits_ns: impl Fn(&Region) -> u64) -> Option<&Region> {
    worst(program, |of| if is_runtimes_own(of) { 0 } else { waits_ns(of) })
}

/// Returns the region with most of `waits_ns`, if that share is noticeable.
fn worst(program: &ProgramMemory, waits_ns: impl Fn(&Region) -> u64) -> Option<&Region> {
    let regions = program.regions.iter().map(|of| (waits_ns(of), of));
    let (ns, worst) = regions.max_by_key(|(ns, _)| *ns)?;
    (ns > 0 && ns as f64 >= NAMED_SHARE * busy_ns(program)).then_some(worst)
}

/// Returns the time spent waiting for a region's pages on other nodes, for pages with the given
/// sharing, in ns.
fn away_ns(region: &Region, sharing: impl Fn(Sharing) -> bool) -> u64 {
    let pages = region.pages.iter().filter(|pages| sharing(pages.sharing));
    let waits = pages
        .flat_map(|pages| pages.waits.iter().filter(|waits| waits.cpu_node != pages.memory_node));
    waits.map(|waits| waits.memory_ns).sum()
}

/// Returns candidates that bind the region with the most waiting for other nodes, to each node and
/// interleaved over all. A line of the program must allocate it, because the binding call goes
/// after that line; it also replaces a policy of the program's own. Policies do not apply to pages of
/// files on disk.
fn bind_region(program: &ProgramMemory, machine: &MachineCosts) -> Vec<Candidate> {
    let line = |region: &Region| user_code(&region.made_at).and_then(|place| place.line.clone());
    let files = mapped_files(program);
    let away = |region: &Region| {
        let is_own = line(region).is_some() && !files.contains(region.name.as_str());
        if is_own { away_ns(region, |_| true) } else { 0 }
    };
    let Some(region) = region(program, away) else { return Vec::new() };
    let Some(line) = line(region) else { return Vec::new() };
    let candidate = |nodes| Candidate::BindRegion {
        region: region.name.clone(),
        address: region.start,
        line: line.clone(),
        nodes,
    };
    each_and_all(machine).map(candidate).collect()
}

/// Returns candidates that read the file with the most waiting for other nodes into memory again,
/// on each node and interleaved over all. The first process to read the file placed its pages.
fn place_file(program: &ProgramMemory, machine: &MachineCosts) -> Vec<Candidate> {
    let files = mapped_files(program);
    let away = |region: &Region| match files.contains(region.name.as_str()) {
        true => away_ns(region, |_| true),
        false => 0,
    };
    let Some(region) = worst(program, away) else { return Vec::new() };
    let candidate =
        |nodes| Candidate::PlaceFile { path: region.name.clone(), address: region.start, nodes };
    each_and_all(machine).map(candidate).collect()
}

/// Returns each node with cpus and memory, and all of them together.
fn each_and_all(machine: &MachineCosts) -> impl Iterator<Item = Vec<u32>> {
    let near = machine.memory_nodes(false);
    near.clone().into_iter().map(|node| vec![node]).chain([near])
}

fn first_touch(program: &ProgramMemory) -> Option<Candidate> {
    let files = mapped_files(program);
    let misplaced = |region: &Region| -> u64 {
        if files.contains(region.name.as_str()) {
            return 0;
        }
        let pages = region.pages.iter().filter(|pages| pages.main_node != pages.memory_node);
        let pages = pages.filter(|pages| !pages.bound);
        let waits = pages.flat_map(|pages| &pages.waits);
        waits.map(|waits| waits.memory_ns).sum()
    };
    let region = region(program, misplaced)?;
    let most = region.first_touches.iter().max_by_key(|touches| touches.pages);
    let line = most.and_then(|touches| user_code(&touches.at)?.line.clone());
    Some(Candidate::FirstTouch { line, region: region.name.clone() })
}

fn replicate(program: &ProgramMemory) -> Option<Candidate> {
    let region = region(program, |region| away_ns(region, |of| of == Sharing::Read))?;
    let nodes: BTreeSet<u32> = region
        .pages
        .iter()
        .filter(|pages| pages.sharing == Sharing::Read)
        .flat_map(|pages| pages.waits.iter().map(|waits| waits.cpu_node))
        .collect();
    let line = user_code(&region.made_at).and_then(|place| place.line.clone());
    (nodes.len() > 1).then(|| Candidate::Replicate { line, region: region.name.clone() })
}

fn separate_lines(program: &ProgramMemory) -> Option<Candidate> {
    let shared = program.contended_lines.iter().filter(|line| line.is_false_sharing());
    let shared: Vec<&ContendedLine> = shared.collect();
    let waited_ns: u64 = shared.iter().map(|line| line.waited_ns()).sum();
    if (waited_ns as f64) < NAMED_SHARE * busy_ns(program) {
        return None;
    }
    let users = shared.iter().flat_map(|line| &line.threads).filter(|user| user.stores > 0);
    let lines = users.filter_map(|user| user_code(&user.at)?.line.clone());
    let lines: BTreeSet<String> = lines.collect();
    Some(Candidate::SeparateLines { lines: lines.into_iter().collect() })
}
