//! Names and latencies of cache levels, by simulation of machines that share their last cache. Each
//! size has windows; in each window another share of the last cache is left, and memory has another
//! queue. The shapes are those of the table in docs/statistics.md.

mod measured;

use measured::run_of;
use numalab_record::{
    AccessPattern, Cell, CellId, CellResult, Document, Experiment, LatencyCell, Metric, Outcome,
    Pages, Sample, Team, WorkerPlan,
};
use numalab_results::Report as _;
use numalab_results::run::{Level, LevelName, Summary};
use numalab_stats::Rng;
use numalab_topology::{Cache, CacheKind, Cpu, CpuId, CpuSet, Machine, NodeId};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const WORKER: WorkerPlan = WorkerPlan { cpu: CpuId(0), node: NodeId(0) };
/// Windows of a size.
const WINDOWS: u32 = 30;

/// A machine and the caches that its system reports.
struct Shape {
    name: &'static str,
    /// Latency in ns and size of each cache.
    caches: Vec<(f64, u64)>,
    memory_ns: f64,
    /// Level and size of each cache that the system reports.
    reported: Vec<(u8, u64)>,
    /// The share of the last cache that others take.
    taken: f64,
    /// Misses begin early: pages conflict in physically indexed caches.
    conflicts: bool,
    /// The size above which translation costs time, and that time in ns: the host breaks huge pages.
    translated: Option<(u64, f64)>,
    /// Sizes in an octave: 1 in a quick run, 2 in others.
    sizes: u32,
}

fn shape(name: &'static str, taken: f64) -> Shape {
    let caches = vec![(1.1, 32 * KIB), (3.8, MIB), (14.0, 32 * MIB)];
    let reported = vec![(1, 32 * KIB), (2, MIB), (3, 32 * MIB)];
    Shape {
        name,
        caches,
        memory_ns: 95.0,
        reported,
        taken,
        conflicts: false,
        translated: None,
        sizes: 2,
    }
}

fn shapes() -> Vec<Shape> {
    let of = |taken, name| shape(name, taken);
    let small = vec![(1.6, 32 * KIB), (4.8, 512 * KIB), (14.5, 8 * MIB)];
    let small_reported = vec![(1, 32 * KIB), (2, 512 * KIB), (3, 8 * MIB)];
    let mesh = vec![(1.3, 48 * KIB), (4.5, 2 * MIB), (26.0, 60 * MIB)];
    let mesh_reported = vec![(1, 48 * KIB), (2, 2 * MIB), (3, 60 * MIB)];
    let quick = |shape: Shape, name| Shape { name, sizes: 1, ..shape };
    let wrong_l2 = vec![(1, 32 * KIB), (2, 512 * KIB), (3, 32 * MIB)];
    let of_qemu = vec![(1, 32 * KIB), (2, 4 * MIB), (3, 16 * MIB)];
    let real_l2 = vec![(1.1, 32 * KIB), (3.8, 2 * MIB), (14.0, 32 * MIB)];
    vec![
        of(0.0, "alone"),
        of(0.5, "half of L3 taken"),
        of(0.75, "75 % of L3 taken"),
        of(0.88, "88 % of L3 taken"),
        of(0.95, "95 % of L3 taken"),
        quick(of(0.75, ""), "75 % taken, quick"),
        quick(of(0.88, ""), "88 % taken, quick"),
        Shape { conflicts: true, ..of(0.85, "broken huge pages, 85 % taken") },
        Shape { translated: Some((192 * KIB, 1.3)), ..of(0.5, "translation divides L2") },
        Shape { caches: small, reported: small_reported, ..of(0.8, "512K and 8M, 80 % taken") },
        Shape { caches: mesh, reported: mesh_reported, ..of(0.4, "2M and 60M, 40 % taken") },
        Shape { reported: of_qemu, ..of(0.5, "QEMU says L2 4M, L3 16M") },
        Shape { caches: real_l2, reported: wrong_l2, ..of(0.3, "L2 of 2M reported as 512K") },
    ]
}

fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.uniform()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.uniform()).cos()
}

