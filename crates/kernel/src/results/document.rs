//! Conversion of results to the common record.

use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use numalab_record::{
    AccessPattern, BandwidthCell, Cell, CellId, Document, Environment, Experiment, Fact, Finished,
    FramesCell, IsaName, Kind, LatencyCell, Metric, Outcome, Pages, Placement, ProofMethod, Sample,
    StreamKernel, Team, WorkerPlan,
};
use numalab_topology::{CpuId, CpuSet, NodeId};

use super::Results;
use crate::event::{Boot, Storm, Stream};

/// The host's information about a kernel's run.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The user's label.
    pub label: Option<String>,
    pub command: Vec<String>,
    /// Start in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Facts: the accelerator, QEMU's version, the host.
    pub facts: BTreeMap<String, Fact>,
}

/// Relative half width at which a cell counts as precise.
const PRECISION: f64 = 0.01;

/// Cells with their samples, under construction.
#[derive(Default)]
struct Cells {
    plan: Vec<Cell>,
    finished: Vec<Finished>,
    samples: Vec<Sample>,
}

/// A value before it has a position in time.
struct Value {
    metric: Metric,
    value: f64,
    duration_ns: u64,
    work: u64,
}

impl Results {
    /// Returns the results as a document of the run `kernel`.
    pub fn document(&self, context: &Context) -> Document {
        let boot = self.boot.clone().unwrap_or_default();
        let mut cells = Cells::default();
        self.chases(&boot, &mut cells);
        self.streams.iter().for_each(|stream| self.stream(&boot, stream, &mut cells));
        self.runs(&boot, &mut cells);
        self.storms.iter().for_each(|storm| storm_cell(&boot, storm, &mut cells));
        self.guests(&mut cells);
        let mut facts = context.facts.clone();
        facts.insert("kernel".to_string(), format!("numalab-kernel {}", boot.version).into());
        facts.insert("kernel_arguments".to_string(), boot.command.clone().into());
        facts.insert("loader".to_string(), boot.loader.clone().into());
        facts.insert("apic".to_string(), boot.apic.clone().into());
        facts.insert("clock".to_string(), boot.clock.clone().into());
        facts.insert("clock_khz".to_string(), boot.tsc_khz.into());
        let run = numalab_record::Run {
            schema: Kind::Run.into(),
            name: "kernel".to_string(),
            label: context.label.clone(),
            version: boot.version.clone(),
            command: context.command.clone(),
            started_unix_ms: context.started_unix_ms,
            seed: boot.seed,
            precision: PRECISION,
            budget_ns: 0,
            environment: Environment { facts },
            machine: self.machine.clone(),
            survey: None,
            launch: None,
            plan: cells.plan,
        };
        Document::join(run, cells.finished, cells.samples)
    }

    fn chases(&self, boot: &Boot, cells: &mut Cells) {
        for first in self.windows.iter().filter(|window| window.index == 0) {
            let key = (first.cpu, first.node, first.bytes);
            let mine = self.windows.iter().filter(|w| (w.cpu, w.node, w.bytes) == key && w.warm);
            let values = mine.map(|window| {
                let ns =
                    if window.own_ns > 0 { to_f64(window.own_ns) } else { boot.ns(window.ticks) };
                Value::of(Metric::Latency, ns / to_f64(window.loads.max(1)), ns, window.loads)
            });
            let worker = WorkerPlan { cpu: CpuId(first.cpu), node: NodeId(first.node) };
            let experiment = Experiment::Latency(LatencyCell {
                worker,
                size_bytes: first.bytes,
                pattern: AccessPattern::Random,
                pages: pages(boot),
                team: Team::Serial,
            });
            let id = format!("kernel/latency/cpu{}/node{}/{}", first.cpu, first.node, first.bytes);
            let placement = self.placement(boot, worker, first.bytes);
            cells.add(id, experiment, [placement].into(), values.collect());
        }
    }

    fn stream(&self, boot: &Boot, stream: &Stream, cells: &mut Cells) {
        let Some(kernel) = StreamKernel::ALL.into_iter().find(|k| k.name() == stream.kernel) else {
            return;
        };
        let workers: Vec<WorkerPlan> = stream
            .cpus
            .iter()
            .zip(&stream.nodes)
            .map(|(&cpu, &node)| WorkerPlan { cpu: CpuId(cpu), node: NodeId(node) })
            .collect();
        let ns: Vec<f64> = stream.times_ns(boot);
        let rate: f64 =
            stream.bytes.iter().zip(&ns).map(|(&bytes, ns)| to_f64(bytes) / ns.max(1.0)).sum();
        let longest = ns.iter().copied().fold(0.0, f64::max);
        let total = stream.bytes.iter().sum();
        let values = [Value::of(Metric::Bandwidth, rate, longest, total)].into();
        let size_bytes = stream.size_bytes;
        let id = format!("kernel/bandwidth/{}/{}", stream.kernel, joined(&workers));
        let placements = workers.iter().map(|&worker| self.placement(boot, worker, size_bytes));
        let placements = placements.collect();
        let experiment = Experiment::Bandwidth(BandwidthCell {
            workers,
            kernel,
            pattern: AccessPattern::Sequential,
            size_bytes,
            pages: pages(boot),
            isa: IsaName(stream.isa.clone()),
        });
        cells.add(id, experiment, placements, values);
    }

