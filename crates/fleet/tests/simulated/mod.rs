//! A simulated fleet: two packages of two nodes, the cells of a quick run, and for each host
//! figures drawn around those of a real machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use numalab_record::{
    AccessPattern, BandwidthCell, C2cCell, CSV_HEADER, Cell, CellId, Environment, Experiment, Fact,
    Finished, IsaName, Kind, LatencyCell, Metric, Outcome, Pages, Run, Sample, StreamKernel, Team,
    WorkerPlan, write_sample,
};
use numalab_stats::Rng;
use numalab_topology::{Cache, CacheKind, Cpu, CpuId, CpuSet, Machine, Node, NodeId};

/// Relative standard deviation between hosts, 1 %; half of the variance is common to a host's
/// figures.
const NOISE: f64 = 0.01;
/// Windows of a cell; a real one has 5 to 60.
const WINDOWS: u64 = 8;

/// The fault of a host.
#[derive(Clone, Debug)]
pub enum Fault {
    /// All figures of a node's memory are worse by this number of standard deviations.
    MemoryNode { node: u32, shift: f64 },
    /// A setting has another value, and memory is slower with it.
    Setting { name: &'static str, value: &'static str, family_shift: f64 },
    /// The host has another processor.
    Model(&'static str),
}

pub struct Fleet {
    pub hosts: usize,
    seed: u64,
    faults: BTreeMap<usize, Fault>,
    plan: Vec<(Cell, Metric, f64)>,
}

impl Fleet {
    pub fn new(hosts: usize, seed: u64) -> Self {
        Self { hosts, seed, faults: BTreeMap::new(), plan: plan() }
    }

    pub fn plant(&mut self, host: usize, fault: Fault) {
        self.faults.insert(host, fault);
    }

    /// Returns the hosts with a fault.
    pub fn planted(&self) -> BTreeSet<String> {
        self.faults.keys().map(|host| name(*host)).collect()
    }

    /// Writes `directory/HOST/measure-1/` for every host.
    pub fn write(&self, directory: &Path) {
        for host in 0..self.hosts {
            self.write_host(directory, host, 0);
        }
    }

    /// Writes one host; each `draw` has different noise.
    pub fn write_host(&self, directory: &Path, host: usize, draw: u64) {
        let mut rng =
            Rng::new(self.seed ^ (host as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ draw);
        let fault = self.faults.get(&host);
        let common = normal(&mut rng) * NOISE * 0.5_f64.sqrt();
        let (mut cells, mut samples) = (String::new(), format!("{CSV_HEADER}\n"));
        for (cell, metric, base) in &self.plan {
            let own = normal(&mut rng) * NOISE * 0.5_f64.sqrt();
            let worse = if metric.lower_is_better() { 1.0 } else { -1.0 };
            let centre = base * (common + own + worse * shift(fault, cell) * NOISE).exp();
            for index in 0..WINDOWS {
                let value = centre * (1.0 + 0.003 * normal(&mut rng));
                let sample = Sample {
                    cell: cell.id.clone(),
                    metric: *metric,
                    index: u32::try_from(index).unwrap(),
                    value,
                    start_ns: index * 1000,
                    duration_ns: 900,
                    work: 20_000,
                    disturbed: None,
                };
                write_sample(&mut samples, &sample);
            }
            let finished = Finished {
                cell: cell.id.clone(),
                outcome: Outcome::Precise,
                placements: Vec::new(),
            };
            cells.push_str(&serde_json::to_string(&finished).unwrap());
            cells.push('\n');
        }
        let path = directory.join(name(host)).join("measure-1");
        fs::create_dir_all(&path).unwrap();
        let run = serde_json::to_string(&self.run(fault)).unwrap();
        for (name, text) in [("run.json", run), ("cells.jsonl", cells), ("samples.csv", samples)] {
            fs::write(path.join(name), text).unwrap();
        }
    }

    fn run(&self, fault: Option<&Fault>) -> Run {
        let facts = [
            ("cpu_model", "AMD EPYC 7763 64-Core Processor"),
            ("kernel", "6.1.0-40-amd64"),
            ("thp_enabled", "madvise"),
            ("governor", "performance"),
            ("numa_balancing", "0"),
            ("load_average", "0.01 0.02 0.03 1/800 4242"),
            ("memory_total_kb", "263921388"),
        ];
        let mut facts: BTreeMap<String, Fact> =
            facts.map(|(name, value)| (name.to_owned(), Fact::read(name, value))).into();
        match fault {
            Some(Fault::Setting { name, value, .. }) => {
                facts.insert((*name).to_owned(), Fact::read(name, value));
            }
            Some(Fault::Model(model)) => {
                facts.insert("cpu_model".to_owned(), (*model).into());
            }
            _ => {}
        }
        Run {
            schema: Kind::Run.into(),
            name: "measure".to_owned(),
            label: None,
            version: "0.1.0".to_owned(),
            command: vec!["numalab".to_owned(), "measure".to_owned(), "--quick".to_owned()],
            started_unix_ms: 1_795_228_980_000,
            seed: 1,
            precision: 0.01,
            budget_ns: 10_000_000_000,
            environment: Environment { facts },
            machine: machine(),
            survey: None,
            launch: None,
            plan: self.plan.iter().map(|(cell, _, _)| cell.clone()).collect(),
        }
    }
}

fn name(host: usize) -> String {
    format!("host{host:05}")
}

/// Returns the standard deviations by which the fault worsens a cell.
fn shift(fault: Option<&Fault>, cell: &Cell) -> f64 {
    let node = match &cell.experiment {
        Experiment::Latency(cell) if cell.size_bytes > 64 << 20 => Some(cell.worker.node.0),
        Experiment::Bandwidth(cell) => Some(cell.workers[0].node.0),
        _ => None,
    };
    match fault {
        Some(Fault::MemoryNode { node: of, shift }) if node == Some(*of) => *shift,
        Some(Fault::Setting { family_shift, .. }) if node.is_some() => *family_shift,
        _ => 0.0,
    }
}

/// Returns a standard normal value (Box and Muller, Ann. Math. Stat. 29, 1958).
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.uniform()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.uniform()).cos()
}

