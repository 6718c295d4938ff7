//! A measurement by all ranks together: they place themselves, prove their placement, measure size
//! by size, and send their results to rank 0, which records the cells of each size as it ends.

mod assignment;
mod cells;
mod error;
mod files;
mod ledger;
mod memory;
mod settle;
mod work;

use std::path::PathBuf;

use numalab_formats::size::format_bytes;
use numalab_host::from_json;
use numalab_measure::{MeasureError, RunRecorder, StreamRules};
use numalab_record::{
    AccessPattern, CellId, Document, Launch, Pages, Placement, RankTable, Sample,
};
use numalab_topology::{CpuSet, Machine, NodeId, NodeSet, count};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use assignment::assign_cpu;
use cells::SharedCell;
pub use error::SessionError;
use ledger::Ledger;
use settle::Settled;
use work::Worker;

use crate::identity::{Identity, VariableLookup};
use crate::team::Team;

/// The rules of a rank's chase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChaseRules {
    /// The order of visits.
    pub pattern: AccessPattern,
    /// Number of loads measured per size; at least 1.
    pub iterations: u64,
    /// Minimum number of warm-up loads; one pass over the buffer or a million loads are made in any
    /// case.
    pub warmup: u64,
}

/// The measurement of the ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    Latency(ChaseRules),
    Bandwidth(StreamRules),
}

impl Work {
    /// Returns the name of the pattern or the stream kernel.
    pub fn name(&self) -> String {
        match self {
            Self::Latency(rules) => rules.pattern.to_string(),
            Self::Bandwidth(rules) => rules.kernel.name().to_owned(),
        }
    }
}

/// The plan that all ranks share.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionPlan {
    pub work: Work,
    /// The sizes in bytes, in order.
    pub sizes_bytes: Vec<u64>,
    /// The pages behind the buffers.
    pub pages: Pages,
    /// True if ranks take turns.
    pub serial: bool,
    /// The seed from which every rank's seed is derived.
    pub seed: u64,
    /// The relative half-width at which a cell's interval counts as precise: 0.01 is 1 %.
    pub precision: f64,
    /// The cpus that may be used; `None` for all that a rank may run on.
    pub cpus: Option<CpuSet>,
    /// The node of every rank's memory; `None` if the process's policy decides.
    pub node: Option<NodeId>,
    /// True if ranks may share a cpu.
    pub overcommit: bool,
    /// The path of the suite's CSV; further files go next to it.
    pub csv: Option<PathBuf>,
}

impl SessionPlan {
    /// Describes what the ranks would do.
    pub fn foreseen(&self, identity: &Identity) -> String {
        let sizes: Vec<String> = self.sizes_bytes.iter().copied().map(format_bytes).collect();
        let how = if self.serial { "one after the other" } else { "at once" };
        format!(
            "{} ({}), {how}: {} over {}\n",
            count(identity.size, "rank"),
            identity.launcher,
            self.work.name(),
            sizes.join(", ")
        )
    }
}

/// The results that rank 0 receives.
#[derive(Debug)]
pub struct Findings {
    /// The run, on disk if it has a directory.
    pub recorder: RunRecorder,
    pub document: Document,
    /// The figures of each rank, read from the cells.
    pub table: RankTable,
    /// The last rank's memory by node, as `numastat` prints it.
    pub memory: String,
}

/// The location of a rank, sent to the others before anything is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Seat {
    host: String,
    /// The requested memory policy: `bind:0`.
    policy: String,
    /// The start of its run, by its host's clock.
    started_ns: u64,
    placement: Placement,
}

/// The results of a rank for one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RankResults {
    samples: Vec<Sample>,
    placement: Placement,
}

/// The results of a rank for one size, or the reason why they do not count: the rank moved.
type Measured = Result<RankResults, String>;

#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The rank's place among all ranks.
    pub identity: &'a Identity,
    pub machine: &'a Machine,
    /// The lookup of its environment variables.
    pub look: VariableLookup<'a>,
    /// Writes a run as JSON, for the file next to the CSV.
    pub render: fn(&Document) -> serde_json::Result<String>,
}

