//! A machine file next to what a run of the same machine, or of its replay, measured.

use numalab_stats::Direction;
use numalab_topology::{AccessAttributes, Cache, CacheKind};
use serde::Serialize;

use crate::capture::{Load, MachineFigures};

/// One figure of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigurePair {
    /// What it is: `latency from node 0 to node 1`.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// What the machine file says; `None` where it does not.
    pub file: Option<f64>,
    /// What the run measured; `None` where it did not.
    pub result: Option<f64>,
    /// How far the result is above the file, in percent.
    pub percent: Option<f64>,
    /// Which way is better; `None` where neither is.
    #[serde(skip)]
    pub better: Option<Direction>,
}

impl FigurePair {
    /// Whether the result is worse than the file by more than a margin in percent; a figure with
    /// no better way is worse where it is off either way.
    #[must_use]
    pub fn is_worse(&self, margin_percent: f64) -> bool {
        self.percent.is_some_and(|percent| match self.better {
            Some(Direction::LowerIsBetter) => percent > margin_percent,
            Some(Direction::HigherIsBetter) => -percent > margin_percent,
            None => percent.abs() > margin_percent,
        })
    }
}

/// Figures of a machine file and of a run, side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineComparison {
    /// Differences up to this percentage are none.
    pub margin_percent: f64,
    /// Every figure that either has.
    pub pairs: Vec<FigurePair>,
}

impl MachineComparison {
    /// Compares a run's figures with a file's.
    #[must_use]
    pub fn of(file: &MachineFigures, result: &MachineFigures, margin_percent: f64) -> Self {
        let mut pairs: Vec<FigurePair> = figures(file).into_iter().map(Named::of_file).collect();
        // What the system reports of caches, where no sweep has looked for them, is no figure.
        let has_sweep = !result.cache_latency_ns.is_empty();
        let is_figure = |found: &Named| has_sweep || !found.what.starts_with(SIZE_OF);
        for found in figures(result).into_iter().filter(is_figure) {
            match pairs.iter_mut().find(|pair| pair.what == found.what) {
                Some(pair) => {
                    pair.result = Some(found.value);
                    let share = pair.file.map(|file| 100.0 * (found.value / file - 1.0));
                    pair.percent = share.filter(|percent| percent.is_finite());
                }
                None => pairs.push(found.of_result()),
            }
        }
        Self { pairs, margin_percent }
    }

    /// Figures of the run that are worse than the file by more than the margin.
    pub fn worse(&self) -> impl Iterator<Item = &FigurePair> {
        self.pairs.iter().filter(|pair| pair.is_worse(self.margin_percent))
    }
}

/// How the figures of caches' sizes begin.
const SIZE_OF: &str = "size of L";

struct Named {
    what: String,
    unit: &'static str,
    value: f64,
    better: Option<Direction>,
}

impl Named {
    fn of_file(self) -> FigurePair {
        let Self { what, unit, value, better } = self;
        FigurePair { what, unit, file: Some(value), result: None, percent: None, better }
    }

    fn of_result(self) -> FigurePair {
        let Self { what, unit, value, better } = self;
        FigurePair { what, unit, file: None, result: Some(value), percent: None, better }
    }
}

/// A latency in ns, less being better.
fn latency(what: String, value: f64) -> Named {
    Named { what, unit: "ns", value, better: Some(Direction::LowerIsBetter) }
}

/// A bandwidth out of 10^6 bytes a second, more being better.
fn bandwidth(what: String, mb_s: f64) -> Named {
    let better = Some(Direction::HigherIsBetter);
    Named { what, unit: "GB/s", value: mb_s / 1000.0, better }
}

fn figures(of: &MachineFigures) -> Vec<Named> {
    let access = of.machine.access.iter().flat_map(of_access);
    let transfers = of.transfers.iter().flat_map(|transfers| {
        let within = latency("line within an L3 group, one way".to_owned(), transfers.group_ns);
        let rows = transfers.node_ns.iter().enumerate();
        // A machine of one node has no line that goes between nodes.
        let between = rows.filter(|_| transfers.node_ns.len() > 1).flat_map(|(from, row)| {
            row.iter().enumerate().map(move |(to, &ns)| {
                latency(format!("line between groups of nodes {from} and {to}, one way"), ns)
            })
        });
        std::iter::once(within).chain(between.collect::<Vec<_>>())
    });
    let tlb = of.tlb.iter().flat_map(|tlb| &tlb.parts).map(|part| {
        let pages: Vec<String> =
            part.page_bytes.iter().map(|bytes| format!("{} KiB", bytes >> 10)).collect();
        let what = format!("entries of TLB level {} for pages of {}", part.level, pages.join(", "));
        Named { what, unit: "entries", value: f64::from(part.entries), better: None }
    });
    access
        .chain(caches(of))
        .chain(tlb)
        .chain(transfers)
        .chain(of.loads.iter().flat_map(load))
        .collect()
}

