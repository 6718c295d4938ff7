//! The waiting that threads would save under a candidate, from the causes of their waits and the
//! machine's latencies. Waiting for memory is scaled by the ratio of the new latency to the old
//! one; waiting for loaded memory follows from the demand of all threads ([`super::load`]). Threads
//! on one node share its caches, and the hits and misses of the shared caches were counted in the
//! run. If the emulator simulated each core under the candidate, nothing is scaled, because the
//! share of latency that a core hides varies with the latency. Instructions, and waiting for a
//! cpu's own caches, stay the same.

use std::collections::BTreeMap;

use numalab_record::{NodeWaits, PagesAlike, ProgramMemory, Region, RegionAccesses, Sharing};

use super::Candidate;
use super::bound::bound_part;
use super::load::longer_ns;
use super::machine::MachineCosts;

/// Factor by which a node may wait less for pages than the leading node and still count as one of
/// those that touch them first.
const AS_MUCH: f64 = 1.25;

/// Returns each thread's saving in ns; a loss is negative.
pub(super) fn saved_ns(
    candidate: &Candidate,
    program: &ProgramMemory,
    machine: &MachineCosts,
) -> BTreeMap<u32, f64> {
    let mut saved: BTreeMap<u32, f64> = BTreeMap::new();
    if let Candidate::SeparateLines { .. } = candidate {
        let shared = program.contended_lines.iter().filter(|line| line.is_false_sharing());
        for user in shared.flat_map(|line| &line.threads) {
            *saved.entry(user.thread).or_default() += user.waited_ns as f64;
        }
        return saved;
    }
    let followed = followed_ns(candidate, program, machine);
    saved.extend(followed.iter().map(|(thread, longer_ns)| (*thread, -longer_ns)));
    for region in &program.regions {
        for accesses in &region.accesses {
            let entry = saved.entry(accesses.thread).or_default();
            if followed.contains_key(&accesses.thread) {
                continue;
            }
            *entry += memory_saved_ns(candidate, region, accesses, machine);
            if let Candidate::Bind { .. } = candidate {
                *entry += nearer_ns(accesses, machine);
            }
        }
    }
    for (thread, ns) in longer_ns(candidate, program, machine, &saved) {
        *saved.entry(thread).or_default() -= ns;
    }
    saved
}

/// Returns each thread's extra waiting in ns at unchanged memory load, if its core was simulated.
fn followed_ns(
    candidate: &Candidate,
    program: &ProgramMemory,
    machine: &MachineCosts,
) -> BTreeMap<u32, f64> {
    let placed = candidate.placed(machine);
    let followed = program.threads.iter().filter_map(|thread| {
        let of = thread.elsewhere.iter().find(|of| Some(&of.placed) == placed.as_ref())?;
        Some((thread.thread, of.longer_ns as f64))
    });
    followed.collect()
}

fn memory_saved_ns(
    candidate: &Candidate,
    region: &Region,
    accesses: &RegionAccesses,
    machine: &MachineCosts,
) -> f64 {
    let ratio = ratio(candidate, region, accesses, machine);
    let waits = accesses.waits();
    let [memory, queue, cached_ns] =
        [waits.memory_ns, waits.queue_ns, waits.cached_ns].map(|ns| ns as f64);
    let then_ns = (memory - queue) * ratio + queue;
    let Candidate::Bind { node } = candidate else { return memory - then_ns };
    let hit_ns = machine.shared_cache_ns.unwrap_or(0.0);
    let own_ns = machine.pair_ns(*node, *node);
    let now_ns = machine.pair_ns(accesses.cpu_node, accesses.memory_node);
    let cached = cached_ns / memory.max(1.0);
    let hits_ns = cached_ns * (hit_ns / now_ns).min(1.0);
    // The core hides the new misses as well as it hid the old ones.
    let exposed = match accesses.misses.unwrap_or(0) {
        0 => 1.0,
        misses => (memory / (misses as f64 * now_ns)).min(1.0),
    };
    let lost_ns = waits.uncached as f64 * (own_ns - hit_ns).max(0.0) * exposed;
    memory - then_ns * (1.0 - cached) - hits_ns - lost_ns
}

/// Returns the time saved on lines from other nodes' caches, in nanoseconds.
fn nearer_ns(accesses: &RegionAccesses, machine: &MachineCosts) -> f64 {
    let transfers = machine.transfer_ns.filter(|(near, far)| far > near);
    transfers.map_or(0.0, |(near, far)| accesses.waits().far_ns as f64 * (1.0 - near / far))
}

