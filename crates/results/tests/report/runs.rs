//! Synthetic runs with fixed numbers.

use std::collections::BTreeMap;

use numalab_record::{Placement, *};
use numalab_topology::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Returns a machine of equal nodes without SMT, one package each, with a 48K L1, a 2M L2 and a 32M
/// L3.
pub fn machine(nodes: u32, cpus_per_node: u32, distance: impl Fn(u32, u32) -> u8) -> Machine {
    let mut machine = Machine::default();
    let mut rows = Vec::new();
    for node in 0..nodes {
        let first = node * cpus_per_node;
        let cpus: CpuSet = (first..first + cpus_per_node).map(CpuId).collect();
        for cpu in cpus.iter() {
            let own = CpuSet::from_iter([cpu]);
            machine.cpus.push(Cpu {
                id: cpu,
                online: true,
                node: Some(NodeId(node)),
                package: Some(node),
                core: Some(cpu.0),
                thread: 0,
                l3_group: Some(node),
                apic_id: None,
            });
            machine.caches.push(cache(1, CacheKind::Data, 48 * KIB, &own));
            machine.caches.push(cache(1, CacheKind::Instruction, 32 * KIB, &own));
            machine.caches.push(cache(2, CacheKind::Unified, 2 * MIB, &own));
        }
        machine.caches.push(cache(3, CacheKind::Unified, 32 * MIB, &cpus));
        machine.nodes.push(Node {
            id: NodeId(node),
            online: true,
            cpus,
            memory_bytes: 16 * GIB,
            free_bytes: Some(13 * GIB),
            huge_pages: vec![HugePagePool { page_bytes: 2 * MIB, total: 512, free: 512 }],
            ..Node::default()
        });
        rows.push((0..nodes).map(|to| distance(node, to)).collect());
    }
    machine.distances = Distances::from_rows(&rows).expect("square");
    machine
}

fn cache(level: u8, kind: CacheKind, size_bytes: u64, cpus: &CpuSet) -> Cache {
    Cache {
        level,
        kind,
        size_bytes: Some(size_bytes),
        line_bytes: Some(64),
        ways: Some(8),
        cpus: cpus.clone(),
    }
}

/// A run under construction: its machine, and cells with their results.
pub struct Builder {
    pub document: Document,
    clock_ns: u64,
    noise: u64,
}

impl Builder {
    pub fn new(machine: Machine) -> Self {
        let facts = [
            ("hostname", "bench-07"),
            ("cpu_model", "Example 8-Core Processor"),
            ("kernel", "Linux 6.12.0"),
            ("thp_enabled", "always [madvise] never"),
            ("clock_invariant", "yes"),
        ];
        let facts = facts.map(|(name, value)| (name.to_owned(), Fact::read(name, value)));
        let run = Run {
            schema: Kind::Run.into(),
            name: "measure".into(),
            label: None,
            version: "0.1.0".into(),
            command: vec!["numalab".into(), "measure".into()],
            started_unix_ms: 1_795_228_980_000,
            seed: 7,
            precision: 0.01,
            budget_ns: 60_000_000_000,
            environment: Environment { facts: BTreeMap::from(facts) },
            machine,
            survey: None,
            launch: None,
            plan: Vec::new(),
        };
        Self { document: Document { run, cells: Vec::new() }, clock_ns: 0, noise: 1 }
    }

