//! A machine file compared with a run of the same machine, or of its replay.

use numalab_formats::machine_toml::{LoadFigures, MachineFile};
use numalab_stats::Direction;
use numalab_topology::{AccessAttributes, Cache, CacheKind, NodeId};

/// One figure of a machine file.
#[derive(Clone, Debug, PartialEq)]
pub enum MachineFigure {
    /// Memory latency between two nodes, in ns.
    Latency {
        /// Loads or stores.
        access: Access,
        /// The cpu's node.
        from: NodeId,
        /// The memory's node.
        to: NodeId,
    },
    /// Memory bandwidth between two nodes, in GB/s.
    Bandwidth {
        /// Loads or stores.
        access: Access,
        from: NodeId,
        /// The memory's node.
        to: NodeId,
    },
    /// Hit latency of a cache level, in ns.
    CacheHit(u8),
    /// Size of a cache level, in KiB.
    CacheSize(u8),
    TlbEntries {
        /// The level, 1 for the first.
        level: u8,
        /// The page sizes that the entries hold, in bytes.
        page_bytes: Vec<u64>,
    },
    /// One-way latency of a line between cores of an L3 group, in ns.
    LineWithinGroup,
    /// One-way latency of a line between L3 groups of two nodes, given by position, in ns.
    LineBetweenNodes(usize, usize),
    /// Peak bandwidth of memory or a link, in GB/s.
    Peak(LoadedPlace),
    /// Access latency at the peak bandwidth, in ns.
    LatencyAtPeak(LoadedPlace),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Load,
    Store,
}

/// The memory or link under load.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedPlace {
    pub node: NodeId,
    /// The cpus' node for a link; `None` for the memory itself.
    pub from: Option<NodeId>,
    /// The share of writes in the traffic, in percent.
    pub writes_percent: f64,
}

impl MachineFigure {
    /// Returns the unit of the figure.
    pub const fn unit(&self) -> &'static str {
        match self {
            Self::Bandwidth { .. } | Self::Peak(_) => "GB/s",
            Self::CacheSize(_) => "KiB",
            Self::TlbEntries { .. } => "entries",
            Self::Latency { .. }
            | Self::CacheHit(_)
            | Self::LineWithinGroup
            | Self::LineBetweenNodes(..)
            | Self::LatencyAtPeak(_) => "ns",
        }
    }

    /// Returns the direction in which the figure improves; `None` if neither is better.
    pub const fn better(&self) -> Option<Direction> {
        match self {
            Self::Bandwidth { .. } | Self::Peak(_) => Some(Direction::HigherIsBetter),
            Self::CacheSize(_) | Self::TlbEntries { .. } => None,
            _ => Some(Direction::LowerIsBetter),
        }
    }
}

/// One figure of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct FigurePair {
    pub what: MachineFigure,
    /// The machine file's value; `None` if it has none.
    pub file: Option<f64>,
    /// The run's value; `None` if it has none.
    pub result: Option<f64>,
    /// The excess of the run over the file, in percent.
    pub percent: Option<f64>,
}

impl FigurePair {
    /// Returns `true` if the run is worse than the file by more than a margin in percent. A figure
    /// without a better direction is worse if it deviates either way.
    pub fn is_worse(&self, margin_percent: f64) -> bool {
        self.percent.is_some_and(|percent| match self.what.better() {
            Some(Direction::LowerIsBetter) => percent > margin_percent,
            Some(Direction::HigherIsBetter) => -percent > margin_percent,
            None => percent.abs() > margin_percent,
        })
    }
}

/// A machine file compared with a run, figure by figure.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineComparison {
    /// The margin in percent: smaller differences count as none.
    pub margin_percent: f64,
    /// All figures that either side has.
    pub pairs: Vec<FigurePair>,
}

impl MachineComparison {
    /// Compares the figures captured from a run with those of a file. Without a sweep, the run's cache
    /// sizes are only what the system reports, not measurements, and are left out.
    pub fn of_run(file: &MachineFile, mut run: MachineFile, margin_percent: f64) -> Self {
        if run.memory.cache_latency_ns.is_empty() {
            run.machine.caches.clear();
        }
        Self::of(file, &run, margin_percent)
    }

