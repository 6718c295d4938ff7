//! What a candidate would bring: each thread's counted waiting by the latencies that it would have.
//!
//! What a thread waits for memory is scaled by the latency that it would find there over the one
//! that it found; its instructions, and what it waits for caches, stay. How the threads' times make
//! up the program's is told in two ways, between which the interval lies: all times shrink
//! alike, or the longest thread and the one that made it decide.

use std::collections::BTreeMap;

use numalab_record::{ContendedLine, PagesAlike, ProgramMemory, Region, RegionAccesses, Sharing};
use serde::{Deserialize, Serialize};

use super::{Candidate, MachineCosts, WORTH_SHARE};

/// What the model of a program's time leaves out, as a part of a change and in points.
const UNKNOWN_PART: f64 = 0.2;
const UNKNOWN_POINTS: f64 = 2.0;

/// A change of the time that is expected, in percent; less is faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// The change.
    pub change_percent: f64,
    /// Where it lies.
    pub interval_percent: (f64, f64),
}

impl Prediction {
    /// Whether it is worth a change, even at the worse end of the interval.
    #[must_use]
    pub fn is_gain(&self) -> bool {
        let least = -100.0 * WORTH_SHARE;
        self.change_percent < least && self.interval_percent.1 < 0.0
    }
}

/// What a candidate would bring to a program that ran as it is on the machine.
#[must_use]
pub fn predict(
    candidate: &Candidate,
    program: &ProgramMemory,
    machine: &MachineCosts,
) -> Prediction {
    let saved = saved_ns(candidate, program, machine);
    let times = program.threads.iter().map(|thread| {
        let saved_ns = saved.get(&thread.thread).copied().unwrap_or(0.0);
        let busy_ns = thread.busy_ns as f64;
        (thread.thread, busy_ns, (busy_ns - saved_ns).max(0.0))
    });
    let times: Vec<(u32, f64, f64)> = times.collect();
    let sums = times.iter().fold((0.0, 0.0), |sum, (_, now, then)| (sum.0 + now, sum.1 + then));
    let elapsed_ns = (program.elapsed_ns as f64).max(1.0);
    let alike = sums.1 / sums.0.max(1.0) - 1.0;
    let path = (path_ns(&times, |of| of.2) - path_ns(&times, |of| of.1)) / elapsed_ns;
    let crowd = crowding(candidate, &times, machine, elapsed_ns);
    let ways = [alike, path].map(|change| 100.0 * ((1.0 + change.max(-1.0)) * crowd - 1.0));
    let change_percent = if is_fork_join(&times, elapsed_ns) { ways[1] } else { ways[0] };
    let beyond = UNKNOWN_PART * change_percent.abs() + UNKNOWN_POINTS;
    let low = ways[0].min(ways[1]).max(-100.0) - beyond;
    let high = ways[0].max(ways[1]) + beyond;
    Prediction { change_percent, interval_percent: (low.max(-100.0), high) }
}

/// The first thread and the longest of the others, one after the other.
fn path_ns(times: &[(u32, f64, f64)], of: impl Fn(&(u32, f64, f64)) -> f64) -> f64 {
    let first = times.first().map_or(0.0, &of);
    first + times.iter().skip(1).map(of).fold(0.0, f64::max)
}

/// Whether that is about the time that passed.
fn is_fork_join(times: &[(u32, f64, f64)], elapsed_ns: f64) -> bool {
    (path_ns(times, |of| of.1) / elapsed_ns - 1.0).abs() < 0.1
}

/// How much longer threads take that have fewer cpus than before.
fn crowding(
    candidate: &Candidate,
    times: &[(u32, f64, f64)],
    machine: &MachineCosts,
    elapsed_ns: f64,
) -> f64 {
    let Candidate::Bind { node } = candidate else { return 1.0 };
    let at = machine.nodes.iter().position(|id| id == node);
    let cpus = at.and_then(|at| machine.cpus.get(at)).copied().unwrap_or(1).max(1) as f64;
    let busy_ns: f64 = times.iter().map(|(_, now, _)| now).sum();
    // Threads that run at a time, on average of the time but for the first thread's own.
    let alone_ns = times.first().map_or(0.0, |(_, now, _)| *now);
    let together_ns = (elapsed_ns - alone_ns).max(elapsed_ns * 0.01);
    let threads = if times.len() > 1 { (busy_ns - alone_ns) / together_ns } else { 1.0 };
    (threads / cpus).max(1.0)
}