    /// Returns a pseudorandom value between -1 and 1, the same in every build.
    fn noise(&mut self) -> f64 {
        self.noise = self
            .noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.noise >> 40).expect("24 bits")) / f64::from(1 << 23) - 1.0
    }

    /// Adds a precise cell: 24 windows of each metric around its value.
    pub fn cell(&mut self, id: &str, experiment: Experiment, values: &[(Metric, f64)]) {
        let cell = Cell { id: CellId(id.to_owned()), experiment };
        let mut samples = Vec::new();
        for &(metric, value) in values {
            for index in 0..24 {
                let value = value * (1.0 + 0.004 * self.noise());
                samples.push(self.sample(&cell.id, metric, index, value));
            }
        }
        let placements = self.placements(&cell.experiment);
        self.document.run.plan.push(cell.clone());
        self.document.cells.push(CellResult {
            cell,
            ended: Some(Outcome::Precise),
            placements,
            samples,
        });
    }

    fn sample(&mut self, cell: &CellId, metric: Metric, index: u32, value: f64) -> Sample {
        self.clock_ns += 2_000_000;
        Sample {
            cell: cell.clone(),
            metric,
            index,
            value: (value * 1e4).round() / 1e4,
            start_ns: self.clock_ns,
            duration_ns: 2_000_000,
            work: 20_000,
            disturbed: None,
        }
    }

    fn placements(&self, experiment: &Experiment) -> Vec<Placement> {
        let workers = match experiment {
            Experiment::Loaded(cell) => vec![cell.chaser],
            other => other.workers(),
        };
        let axes = experiment.description().axes();
        let (bytes, pages) =
            (axes.size_bytes.unwrap_or(4 * KIB), axes.pages.unwrap_or(Pages::BASE_4K));
        let is_huge = pages != Pages::BASE_4K && bytes >= 2 * MIB;
        let page_bytes = if is_huge { 2 * MIB } else { 4 * KIB };
        let placement = |worker: WorkerPlan| Placement {
            cpu: worker.cpu,
            cpu_node: self.document.run.machine.cpu(worker.cpu).and_then(|cpu| cpu.node),
            affinity: CpuSet::from_iter([worker.cpu]),
            memory_node: worker.node,
            address: 0x7f3a_4000_0000,
            buffer_bytes: bytes,
            method: ProofMethod::MovePages,
            pages_checked: bytes / page_bytes,
            pages_per_node: BTreeMap::from([(worker.node, bytes / page_bytes)]),
            bytes_per_page_size: BTreeMap::from([(page_bytes, bytes)]),
            isa: None,
        };
        workers.into_iter().map(placement).collect()
    }

    pub fn latency(
        &mut self,
        worker: (u32, u32),
        size_bytes: u64,
        pattern: AccessPattern,
        pages: Pages,
        ns: f64,
    ) {
        self.latency_of(worker, size_bytes, pattern, pages, Team::Serial, ns);
    }

    pub fn latency_of(
        &mut self,
        (cpu, node): (u32, u32),
        size_bytes: u64,
        pattern: AccessPattern,
        pages: Pages,
        team: Team,
        ns: f64,
    ) {
        let order = match pattern {
            AccessPattern::PageLocal => "page-local".to_owned(),
            AccessPattern::OneLinePer(_) => pattern.to_string(),
            _ => "random".to_owned(),
        };
        let crowd = if team == Team::Concurrent { "/all" } else { "" };
        let id =
            format!("latency/cpu{cpu}/node{node}/{size_bytes}/{order}/{}{crowd}", pages.name());
        let cell = LatencyCell { worker: worker(cpu, node), size_bytes, pattern, pages, team };
        self.cell(&id, Experiment::Latency(cell), &[(Metric::Latency, ns)]);
    }

    /// Adds the core, the sweep over sizes and the page walks of cpu 0.
    pub fn sweep(&mut self, memory_ns: f64) {
        let core = Experiment::Core(CoreCell { cpu: CpuId(0) });
        let values = [(Metric::LoadToUse, 5.0), (Metric::CoreClock, 3.2), (Metric::AtomicAdd, 5.7)];
        self.cell("core/cpu0", core, &values);
        let mut octave = 4 * KIB;
        while octave <= GIB {
            for size in [octave, octave + octave / 2] {
                if size <= GIB {
                    let ns = curve_ns(size, memory_ns);
                    self.latency((0, 0), size, AccessPattern::Random, Pages::Transparent, ns);
                }
            }
            octave *= 2;
        }
        let huge = Pages::Transparent;
        self.latency((0, 0), GIB, AccessPattern::PageLocal, huge, memory_ns * 0.93);
        self.latency((0, 0), GIB, AccessPattern::Random, Pages::BASE_4K, memory_ns * 1.31);
        self.latency((0, 0), GIB, AccessPattern::PageLocal, Pages::BASE_4K, memory_ns * 0.95);
    }

    /// Adds cells of one line per page: 64 and 1,536 entries for small pages, 32 and more than 512
    /// for huge ones, each of which takes one entry.
    pub fn tlb(&mut self, memory_ns: f64) {
        for pages in [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192] {
            let line_ns = curve_ns(64 * pages, memory_ns);
            let small = [(64, 0.0), (1536, 2.2), (u64::MAX, 11.0)];
            let cost = |(_, ns): &(u64, f64)| *ns;
            let small_ns = small.iter().find(|(held, _)| pages <= *held).map_or(0.0, cost);
            let apart = AccessPattern::OneLinePer(4 * KIB);
            let bytes = 4 * KIB * pages;
            self.latency((0, 0), bytes, apart, Pages::BASE_4K, line_ns + small_ns);
            self.latency((0, 0), bytes, apart, Pages::Transparent, line_ns);
            if pages <= 512 {
                let huge_ns = if pages <= 32 { 0.0 } else { 2.2 };
                let apart = AccessPattern::OneLinePer(2 * MIB);
                let bytes = 2 * MIB * pages;
                self.latency((0, 0), bytes, apart, Pages::Transparent, line_ns + huge_ns);
            }
        }
    }

    /// Adds latencies from every cpu to every node at 512M; `ns` maps the node of the cpu and that
    /// of the memory to a latency.
    pub fn matrix(&mut self, team: Team, ns: impl Fn(u32, u32) -> f64) {
        let machine = self.document.run.machine.clone();
        for cpu in &machine.cpus {
            for node in &machine.nodes {
                let from = cpu.node.expect("every cpu has a node").0;
                let value = ns(from, node.id.0) * (1.0 + 0.002 * f64::from(cpu.id.0 % 4));
                let to = (cpu.id.0, node.id.0);
                let (order, pages) = (AccessPattern::Random, Pages::Transparent);
                self.latency_of(to, 512 * MIB, order, pages, team, value);
            }
        }
    }

    pub fn bandwidth(
        &mut self,
        workers: &[(u32, u32)],
        kernel: StreamKernel,
        pattern: AccessPattern,
        gb_per_s: f64,
    ) {
        let (first, last) = (workers[0], workers[workers.len() - 1]);
        let id = format!(
            "bandwidth/{}/{pattern:?}/cpu{}-{}/node{}-{}",
            kernel.name(),
            first.0,
            last.0,
            first.1,
            last.1
        );
        let cell = BandwidthCell {
            workers: workers.iter().map(|&(cpu, node)| worker(cpu, node)).collect(),
            kernel,
            pattern,
            size_bytes: 256 * MIB,
            pages: Pages::Transparent,
            isa: IsaName("avx2".into()),
        };
        self.cell(&id, Experiment::Bandwidth(cell), &[(Metric::Bandwidth, gb_per_s)]);
    }

    /// Adds every kernel on one and on all cpus, strided and random reads, and the node matrix if
    /// there are several nodes.
    pub fn bandwidths(&mut self, remote: f64) {
        let machine = self.document.run.machine.clone();
        let all: Vec<(u32, u32)> = machine
            .cpus
            .iter()
            .map(|cpu| (cpu.id.0, cpu.node.expect("every cpu has a node").0))
            .collect();
        let nodes = f64::from(u32::try_from(machine.nodes.len()).expect("few"));
        let sequential = AccessPattern::Sequential;
        let speeds = [13.1, 7.2, 11.4, 8.9, 12.3, 9.6];
        for (kernel, gb_per_s) in StreamKernel::ALL.into_iter().zip(speeds) {
            self.bandwidth(&all[..1], kernel, sequential, gb_per_s);
            self.bandwidth(&all, kernel, sequential, gb_per_s * 1.9 * nodes);
        }
        let read = StreamKernel::Read;
        self.bandwidth(&all[..1], read, AccessPattern::Stride(256), 4.4);
        self.bandwidth(&all[..1], read, AccessPattern::Random, 1.3);
        if machine.nodes.len() < 2 {
            return;
        }
        for from in &machine.nodes {
            for to in &machine.nodes {
                let workers: Vec<(u32, u32)> =
                    from.cpus.iter().map(|cpu| (cpu.0, to.id.0)).collect();
                let share = if from.id == to.id { 1.0 } else { remote };
                self.bandwidth(&workers, read, sequential, 24.9 * share);
            }
        }
    }

    /// Adds a chase by cpu 0 while the other cpus of node 0 read.
    pub fn loaded(&mut self, idle_ns: f64) {
        self.loaded_by(StreamKernel::Read, idle_ns);
    }

    /// Adds a chase by cpu 0 while the other cpus of node 0 load its memory.
    pub fn loaded_by(&mut self, kernel: StreamKernel, idle_ns: f64) {
        let load: Vec<WorkerPlan> = self.document.run.machine.nodes[0]
            .cpus
            .iter()
            .skip(1)
            .map(|cpu| worker(cpu.0, 0))
            .collect();
        let delays = [None, Some(512), Some(128), Some(64), Some(32), Some(16), Some(4), Some(0)];
        let reached = [0.0, 1.9, 6.5, 11.0, 16.8, 20.9, 23.6, 24.4];
        let factors = [1.0, 1.01, 1.06, 1.15, 1.38, 1.83, 2.9, 4.1];
        let of = match kernel {
            StreamKernel::Read => String::new(),
            other => format!("{}/", other.name()),
        };
        for ((delay, gb_per_s), factor) in delays.into_iter().zip(reached).zip(factors) {
            let name = delay.map_or_else(|| "idle".to_owned(), |delay: u32| delay.to_string());
            let cell = LoadedCell {
                chaser: worker(0, 0),
                load: load.clone(),
                kernel,
                delay,
                size_bytes: 512 * MIB,
                pages: Pages::Transparent,
            };
            let latency = (Metric::Latency, idle_ns * factor);
            let asked = gb_per_s / kernel.traffic_factor();
            let values = [latency, (Metric::Bandwidth, asked)];
            let values = if delay.is_none() { &values[..1] } else { &values };
            self.cell(&format!("loaded/cpu0/{of}{name}"), Experiment::Loaded(cell), values);
        }
    }

    /// Adds every pair of cpus, with the line on the sender's node.
    pub fn c2c(&mut self) {
        let cpus = self.document.run.machine.cpus.clone();
        for from in &cpus {
            for to in cpus.iter().filter(|to| to.id != from.id) {
                let home = from.node.expect("every cpu has a node");
                let ns = if from.node == to.node { 52.0 } else { 143.0 };
                let id = format!("c2c/cpu{}/cpu{}/node{home}", from.id, to.id);
                let (from, to) = (from.id, to.id);
                let cell = Experiment::C2c(C2cCell { from, to, home });
                self.cell(&id, cell, &[(Metric::RoundTrip, ns)]);
            }
        }
    }
}