impl Shape {
    /// Returns one window's latency over this size.
    fn window(&self, size_bytes: u64, noise: f64, rng: &mut Rng) -> f64 {
        let size = size_bytes as f64;
        let last = self.caches.len() - 1;
        // Others use more of the cache in some windows than in others, and queue for memory.
        let left = (1.0 - self.taken) * (0.35 * self.taken * normal(rng)).exp();
        let queue = (0.15 * self.taken * normal(rng).abs()).exp();
        let hits = |at: usize, bytes: f64| {
            let filled = size / bytes;
            match (self.conflicts && at > 0, at == last) {
                (true, _) => (1.0 + filled.powi(2)).powf(-0.75),
                (false, true) => filled.max(1.0).powf(-1.5),
                (false, false) => filled.max(1.0).powf(-3.0),
            }
        };
        let levels = self.caches.iter().enumerate().rev();
        let latency = levels.fold(self.memory_ns * queue, |slower, (at, &(ns, bytes))| {
            let bytes = bytes as f64 * if at == last { left.min(1.0) } else { 1.0 };
            let hits = hits(at, bytes);
            hits * ns + (1.0 - hits) * slower
        });
        let translation =
            self.translated.map_or(0.0, |(from, ns)| if size_bytes > from { ns } else { 0.0 });
        (latency + translation) * (1.0 + noise * normal(rng)).max(0.5)
    }

    fn document(&self, noise: f64, rng: &mut Rng) -> Document {
        let octaves = 0..16_u32;
        let steps = octaves.flat_map(|octave| {
            (0..self.sizes)
                .map(move |step| ((4 * KIB) << octave) + u64::from(step) * ((2 * KIB) << octave))
        });
        let cell = |size_bytes| {
            // The placement of its pages shifts the whole cell by a third of the noise.
            let off = 1.0 + noise / 3.0 * normal(rng);
            let id = CellId(format!("latency/{size_bytes}"));
            let sample = |index| Sample {
                cell: id.clone(),
                metric: Metric::Latency,
                index,
                value: off * self.window(size_bytes, noise, rng),
                start_ns: 0,
                duration_ns: 1,
                work: 1,
                disturbed: None,
            };
            let samples = (0..WINDOWS).map(sample).collect();
            let experiment = Experiment::Latency(LatencyCell {
                worker: WORKER,
                size_bytes,
                pattern: AccessPattern::PageLocal,
                pages: Pages::Transparent,
                team: Team::Serial,
            });
            let ended = Some(Outcome::Precise);
            CellResult { cell: Cell { id, experiment }, ended, placements: Vec::new(), samples }
        };
        let cells = steps.map(cell).collect();
        Document { run: run_of(self.machine()), cells }
    }

    fn machine(&self) -> Machine {
        let mut machine = Machine::default();
        machine.cpus.push(Cpu {
            id: CpuId(0),
            online: true,
            node: Some(NodeId(0)),
            package: Some(0),
            core: Some(0),
            thread: 0,
            l3_group: Some(0),
            apic_id: None,
        });
        let cache = |&(level, bytes): &(u8, u64)| Cache {
            level,
            kind: if level == 1 { CacheKind::Data } else { CacheKind::Unified },
            size_bytes: Some(bytes),
            line_bytes: Some(64),
            ways: Some(8),
            cpus: CpuSet::from_iter([CpuId(0)]),
        };
        machine.caches = self.reported.iter().map(cache).collect();
        machine
    }
}

/// Counts over the curves of a shape.
#[derive(Debug, Default)]
struct Counts {
    curves: f64,
    /// Number of curves on which the cache of each level has its name and no other level has it.
    named: [f64; 3],
    /// Number of plateaus of caches, and of those within 10 % of the true latency.
    plateaus: f64,
    near: f64,
    /// Levels that do not exist.
    false_levels: f64,
    /// Number of statements about latencies, and of those that are wrong by 30 %.
    statements: f64,
    wrong: f64,
}

