//! TLB figures of simulated machines with known TLBs.

mod measured;

use measured::{finished, run_of};
use numalab_record::{
    AccessPattern, Cell, CellId, Document, Experiment, LatencyCell, Metric, Pages, Team, WorkerPlan,
};
use numalab_results::run::{LevelName, Oddity, RunFinding, Summary, Tlb};
use numalab_stats::Rng;
use numalab_topology::{Cache, CacheKind, CpuId, CpuSet, Machine, NodeId, UniformMachine};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const LINE: u64 = 64;
const MEMORY_NS: f64 = 95.0;
const WALK_NS: f64 = 9.0;
/// The time of a walk with a host's tables.
const NESTED_WALK_NS: f64 = 30.0;

/// A set's replacement policy.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Replacement {
    Lru,
    Random,
}

/// Entries or lines, ways, and the cost of a hit.
#[derive(Clone, Copy, Debug)]
struct Level {
    entries: u64,
    ways: usize,
    ns: f64,
}

const fn level(entries: u64, ways: usize, ns: f64) -> Level {
    Level { entries, ways, ns }
}

/// Sets of tags, the most recently used first.
struct Sets {
    sets: Vec<Vec<u64>>,
    of: Level,
    replacement: Replacement,
}

impl Sets {
    fn new(of: Level, replacement: Replacement) -> Self {
        let sets = usize::try_from(of.entries).unwrap() / of.ways;
        Self { sets: vec![Vec::new(); sets], of, replacement }
    }

    fn holds(&mut self, tag: u64, rng: &mut Rng) -> bool {
        let at = usize::try_from(tag % self.sets.len() as u64).unwrap();
        let set = &mut self.sets[at];
        let found = set.iter().position(|held| *held == tag);
        if let Some(at) = found {
            set.remove(at);
        } else if set.len() == self.of.ways {
            let goes = match self.replacement {
                Replacement::Lru => set.len() - 1,
                Replacement::Random => {
                    let ways = std::num::NonZeroU64::new(set.len() as u64).unwrap();
                    usize::try_from(rng.below(ways)).unwrap()
                }
            };
            set.remove(goes);
        }
        set.insert(0, tag);
        found.is_some()
    }
}

/// A machine: its TLB for small and large pages, and whether the host backs large ones with small
/// ones.
#[derive(Clone, Copy, Debug)]
struct Simulated {
    small: [Level; 2],
    large: [Level; 2],
    replacement: Replacement,
    split: bool,
}

const CACHES: [Level; 2] = [level(48 * KIB / LINE, 12, 1.2), level(2 * MIB / LINE, 16, 4.4)];

impl Simulated {
    /// Returns the mean cost of a load in repeated walks over these offsets in random order.
    fn walk(&self, mut offsets: Vec<u64>, pages: Pages, rng: &mut Rng) -> f64 {
        let large = pages == Pages::Transparent;
        let page = if large && !self.split { 2 * MIB } else { 4 * KIB };
        let levels = if page == 2 * MIB { self.large } else { self.small };
        let mut tlb = levels.map(|level| Sets::new(level, self.replacement));
        let mut caches = CACHES.map(|level| Sets::new(level, Replacement::Lru));
        let frame_bytes = if large { 2 * MIB } else { 4 * KIB };
        let frames = offsets.iter().max().unwrap() / frame_bytes + 1;
        let mut frames: Vec<u64> = (0..frames).collect();
        rng.shuffle(&mut frames);
        let walk_ns = if self.split { NESTED_WALK_NS } else { WALK_NS };
        let (mut total, mut loads, first) = (0.0, 0, offsets.len());
        // Page-local order: the offsets of one block after another.
        offsets.truncate(70_000);
        for round in 0..if first < 2_000 { 5 } else { 2 } {
            for offset in &offsets {
                let frame = frames[usize::try_from(offset / frame_bytes).unwrap()];
                let line = (frame * frame_bytes + offset % frame_bytes) / LINE;
                let hit = tlb.iter_mut().position(|level| level.holds(offset / page, rng));
                let cached = caches.iter_mut().position(|level| level.holds(line, rng));
                if round > 0 {
                    total += cached.map_or(MEMORY_NS, |at| CACHES[at].ns);
                    total += hit.map_or(walk_ns, |at| levels[at].ns);
                    loads += 1;
                }
            }
        }
        total / f64::from(loads)
    }