/// What each thread would save, in ns; negative for what it would lose.
fn saved_ns(
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
    for region in &program.regions {
        for accesses in &region.accesses {
            let ratio = ratio(candidate, region, accesses, machine);
            *saved.entry(accesses.thread).or_default() += accesses.memory_ns as f64 * (1.0 - ratio);
        }
    }
    if let Candidate::Bind { .. } = candidate {
        nearer_lines(&program.contended_lines, machine, &mut saved);
    }
    saved
}

/// Lines that went from node to node stay on one.
fn nearer_lines(lines: &[ContendedLine], machine: &MachineCosts, saved: &mut BTreeMap<u32, f64>) {
    let Some((near, far)) = machine.transfer_ns.filter(|(near, far)| far > near) else { return };
    for line in lines {
        let nodes: std::collections::BTreeSet<u32> =
            line.threads.iter().map(|user| user.cpu_node).collect();
        // Of the turns, those among different nodes.
        let away = 1.0 - 1.0 / nodes.len().max(1) as f64;
        for user in &line.threads {
            let mean = away * far + (1.0 - away) * near;
            *saved.entry(user.thread).or_default() += user.waited_ns as f64 * (1.0 - near / mean);
        }
    }
}

/// How long a thread would wait for what it waits for now.
fn ratio(
    candidate: &Candidate,
    region: &Region,
    accesses: &RegionAccesses,
    machine: &MachineCosts,
) -> f64 {
    let latency = |cpu: u32, memory: u32| latency_ns(machine, cpu, memory);
    let now = latency(accesses.cpu_node, accesses.memory_node);
    let then = match candidate {
        Candidate::Bind { node } => latency(*node, *node),
        Candidate::Interleave => {
            let all = machine.nodes.iter().map(|node| latency(accesses.cpu_node, *node));
            all.sum::<f64>() / machine.nodes.len().max(1) as f64
        }
        Candidate::FirstTouch { .. } => {
            return by_pages(region, accesses, |pages| {
                latency(accesses.cpu_node, pages.main_node) / now
            });
        }
        Candidate::Replicate { .. } => {
            let own = latency(accesses.cpu_node, accesses.cpu_node);
            return by_pages(region, accesses, |pages| match pages.sharing {
                Sharing::Read => own / now,
                _ => 1.0,
            });
        }
        Candidate::SeparateLines { .. } => now,
    };
    then / now
}

/// The mean over the pages that a thread's node waits for on that node, by how long it does.
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