/// Returns a machine of two packages, each with two nodes of four cpus, with one L3 per node.
fn machine() -> Machine {
    let set = |from: u32| (from..from + 4).map(CpuId).collect::<CpuSet>();
    let cpu = |number: u32| Cpu {
        id: CpuId(number),
        online: true,
        node: Some(NodeId(number / 4)),
        package: Some(number / 8),
        core: Some(number),
        l3_group: Some(number / 4),
        ..Cpu::default()
    };
    let node = |number: u32| Node {
        id: NodeId(number),
        online: true,
        cpus: set(4 * number),
        memory_bytes: 64 << 30,
        ..Node::default()
    };
    let cache = |number: u32| Cache {
        level: 3,
        kind: CacheKind::Unified,
        size_bytes: Some(32 << 20),
        line_bytes: Some(64),
        ways: Some(16),
        cpus: set(4 * number),
    };
    Machine {
        nodes: (0..4).map(node).collect(),
        cpus: (0..16).map(cpu).collect(),
        caches: (0..4).map(cache).collect(),
        ..Machine::default()
    }
}

/// Returns the cells of a quick run with the metric and the figure of a real machine.
fn plan() -> Vec<(Cell, Metric, f64)> {
    let mut plan = Vec::new();
    let mut add = |name: String, experiment, metric, value| {
        plan.push((Cell { id: CellId(name), experiment }, metric, value));
    };
    let worker = |node: u32| WorkerPlan { cpu: CpuId(4 * node), node: NodeId(node) };
    let latency = |worker, size_bytes| {
        Experiment::Latency(LatencyCell {
            worker,
            size_bytes,
            pattern: AccessPattern::PageLocal,
            pages: Pages::Transparent,
            team: Team::Serial,
        })
    };
    for (exponent, value) in (12..=26)
        .zip([1.4, 1.4, 1.4, 1.4, 4.0, 4.6, 4.6, 4.7, 11.0, 12.0, 12.4, 13.0, 14.0, 18.0, 70.0])
    {
        let size = 1_u64 << exponent;
        let name = format!("latency/page-local/thp/cpu0/node0/{size}");
        add(name, latency(worker(0), size), Metric::Latency, value);
    }
    for from in 0..4 {
        for to in 0..4 {
            let worker = WorkerPlan { cpu: CpuId(4 * from), node: NodeId(to) };
            let value = if from == to {
                86.6
            } else if from / 2 == to / 2 {
                100.0
            } else {
                180.0
            };
            let name = format!("latency/page-local/thp/cpu{}/node{to}/256M", 4 * from);
            add(name, latency(worker, 256 << 20), Metric::Latency, value);
        }
    }
    for node in 0..4 {
        for kernel in StreamKernel::ALL {
            for all in [false, true] {
                let cpus = if all { 4 * node..4 * node + 4 } else { 4 * node..4 * node + 1 };
                let workers: Vec<WorkerPlan> =
                    cpus.map(|cpu| WorkerPlan { cpu: CpuId(cpu), node: NodeId(node) }).collect();
                let name = format!("bandwidth/{}/node{node}/{}", kernel.name(), workers.len());
                let experiment = Experiment::Bandwidth(BandwidthCell {
                    workers,
                    kernel,
                    pattern: AccessPattern::Sequential,
                    size_bytes: 256 << 20,
                    pages: Pages::Transparent,
                    isa: IsaName("avx2".to_owned()),
                });
                add(name, experiment, Metric::Bandwidth, if all { 38.0 } else { 15.8 });
            }
        }
    }
    for to in 1..8 {
        let cell = C2cCell { from: CpuId(0), to: CpuId(to), home: NodeId(0) };
        add(format!("c2c/cpu0/cpu{to}/home0"), Experiment::C2c(cell), Metric::RoundTrip, 90.0);
    }
    plan
}
