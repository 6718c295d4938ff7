//! What ranks do together: sit down, prove where they are, measure size by size, and bring
//! what they found to rank 0.

mod assignment;
mod document;
mod error;
mod files;
mod memory;
mod work;

use std::path::PathBuf;

use numalab_host::{MemoryPolicy, Pinned, Proof, process_policy};
use numalab_measure::plan::Scope;
use numalab_measure::rank::{ChaseRules, MemorySource, RankBuffer, StreamRules};
use numalab_record::{Kind, Metric, Pages, ProofMethod, RankResult, RankRun};
use numalab_topology::{CpuSet, Machine, NodeId, NodeSet};

use assignment::{Assignment, assign_cpu};
pub use document::document;
pub use error::SessionError;
use files::PartialCsv;
use work::{Figures, Worker};

use crate::identity::{Identity, Look};
use crate::team::Team;

/// What the ranks measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Latency; the rules' seed is replaced by one for each rank.
    Latency(ChaseRules),
    /// Bandwidth; likewise.
    Bandwidth(StreamRules),
}

/// What all ranks were asked for alike.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The cpus that may be used; all that a rank may run on without.
    pub cpus: Option<CpuSet>,
    /// The node of every rank's memory; else the process's policy decides.
    pub node: Option<NodeId>,
    /// Whether ranks may share a cpu.
    pub overcommit: bool,
    /// The suite's CSV, and what goes beside it.
    pub csv: Option<PathBuf>,
    /// The name of what is gone through.
    pub chain: String,
    /// The version of the program.
    pub version: String,
}

/// What rank 0 has in the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// What all ranks found.
    pub run: RankRun,
    /// The last rank's memory by node, as `numastat` prints it.
    pub memory: String,
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
}

