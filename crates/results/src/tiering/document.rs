//! The JSON document of a probe of memory tiers.

use numalab_record::tiering::TieringProbed;
use serde::Serialize;

use crate::tiering::Contradiction;

/// A probe of memory tiers, with the contradictions between its figures.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TieringDocument<'a> {
    /// The probe as recorded.
    #[serde(flatten)]
    pub probed: &'a TieringProbed,
    /// Pairs of figures that contradict each other; empty if all are consistent.
    pub findings: Vec<TieringFinding>,
}

/// Two figures, at least one of which must be wrong.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TieringFinding {
    /// Names of the two figures, as in `readings`.
    pub figures: [&'static str; 2],
    /// The values of the two figures.
    pub values: [f64; 2],
}

impl<'a> TieringDocument<'a> {
    /// Makes the document of a probe.
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