    /// Compares the figures of a second file with those of the first.
    pub fn of(file: &MachineFile, result: &MachineFile, margin_percent: f64) -> Self {
        let of_file =
            |(what, value)| FigurePair { what, file: Some(value), result: None, percent: None };
        let mut pairs: Vec<FigurePair> = figures(file).into_iter().map(of_file).collect();
        for (what, value) in figures(result) {
            match pairs.iter_mut().find(|pair| pair.what == what) {
                Some(pair) => {
                    pair.result = Some(value);
                    let share = pair.file.map(|file| 100.0 * (value / file - 1.0));
                    pair.percent = share.filter(|percent| percent.is_finite());
                }
                None => {
                    pairs.push(FigurePair { what, file: None, result: Some(value), percent: None });
                }
            }
        }
        Self { pairs, margin_percent }
    }

    /// Returns the run's figures that are worse than the file's by more than the margin.
    pub fn worse(&self) -> impl Iterator<Item = &FigurePair> {
        self.pairs.iter().filter(|pair| pair.is_worse(self.margin_percent))
    }
}

type KnownFigure = (MachineFigure, f64);

fn figures(of: &MachineFile) -> Vec<KnownFigure> {
    let access = of.machine.access.iter().flat_map(of_access);
    let transfers = of.memory.transfers.iter().flat_map(|transfers| {
        let within = (MachineFigure::LineWithinGroup, transfers.group_ns);
        let rows = transfers.node_ns.iter().enumerate();
        // On a one-node machine no line travels between nodes.
        let between = rows.filter(|_| transfers.node_ns.len() > 1).flat_map(|(from, row)| {
            let to = row.iter().enumerate();
            to.map(move |(to, &ns)| (MachineFigure::LineBetweenNodes(from, to), ns))
        });
        std::iter::once(within).chain(between.collect::<Vec<_>>())
    });
    let tlb = of.memory.tlb.iter().flat_map(|tlb| &tlb.parts).map(|part| {
        let page_bytes = part.page_bytes.clone();
        let what = MachineFigure::TlbEntries { level: part.level, page_bytes };
        (what, f64::from(part.entries))
    });
    access
        .chain(caches(of))
        .chain(tlb)
        .chain(transfers)
        .chain(of.memory.load.iter().flat_map(load))
        .collect()
}