/// Measures with all ranks; rank 0 receives the results. Rank 0 calls `begin` once every rank has
/// proven its placement, to get the recorder of the cells. A rank that fails leaves
/// `CSV.rankN.failed`, since launchers lose exit codes, and notifies the others.
///
/// # Errors
///
/// [`SessionError`]; complete rows are kept in `CSV.part`, cells in their directory.
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

/// Called by rank 0 once every rank is in its place; returns the recorder of the cells.
pub type Begin<'a> = &'a mut dyn FnMut(&Team, Launch) -> Result<RunRecorder, MeasureError>;

fn measure(
    team: &mut Team,
    around: Surroundings<'_>,
    plan: &SessionPlan,
    begin: Begin<'_>,
) -> Result<Option<Findings>, SessionError> {
    let assignment = assign_cpu(team, around, plan)?;
    let (mut settled, lost) = settle::settle(team, around.machine, plan, &assignment)?;
    let seats: Vec<Seat> = gather(team, &settled.seat)?;
    let teams = cells::teams(&seats, plan);
    let cells = cells::cells(&seats, &teams, plan);
    let begun = match team.rank() {
        0 => Ledger::begin(team, around, plan, (&seats, teams, &cells), begin).map(Some),
        _ => Ok(None),
    };
    let mut ledger = agree(team, begun)?;
    for (&size_bytes, shared) in plan.sizes_bytes.iter().zip(&cells) {
        if let Some(reason) = lost.get(&size_bytes) {
            let noted = ledger.as_mut().map_or(Ok(()), |ledger| ledger.lose(shared, reason));
            agree(team, noted)?;
            continue;
        }
        let found = measure_size(team, &mut settled, plan, (size_bytes, shared))?;
        let written = match &mut ledger {
            Some(ledger) => ledger.add(size_bytes, shared, found),
            None => Ok(()),
        };
        agree(team, written)?;
    }
    finish(team, around, plan, ledger)
}

/// Measures one size with all ranks. A rank that has moved loses only its results of this size.
fn measure_size(
    team: &mut Team,
    settled: &mut Settled,
    plan: &SessionPlan,
    (size_bytes, shared): (u64, &[SharedCell]),
) -> Result<Vec<Measured>, SessionError> {
    let Settled { context, pinned, buffer, seat } = settled;
    let own = shared.iter().find(|shared| shared.ranks.contains(&team.rank()));
    let id = own.map_or(CellId(String::new()), |shared| shared.cell.id.clone());
    let worker = Worker { plan, context, host: &seat.host };
    let (samples, isa) = worker.measure(team, buffer, size_bytes, &id)?;
    let still = buffer.claim().prove(context, pinned);
    let found =
        still.map(|placement| RankResults { samples, placement: Placement { isa, ..placement } });
    gather(team, &found.map_err(|moved| moved.to_string()))
}

/// Fails on every rank if any rank failed.
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

/// Gathers a value of every rank, by rank.
fn gather<T: Serialize + DeserializeOwned>(
    team: &mut Team,
    own: &T,
) -> Result<Vec<T>, SessionError> {
    let message = |error: serde_json::Error| SessionError::Message(error.to_string());
    let all = team.all_gather(&serde_json::to_vec(own).map_err(message)?)?;
    all.iter().map(|json| from_json(json).map_err(message)).collect()
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
    let Ledger { csv, recorder, moved, .. } = ledger;
    let document = recorder.document();
    let table = document.rank_table().ok_or_else(|| SessionError::Nothing {
        reason: moved.clone().unwrap_or_else(|| "expected at least one".to_owned()),
    })?;
    if let Some(csv) = csv {
        // Under its final name the table would count as complete, and would not be measured again.
        if let Some(reason) = moved {
            return Err(SessionError::Incomplete { part: csv.part().to_owned(), reason });
        }
        let json = (around.render)(&document);
        let json = json.map_err(|error| SessionError::Message(error.to_string()))?;
        csv.finish(&json, &table)?;
    }
    Ok(Findings { recorder, document, table, memory })
}