fn worker(cpu: u32, node: u32) -> WorkerPlan {
    WorkerPlan { cpu: CpuId(cpu), node: NodeId(node) }
}

/// Returns the latency of random access over `size` bytes; the share that fits stays in each cache.
fn curve_ns(size: u64, memory_ns: f64) -> f64 {
    let held = |cache: u64| {
        let beyond = size.saturating_sub(cache) as f64;
        (-6.0 * beyond / cache as f64).exp()
    };
    let steps = [(48 * KIB, 1.56, 4.4), (2 * MIB, 4.4, 15.8), (32 * MIB, 15.8, memory_ns)];
    let rise = steps.map(|(cache, inside, outside)| (1.0 - held(cache)) * (outside - inside));
    1.56 + rise.iter().sum::<f64>()
}

/// Returns a run on one node with two cpus, like a small virtual machine.
pub fn one_node() -> Document {
    let mut run = Builder::new(machine(1, 2, |_, _| 10));
    run.sweep(98.0);
    run.tlb(98.0);
    run.matrix(Team::Serial, |_, _| 97.2);
    run.matrix(Team::Concurrent, |_, _| 103.9);
    run.bandwidths(1.0);
    run.loaded(97.0);
    run.c2c();
    run.document
}

/// Returns a run on two nodes with eight cpus; remote memory costs 1.62 times local, where
/// distances claim 2.1.
pub fn two_nodes() -> Document {
    let mut run = Builder::new(machine(2, 4, |from, to| if from == to { 10 } else { 21 }));
    run.sweep(88.0);
    run.matrix(Team::Serial, |from, to| if from == to { 86.4 } else { 140.1 });
    run.bandwidths(0.61);
    run.loaded(87.0);
    run.c2c();
    run.document.run.label = Some("after <b>tuning</b>".into());
    run.document
}