fn of_access(access: &AccessAttributes) -> Vec<Named> {
    let (from, to) = (access.initiator, access.target);
    let ns = |what: &str, ps: Option<u64>| {
        ps.map(|ps| {
            latency(format!("{what} latency from node {from} to node {to}"), ps as f64 / 1e3)
        })
    };
    let gb_s = |what: &str, mb_s: Option<u64>| {
        mb_s.map(|mb_s| bandwidth(format!("{what} from node {from} to node {to}"), mb_s as f64))
    };
    [
        ns("load", access.read_latency_ps),
        ns("store", access.write_latency_ps),
        gb_s("reads", access.read_bandwidth_mb_per_s),
        gb_s("writes", access.write_bandwidth_mb_per_s),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn caches(of: &MachineFigures) -> Vec<Named> {
    let data = |cache: &&Cache| cache.kind != CacheKind::Instruction;
    let mut levels: Vec<(u8, Option<u64>)> =
        of.machine.caches.iter().filter(data).map(|one| (one.level, one.size_bytes)).collect();
    levels.sort_unstable();
    levels.dedup_by_key(|one| one.0);
    let mut named = Vec::new();
    for (at, (level, bytes)) in levels.into_iter().enumerate() {
        let hit = of.cache_latency_ns.get(at);
        named.extend(hit.map(|&ns| latency(format!("hit in L{level}"), ns)));
        named.extend(bytes.map(|bytes| Named {
            what: format!("{SIZE_OF}{level}"),
            unit: "KiB",
            value: bytes as f64 / 1024.0,
            better: None,
        }));
    }
    named
}

/// Where each curve ends.
fn load(load: &Load) -> Vec<Named> {
    let way = match load.from {
        Some(from) => format!("link from node {from} to node {}", load.node),
        None => format!("memory of node {}", load.node),
    };
    let peak = |writes: f64, mb_s| bandwidth(format!("peak of {way}, {writes} % writes"), mb_s);
    let mut named: Vec<Named> = load.peak_mb_s.map(|mb_s| peak(0.0, mb_s)).into_iter().collect();
    for curve in &load.curves {
        let Some(&(mb_s, ns)) = curve.points.last() else { continue };
        let writes = curve.writes_percent;
        named.push(peak(writes, mb_s));
        named.push(latency(format!("latency at the peak of {way}, {writes} % writes"), ns));
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_topology::{CpuSet, Machine, NodeId};

    fn figures_with(ns: u64, mb_s: u64) -> MachineFigures {
        let access = AccessAttributes {
            initiator: NodeId(0),
            target: NodeId(1),
            read_latency_ps: Some(ns * 1000),
            read_bandwidth_mb_per_s: Some(mb_s),
            ..AccessAttributes::default()
        };
        let machine = Machine { access: vec![access], ..Machine::default() };
        MachineFigures { machine, ..MachineFigures::default() }
    }

    #[test]
    fn a_slower_or_narrower_result_is_worse_beyond_the_margin_only() {
        let compare = |ns, mb_s| {
            let (file, result) = (figures_with(100, 10_000), figures_with(ns, mb_s));
            MachineComparison::of(&file, &result, 5.0)
        };
        let worse = |ns, mb_s| -> Vec<String> {
            compare(ns, mb_s).worse().map(|pair| pair.what.clone()).collect()
        };
        assert!(worse(104, 9600).is_empty());
        assert!(worse(50, 20_000).is_empty(), "better is not worse");
        assert_eq!(worse(110, 20_000), ["load latency from node 0 to node 1"]);
        assert_eq!(worse(100, 9000), ["reads from node 0 to node 1"]);
        let percent = compare(110, 9000).pairs[0].percent.unwrap();
        assert!((percent - 10.0).abs() < 1e-9);
    }

    #[test]
    fn sizes_that_no_sweep_found_are_not_compared() {
        let cache = Cache {
            level: 2,
            kind: CacheKind::Unified,
            size_bytes: Some(1 << 20),
            line_bytes: Some(64),
            ways: Some(16),
            cpus: CpuSet::default(),
        };
        let machine = Machine { caches: vec![cache], ..Machine::default() };
        let reported = MachineFigures { machine, ..MachineFigures::default() };
        let found = MachineFigures { cache_latency_ns: vec![4.0], ..reported.clone() };
        let sizes = |result| MachineComparison::of(&reported, result, 5.0).pairs[0].result;
        assert_eq!(sizes(&reported), None);
        assert_eq!(sizes(&found), Some(1024.0));
    }

    #[test]
    fn what_one_side_lacks_is_shown_and_not_judged() {
        let file = MachineFigures { cache_latency_ns: vec![1.0], ..figures_with(100, 10) };
        let nothing = MachineFigures::default();
        let compared = MachineComparison::of(&file, &nothing, 1.0);
        assert_eq!(compared.pairs.len(), 2);
        assert!(compared.pairs.iter().all(|pair| pair.result.is_none()));
        assert_eq!(compared.worse().count(), 0);
        let turned = MachineComparison::of(&nothing, &file, 1.0);
        assert!(turned.pairs.iter().all(|pair| pair.file.is_none() && pair.result.is_some()));
    }
}
