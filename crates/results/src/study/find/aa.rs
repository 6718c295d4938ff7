//! The A/A arm: the baseline against itself, which shows the machine's own false positives.

use numalab_record::study::Cells;
use numalab_stats::{Comparison, Criteria, Sample, compare_paired};

/// The baseline against itself.
#[derive(Clone, Debug)]
pub struct AaArm {
    /// The result, with nothing changed between the two sides.
    pub found: Comparison,
}

pub(super) fn aa_arm(cells: &Cells, criteria: &Criteria) -> Option<AaArm> {
    let baseline = Sample::new(cells.treatments.first()?.clone()).ok()?;
    let again = Sample::new(cells.again.clone()).ok()?;
    compare_paired(&baseline, &again, criteria).ok().map(|found| AaArm { found })
}