    fn cell(&self, pattern: AccessPattern, pages: Pages, size_bytes: u64, rng: &mut Rng) -> f64 {
        let block = if pages == Pages::BASE_4K { 256 * KIB } else { 2 * MIB };
        let mut offsets: Vec<u64> = match pattern {
            AccessPattern::OneLinePer(apart) => {
                let line = |n: u64| n * apart + (n + n / 32) % (apart / LINE) * LINE;
                (0..size_bytes / apart).map(line).collect()
            }
            _ => (0..size_bytes / LINE).map(|n| n * LINE).collect(),
        };
        rng.shuffle(&mut offsets);
        if pattern == AccessPattern::PageLocal {
            offsets.sort_by_key(|offset| offset / block);
        }
        self.walk(offsets, pages, rng)
    }

    /// Returns a run as `measure` plans it: a sweep on large pages, one line per page, and walks.
    fn run(&self) -> Document {
        let mut rng = Rng::new(7);
        let worker = WorkerPlan { cpu: CpuId(0), node: NodeId(0) };
        let mut cells = Vec::new();
        let mut add = |pattern, pages, size_bytes| {
            let latency = LatencyCell { worker, size_bytes, pattern, pages, team: Team::Serial };
            let id = CellId(format!("{pattern}/{}/{size_bytes}", pages.name()));
            let cell = Cell { id, experiment: Experiment::Latency(latency) };
            let ns = self.cell(pattern, pages, size_bytes, &mut rng);
            let noise = |index: u32| 1.0 + 0.004 * (f64::from(index) - 1.0);
            cells.push(finished(cell, Metric::Latency, |index| ns * noise(index)));
        };
        let octaves = |from: u64, to: u64| {
            let powers = (from.ilog2()..=to.ilog2()).map(|bit| 1_u64 << bit);
            powers.flat_map(|power| [power, power + power / 2]).filter(move |n| *n <= to)
        };
        for size in octaves(4 * KIB, 12 * MIB) {
            add(AccessPattern::PageLocal, Pages::Transparent, size);
        }
        for pages in octaves(16, 8192) {
            add(AccessPattern::OneLinePer(4 * KIB), Pages::BASE_4K, pages * 4 * KIB);
            add(AccessPattern::OneLinePer(4 * KIB), Pages::Transparent, pages * 4 * KIB);
        }
        for pages in octaves(16, 512) {
            add(AccessPattern::OneLinePer(2 * MIB), Pages::Transparent, pages * 2 * MIB);
        }
        add(AccessPattern::Random, Pages::Transparent, 12 * MIB);
        let mut machine = UniformMachine::of_packages(1, 1, 4 << 30).build().expect("uniform");
        report_caches(&mut machine);
        let mut run = run_of(machine);
        run.environment.facts.insert("hypervisor".into(), "KVM".into());
        Document { run, cells }
    }
}

/// Sets the caches that the simulated machine's system reports.
fn report_caches(machine: &mut Machine) {
    let cache = |(level, size_bytes)| Cache {
        level,
        kind: CacheKind::Data,
        size_bytes: Some(size_bytes),
        line_bytes: Some(64),
        ways: None,
        cpus: CpuSet::from_iter([CpuId(0)]),
    };
    machine.caches = [(1, 48 * KIB), (2, 2 * MIB)].map(cache).to_vec();
}

const SKYLAKE: Simulated = Simulated {
    small: [level(64, 4, 0.0), level(1536, 12, 2.3)],
    large: [level(32, 4, 0.0), level(1536, 12, 2.3)],
    replacement: Replacement::Lru,
    split: false,
};
const ZEN: Simulated = Simulated {
    small: [level(64, 64, 0.0), level(2048, 16, 2.0)],
    large: [level(64, 64, 0.0), level(2048, 16, 2.0)],
    ..SKYLAKE
};
const COVE: Simulated = Simulated {
    small: [level(96, 6, 0.0), level(2048, 16, 1.8)],
    large: [level(32, 8, 0.0), level(1024, 8, 1.8)],
    ..SKYLAKE
};
const SMALL: Simulated = Simulated {
    small: [level(48, 48, 0.0), level(1280, 5, 1.5)],
    large: [level(48, 48, 0.0), level(1280, 5, 1.5)],
    ..SKYLAKE
};