impl Counts {
    fn add(&mut self, shape: &Shape, levels: &[Level]) {
        self.curves += 1.0;
        for (number, (at, &(ns, _))) in (1_u8..).zip(shape.caches.iter().enumerate()) {
            let name = LevelName::Cache(number);
            let Some(level) = levels.iter().find(|level| level.name == name) else { continue };
            let ratio = level.latency_ns / ns;
            // A level below 70 % or above twice the true latency is another level.
            let is_named = if level.at_most { ratio > 0.9 } else { (0.7..2.0).contains(&ratio) };
            self.named[at] += f64::from(u8::from(is_named));
            self.statements += 1.0;
            let is_wrong = if level.at_most { ratio < 0.77 } else { !(0.77..1.3).contains(&ratio) };
            self.wrong += f64::from(u8::from(is_wrong));
            if !level.at_most {
                self.plateaus += 1.0;
                self.near += f64::from(u8::from((0.9..1.1).contains(&ratio)));
            }
        }
        let is_false = |level: &&Level| match level.name {
            LevelName::Unexplained | LevelName::Tlb(_) => true,
            LevelName::Cache(_) | LevelName::Memory => false,
        };
        self.false_levels += levels.iter().filter(is_false).count() as f64;
        let memory = levels.iter().find(|level| level.name == LevelName::Memory);
        if let Some(memory) = memory {
            self.statements += 1.0;
            let ratio = memory.latency_ns / shape.memory_ns;
            self.wrong += f64::from(u8::from(!(0.77..1.3).contains(&ratio)));
        }
    }
}

fn repeats() -> u64 {
    let long = std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1");
    if long { 500 } else { 25 }
}

#[test]
fn levels_have_the_right_names_and_latencies_whatever_is_left_of_the_last_cache() {
    for noise in [0.01, 0.03] {
        for shape in shapes() {
            let mut counts = Counts::default();
            for seed in 0..repeats() {
                let document = shape.document(noise, &mut Rng::new(seed + 1));
                counts.add(&shape, &Summary::of(&document).curves[0].levels);
            }
            let percent = |part: f64, of: f64| 100.0 * part / of.max(1.0);
            let [l1, l2, l3] = counts.named.map(|named| percent(named, counts.curves));
            let near = percent(counts.near, counts.plateaus);
            let wrong = percent(counts.wrong, counts.statements);
            let false_levels = percent(counts.false_levels, counts.curves);
            println!(
                "{:32} noise {noise}: L1 {l1:.0}, L2 {l2:.0}, L3 {l3:.0} % named; {near:.0} % within \
                 10 %; {false_levels:.1} false in 100 curves; {wrong:.1} % wrong by 30 %",
                shape.name
            );
            let case = format!("{}, {noise}: {counts:?}", shape.name);
            // Two standard errors of 99 % of these curves.
            let least = 99.0 - 200.0 * (0.99 * 0.01 / counts.curves).sqrt();
            assert!([l1, l2, l3].iter().all(|named| *named >= least), "{case}");
            assert!(near >= 95.0 && false_levels <= 2.0 && wrong <= 2.0, "{case}");
        }
    }
}

#[test]
fn a_cache_that_translation_divides_has_the_latencies_of_both_parts() {
    let divided = shapes().into_iter().find(|shape| shape.translated.is_some()).unwrap();
    let document = divided.document(0.01, &mut Rng::new(1));
    let summary = Summary::of(&document);
    let l2 = summary.curves[0].levels.iter().find(|level| level.name == LevelName::Cache(2));
    let l2 = l2.expect("the L2 is found");
    let slowest_ns = l2.slowest_ns.expect("translation divides it");
    assert!((3.6..4.0).contains(&l2.latency_ns) && (4.9..5.3).contains(&slowest_ns), "{l2:?}");
    assert!(l2.capacity_bytes.is_some_and(|bytes| (0.7..1.6).contains(&(bytes / MIB as f64))));
    let page = summary.page().markdown();
    let said = format!("(L2, {:.2} to {slowest_ns:.2} ns)", l2.latency_ns);
    assert!(page.contains(&said) && !page.contains("unexplained"), "{said}: {page}");
}

#[test]
fn the_latency_of_a_cache_without_a_plateau_is_a_bound_in_table_and_chart() {
    let quick = shapes().into_iter().find(|shape| shape.name == "88 % taken, quick").unwrap();
    let document = quick.document(0.01, &mut Rng::new(1));
    let summary = Summary::of(&document);
    let l3 = summary.curves[0].levels.iter().find(|level| level.name == LevelName::Cache(3));
    let l3 = l3.filter(|level| level.at_most).expect("an L3 without a plateau");
    let page = summary.page();
    let bound = format!("≤ {:.1}", l3.latency_ns);
    assert!(page.markdown().contains(&bound), "{bound}: {}", page.markdown());
    assert!(page.html().contains(&format!("L3, at most · {:.1} ns", l3.latency_ns)));
}
