//! What ranks found, as the run that every other command takes.

use std::collections::{BTreeMap, BTreeSet};

use numalab_measure::plan::cell;
use numalab_measure::rank::Chain;
use numalab_record::{
    BandwidthCell, Cell, CellId, CellResult, Document, Experiment, LatencyCell, Outcome, Placement,
    RankResult, RankRun, Run, Sample, Team, WindowTime, WorkerPlan,
};
use numalab_stats::{Confidence, Sample as Values, median_interval_serial};

use super::{SessionPlan, Work};

/// The launch as a measuring run. Each rank's chase is a cell. Streams are a cell for each
/// host, the sum of its ranks, or one for each rank where they took turns. Where there are
/// several hosts, each cell's name begins with its host's.
///
/// `None` for the suite's chain over words, which no cell of a run describes.
#[must_use]
pub fn document(ranks: &RankRun, plan: &SessionPlan, mut run: Run) -> Option<Document> {
    let teams = teams(ranks, plan);
    let hosts: BTreeSet<&str> = ranks.ranks.iter().map(|rank| rank.host.as_str()).collect();
    let mut results: Vec<CellResult> = Vec::new();
    for (index, &size_bytes) in ranks.sizes_bytes.iter().enumerate() {
        for team in &teams {
            let mut cell = cell(experiment(team, plan, size_bytes)?);
            if hosts.len() > 1 {
                cell.id = CellId(format!("{}/{}", team[0].host, cell.id));
            }
            // Ranks that share a cpu do the same.
            if results.iter().any(|result| result.cell.id == cell.id) {
                cell.id = CellId(format!("{}/rank{}", cell.id, team[0].rank));
            }
            results.push(result(cell, team, index, ranks, run.precision));
        }
    }
    run.plan = results.iter().map(|result| result.cell.clone()).collect();
    Some(Document { run, cells: results })
}

/// The ranks of each cell.
fn teams<'a>(ranks: &'a RankRun, plan: &SessionPlan) -> Vec<Vec<&'a RankResult>> {
    if plan.serial || matches!(plan.work, Work::Latency(_)) {
        return ranks.ranks.iter().map(|rank| vec![rank]).collect();
    }
    let mut by_host: BTreeMap<&str, Vec<&RankResult>> = BTreeMap::new();
    for rank in &ranks.ranks {
        by_host.entry(&rank.host).or_default().push(rank);
    }
    by_host.into_values().collect()
}

fn experiment(team: &[&RankResult], plan: &SessionPlan, size_bytes: u64) -> Option<Experiment> {
    let worker = |rank: &&RankResult| WorkerPlan { cpu: rank.cpu, node: rank.memory_node() };
    Some(match &plan.work {
        Work::Latency(rules) => Experiment::Latency(LatencyCell {
            worker: worker(&team[0]),
            size_bytes,
            pattern: match rules.chain {
                Chain::Lines(pattern) => pattern,
                Chain::FisherYates => return None,
            },
            pages: plan.pages,
            team: if plan.serial { Team::Serial } else { Team::Concurrent },
        }),
        Work::Bandwidth(rules) => Experiment::Bandwidth(BandwidthCell {
            workers: team.iter().map(worker).collect(),
            kernel: rules.kernel,
            pattern: rules.pattern,
            size_bytes,
            pages: plan.pages,
            isa: rules.isa.clone(),
        }),
    })
}

fn result(
    cell: Cell,
    team: &[&RankResult],
    size: usize,
    ranks: &RankRun,
    precision: f64,
) -> CellResult {
    let largest_bytes = ranks.sizes_bytes.iter().max().copied().unwrap_or(0);
    let samples = samples(&cell.id, team, size, ranks);
    let clean: Vec<f64> = samples
        .iter()
        .filter(|sample| sample.disturbed.is_none())
        .map(|sample| sample.value)
        .collect();
    CellResult {
        ended: Some(outcome(clean, precision)),
        placements: team.iter().map(|rank| placement(rank, largest_bytes)).collect(),
        samples,
        cell,
    }
}

/// The windows of all ranks of the team, added up: they streamed through the same stretches.
fn samples(id: &CellId, team: &[&RankResult], size: usize, ranks: &RankRun) -> Vec<Sample> {
    let of_host = ranks.ranks.iter().filter(|rank| rank.host == team[0].host);
    let times = of_host.flat_map(|rank| rank.times.iter().flatten());
    let begun_ns = times.map(|time| time.start_ns).min().unwrap_or(0);
    let windows = team.iter().map(|rank| rank.windows.get(size).map_or(0, Vec::len)).min();
    let sample = |index: usize| {
        let time = |rank: &&RankResult| {
            let time = rank.times.get(size).and_then(|times| times.get(index));
            time.copied().unwrap_or(WindowTime { start_ns: begun_ns, duration_ns: 0, work: 0 })
        };
        let disturbed = team.iter().find_map(|rank| rank.disturbed.get(size)?.get(&index));
        Sample {
            cell: id.clone(),
            metric: ranks.metric,
            index: u32::try_from(index).unwrap_or(u32::MAX),
            value: team.iter().map(|rank| rank.windows[size][index]).sum(),
            start_ns: time(&team[0]).start_ns.saturating_sub(begun_ns),
            duration_ns: time(&team[0]).duration_ns,
            work: team.iter().map(|rank| time(rank).work).sum(),
            disturbed: disturbed.cloned(),
        }
    };
    (0..windows.unwrap_or(0)).map(sample).collect()
}

