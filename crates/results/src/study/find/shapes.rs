//! What medians do not show of a study's treatments.

use numalab_record::study::Cells;
use numalab_stats::{Direction, Extreme, Margin, Sample, extremes};

use crate::shape::TwoModes;

/// The two modes of each treatment's values; blocks are independent of each other.
pub(super) fn modes(cells: &Cells, margin: Margin) -> Vec<Option<TwoModes>> {
    let modes = |values: &Vec<f64>| TwoModes::of(&Sample::new(&values[..]).ok()?, 1.0, margin);
    cells.treatments.iter().map(modes).collect()
}

/// The far ends of the two sides of an effect.
pub(super) fn far_ends(
    sides: Option<(usize, usize)>,
    cells: &Cells,
    better: Direction,
) -> Vec<Extreme> {
    let column = |at: usize| Sample::new(&cells.treatments.get(at)?[..]).ok();
    let both =
        sides.and_then(|(baseline, candidate)| Some((column(baseline)?, column(candidate)?)));
    both.map_or_else(Vec::new, |(baseline, candidate)| extremes(&baseline, &candidate, better, 1.0))
}