fn latency_ns(machine: &MachineCosts, cpu: u32, memory: u32) -> f64 {
    let at = |node: u32| machine.nodes.iter().position(|id| *id == node);
    let found = at(cpu)
        .zip(at(memory))
        .and_then(|(cpu, memory)| machine.latency_ns.get(cpu)?.get(memory).copied());
    found.filter(|ns| *ns > 0.0).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use numalab_record::{LineUser, NodeWaits, ProgramThread};

    use super::*;
    use crate::VerdictWord;
    use crate::advice::{Advice, Measured};

    fn machine() -> MachineCosts {
        MachineCosts {
            nodes: vec![0, 1],
            cpus: vec![2, 2],
            latency_ns: vec![vec![100.0, 200.0], vec![200.0, 100.0]],
            transfer_ns: Some((20.0, 200.0)),
        }
    }

    /// A first thread that worked for 100 ns, one on node 0 that worked for 600 ns, and two on node 1
    /// that worked for 1000 ns, of which they waited `away_ns` for pages on node 0.
    fn program(away_ns: u64, sharing: Sharing, main_node: u32) -> ProgramMemory {
        let thread = |thread, cpu_node, busy_ns| ProgramThread { thread, cpu_node, busy_ns };
        let accesses = |thread, cpu_node, memory_ns| RegionAccesses {
            thread,
            cpu_node,
            memory_ns,
            waited_ns: memory_ns,
            ..RegionAccesses::default()
        };
        let waits = [(0, away_ns / 2), (1, 2 * away_ns)];
        let waits = waits.map(|(cpu_node, memory_ns)| NodeWaits { cpu_node, memory_ns });
        let waits: Vec<_> = if sharing == Sharing::Read { waits.to_vec() } else { vec![waits[1]] };
        let pages = PagesAlike { memory_node: 0, main_node, sharing, pages: 1, accesses: 9, waits };
        ProgramMemory {
            elapsed_ns: 1100,
            threads: vec![
                thread(0, 0, 100),
                thread(1, 1, 1000),
                thread(2, 0, 600),
                thread(3, 1, 1000),
            ],
            regions: vec![Region {
                name: "block".to_owned(),
                pages: vec![pages],
                accesses: vec![accesses(1, 1, away_ns), accesses(3, 1, away_ns)],
                ..Region::default()
            }],
            ..ProgramMemory::default()
        }
    }

    fn change(candidate: &Candidate, program: &ProgramMemory) -> f64 {
        let found = predict(candidate, program, &machine());
        let (low, high) = found.interval_percent;
        assert!(low <= found.change_percent && found.change_percent <= high, "{found:?}");
        found.change_percent
    }

    #[test]
    fn pages_that_their_users_touch_first_cost_what_local_ones_do() {
        let program = program(1000, Sharing::OneNode, 1);
        let advice = Advice::of(&[], &program, machine());
        let best = advice.best().expect("a gain");
        assert!(matches!(best.candidate, Candidate::FirstTouch { .. }), "{advice:?}");
        assert!(change(&best.candidate, &program) < -20.0, "{best:?}");
    }

    #[test]
    fn what_is_read_by_all_gains_from_copies_and_what_is_written_does_not() {
        let copies = Candidate::Replicate { line: None, region: String::new() };
        let read = program(1000, Sharing::Read, 0);
        assert!(predict(&copies, &read, &machine()).interval_percent.0 < -10.0);
        assert_eq!(change(&copies, &program(1000, Sharing::Written, 0)), 0.0);
    }

    #[test]
    fn threads_that_have_no_cpu_wait_for_one() {
        let bind = Candidate::Bind { node: 0 };
        // 2.6 at a time on two cpus.
        assert!(change(&bind, &program(0, Sharing::Private, 0)) > 25.0);
    }

    #[test]
    fn who_hardly_waits_has_nothing_to_gain() {
        let advice = Advice::of(&[], &program(10, Sharing::OneNode, 1), machine());
        assert!(advice.best().is_none(), "{advice:?}");
        assert!(advice.memory_share < 0.02);
    }

    #[test]
    fn lines_that_are_shared_for_nothing_cost_nothing_apart() {
        let user = |thread, stored_bytes| LineUser {
            thread,
            cpu_node: thread % 2,
            loads: 1,
            stores: 1,
            loaded_bytes: stored_bytes,
            stored_bytes,
            waited_ns: 800,
            at: Vec::new(),
        };
        let mut shared = program(0, Sharing::Private, 0);
        let threads = vec![user(1, 0xff), user(2, 0xff00), user(3, 0xff_0000)];
        let line = ContendedLine { address: 0, region: String::new(), changes: 9, threads };
        shared.contended_lines = vec![line];
        let advice = Advice::of(&[], &shared, machine());
        let apart = Candidate::SeparateLines { lines: Vec::new() };
        assert_eq!(advice.best().map(|option| &option.candidate), Some(&apart));
        let mut failed = advice.clone();
        let bind = failed.options.iter_mut().find(|option| option.candidate.is_by_command());
        let measured = Measured {
            change_percent: -1.0,
            interval_percent: (-9.0, 7.0),
            verdict: VerdictWord::Inconclusive,
        };
        bind.expect("it can be bound").measured = Some(measured);
        assert_eq!(failed.best().map(|option| &option.candidate), Some(&apart));
        let found = change(&apart, &shared);
        assert!((-80.0..-60.0).contains(&found), "{found}");
    }
}