fn of_access(of: &AccessAttributes) -> Vec<KnownFigure> {
    let (from, to) = (of.initiator, of.target);
    let latency = |access, ps: Option<u64>| {
        Some((MachineFigure::Latency { access, from, to }, ps? as f64 / 1e3))
    };
    let bandwidth = |access, mb_s: Option<u64>| {
        Some((MachineFigure::Bandwidth { access, from, to }, mb_s? as f64 / 1e3))
    };
    [
        latency(Access::Load, of.read_latency_ps),
        latency(Access::Store, of.write_latency_ps),
        bandwidth(Access::Load, of.read_bandwidth_mb_per_s),
        bandwidth(Access::Store, of.write_bandwidth_mb_per_s),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn caches(of: &MachineFile) -> Vec<KnownFigure> {
    let data = |cache: &&Cache| cache.kind != CacheKind::Instruction;
    let mut levels: Vec<(u8, Option<u64>)> =
        of.machine.caches.iter().filter(data).map(|one| (one.level, one.size_bytes)).collect();
    levels.sort_unstable();
    levels.dedup_by_key(|one| one.0);
    let mut known = Vec::new();
    for (at, (level, bytes)) in levels.into_iter().enumerate() {
        let hit = of.memory.cache_latency_ns.get(at);
        known.extend(hit.map(|&ns| (MachineFigure::CacheHit(level), ns)));
        let kib = bytes.map(|bytes| bytes as f64 / 1024.0);
        known.extend(kib.map(|kib| (MachineFigure::CacheSize(level), kib)));
    }
    known
}

/// Returns the end point of each curve, for its node or link.
fn load(load: &LoadFigures) -> Vec<KnownFigure> {
    let from = load.from.as_ref().map_or_else(|| vec![None], |set| set.iter().map(Some).collect());
    let ways = load.nodes.iter().flat_map(|node| from.iter().map(move |&from| (node, from)));
    ways.flat_map(|way| load_of(load, way)).collect()
}

fn load_of(load: &LoadFigures, (node, from): (NodeId, Option<NodeId>)) -> Vec<KnownFigure> {
    let place = |writes_percent| LoadedPlace { node, from, writes_percent };
    let peak = |writes, mb_s: f64| (MachineFigure::Peak(place(writes)), mb_s / 1000.0);
    let mut known: Vec<KnownFigure> =
        load.peak_mb_s.map(|mb_s| peak(0.0, mb_s)).into_iter().collect();
    for curve in &load.curves {
        let Some(&(mb_s, ns)) = curve.points.last() else { continue };
        known.push(peak(curve.writes_percent, mb_s));
        known.push((MachineFigure::LatencyAtPeak(place(curve.writes_percent)), ns));
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_topology::{CpuSet, Machine, NodeId};

    fn figures_with(ns: u64, mb_s: u64) -> MachineFile {
        let access = AccessAttributes {
            initiator: NodeId(0),
            target: NodeId(1),
            read_latency_ps: Some(ns * 1000),
            read_bandwidth_mb_per_s: Some(mb_s),
            ..AccessAttributes::default()
        };
        let machine = Machine { access: vec![access], ..Machine::default() };
        MachineFile { machine, ..MachineFile::default() }
    }

    #[test]
    fn a_slower_or_narrower_result_is_worse_beyond_the_margin_only() {
        let compare = |ns, mb_s| {
            let (file, result) = (figures_with(100, 10_000), figures_with(ns, mb_s));
            MachineComparison::of(&file, &result, 5.0)
        };
        let (from, to) = (NodeId(0), NodeId(1));
        let worse = |ns, mb_s| -> Vec<MachineFigure> {
            compare(ns, mb_s).worse().map(|pair| pair.what.clone()).collect()
        };
        assert!(worse(104, 9600).is_empty());
        assert!(worse(50, 20_000).is_empty(), "better is not worse");
        assert_eq!(worse(110, 20_000), [MachineFigure::Latency { access: Access::Load, from, to }]);
        assert_eq!(worse(100, 9000), [MachineFigure::Bandwidth { access: Access::Load, from, to }]);
        let percent = compare(110, 9000).pairs[0].percent.unwrap();
        assert!((percent - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_run_s_sizes_that_no_sweep_found_are_not_compared_and_those_of_files_are() {
        let cache = Cache {
            level: 2,
            kind: CacheKind::Unified,
            size_bytes: Some(1 << 20),
            line_bytes: Some(64),
            ways: Some(16),
            cpus: CpuSet::default(),
        };
        let machine = Machine { caches: vec![cache], ..Machine::default() };
        let reported = MachineFile { machine, ..MachineFile::default() };
        let mut found = reported.clone();
        found.memory.cache_latency_ns = vec![4.0];
        let of_run = |run: &MachineFile| MachineComparison::of_run(&reported, run.clone(), 5.0);
        assert_eq!(of_run(&reported).pairs[0].result, None);
        assert_eq!(of_run(&found).pairs[0].result, Some(1024.0));
        for (one, other) in [(&reported, &reported), (&reported, &found), (&found, &reported)] {
            let compared = MachineComparison::of(one, other, 5.0);
            let is_size = |pair: &&FigurePair| pair.what == MachineFigure::CacheSize(2);
            let size = compared.pairs.iter().find(is_size).map(|pair| (pair.file, pair.result));
            assert_eq!(size, Some((Some(1024.0), Some(1024.0))));
        }
    }

    #[test]
    fn cells_missing_on_one_side_are_shown_and_not_judged() {
        let mut file = figures_with(100, 10);
        file.memory.cache_latency_ns = vec![1.0];
        let nothing = MachineFile::default();
        let compared = MachineComparison::of(&file, &nothing, 1.0);
        assert_eq!(compared.pairs.len(), 2);
        assert!(compared.pairs.iter().all(|pair| pair.result.is_none()));
        assert_eq!(compared.worse().count(), 0);
        let turned = MachineComparison::of(&nothing, &file, 1.0);
        assert!(turned.pairs.iter().all(|pair| pair.file.is_none() && pair.result.is_some()));
    }
}
