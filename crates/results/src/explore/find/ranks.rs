//! Rules for problems of rank placement.

use std::collections::BTreeMap;

use numalab_record::explore::{RankView, RanksView, ThreadView, spread};
use numalab_topology::{CpuSet, NodeId};
use serde::Serialize;

use super::process::apart::GAIN;
use super::process::{LEAST_BYTES, MOSTLY};
use super::{ExploreFinding, JudgedProblem, Problem, ProblemPlace, Remedy};
use crate::Finding;

/// A thread is busy if it ran for at least the busiest thread's time divided by this.
const BUSY_SHARE: u64 = 10;

/// A problem of rank placement. Shares are 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RanksProblem {
    /// More busy threads are bound to a set of cpus than it has cpus.
    CpusShared {
        /// The cpus, of one or several bindings.
        cpus: CpuSet,
        /// Number of threads bound to them.
        threads: usize,
        /// The ranks of these threads.
        ranks: Vec<usize>,
    },
    /// Most of a rank's memory is remote to its threads.
    RankRemote {
        /// The rank's number.
        rank: usize,
        /// The node with most of its memory.
        home: NodeId,
        /// The remote share of the memory that its threads touch.
        share: f64,
    },
}

pub(super) fn findings(view: &RanksView) -> Vec<ExploreFinding> {
    shared_cpus(view).into_iter().chain(view.ranks.iter().filter_map(remote)).collect()
}

