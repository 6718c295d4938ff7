//! Tails and modes of treatments, which medians do not show.

use numalab_record::study::Cells;
use numalab_stats::{Direction, Extreme, Margin, Sample, extremes};

use crate::shape::TwoModes;

/// Returns the two modes of each treatment's values, taking blocks as independent.
pub(super) fn modes(cells: &Cells, margin: Margin) -> Vec<Option<TwoModes>> {
    let modes = |values: &Vec<f64>| TwoModes::of(&Sample::new(&values[..]).ok()?, 1.0, margin);
    cells.treatments.iter().map(modes).collect()
}

/// Returns the tails of the two sides of an effect.
pub(super) fn tails(
    sides: Option<(usize, usize)>,
    cells: &Cells,
    better: Direction,
) -> Vec<Extreme> {
    let column = |at: usize| Sample::new(&cells.treatments.get(at)?[..]).ok();
    let both =
        sides.and_then(|(baseline, candidate)| Some((column(baseline)?, column(candidate)?)));
    both.map_or_else(Vec::new, |(baseline, candidate)| extremes(&baseline, &candidate, better, 1.0))
}
