//! Whether a machine is as good as its baseline: what a health check finds.
//!
//! A figure is all cells of a family on one node's memory, or of the whole host: the mean of their
//! logarithms, one value a run. How runs of the baseline differ from each other says how far one
//! more may lie from their mean by chance (`numalab_stats::RunShift`). What is worse is claimed
//! where it is beyond a limit, beyond chance, and so in every run of the candidate: a health check
//! measures again what it suspects. Missing memory and CPUs need no statistics.

mod figures;
mod parts;

pub use figures::HealthFigure;

use std::collections::BTreeSet;

use numalab_record::CellId;
use numalab_topology::{CpuSet, NodeId};
use serde::{Deserialize, Serialize};

use crate::compare::NamedRun;
use crate::fleet::{Family, Scope};

/// Fewer runs do not show how runs of a machine differ.
pub const LEAST_BASELINE_RUNS: usize = 3;

/// From where on a machine is not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    /// A figure that is worse by more than so many percent is degraded.
    pub degraded_percent: f64,
    /// A figure that is worse by more than so many percent is failing.
    pub failing_percent: f64,
}

/// How a machine is, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// As its baseline.
    Healthy,
    /// Something is worse, but other load disturbed its measurement.
    Disturbed,
    /// Worse, but not so that nobody should use it.
    Degraded,
    /// Nobody should use it.
    Failing,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "symptom", rename_all = "kebab-case")]
pub enum Symptom {
    /// A node with memory in the baseline has none now.
    NodeMissing {
        /// The node.
        node: NodeId,
        /// Its memory in the baseline, in bytes.
        baseline_bytes: u64,
    },
    /// A node has less memory.
    MemoryMissing {
        /// The node.
        node: NodeId,
        /// Its memory in bytes.
        bytes: u64,
        /// Its memory in the baseline, in bytes.
        baseline_bytes: u64,
    },
    /// CPUs that were online are not.
    CpusMissing {
        /// The CPUs.
        cpus: CpuSet,
    },
    /// Figures are worse.
    Slower {
        /// Whose figures.
        scope: Scope,
        /// What they tell about.
        family: Family,
        /// Their change in percent, by its sign: a bandwidth that is lower is below 0.
        change_percent: f64,
        /// The likely reason, if there is one.
        suspicion: Option<Suspicion>,
    },
}

/// What is likely to be the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Suspicion {
    /// A memory module is missing: the node has less memory too.
    ModuleMissing,
    /// A memory channel or module runs slow: the latency of the same memory is as it was.
    ChannelSlow,
    /// The memory runs at a lower speed: its latency is worse too.
    MemorySlow,
    /// The clock is limited, by power or heat.
    ClockLimited,
}

/// Something that is wrong, and how bad it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HealthFinding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is.
    #[serde(flatten)]
    pub symptom: Symptom,
}

/// What a health check found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// The worst of what was found.
    pub severity: Severity,
    /// The runs of the baseline.
    pub baseline: Vec<String>,
    /// The limits applied.
    pub limits: Limits,
    /// What is wrong, worst first.
    pub findings: Vec<HealthFinding>,
    /// Every figure, in the order of its scope.
    pub figures: Vec<HealthFigure>,
    /// Cells that are behind findings: what is worth measuring again.
    #[serde(skip)]
    pub suspected: BTreeSet<CellId>,
}

/// Compares a machine with its baseline; `candidate` has one run, and a second one of what the
/// first made suspect.
#[must_use]
pub fn health(baseline: &[NamedRun], candidate: &[NamedRun], limits: Limits) -> Health {
    let figures = figures::figures(baseline, candidate, limits);
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
    // What slows a machine down most comes first among equals.
    let size = |finding: &HealthFinding| match finding.symptom {
        Symptom::Slower { change_percent, .. } => change_percent.abs(),
        _ => 0.0,
    };
    findings.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| size(b).total_cmp(&size(a))));
    Health {
        severity: findings.first().map_or(Severity::Healthy, |finding| finding.severity),
        baseline: baseline.iter().map(|run| run.name.clone()).collect(),
        limits,
        findings,
        figures,
        suspected,
    }
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
