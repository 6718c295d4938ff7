//! What a probe saw again and again, drawn over time.

use numalab_page::{Curves, Series};

const SECOND_NS: f64 = 1e9;
/// One look of this many is a row of a table; drawings and CSV have all.
pub(super) const LOOKS_A_ROW: usize = 4;

pub(super) fn seconds(at_ns: f64) -> f64 {
    at_ns / SECOND_NS
}

/// The looks that a table has rows for.
pub(super) fn rows<T>(looks: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    looks.into_iter().skip(LOOKS_A_ROW - 1).step_by(LOOKS_A_ROW)
}

/// Curves of points at seconds.
pub(super) fn curves(unit: &str, series: Vec<Series>) -> Curves {
    Curves {
        x_name: "seconds".to_owned(),
        x_is_logarithmic: false,
        y_name: unit.to_owned(),
        series,
    }
}