/// Returns a run of bandwidth alone, on two nodes with eight cpus.
pub fn bandwidth_alone() -> Document {
    let mut run = Builder::new(machine(2, 4, |from, to| if from == to { 10 } else { 21 }));
    run.bandwidths(0.61);
    run.document
}

/// Returns a result of numalab's own kernel about its frames.
pub fn frames() -> Document {
    let mut run = Builder::new(machine(2, 4, |from, to| if from == to { 10 } else { 21 }));
    let cpus = vec![CpuId(0), CpuId(4)];
    let cell = FramesCell { work: "test_numa".into(), cpus, size_bytes: GIB };
    let values = [(Metric::Elapsed, 2.5), (Metric::LocalShare, 1.0)];
    run.cell("kernel/test_numa", Experiment::Frames(cell), &values);
    run.document
}

/// Returns a family of loaded-latency curves of one node's memory, under every kernel.
pub fn surface() -> Document {
    let mut run = Builder::new(machine(2, 4, |from, to| if from == to { 10 } else { 21 }));
    StreamKernel::ALL.into_iter().for_each(|kernel| run.loaded_by(kernel, 87.0));
    let facts = &mut run.document.run.environment.facts;
    facts.insert("memory_peak_mb_s".into(), Fact::Count(61_000));
    facts.insert("memory_channels_empty".into(), "DIMM_C".into());
    facts.insert("memory_modules_slow".into(), "DIMM_B1 at 2933 of 3200 MT/s".into());
    run.document
}

