/// A closed interval, `lo <= hi`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}

impl Interval {
    /// Returns `hi - lo`.
    pub fn width(&self) -> f64 {
        self.hi - self.lo
    }

    /// Returns half of [`width`](Self::width).
    pub fn half_width(&self) -> f64 {
        self.width() / 2.0
    }

    /// Returns the half width as a fraction of `|around|`: 0 for a point, otherwise infinite around
    /// 0.
    pub fn relative_half_width(&self, around: f64) -> f64 {
        let half = self.half_width();
        if half == 0.0 { 0.0 } else { half / around.abs() }
    }

    /// Returns true if `value` is in the interval, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.lo <= value && value <= self.hi
    }

    /// Returns true if the whole interval is in `outer`, ends included.
    pub fn within(&self, outer: &Self) -> bool {
        outer.lo <= self.lo && self.hi <= outer.hi
    }

    /// Maps the interval through a monotone function and puts its ends in order again.
    pub fn map_monotone(&self, function: impl Fn(f64) -> f64) -> Self {
        let (first, second) = (function(self.lo), function(self.hi));
        Self { lo: first.min(second), hi: first.max(second) }
    }
}

/// A value with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The point estimate.
    pub value: f64,
    /// The interval around it.
    pub interval: Interval,
    /// The coverage achieved, as a fraction: exact for order statistics, where it is at least the
    /// requested confidence, and nominal for methods documented as approximate.
    pub coverage: f64,
}

impl Estimate {
    /// Returns the half width of the interval as a fraction of `|value|`.
    pub fn relative_half_width(&self) -> f64 {
        self.interval.relative_half_width(self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_falling_function_keeps_the_ends_in_order() {
        let inverted = Interval { lo: 2.0, hi: 4.0 }.map_monotone(|x| 1.0 / x);
        assert_eq!(inverted, Interval { lo: 0.25, hi: 0.5 });
    }

    #[test]
    fn a_point_at_zero_is_precise_and_a_width_around_zero_is_not() {
        assert_eq!(Interval { lo: 0.0, hi: 0.0 }.relative_half_width(0.0), 0.0);
        assert_eq!(Interval { lo: -1.0, hi: 1.0 }.relative_half_width(0.0), f64::INFINITY);
        assert_eq!(Interval { lo: -11.0, hi: -9.0 }.relative_half_width(-10.0), 0.1);
    }

    #[test]
    fn an_interval_that_touches_the_end_of_another_is_within_it() {
        let outer = Interval { lo: -1.0, hi: 1.0 };
        assert!(Interval { lo: -1.0, hi: 0.0 }.within(&outer));
        assert!(!Interval { lo: -1.0, hi: 1.1 }.within(&outer));
        assert!(outer.contains(1.0) && !outer.contains(1.1));
    }
}
