//! Rules for problems of rank placement.

use std::collections::BTreeMap;

use numalab_record::explore::{RankView, RanksView, spread};
use numalab_topology::{CpuId, CpuSet, NodeId};
use serde::Serialize;

use super::process::apart::GAIN;
use super::process::{LEAST_BYTES, MOSTLY};
use super::{Advice, ExploreFinding, Problem, ProblemPlace, Remedy};
use crate::Finding;

/// A problem of rank placement. Shares are 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RanksProblem {
    /// Several busy threads are bound to the same single cpus.
    CpusShared {
        /// The shared cpus.
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

/// Finds threads that have run and are bound to a single cpu that others are bound to as well.
fn shared_cpus(view: &RanksView) -> Option<ExploreFinding> {
    let mut bound: BTreeMap<CpuId, Vec<(usize, u32)>> = BTreeMap::new();
    for rank in &view.ranks {
        let busy = rank.threads.iter().filter(|thread| thread.cpu_ticks > 0);
        for thread in busy.filter(|thread| thread.allowed.len() == 1) {
            bound.entry(thread.cpu).or_default().push((rank.rank, thread.thread));
        }
    }
    bound.retain(|_, threads| threads.len() > 1);
    if bound.is_empty() {
        return None;
    }
    let threads: Vec<(usize, u32)> = bound.values().flatten().copied().collect();
    let mut ranks: Vec<usize> = threads.iter().map(|(rank, _)| *rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let cpus = bound.keys().copied().collect();
    let problem = RanksProblem::CpusShared { cpus, threads: threads.len(), ranks };
    let places = threads.iter().map(|(_, thread)| ProblemPlace::Thread(*thread)).collect();
    let advice = Advice::wrong(Problem::Ranks(problem), Remedy::SpreadThreads);
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
        Finding::new(Advice::wrong(Problem::Ranks(problem), remedy)).over(MOSTLY).shown_by(threads),
    )
}

#[cfg(test)]
mod tests {
    use numalab_record::explore::{BytesByNode, ThreadView};

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
            size: 2,
            process: 7,
            other_processes: 0,
            command: "./solver".to_owned(),
            threads,
            own_bytes_by_node: [(NodeId(1), 8 << 20)].into(),
            remote_share: Some(remote_share),
        }
    }

    fn kinds(ranks: Vec<RankView>) -> Vec<Problem> {
        let view = RanksView { ranks, ..RanksView::default() };
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
        let free = vec![thread(10, 0, "0-1", 5), thread(11, 0, "0-1", 5)];
        assert_eq!(kinds(vec![rank(0, free, 0.0)]), []);
        let idle = vec![thread(10, 0, "0", 5), thread(11, 0, "0", 0)];
        assert_eq!(kinds(vec![rank(0, idle, 0.0)]), []);
    }

    #[test]
    fn a_rank_with_mostly_remote_memory_is_a_finding() {
        let found = kinds(vec![rank(3, vec![thread(10, 0, "0", 5)], 0.9)]);
        let problem = RanksProblem::RankRemote { rank: 3, home: NodeId(1), share: 0.9 };
        assert_eq!(found, [Problem::Ranks(problem)]);
        assert_eq!(kinds(vec![rank(3, Vec::new(), 0.4)]), []);
    }
}
