//! Charts and tables of a probe's periodic readings.

use numalab_page::{Curves, Series};

const SECOND_NS: f64 = 1e9;
/// Number of readings per table row; charts and CSV have all readings.
pub(super) const LOOKS_A_ROW: usize = 4;

pub(super) fn seconds(at_ns: f64) -> f64 {
    at_ns / SECOND_NS
}

/// Returns the readings that get a table row.
pub(super) fn rows<T>(looks: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    looks.into_iter().skip(LOOKS_A_ROW - 1).step_by(LOOKS_A_ROW)
}

/// Makes curves over time in seconds.
pub(super) fn curves(unit: &str, series: Vec<Series>) -> Curves {
    Curves {
        x_name: "seconds".to_owned(),
        x_is_logarithmic: false,
        y_name: unit.to_owned(),
        series,
    }
}
