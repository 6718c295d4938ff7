//! The distribution functions that the methods need, built on `statrs`.

use statrs::function::{beta::beta_reg, erf::erfc_inv, gamma::gamma_ur};

/// Returns the standard normal distribution function.
///
/// Computed from the incomplete gamma function, which `statrs` gives to within rounding; its `erfc`
/// has an error of 1e-9.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    let half_square = 0.5 * z * z;
    if half_square.is_nan() {
        return f64::NAN;
    }
    let tail = if half_square == 0.0 {
        0.5
    } else if half_square > 800.0 {
        0.0
    } else {
        0.5 * gamma_ur(0.5, half_square)
    };
    if z > 0.0 { 1.0 - tail } else { tail }
}

/// Returns the standard normal quantile of `p` in (0, 1).
///
/// `statrs` is accurate to about 1e-9; one Newton step on the distribution function brings it to
/// within rounding.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let start = -std::f64::consts::SQRT_2 * erfc_inv(2.0 * p);
    let density = (-0.5 * start * start).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if density == 0.0 { start } else { start - (normal_cdf(start) - p) / density }
}

/// Returns the quantile of `p` in (1/2, 1) of Student's t distribution; infinite unless `freedom`
/// is a positive number.
///
/// Found by bisection on the tail.
pub(crate) fn student_quantile(p: f64, freedom: f64) -> f64 {
    if !(freedom > 0.0 && freedom.is_finite()) {
        return f64::INFINITY;
    }
    let tail = |t| student_tail(t, freedom);
    let mut low = 0.0;
    let mut high = 1.0;
    while tail(high) > 1.0 - p && high < 1e15 {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if tail(middle) > 1.0 - p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// Returns Student's t distribution function.
pub(crate) fn student_cdf(t: f64, freedom: f64) -> f64 {
    if t > 0.0 { 1.0 - student_tail(t, freedom) } else { student_tail(t, freedom) }
}

/// Returns the chance of a value further than `t` from zero on one side: `I_{f/(f+t^2)}(f/2, 1/2) /
/// 2` (Abramowitz & Stegun 26.7.1).
pub(crate) fn student_tail(t: f64, freedom: f64) -> f64 {
    0.5 * beta_reg(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(found: f64, expected: f64) {
        let relative = (found - expected).abs() / expected.abs();
        assert!(relative < 1e-11, "{found} instead of {expected}");
    }

    #[test]
    fn normal_quantiles_are_those_of_the_tables() {
        assert_close(normal_quantile(0.975), 1.959_963_984_540_054);
        assert_close(normal_quantile(0.8), 0.841_621_233_572_914_3);
        assert_close(normal_quantile(1e-6), -4.753_424_308_822_899);
        assert_eq!((normal_cdf(0.0), normal_cdf(50.0), normal_cdf(-50.0)), (0.5, 1.0, 0.0));
        assert_eq!(normal_cdf(f64::INFINITY), 1.0);
        assert_close(normal_cdf(-3.0), 0.001_349_898_031_630_093_3);
    }

    #[test]
    fn student_quantiles_are_those_of_the_tables() {
        assert_close(student_quantile(0.975, 1.0), 12.706_204_736_174_694);
        assert_close(student_quantile(0.975, 19.0), 2.093_024_054_408_308_7);
        assert_eq!(student_quantile(0.975, f64::NAN), f64::INFINITY);
        assert_close(student_quantile(0.995, 2.5), 7.163_728_138_948_783);
        assert_close(student_cdf(2.093_024_054_408_308_7, 19.0), 0.975);
        assert_close(student_cdf(-12.706_204_736_174_694, 1.0), 0.025);
    }
}
