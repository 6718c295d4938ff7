//! What ranks do together: sit down, prove where they are, measure size by size, and bring
//! what they found to rank 0, which records each size's cells as they end.

mod assignment;
mod cells;
mod error;
mod files;
mod ledger;
mod memory;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use numalab_host::{Interrupt, Pinned, process_policy};
use numalab_measure::Scope;
use numalab_measure::{
    Buffer, MeasureContext, MeasureError, MemorySource, RunRecorder, Settings, StreamRules,
};
use numalab_record::{
    AccessPattern, CellId, Document, Launch, Pages, Placement, RankTable, Sample,
};
use numalab_topology::{CpuSet, Machine, MemoryPolicy, NodeId, NodeSet};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use assignment::{Assignment, assign_cpu};
use cells::SharedCell;
pub use error::SessionError;
use ledger::Ledger;
use work::Worker;

use crate::identity::{Identity, Look};
use crate::team::Team;

/// How a rank chases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChaseRules {
    /// The order of visits.
    pub pattern: AccessPattern,
    /// Loads that are measured for each size; at least 1.
    pub iterations: u64,
    /// Loads before these, at least; once round the buffer, or a million loads, are made
    /// in any case.
    pub warmup: u64,
}

/// What the ranks measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Latency.
    Latency(ChaseRules),
    /// Bandwidth.
    Bandwidth(StreamRules),
}

impl Work {
    /// The name of what is gone through: a pattern or a stream kernel.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Latency(rules) => rules.pattern.to_string(),
            Self::Bandwidth(rules) => rules.kernel.name().to_owned(),
        }
    }
}

/// What all ranks were asked for alike.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionPlan {
    /// What is measured.
    pub work: Work,
    /// The sizes, in this order.
    pub sizes_bytes: Vec<u64>,
    /// The pages behind the buffers.
    pub pages: Pages,
    /// Whether ranks take turns.
    pub serial: bool,
    /// What every rank's seed is made of.
    pub seed: u64,
    /// Relative half width of a cell's interval at which it counts as precise: 0.01 is 1 %.
    pub precision: f64,
    /// The cpus that may be used; all that a rank may run on without.
    pub cpus: Option<CpuSet>,
    /// The node of every rank's memory; else the process's policy decides.
    pub node: Option<NodeId>,
    /// Whether ranks may share a cpu.
    pub overcommit: bool,
    /// The suite's CSV, and what goes beside it.
    pub csv: Option<PathBuf>,
}

/// What rank 0 has in the end.
#[derive(Debug)]
pub struct Findings {
    /// The run, on disk where it has a directory.
    pub recorder: RunRecorder,
    /// The run with its cells.
    pub document: Document,
    /// The figures of each rank, read from the cells.
    pub table: RankTable,
    /// The last rank's memory by node, as `numastat` prints it.
    pub memory: String,
}

/// Where a rank is, as it tells the others before anything is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Seat {
    host: String,
    /// Where its memory was asked from: `bind:0`.
    policy: String,
    /// When its run started, by the clock of its host.
    started_ns: u64,
    placement: Placement,
}

/// What a rank found for a size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Found {
    samples: Vec<Sample>,
    placement: Placement,
}

/// One rank's surroundings.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Who it is.
    pub identity: &'a Identity,
    /// The machine it is on.
    pub machine: &'a Machine,
    /// Its environment.
    pub look: Look<'a>,
    /// Writes a run for programs, as it lies beside the CSV.
    pub render: fn(&Document) -> serde_json::Result<String>,
}

/// Measures with all ranks; rank 0 gets what they found. `begin` is called by rank 0 once
/// every rank is proven to be in its place, and says where cells are recorded. A rank that
/// fails leaves `CSV.rankN.failed`, since launchers lose exit codes, and tells the others.
///
/// # Errors
/// [`SessionError`]; rows that were complete are kept in `CSV.part`, cells in their directory.
pub fn run(
    team: &mut Team,
    around: Surroundings<'_>,
    plan: &SessionPlan,
    begin: Begin<'_>,
) -> Result<Option<Findings>, SessionError> {
    let outcome = measure(team, around, plan, begin);
    if let Err(error) = &outcome {
        team.give_up();
        if let (Some(csv), false) = (&plan.csv, error.is_of_another_rank()) {
            files::note_failure(csv, team.rank(), error);
        }
    }
    outcome
}

/// What rank 0 does once every rank is in its place: it gives what cells are recorded by.
pub type Begin<'a> = &'a mut dyn FnMut(&Team, Launch) -> Result<RunRecorder, MeasureError>;

fn measure(
    team: &mut Team,
    around: Surroundings<'_>,
    plan: &SessionPlan,
    begin: Begin<'_>,
) -> Result<Option<Findings>, SessionError> {
    let assignment = assign_cpu(team, around, plan)?;
    let settled = settle(around.machine, plan, team.rank(), &assignment);
    let mut settled = agree(team, settled)?;
    let seats: Vec<Seat> = gather(team, &settled.seat)?;
    let teams = cells::teams(&seats, plan);
    let cells = cells::cells(&seats, &teams, plan);
    let begun = match team.rank() {
        0 => Ledger::begin(team, around, plan, (&seats, teams, &cells), begin).map(Some),
        _ => Ok(None),
    };
    let mut ledger = agree(team, begun)?;
    for (&size_bytes, shared) in plan.sizes_bytes.iter().zip(&cells) {
        let found = measure_size(team, &mut settled, plan, (size_bytes, shared))?;
        let written = match &mut ledger {
            Some(ledger) => ledger.add(size_bytes, shared, found),
            None => Ok(()),
        };
        agree(team, written)?;
    }
    finish(team, around, plan, ledger)
}