/// Ranks take as many windows as they were asked for: whether that was enough is seen after.
fn outcome(values: Vec<f64>, precision: f64) -> Outcome {
    let interval = Values::new(values)
        .and_then(|values| median_interval_serial(&values, Confidence::P95))
        .map(|serial| serial.estimate.relative_half_width());
    match interval {
        Ok(width) if width <= precision => Outcome::Precise,
        _ => Outcome::BudgetSpent,
    }
}

fn placement(rank: &RankResult, buffer_bytes: u64) -> Placement {
    Placement {
        cpu: rank.cpu,
        cpu_node: Some(rank.cpu_node),
        affinity: rank.affinity.clone(),
        memory_node: rank.memory_node(),
        address: rank.address,
        buffer_bytes,
        method: rank.method,
        pages_checked: rank.memory_nodes.values().sum(),
        pages_per_node: rank.memory_nodes.clone(),
        bytes_per_page_size: rank.bytes_per_page_size.clone(),
    }
}

#[cfg(test)]
mod tests {
    use numalab_measure::rank::StreamRules;
    use numalab_record::{
        AccessPattern, Environment, IsaName, Kind, Metric, Pages, ProofMethod, StreamKernel,
    };
    use numalab_topology::{CpuId, Machine, NodeId};

    use super::*;

    /// A rank of a host on a cpu, with the rates of two windows.
    fn rank(rank: usize, host: &str, cpu: u32, rates: [f64; 2]) -> RankResult {
        let time = |start_ns| WindowTime { start_ns, duration_ns: 10, work: 100 };
        RankResult {
            rank,
            host: host.to_owned(),
            cpu: CpuId(cpu),
            affinity: [CpuId(cpu)].into_iter().collect(),
            cpu_node: NodeId(0),
            policy: "bind:0".to_owned(),
            memory_nodes: BTreeMap::from([(NodeId(0), 16)]),
            method: ProofMethod::MovePages,
            address: 4096,
            bytes_per_page_size: BTreeMap::new(),
            mean: vec![rates[0]],
            median: vec![rates[0]],
            windows: vec![rates.to_vec()],
            times: vec![vec![time(1_000), time(2_000)]],
            disturbed: vec![BTreeMap::from([(1, format!("of rank {rank}"))])],
        }
    }

    fn found(ranks: Vec<RankResult>, serial: bool) -> Document {
        let rules = StreamRules {
            kernel: StreamKernel::Read,
            pattern: AccessPattern::Sequential,
            isa: IsaName("avx2".to_owned()),
            round_ns: 1,
            seed: 0,
        };
        let plan = SessionPlan {
            work: Work::Bandwidth(rules),
            sizes_bytes: vec![1 << 20],
            pages: Pages::Base,
            serial,
            seed: 0,
            cpus: None,
            node: None,
            overcommit: true,
            csv: None,
            chain: "read".to_owned(),
            version: String::new(),
        };
        let run = RankRun {
            schema: Kind::Ranks.into(),
            metric: Metric::Bandwidth,
            unit: "GB/s".to_owned(),
            version: String::new(),
            command: Vec::new(),
            launcher: String::new(),
            meeting: String::new(),
            seed: 0,
            iterations: 0,
            warmup: 0,
            chain: "read".to_owned(),
            pages: "4k".to_owned(),
            serial,
            sizes_bytes: vec![1 << 20],
            ranks,
        };
        let known = Run {
            schema: Kind::Run.into(),
            name: "bandwidth".to_owned(),
            label: None,
            version: String::new(),
            command: Vec::new(),
            started_unix_ms: 0,
            seed: 0,
            precision: 0.01,
            budget_ns: 0,
            environment: Environment::default(),
            machine: Machine::default(),
            plan: Vec::new(),
        };
        document(&run, &plan, known).expect("streams are cells")
    }

    #[test]
    fn streams_of_a_host_are_added_up_and_hosts_are_cells_of_their_own() {
        let ranks = vec![
            rank(0, "a", 0, [1.0, 2.0]),
            rank(1, "a", 1, [3.0, 5.0]),
            rank(2, "b", 0, [7.0, 7.0]),
        ];
        let document = found(ranks, false);
        let [a, b] = &document.cells[..] else { panic!("{:?}", document.cells) };
        assert!(a.cell.id.0.starts_with("a/bandwidth/read/") && b.cell.id.0.starts_with("b/"));
        let values: Vec<f64> = a.samples.iter().map(|sample| sample.value).collect();
        assert_eq!((values, a.placements.len(), a.samples[0].work), (vec![4.0, 7.0], 2, 200));
        assert_eq!((a.samples[0].start_ns, a.samples[1].start_ns), (0, 1_000));
        assert_eq!(a.samples[0].disturbed, None);
        assert_eq!(a.samples[1].disturbed.as_deref(), Some("of rank 0"));
        assert_eq!(document.run.plan.len(), 2);
    }

    #[test]
    fn ranks_in_turns_are_cells_of_their_own_even_on_one_cpu() {
        let document = found(vec![rank(0, "a", 0, [1.0; 2]), rank(1, "a", 0, [2.0; 2])], true);
        let names: BTreeSet<&str> =
            document.cells.iter().map(|cell| cell.cell.id.0.as_str()).collect();
        assert_eq!(names.len(), 2);
        assert!(names.iter().any(|name| name.ends_with("/rank1")), "{names:?}");
    }
}