fn of_pages<'a>(summary: &'a Summary<'_>, pages: Pages) -> &'a Tlb {
    summary.tlbs.iter().find(|tlb| tlb.pages == pages && tlb.is_of_pages()).expect("it was probed")
}

/// Checks that levels hold up to their number of entries, and not the next number of pages
/// measured.
fn assert_entries(tlb: &Tlb, expected: &[u64], tolerance: f64) {
    let ended: Vec<_> = tlb.levels.iter().filter(|level| level.passed_pages.is_some()).collect();
    assert_eq!(ended.len(), expected.len(), "{:?}", tlb.levels);
    for (level, entries) in ended.iter().zip(expected) {
        let (low, high) = (level.holds_pages as f64, level.passed_pages.unwrap() as f64);
        let entries = *entries as f64;
        assert!(low <= entries * tolerance && entries / tolerance < high, "{entries}: {level:?}");
    }
}

#[test]
fn each_level_of_a_tlb_has_its_entries_and_its_cost_on_pages_of_both_sizes() {
    for machine in [SKYLAKE, ZEN, COVE, SMALL] {
        let document = machine.run();
        let summary = Summary::of(&document);
        let small = of_pages(&summary, Pages::BASE_4K);
        assert_entries(small, &machine.small.map(|level| level.entries), 1.0);
        let cost = small.levels[1].cost_ns;
        assert!((cost - machine.small[1].ns).abs() < 0.4, "{machine:?}: {cost}");
        let beyond = small.beyond_ns.expect("the last level was passed");
        assert!((beyond - WALK_NS).abs() < 1.5, "{machine:?}: {beyond}");
        let large = of_pages(&summary, Pages::Transparent);
        assert_entries(large, &[machine.large[0].entries], 1.0);
        assert!((large.beyond_ns.unwrap() - machine.large[1].ns).abs() < 0.4, "{large:?}");
        let names: Vec<LevelName> =
            summary.curves[0].levels.iter().map(|level| level.name).collect();
        use LevelName::{Cache, Memory};
        assert_eq!(names, [Cache(1), Cache(2), Memory], "{machine:?}");
        let splits = |finding: &RunFinding| matches!(finding.what, Oddity::HugePagesSplit { .. });
        assert!(!summary.findings.iter().any(splits), "{:?}", summary.findings);
    }
}

#[test]
fn a_tlb_of_random_replacement_ends_within_half_an_octave_of_its_entries() {
    for machine in [SKYLAKE, ZEN] {
        let machine = Simulated { replacement: Replacement::Random, ..machine };
        let document = machine.run();
        let small = &of_pages(&Summary::of(&document), Pages::BASE_4K).clone();
        assert_entries(small, &machine.small.map(|level| level.entries), 1.41);
    }
}

#[test]
fn huge_pages_that_are_small_on_the_host_are_found_and_their_tlb_is_not_taken_for_a_cache() {
    for machine in [SKYLAKE, COVE] {
        let document = Simulated { split: true, ..machine }.run();
        let summary = Summary::of(&document);
        let is_split = |finding: &RunFinding| {
            matches!(finding.what, Oddity::HugePagesSplit { huge_ns, small_ns, .. }
                if (huge_ns / small_ns - 1.0).abs() < 0.1)
        };
        assert!(summary.findings.iter().any(is_split), "{machine:?}: {:?}", summary.tlbs);
        let levels = &summary.curves[0].levels;
        let reached = levels.iter().filter(|level| level.name == LevelName::Tlb(1));
        assert_eq!(reached.count(), 1, "{machine:?}: {levels:?}");
        let caches = levels.iter().filter(|level| matches!(level.name, LevelName::Cache(_)));
        let caches: Vec<f64> = caches.filter_map(|level| level.capacity_bytes).collect();
        let of_l1 = machine.small[0].entries as f64 * 4096.0;
        let is_reach = |end: &&f64| (*end / of_l1).log2().abs() < 0.4;
        assert_eq!(caches.iter().find(is_reach), None, "{machine:?}: {levels:?}");
    }
}
