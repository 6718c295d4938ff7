//! Stores the results of ranks as cells of an ordinary run.

use std::collections::{BTreeMap, BTreeSet};

use numalab_measure::outcome_of;
use numalab_record::{
    BandwidthCell, Cell, CellId, Experiment, Finished, LatencyCell, Metric, Sample, Team,
    WorkerPlan,
};

use super::{RankResults, Seat, SessionPlan, Work};

/// A cell and the ranks that measure it together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SharedCell {
    pub cell: Cell,
    pub ranks: Vec<usize>,
}

/// Returns the cells of each size. Each rank's chase is one cell. Streams have a cell per host, the
/// sum of its ranks, or one per rank if they take turns. With several hosts, each cell's name
/// begins with the host's.
pub(super) fn cells(
    seats: &[Seat],
    teams: &[Vec<usize>],
    plan: &SessionPlan,
) -> Vec<Vec<SharedCell>> {
    let hosts: BTreeSet<&str> = seats.iter().map(|seat| seat.host.as_str()).collect();
    let of_size = |&size_bytes: &u64| {
        let mut all: Vec<SharedCell> = Vec::new();
        for ranks in teams {
            let mut cell = Cell::of(experiment(ranks, seats, plan, size_bytes));
            if hosts.len() > 1 {
                cell.id = CellId(format!("{}/{}", seats[ranks[0]].host, cell.id));
            }
            // Ranks that share a cpu have the same cell.
            if all.iter().any(|other| other.cell.id == cell.id) {
                cell.id = CellId(format!("{}/rank{}", cell.id, ranks[0]));
            }
            all.push(SharedCell { cell, ranks: ranks.clone() });
        }
        all
    };
    plan.sizes_bytes.iter().map(of_size).collect()
}

/// Returns the ranks of each cell of one size.
pub(super) fn teams(seats: &[Seat], plan: &SessionPlan) -> Vec<Vec<usize>> {
    if plan.serial || matches!(plan.work, Work::Latency(_)) {
        return (0..seats.len()).map(|rank| vec![rank]).collect();
    }
    let mut by_host: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (rank, seat) in seats.iter().enumerate() {
        by_host.entry(&seat.host).or_default().push(rank);
    }
    by_host.into_values().collect()
}

fn experiment(ranks: &[usize], seats: &[Seat], plan: &SessionPlan, size_bytes: u64) -> Experiment {
    let worker = |&rank: &usize| {
        let placement = &seats[rank].placement;
        WorkerPlan { cpu: placement.cpu, node: placement.memory_node }
    };
    match &plan.work {
        Work::Latency(rules) => Experiment::Latency(LatencyCell {
            worker: worker(&ranks[0]),
            size_bytes,
            pattern: rules.pattern,
            pages: plan.pages,
            team: if plan.serial { Team::Serial } else { Team::Concurrent },
        }),
        Work::Bandwidth(rules) => Experiment::Bandwidth(BandwidthCell {
            workers: ranks.iter().map(worker).collect(),
            kernel: rules.kernel,
            pattern: rules.pattern,
            size_bytes,
            pages: plan.pages,
            isa: rules.isa.clone(),
        }),
    }
}

/// Returns the finished cell of its ranks: their windows summed, since they streamed during the
/// same intervals, and each rank's part. Ranks take a fixed number of windows; whether that was
/// enough is checked afterwards.
pub(super) fn finished(
    shared: &SharedCell,
    team: &[&RankResults],
    precision: f64,
) -> (Finished, Vec<Sample>) {
    let windows = team.iter().map(|found| found.samples.len()).min().unwrap_or(0);
    let sum = |index: usize| {
        let all = || team.iter().map(move |found| &found.samples[index]);
        Sample {
            value: all().map(|sample| sample.value).sum(),
            work: all().map(|sample| sample.work).sum(),
            disturbed: all().find_map(|sample| sample.disturbed.clone()),
            ..team[0].samples[index].clone()
        }
    };
    let mut samples: Vec<Sample> = (0..windows).map(sum).collect();
    let finished = Finished {
        cell: shared.cell.id.clone(),
        outcome: outcome_of(&samples, precision),
        placements: team.iter().map(|found| found.placement.clone()).collect(),
    };
    if team.len() > 1 {
        let parts = (0..windows).flat_map(|at| team.iter().map(move |found| &found.samples[at]));
        let part = |(index, sample): (u32, &Sample)| Sample {
            metric: Metric::RankBandwidth,
            index,
            ..sample.clone()
        };
        samples.extend((0..).zip(parts).map(part));
    }
    (finished, samples)
}

