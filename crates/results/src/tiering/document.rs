//! A probe of memory tiers in JSON.

use numalab_record::tiering::TieringProbed;
use serde::Serialize;

use crate::tiering::Contradiction;

/// What a probe of memory tiers found, and which of its figures deny each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TieringDocument<'a> {
    /// The probe.
    #[serde(flatten)]
    pub probed: &'a TieringProbed,
    /// Pairs of figures that contradict each other; none where all fit together.
    pub findings: Vec<TieringFinding>,
}

/// Two figures of which one must be wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TieringFinding {
    /// Names of both figures, as `readings` has them.
    pub figures: [&'static str; 2],
    /// Their values.
    pub values: [f64; 2],
}

impl<'a> TieringDocument<'a> {
    /// The document of a probe.
    #[must_use]
    pub fn of(probed: &'a TieringProbed) -> Self {
        let findings = Contradiction::all(probed).into_iter().map(|found| match found {
            Contradiction::NotOfMemory { latency_ns, predicted_ns } => TieringFinding {
                figures: ["latency", "predicted"],
                values: [latency_ns, predicted_ns],
            },
            Contradiction::PagesElsewhere { hot_fast_percent, fast_accesses_percent } => {
                TieringFinding {
                    figures: ["hot-fast", "fast-accesses"],
                    values: [hot_fast_percent, fast_accesses_percent],
                }
            }
        });
        Self { probed, findings: findings.collect() }
    }
}