/// Returns the ratio of a thread's waiting for memory under the candidate to its present waiting.
fn ratio(
    candidate: &Candidate,
    region: &Region,
    accesses: &RegionAccesses,
    machine: &MachineCosts,
) -> f64 {
    let latency = |cpu: u32, memory: u32| machine.pair_ns(cpu, memory);
    let now = latency(accesses.cpu_node, accesses.memory_node);
    let bound = bound_part(region, accesses);
    // Pages that the program binds stay, unless the program is changed.
    let free_or_bound = |free: f64, stay: f64| (free * (1.0 - bound) + stay * bound) / now;
    match candidate {
        Candidate::Bind { node } => {
            free_or_bound(latency(*node, *node), latency(*node, accesses.memory_node))
        }
        Candidate::Interleave { .. } | Candidate::WeightedInterleave { .. } => {
            let turns = candidate.turns(machine).unwrap_or_default();
            let nodes: Vec<u32> = turns.into_iter().map(|at| machine.nodes[at]).collect();
            free_or_bound(mean_ns(machine, accesses.cpu_node, &nodes), now)
        }
        Candidate::BindRegion { address, nodes, .. } if *address == region.start => {
            mean_ns(machine, accesses.cpu_node, nodes) / now
        }
        Candidate::PlaceFile { address, nodes, .. } if *address == region.start => {
            free_or_bound(mean_ns(machine, accesses.cpu_node, nodes), now)
        }
        Candidate::Balancing { .. } => by_pages(region, accesses, |pages| {
            let own = latency(accesses.cpu_node, accesses.cpu_node);
            if can_follow(pages) && pages.main_node == accesses.cpu_node { own / now } else { 1.0 }
        }),
        Candidate::FirstTouch { .. } => by_pages(region, accesses, |pages| {
            mean_ns(machine, accesses.cpu_node, &first_touchers(pages, machine)) / now
        }),
        Candidate::Replicate { .. } => {
            let own = latency(accesses.cpu_node, accesses.cpu_node);
            by_pages(region, accesses, |pages| match pages.sharing {
                Sharing::Read => own / now,
                _ => 1.0,
            })
        }
        Candidate::HugePages
        | Candidate::Pack
        | Candidate::FastMemory { .. }
        | Candidate::Cpus { .. }
        | Candidate::BindRegion { .. }
        | Candidate::PlaceFile { .. }
        | Candidate::Ranks { .. }
        | Candidate::SeparateLines { .. } => 1.0,
    }
}

/// Returns the mean latency from a node's cpus to the given nodes' memory.
fn mean_ns(machine: &MachineCosts, cpu: u32, nodes: &[u32]) -> f64 {
    let all = nodes.iter().map(|node| machine.pair_ns(cpu, *node));
    all.sum::<f64>() / nodes.len().max(1) as f64
}

/// Returns `true` if pages can move to the node that uses them: only one does, and the program does
/// not bind them.
pub(super) fn can_follow(pages: &PagesAlike) -> bool {
    let is_of_one = matches!(pages.sharing, Sharing::Private | Sharing::OneNode);
    is_of_one && pages.main_node != pages.memory_node && !pages.bound
}

/// Returns the nodes that may touch pages first: the one that would wait for them most if they were
/// equally close to all, and any that would wait about as long. Pages that the program binds stay.
fn first_touchers(pages: &PagesAlike, machine: &MachineCosts) -> Vec<u32> {
    if pages.bound {
        return vec![pages.memory_node];
    }
    let use_of = |waits: &NodeWaits| {
        waits.memory_ns as f64 / machine.pair_ns(waits.cpu_node, pages.memory_node)
    };
    let most = pages.waits.iter().map(use_of).fold(0.0, f64::max);
    let as_much = pages.waits.iter().filter(|of| use_of(of) * AS_MUCH > most);
    let nodes: Vec<u32> = as_much.map(|waits| waits.cpu_node).collect();
    if nodes.is_empty() { vec![pages.main_node] } else { nodes }
}

/// Returns the mean `ratio` over the pages on the accessed node that the thread's node waits for,
/// weighted by waiting; 1 if there are none.
fn by_pages(region: &Region, accesses: &RegionAccesses, ratio: impl Fn(&PagesAlike) -> f64) -> f64 {
    let pages = region.pages.iter().filter(|pages| pages.memory_node == accesses.memory_node);
    let waits = pages.filter_map(|pages| {
        let of_node = pages.waits.iter().find(|waits| waits.cpu_node == accesses.cpu_node)?;
        Some((of_node.memory_ns as f64, ratio(pages)))
    });
    let (all, then) =
        waits.fold((0.0, 0.0), |(all, then), (ns, ratio)| (all + ns, then + ns * ratio));
    if all > 0.0 { then / all } else { 1.0 }
}
