//! Health checks: a machine compared with its baseline. A figure covers all cells of a family on
//! one node's memory, or on the whole host: the mean of their logarithms, one value per run. Runs of
//! one host begun within half an hour share its state, so the variation between such groups of the
//! baseline gives the distance from their mean to expect by chance (`numalab_stats::RunShift`). A
//! figure is reported as worse if it exceeds a limit, exceeds chance, and does so in every run of
//! the candidate, because a health check repeats suspicious measurements; it is failing only if the
//! baseline has three groups. Missing memory and cpus need no statistics.

mod figures;
mod parts;

pub use figures::HealthFigure;

use std::collections::BTreeSet;

use numalab_record::{CellId, Environment};
use numalab_topology::{CpuSet, NodeId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compare::{NamedRun, units};
use crate::fleet::{Family, Scope};

/// Minimum number of baseline runs that show the variation between runs, and of their groups that
/// show how a machine varies from time to time or from host to host.
pub const LEAST_BASELINE_RUNS: usize = 3;

/// Thresholds beyond which a machine counts as impaired.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// A figure that is worse by more than this percentage is degraded.
    pub degraded_percent: f64,
    /// A figure that is worse by more than this percentage is failing.
    pub failing_percent: f64,
}

/// The state of a machine, best first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The machine performs as in its baseline.
    Healthy,
    /// A figure is worse, but other load disturbed its measurement; or it was not measured, here or
    /// in the baseline.
    Disturbed,
    /// A figure is worse, but the machine is usable.
    Degraded,
    /// The machine should not be used.
    Failing,
}

/// A deviation from the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "symptom", rename_all = "kebab-case")]
pub enum Symptom {
    /// A node with memory in the baseline has none now.
    NodeMissing {
        /// The node concerned.
        node: NodeId,
        /// The node's memory in the baseline, in bytes.
        baseline_bytes: u64,
    },
    /// A node has less memory.
    MemoryMissing {
        /// The node concerned.
        node: NodeId,
        /// The node's memory now, in bytes.
        bytes: u64,
        /// The node's memory in the baseline, in bytes.
        baseline_bytes: u64,
    },
    /// Some cpus that were online no longer are.
    CpusMissing {
        /// The missing cpus.
        cpus: CpuSet,
    },
    /// Figures are worse.
    Slower {
        /// The part of the machine that the figures cover.
        scope: Scope,
        /// The kind of figures.
        family: Family,
        /// The signed change in percent: negative for a lower bandwidth.
        change_percent: f64,
        /// The likely cause, if there is one.
        suspicion: Option<Suspicion>,
    },
    /// Figures of the baseline were planned but not measured.
    NotMeasured {
        /// The part of the machine that the figures cover.
        scope: Scope,
        /// The kind of figures.
        family: Family,
    },
    /// Figures were planned, but not all runs of the baseline measured them.
    NotInBaseline {
        /// The part of the machine that the figures cover.
        scope: Scope,
        /// The kind of figures.
        family: Family,
        /// The runs of the baseline that have them.
        runs: usize,
    },
}

/// A likely cause of a deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Suspicion {
    /// A memory module is missing: the node's memory is smaller too.
    ModuleMissing,
    /// A memory channel or module is slow: the latency of the same memory is unchanged.
    ChannelSlow,
    /// The memory runs at a lower speed: its latency is worse too.
    MemorySlow,
    /// The clock is limited by power or temperature.
    ClockLimited,
}

/// A deviation with its severity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HealthFinding {
    /// The severity of the deviation.
    pub severity: Severity,
    /// The deviation.
    #[serde(flatten)]
    pub symptom: Symptom,
}

/// The result of a health check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// The worst severity found.
    pub severity: Severity,
    /// The names of the baseline's runs.
    pub baseline: Vec<String>,
    /// The number of groups of these runs, those of one host within half an hour being one; with
    /// fewer than three, no slower figure is failing.
    #[serde(default)]
    pub baseline_groups: usize,
    /// The limits applied.
    pub limits: Limits,
    /// The deviations, worst first.
    pub findings: Vec<HealthFinding>,
    /// All figures, ordered by scope.
    pub figures: Vec<HealthFigure>,
    /// Cells behind findings, which are worth measuring again.
    #[serde(skip)]
    pub suspected: BTreeSet<CellId>,
}

