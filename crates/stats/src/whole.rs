//! Saturating conversion of real numbers to counts: the only place where floats become integers.

/// Returns the largest count not above `x`; 0 for negative numbers and NaN.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate, which is the rule this function states"
)]
pub(crate) fn floor(x: f64) -> usize {
    x.floor() as usize
}

/// Returns the smallest count not below `x`; 0 for negative numbers and NaN.
pub(crate) fn ceil(x: f64) -> usize {
    floor(x.ceil())
}