/// A rank in its place.
struct Settled {
    context: MeasureContext,
    pinned: Pinned,
    buffer: Buffer,
    seat: Seat,
}

/// Pins the rank, takes its memory, and proves both.
fn settle(
    machine: &Machine,
    plan: &SessionPlan,
    rank: usize,
    assignment: &Assignment,
) -> Result<Settled, SessionError> {
    // An order of its own for each rank; the loops spread the bits. How long it takes is for
    // its windows alone to say, and whoever interrupts it ends it.
    let seed = plan.seed.wrapping_add(rank as u64);
    let settings = Settings { seed, precision: plan.precision, budget: Duration::ZERO };
    let pinned = numalab_host::pin(assignment.cpu).map_err(numalab_host::Error::from)?;
    let context = MeasureContext::new(machine.clone(), settings, Interrupt::never())?;
    let source = match plan.node {
        Some(node) => MemorySource::Node(node),
        None => MemorySource::of(policy()?, nearest(machine, pinned.node())?),
    };
    let largest = plan.sizes_bytes.iter().max().copied().unwrap_or(0);
    let policy = source.name();
    let buffer = Buffer::touched(&context, largest, plan.pages, source)?;
    let placement = buffer.claim().prove(&context, &pinned)?;
    let started_ns = context.started_ns();
    let seat = Seat { host: assignment.host.clone(), policy, started_ns, placement };
    Ok(Settled { context, pinned, buffer, seat })
}

/// What all ranks found for a size; where they were before it they must be after it.
fn measure_size(
    team: &mut Team,
    settled: &mut Settled,
    plan: &SessionPlan,
    (size_bytes, shared): (u64, &[SharedCell]),
) -> Result<Vec<Found>, SessionError> {
    let Settled { context, pinned, buffer, seat } = settled;
    let own = shared.iter().find(|shared| shared.ranks.contains(&team.rank()));
    let id = own.map_or(CellId(String::new()), |shared| shared.cell.id.clone());
    let worker = Worker { plan, context, host: &seat.host };
    let samples = worker.measure(team, buffer, size_bytes, &id)?;
    let still = buffer.claim().prove(context, pinned).map_err(SessionError::from);
    let placement = agree(team, still)?;
    gather(team, &Found { samples, placement })
}

fn policy() -> Result<MemoryPolicy, SessionError> {
    Ok(process_policy().map_err(numalab_host::Error::from)?)
}

/// The node with memory that is nearest to `node`.
fn nearest(machine: &Machine, node: NodeId) -> Result<NodeId, SessionError> {
    let scope = Scope::new(machine, None, None).map_err(MeasureError::from)?;
    if scope.nodes.contains(&node) {
        return Ok(node);
    }
    let cpu = machine.node(node).and_then(|node| node.cpus.first()).unwrap_or_default();
    Ok(scope.nearest_node(machine, cpu))
}

/// Fails on every rank if it failed on one.
fn agree<T>(team: &mut Team, own: Result<T, SessionError>) -> Result<T, SessionError> {
    let words = own.as_ref().err().map(ToString::to_string).unwrap_or_default();
    let all = team.all_gather(words.as_bytes())?;
    let own = own?;
    match all.iter().position(|words| !words.is_empty()) {
        None => Ok(own),
        Some(rank) => {
            let message = String::from_utf8_lossy(&all[rank]).into_owned();
            Err(SessionError::Other { rank, message })
        }
    }
}

fn to_json(value: &impl Serialize) -> Result<Vec<u8>, SessionError> {
    serde_json::to_vec(value).map_err(|error| SessionError::Message(error.to_string()))
}

fn from_json<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, SessionError> {
    serde_json::from_slice(json).map_err(|error| SessionError::Message(error.to_string()))
}

/// What every rank tells, by rank.
fn gather<T: Serialize + DeserializeOwned>(
    team: &mut Team,
    own: &T,
) -> Result<Vec<T>, SessionError> {
    let all = team.all_gather(&to_json(own)?)?;
    all.iter().map(|json| from_json(json)).collect()
}

/// Completes rank 0's files.
fn finish(
    team: &mut Team,
    around: Surroundings<'_>,
    plan: &SessionPlan,
    ledger: Option<Ledger>,
) -> Result<Option<Findings>, SessionError> {
    let nodes: NodeSet = around.machine.nodes.iter().map(|node| node.id).collect();
    let last = team.rank() + 1 == team.size();
    let memory = if last { memory::text(team.rank(), plan, &nodes) } else { String::new() };
    let memory = team.all_gather(memory.as_bytes())?.pop().unwrap_or_default();
    let memory = String::from_utf8_lossy(&memory).into_owned();
    let finished = ledger.map(|ledger| deliver(around, ledger, memory)).transpose();
    agree(team, finished)
}

fn deliver(
    around: Surroundings<'_>,
    ledger: Ledger,
    memory: String,
) -> Result<Findings, SessionError> {
    let Ledger { csv, recorder, .. } = ledger;
    let document = recorder.document();
    let table = document.rank_table().ok_or(SessionError::Nothing)?;
    if let Some(csv) = csv {
        let json = (around.render)(&document);
        let json = json.map_err(|error| SessionError::Message(error.to_string()))?;
        csv.finish(&json, &table)?;
    }
    Ok(Findings { recorder, document, table, memory })
}