    fn runs(&self, boot: &Boot, cells: &mut Cells) {
        let Some(first) = self.runs.first() else { return };
        let mut values = Vec::new();
        for run in &self.runs {
            let seconds = run.elapsed_s(boot);
            let reads = run.reads * run.cpus.len() as u64;
            values.push(Value::of(Metric::Elapsed, seconds, seconds * 1e9, reads));
            values.extend(share(run.local, run.remote, seconds * 1e9));
        }
        let cell = FramesCell {
            work: "test_numa".to_string(),
            cpus: first.cpus.iter().copied().map(CpuId).collect(),
            size_bytes: first.bytes,
        };
        let id = format!("kernel/test_numa/{}-threads/{}", first.cpus.len(), first.bytes);
        cells.add(id, Experiment::Frames(cell), Vec::new(), values);
    }

    fn guests(&self, cells: &mut Cells) {
        for guest in &self.guests {
            let cell = FramesCell {
                work: "guests".to_string(),
                cpus: Vec::new(),
                size_bytes: (guest.local + guest.remote) * 4096,
            };
            let id = format!("kernel/guests/{}/node{}", guest.guest, guest.node);
            let values = share(guest.local, guest.remote, 0.0).into_iter().collect();
            cells.add(id, Experiment::Frames(cell), Vec::new(), values);
        }
    }

    /// Returns the proof of placement: the allocator took the frames from this node alone.
    fn placement(&self, boot: &Boot, worker: WorkerPlan, bytes: u64) -> Placement {
        let pages = bytes.div_ceil(4096);
        Placement {
            cpu: worker.cpu,
            cpu_node: self.machine.cpu(worker.cpu).and_then(|cpu| cpu.node),
            affinity: CpuSet::from_iter([worker.cpu]),
            memory_node: worker.node,
            address: 0,
            buffer_bytes: bytes.max(1),
            method: ProofMethod::Allocator,
            pages_checked: pages,
            pages_per_node: BTreeMap::from([(worker.node, pages)]),
            bytes_per_page_size: BTreeMap::from([(boot.page_bytes, bytes)]),
            isa: None,
        }
    }
}

fn storm_cell(boot: &Boot, storm: &Storm, cells: &mut Cells) {
    let ns = storm.times_ns(boot);
    let longest = ns.iter().copied().fold(0.0, f64::max);
    let mut values: Vec<Value> = Vec::new();
    for each in &ns {
        let rounds = to_f64(storm.rounds.max(1));
        values.push(Value::of(Metric::Frame, each / rounds, *each, storm.rounds));
    }
    values.extend(share(storm.local, storm.remote, longest));
    let cell = FramesCell {
        work: storm.work.clone(),
        cpus: storm.cpus.iter().copied().map(CpuId).collect(),
        size_bytes: 0,
    };
    let id = format!("kernel/{}/{}-cpus", storm.work, storm.cpus.len());
    cells.add(id, Experiment::Frames(cell), Vec::new(), values);
}

impl Value {
    fn of(metric: Metric, value: f64, duration_ns: f64, work: u64) -> Self {
        Self { metric, value, duration_ns: whole(duration_ns), work }
    }
}

fn share(local: u64, remote: u64, duration_ns: f64) -> Option<Value> {
    let all = local + remote;
    let share = to_f64(local) / to_f64(all);
    (all > 0).then(|| Value::of(Metric::LocalShare, share, duration_ns, all))
}

impl Cells {
    fn add(
        &mut self,
        id: String,
        experiment: Experiment,
        placements: Vec<Placement>,
        values: Vec<Value>,
    ) {
        let id = CellId(id);
        let outcome = if is_narrow(&values) { Outcome::Precise } else { Outcome::BudgetSpent };
        let mut starts: BTreeMap<Metric, (u32, u64)> = BTreeMap::new();
        for value in values {
            let (index, start_ns) = starts.entry(value.metric).or_default();
            self.samples.push(Sample {
                cell: id.clone(),
                metric: value.metric,
                index: *index,
                value: value.value,
                start_ns: *start_ns,
                duration_ns: value.duration_ns,
                work: value.work,
                disturbed: None,
            });
            *index += 1;
            *start_ns += value.duration_ns;
        }
        self.finished.push(Finished { cell: id.clone(), outcome, placements });
        self.plan.push(Cell { id, experiment });
    }
}

/// Returns true if all values of each metric are within the run's precision of each other, as in
/// virtual time: no interval of them can be wider.
fn is_narrow(values: &[Value]) -> bool {
    let of = |metric| values.iter().filter(move |v| v.metric == metric).map(|v| v.value);
    values.iter().all(|first| {
        let least = of(first.metric).fold(f64::INFINITY, f64::min);
        let most = of(first.metric).fold(0.0, f64::max);
        of(first.metric).count() > 1 && most - least <= PRECISION * least
    })
}

fn joined(workers: &[WorkerPlan]) -> String {
    let words = workers.iter().map(|worker| format!("{}@{}", worker.cpu, worker.node));
    words.collect::<Vec<_>>().join("+")
}

fn pages(boot: &Boot) -> Pages {
    if boot.page_bytes == 1 << 30 { Pages::HUGE_1G } else { Pages::HUGE_2M }
}

#[expect(clippy::cast_precision_loss, reason = "counts and nanoseconds far below 2^53")]
fn to_f64(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a length of time in nanoseconds, not negative and far below 2^63"
)]
fn whole(ns: f64) -> u64 {
    ns.round() as u64
}