#[cfg(test)]
pub(super) mod tests {
    use numalab_measure::StreamRules;
    use numalab_record::{AccessPattern, IsaName, Placement, ProofMethod, StreamKernel};
    use numalab_topology::{CpuId, NodeId};

    use super::*;
    use numalab_host::base_pages;

    pub fn seat(host: &str, cpu: u32) -> Seat {
        let placement = Placement {
            cpu: CpuId(cpu),
            cpu_node: Some(NodeId(0)),
            affinity: [CpuId(cpu)].into_iter().collect(),
            memory_node: NodeId(0),
            address: 4096,
            buffer_bytes: 1 << 20,
            method: ProofMethod::MovePages,
            pages_checked: 16,
            pages_per_node: BTreeMap::from([(NodeId(0), 16)]),
            bytes_per_page_size: BTreeMap::new(),
            isa: None,
        };
        Seat { host: host.to_owned(), policy: "bind:0".to_owned(), started_ns: 0, placement }
    }

    /// Returns the results of a rank with these rates in two windows, the second one disturbed.
    pub fn found(seat: &Seat, rates: [f64; 2]) -> RankResults {
        let sample = |(index, value): (u32, f64)| Sample {
            cell: CellId("own".to_owned()),
            metric: Metric::Bandwidth,
            index,
            value,
            start_ns: u64::from(index) * 1_000,
            duration_ns: 10,
            work: 100,
            disturbed: (index == 1).then(|| format!("of cpu {}", seat.placement.cpu)),
        };
        let samples = (0..).zip(rates).map(sample).collect();
        RankResults { samples, placement: seat.placement.clone() }
    }

    pub fn streams(serial: bool) -> SessionPlan {
        let (kernel, pattern) = (StreamKernel::Read, AccessPattern::Sequential);
        SessionPlan {
            work: Work::Bandwidth(StreamRules { kernel, pattern, isa: IsaName("avx2".to_owned()) }),
            sizes_bytes: vec![1 << 20],
            pages: base_pages(),
            serial,
            seed: 0,
            precision: 0.01,
            cpus: None,
            node: None,
            overcommit: true,
            csv: None,
        }
    }

    #[test]
    fn streams_of_a_host_are_added_up_and_hosts_are_separate_cells() {
        let seats = [seat("a", 0), seat("a", 1), seat("b", 0)];
        let plan = streams(false);
        let all = cells(&seats, &teams(&seats, &plan), &plan).remove(0);
        let [a, b] = &all[..] else { panic!("{all:?}") };
        assert!(a.cell.id.0.starts_with("a/bandwidth/read/") && b.cell.id.0.starts_with("b/"));
        let rates = [[1.0, 2.0], [3.0, 5.0], [7.0, 7.0]];
        let found: Vec<RankResults> =
            seats.iter().zip(rates).map(|(seat, rates)| found(seat, rates)).collect();
        let (finished, samples) = finished(a, &[&found[0], &found[1]], 0.01);
        let values = |metric: Metric| -> Vec<f64> {
            let of = samples.iter().filter(|sample| sample.metric == metric);
            of.map(|sample| sample.value).collect()
        };
        assert_eq!((values(Metric::Bandwidth), finished.placements.len()), (vec![4.0, 7.0], 2));
        assert_eq!(values(Metric::RankBandwidth), [1.0, 3.0, 2.0, 5.0]);
        assert_eq!((samples[0].work, samples[1].start_ns), (200, 1_000));
        assert_eq!(samples[0].disturbed, None);
        assert_eq!(samples[1].disturbed.as_deref(), Some("of cpu 0"));
    }

    #[test]
    fn ranks_in_turns_are_separate_cells_even_on_one_cpu() {
        let (seats, plan) = ([seat("a", 0), seat("a", 0)], streams(true));
        let all = cells(&seats, &teams(&seats, &plan), &plan).remove(0);
        let names: BTreeSet<&str> = all.iter().map(|shared| shared.cell.id.0.as_str()).collect();
        assert_eq!(names.len(), 2);
        assert!(names.iter().any(|name| name.ends_with("/rank1")), "{names:?}");
    }
}