/// Finds threads that outnumber the cpus that they are bound to, such as OpenMP threads in ranks
/// that `mpirun` binds to one core each. If there are several cpus, threads that ran much less than
/// the busiest, such as a library's, do not count.
fn shared_cpus(view: &RanksView) -> Option<ExploreFinding> {
    let mut all = CpuSet::new();
    view.cpus_by_node.values().for_each(|of_node| all.extend_from(of_node));
    let mut bound: BTreeMap<CpuSet, Vec<(usize, &ThreadView)>> = BTreeMap::new();
    for rank in &view.ranks {
        let ran = rank.threads.iter().filter(|thread| thread.cpu_ticks > 0);
        for thread in ran.filter(|thread| thread.allowed.len() == 1 || thread.allowed != all) {
            bound.entry(thread.allowed.clone()).or_default().push((rank.rank, thread));
        }
    }
    for (_, threads) in bound.iter_mut().filter(|(cpus, _)| cpus.len() > 1) {
        let most = threads.iter().map(|(_, thread)| thread.cpu_ticks).max().unwrap_or(0);
        threads.retain(|(_, thread)| thread.cpu_ticks.saturating_mul(BUSY_SHARE) >= most);
    }
    bound.retain(|cpus, threads| threads.len() > cpus.len());
    if bound.is_empty() {
        return None;
    }
    let mut cpus = CpuSet::new();
    bound.keys().for_each(|of_some| cpus.extend_from(of_some));
    let threads: Vec<(usize, &ThreadView)> = bound.into_values().flatten().collect();
    let mut ranks: Vec<usize> = threads.iter().map(|(rank, _)| *rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let problem = RanksProblem::CpusShared { cpus, threads: threads.len(), ranks };
    let places = threads.iter().map(|(_, thread)| ProblemPlace::Thread(thread.thread)).collect();
    let advice = JudgedProblem::wrong(Problem::Ranks(problem), Remedy::SpreadThreads);
    Some(Finding::new(advice).shown_by(places))
}

fn remote(rank: &RankView) -> Option<ExploreFinding> {
    let share = rank.remote_share.filter(|share| *share >= MOSTLY)?;
    let (home, on_home) = spread::most(&rank.own_bytes_by_node)?;
    let is_spread = on_home - (1.0 - share) < GAIN;
    if spread::total(&rank.own_bytes_by_node) < LEAST_BYTES || is_spread {
        return None;
    }
    let problem = RanksProblem::RankRemote { rank: rank.rank, home, share };
    let remedy = Remedy::LookAtProcess { process: rank.process };
    let threads = rank.threads.iter().map(|thread| ProblemPlace::Thread(thread.thread)).collect();
    Some(
        Finding::new(JudgedProblem::wrong(Problem::Ranks(problem), remedy))
            .over(MOSTLY)
            .shown_by(threads),
    )
}

#[cfg(test)]
mod tests {
    use numalab_record::explore::BytesByNode;
    use numalab_topology::CpuId;

    use super::*;

    fn thread(number: u32, cpu: u32, allowed: &str, cpu_ticks: u64) -> ThreadView {
        ThreadView {
            thread: number,
            name: "solver".to_owned(),
            state: 'R',
            cpu: CpuId(cpu),
            node: Some(NodeId(0)),
            allowed: allowed.parse().unwrap(),
            cpu_ticks,
            touched_pages: BytesByNode::new(),
            remote_share: None,
        }
    }

    fn rank(rank: usize, threads: Vec<ThreadView>, remote_share: f64) -> RankView {
        RankView {
            job: "1.0".to_owned(),
            rank,
            size: Some(2),
            process: 7,
            other_processes: 0,
            command: "./solver".to_owned(),
            threads,
            own_bytes_by_node: [(NodeId(1), 8 << 20)].into(),
            remote_share: Some(remote_share),
        }
    }

    fn kinds(ranks: Vec<RankView>) -> Vec<Problem> {
        let cpus_by_node = [(NodeId(0), "0-3".parse().unwrap())].into();
        let view = RanksView { ranks, cpus_by_node, ..RanksView::default() };
        findings(&view).into_iter().map(|finding| finding.what.problem).collect()
    }

    #[test]
    fn busy_threads_bound_to_one_cpu_are_wrong_and_free_or_idle_ones_are_not() {
        let shared = kinds(vec![
            rank(0, vec![thread(10, 0, "0", 5), thread(11, 1, "1", 5)], 0.0),
            rank(1, vec![thread(20, 0, "0", 5)], 0.0),
        ]);
        let cpus = CpuSet::from_iter([CpuId(0)]);
        let problem = RanksProblem::CpusShared { cpus, threads: 2, ranks: vec![0, 1] };
        assert_eq!(shared, [Problem::Ranks(problem)]);
        let fit = vec![thread(10, 0, "0-1", 5), thread(11, 0, "0-1", 5)];
        assert_eq!(kinds(vec![rank(0, fit, 0.0)]), []);
        let free = (0..9).map(|number| thread(number, 0, "0-3", 5)).collect();
        assert_eq!(kinds(vec![rank(0, free, 0.0)]), [], "bound to no part of the machine");
        let idle = vec![thread(10, 0, "0", 5), thread(11, 0, "0", 0)];
        assert_eq!(kinds(vec![rank(0, idle, 0.0)]), []);
    }

    #[test]
    fn more_busy_threads_than_the_cpus_that_they_are_bound_to_are_wrong() {
        let of = |ticks: [u64; 4]| {
            let numbers = (10..).zip(ticks);
            numbers.map(|(number, ticks)| thread(number, 2, "2-3", ticks)).collect()
        };
        let cpus: CpuSet = "2-3".parse().unwrap();
        let problem = RanksProblem::CpusShared { cpus, threads: 3, ranks: vec![5] };
        let found = kinds(vec![rank(5, of([900, 800, 700, 1]), 0.0)]);
        assert_eq!(found, [Problem::Ranks(problem)], "the fourth is a library's");
        assert_eq!(kinds(vec![rank(5, of([900, 800, 7, 1]), 0.0)]), []);
    }

    #[test]
    fn a_rank_with_mostly_remote_memory_is_a_finding() {
        let found = kinds(vec![rank(3, vec![thread(10, 0, "0", 5)], 0.9)]);
        let problem = RanksProblem::RankRemote { rank: 3, home: NodeId(1), share: 0.9 };
        assert_eq!(found, [Problem::Ranks(problem)]);
        assert_eq!(kinds(vec![rank(3, Vec::new(), 0.4)]), []);
    }
}