/// Compares a machine with its baseline. `candidate` has one run, and optionally a second one that
/// repeats the suspicious cells of the first.
pub fn health(baseline: &[NamedRun], candidate: &[NamedRun], limits: Limits) -> Health {
    let groups = units(baseline);
    let (figures, not_measured) = figures::figures((baseline, &groups), candidate, limits);
    let missing = parts::missing(baseline, candidate);
    let mut findings: Vec<HealthFinding> = missing
        .iter()
        .map(|symptom| HealthFinding { severity: Severity::Failing, symptom: symptom.clone() })
        .collect();
    let mut suspected = BTreeSet::new();
    for figure in figures.iter().filter(|figure| figure.severity != Severity::Healthy) {
        suspected.extend(figure.cells.iter().cloned());
        let symptom = Symptom::Slower {
            scope: figure.scope.clone(),
            family: figure.family,
            change_percent: figure.change_percent,
            suspicion: suspicion(figure, &figures, &missing),
        };
        findings.push(HealthFinding { severity: figure.severity, symptom });
    }
    findings.extend(
        not_measured
            .into_iter()
            .map(|symptom| HealthFinding { severity: Severity::Disturbed, symptom }),
    );
    // Among equally severe findings the largest slowdown comes first.
    let size = |finding: &HealthFinding| match finding.symptom {
        Symptom::Slower { change_percent, .. } => change_percent.abs(),
        _ => 0.0,
    };
    findings.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| size(b).total_cmp(&size(a))));
    Health {
        severity: findings.first().map_or(Severity::Healthy, |finding| finding.severity),
        baseline: baseline.iter().map(|run| run.name.clone()).collect(),
        baseline_groups: groups.len(),
        limits,
        findings,
        figures,
        suspected,
    }
}

/// Facts that machines of one kind share.
const OF_KIND: [&str; 2] = ["cpu_model", "time"];

/// Returns the first run of a machine of another kind than this environment's, with the fact in
/// which they differ: its value in the run and in the environment.
pub fn of_another_kind<'a>(
    baseline: &'a [NamedRun],
    here: &'a Environment,
) -> Option<(&'a str, [&'a str; 2])> {
    baseline.iter().find_map(|run| {
        let there = &run.document.run.environment;
        let differs = |name: &&str| match [there.text(name), here.text(name)] {
            [None, None] => None,
            // The model may be unknown. Time is recorded only if it is virtual, so its absence is a
            // fact as well.
            [None, _] | [_, None] if *name == "cpu_model" => None,
            facts => Some(facts.map(|fact| fact.unwrap_or("a clock's"))),
        };
        let differing = OF_KIND.iter().filter_map(differs).find(|[a, b]| a != b)?;
        Some((run.name.as_str(), differing))
    })
}

fn suspicion(
    figure: &HealthFigure,
    all: &[HealthFigure],
    missing: &[Symptom],
) -> Option<Suspicion> {
    let loses_memory = |symptom: &Symptom| match symptom {
        Symptom::MemoryMissing { node, .. } => figure.scope == Scope::MemoryNode(node.0),
        _ => false,
    };
    let is_slow = |family| {
        let same = |other: &&HealthFigure| other.scope == figure.scope && other.family == family;
        all.iter().find(same).is_some_and(|other| other.severity != Severity::Healthy)
    };
    match figure.family {
        Family::Bandwidth if missing.iter().any(loses_memory) => Some(Suspicion::ModuleMissing),
        Family::Bandwidth if is_slow(Family::MemoryLatency) => Some(Suspicion::MemorySlow),
        Family::Bandwidth => Some(Suspicion::ChannelSlow),
        Family::Core => Some(Suspicion::ClockLimited),
        _ => None,
    }
}