/// Measures with all ranks; rank 0 gets what they found. `begin` is called by rank 0 once
/// every rank is proven to be in its place. A rank that fails leaves `CSV.rankN.failed`,
/// since launchers lose exit codes, and tells the others.
///
/// # Errors
/// [`SessionError`]; rows that were complete are kept in `CSV.part`.
pub fn run(
    team: &mut Team,
    around: Surroundings<'_>,
    plan: &SessionPlan,
    begin: &mut dyn FnMut(&Team),
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

fn measure(
    team: &mut Team,
    around: Surroundings<'_>,
    plan: &SessionPlan,
    begin: &mut dyn FnMut(&Team),
) -> Result<Option<Findings>, SessionError> {
    let assignment = assign_cpu(team, around, plan)?;
    let settled = settle(around.machine, plan, &assignment);
    let (pinned, mut buffer, proof) = agree(team, settled)?;
    if team.rank() == 0 {
        begin(team);
    }
    let csv = match &plan.csv {
        Some(csv) if team.rank() == 0 => PartialCsv::create(csv, team.size()).map(Some),
        _ => Ok(None),
    };
    let mut csv = agree(team, csv)?;
    let worker = agree(team, Worker::new(plan, team.rank(), &assignment.host))?;
    let mut all = Vec::new();
    for &size_bytes in &plan.sizes_bytes {
        let figures = worker.measure(team, &mut buffer, size_bytes)?;
        let means = team.all_gather(&figures.mean.to_le_bytes())?;
        let written = match &mut csv {
            Some(csv) => csv.row(size_bytes, &means),
            None => Ok(()),
        };
        agree(team, written)?;
        all.push(figures);
    }
    // Where they were at the beginning they must have been to the end.
    let still = pinned.verify().map_err(numalab_host::Error::from).map_err(SessionError::from);
    let still = still.and_then(|()| Ok(buffer.prove()?));
    agree(team, still)?;
    let own = result_of(team.rank(), &assignment, &pinned, &buffer, &proof, &all);
    collect(team, around, plan, &own, csv)
}

/// Pins the rank, takes its memory, and proves both.
fn settle(
    machine: &Machine,
    plan: &SessionPlan,
    assignment: &Assignment,
) -> Result<(Pinned, RankBuffer, Proof), SessionError> {
    let pinned = numalab_host::pin(assignment.cpu).map_err(numalab_host::Error::from)?;
    let source = match plan.node {
        Some(node) => MemorySource::Node(node),
        None => MemorySource::of(policy()?, nearest(machine, pinned.node())?),
    };
    let largest = plan.sizes_bytes.iter().max().copied().unwrap_or(0);
    let buffer = RankBuffer::take(largest, plan.pages, source)?;
    let proof = buffer.prove()?;
    Ok((pinned, buffer, proof))
}

fn policy() -> Result<MemoryPolicy, SessionError> {
    Ok(process_policy().map_err(numalab_host::Error::from)?)
}

/// The node with memory that is nearest to `node`.
fn nearest(machine: &Machine, node: NodeId) -> Result<NodeId, SessionError> {
    let scope = Scope::new(machine, None, None).map_err(numalab_measure::MeasureError::from)?;
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

fn result_of(
    rank: usize,
    assignment: &Assignment,
    pinned: &Pinned,
    buffer: &RankBuffer,
    proof: &Proof,
    all: &[Figures],
) -> RankResult {
    RankResult {
        rank,
        host: assignment.host.clone(),
        cpu: pinned.cpu(),
        affinity: pinned.affinity().clone(),
        cpu_node: pinned.node(),
        policy: buffer.policy(),
        memory_nodes: proof.pages_per_node.clone(),
        method: match proof.method {
            numalab_host::ProofMethod::MovePages => ProofMethod::MovePages,
            numalab_host::ProofMethod::NumaMaps => ProofMethod::NumaMaps,
            numalab_host::ProofMethod::OnlyNode => ProofMethod::OnlyNode,
        },
        address: proof.address,
        bytes_per_page_size: proof.bytes_per_page_size.clone(),
        mean: all.iter().map(|figures| figures.mean).collect(),
        median: all.iter().map(Figures::median).collect(),
        windows: all.iter().map(|figures| figures.windows.clone()).collect(),
        times: all.iter().map(|figures| figures.times.clone()).collect(),
        disturbed: all.iter().map(|figures| figures.disturbed.clone()).collect(),
    }
}

/// Brings everything to rank 0, which writes the files.
fn collect(
    team: &mut Team,
    around: Surroundings<'_>,
    plan: &SessionPlan,
    own: &RankResult,
    csv: Option<PartialCsv>,
) -> Result<Option<Findings>, SessionError> {
    let json = serde_json::to_vec(own).map_err(|error| SessionError::Message(error.to_string()));
    let all = team.all_gather(&json?)?;
    let nodes: NodeSet = around.machine.nodes.iter().map(|node| node.id).collect();
    let last = team.rank() + 1 == team.size();
    let memory = if last { memory::text(team.rank(), plan, &nodes) } else { String::new() };
    let memory = team.all_gather(memory.as_bytes())?.pop().unwrap_or_default();
    let findings = if team.rank() == 0 {
        let read = |bytes: &Vec<u8>| serde_json::from_slice(bytes);
        let ranks: Result<Vec<RankResult>, _> = all.iter().map(read).collect();
        let ranks = ranks.map_err(|error| SessionError::Message(error.to_string()))?;
        let run = run_of(team, around, plan, ranks);
        let memory = String::from_utf8_lossy(&memory).into_owned();
        Some(Findings { run, memory })
    } else {
        None
    };
    let written = match (&findings, csv) {
        (Some(findings), Some(csv)) => csv.finish(&findings.run),
        _ => Ok(()),
    };
    agree(team, written)?;
    Ok(findings)
}

fn run_of(
    team: &Team,
    around: Surroundings<'_>,
    plan: &SessionPlan,
    ranks: Vec<RankResult>,
) -> RankRun {
    let (metric, iterations, warmup) = match &plan.work {
        Work::Latency(rules) => (Metric::Latency, rules.iterations, rules.warmup),
        Work::Bandwidth(_) => (Metric::Bandwidth, 0, 0),
    };
    RankRun {
        schema: Kind::Ranks.into(),
        metric,
        unit: metric.unit().to_string(),
        version: plan.version.clone(),
        command: std::env::args().collect(),
        launcher: around.identity.launcher.to_string(),
        meeting: team.describe(),
        seed: plan.seed,
        iterations,
        warmup,
        chain: plan.chain.clone(),
        pages: plan.pages.name().to_owned(),
        serial: plan.serial,
        sizes_bytes: plan.sizes_bytes.clone(),
        ranks,
    }
}