/// Returns a run on eight nodes in two packages with sixteen cpus; node 5 is slow, and by distance
/// node 3 is closer to node 0 than measured.
pub fn eight_nodes() -> Document {
    let distance = |from: u32, to: u32| match (from, to) {
        (from, to) if from == to => 10,
        (0, 3) | (3, 0) => 11,
        (from, to) if from / 4 == to / 4 => 12,
        _ => 32,
    };
    let ns = |from: u32, to: u32| {
        let slow = if to == 5 { 1.2 } else { 1.0 };
        slow * match (from, to) {
            (from, to) if from == to => 86.6,
            (0, 3) => 131.0,
            (from, to) if from / 4 == to / 4 => 101.0,
            _ => 181.0,
        }
    };
    let mut run = Builder::new(machine(8, 2, distance));
    run.sweep(88.0);
    run.matrix(Team::Serial, ns);
    run.bandwidths(0.55);
    run.loaded(87.0);
    run.c2c();
    run.document
}

/// Returns [`two_nodes`], interrupted after 60 cells, with a disturbed stretch, an imprecise cell,
/// a failed one and one without huge pages.
pub fn interrupted() -> Document {
    let mut document = two_nodes();
    for cell in &mut document.cells[60..] {
        cell.ended = None;
        cell.placements.clear();
        cell.samples.truncate(3);
    }
    for cell in &mut document.cells[4..12] {
        for sample in &mut cell.samples[5..14] {
            sample.value *= 1.7;
            sample.disturbed = Some("involuntary switch".into());
        }
    }
    document.cells[20].ended = Some(Outcome::BudgetSpent);
    document.cells[21].ended = Some(Outcome::Failed {
        reason: "mbind to node 1: operation not permitted | try <numactl>".into(),
    });
    let bytes = document.cells[30].placements[0].buffer_bytes;
    document.cells[30].placements[0].bytes_per_page_size = BTreeMap::from([(4096, bytes)]);
    document
}

/// Returns [`one_node`] with nothing that could be measured.
pub fn everything_failed() -> Document {
    let mut document = one_node();
    for cell in &mut document.cells {
        cell.samples.clear();
        cell.placements.clear();
        cell.ended = Some(Outcome::Failed { reason: "the cpuset allows no cpu".into() });
    }
    document
}

/// Returns a run without cells on an unknown machine.
pub fn empty() -> Document {
    let mut run = Builder::new(Machine::default());
    run.document.run.environment = Environment::default();
    run.document
}

/// Returns every run by name.
pub fn all() -> Vec<(&'static str, Document)> {
    vec![
        ("one-node", one_node()),
        ("two-nodes", two_nodes()),
        ("eight-nodes", eight_nodes()),
        ("interrupted", interrupted()),
        ("everything-failed", everything_failed()),
        ("empty", empty()),
    ]
}
