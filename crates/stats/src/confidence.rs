use crate::Error;

/// The share of the error that the first look may use.
const FIRST_LOOK: f64 = 0.64;

/// A confidence level strictly between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence(f64);

impl Confidence {
    /// 90 %.
    pub const P90: Self = Self(0.90);
    /// 95 %.
    pub const P95: Self = Self(0.95);
    /// 99 %.
    pub const P99: Self = Self(0.99);

    /// Checks a level given as a fraction, 0.95 for 95 %.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `0 < level < 1`.
    pub fn new(level: f64) -> Result<Self, Error> {
        if level > 0.0 && level < 1.0 {
            Ok(Self(level))
        } else {
            Err(Error::OutOfRange {
                what: "confidence",
                value: level,
                expected: "a fraction between 0 and 1, both excluded",
            })
        }
    }

    /// Returns the level as a fraction.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Returns the confidence of one look of several at a growing sample, counted from 1.
    ///
    /// Looking again and again while the answer is not clear errs more often than the level says,
    /// so each look must use up a part of the error. The first look has 64 % of the allowed error
    /// and every further one half of the remainder, so that all looks together keep the level,
    /// whatever their number and whatever decides that there is another (Bonferroni's inequality;
    /// the shares are a spending function: Lan & DeMets, Biometrika 70, 1983). With 64 %, six
    /// blocks can decide at 95 %: their smallest p-value is 1/32.
    pub fn at_look(self, look: usize) -> Self {
        let rest = 1.0 - FIRST_LOOK;
        let share = match look {
            0 | 1 => FIRST_LOOK,
            _ => rest * 0.5_f64.powf((look - 1) as f64),
        };
        // After a few dozen looks the level is the last one that is distinguishable from 1.
        Self((1.0 - self.alpha() * share).min(1.0 - f64::EPSILON))
    }

    /// Returns the chance of error, `1 - level`.
    pub fn alpha(self) -> f64 {
        1.0 - self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_looks_together_spend_the_error_and_no_more() {
        let level = |look| Confidence::P95.at_look(look);
        let spent: f64 = (1..40).map(|look| level(look).alpha()).sum();
        assert!(spent <= 0.05 + 1e-9 && spent > 0.049, "{spent}");
        assert!((level(1).alpha() - 0.032).abs() < 1e-12);
        assert!((level(2).alpha() - 0.009).abs() < 1e-12);
        assert!(level(10_000).get() < 1.0);
    }

    #[test]
    fn six_blocks_can_decide_at_the_first_look() {
        assert_eq!(crate::least_pairs(Confidence::P95.at_look(1).alpha()), 6);
    }

    #[test]
    fn a_level_of_95_instead_of_0_95_is_refused() {
        assert!(Confidence::new(0.95).is_ok());
        for wrong in [95.0, 1.0, 0.0, -0.5, f64::NAN] {
            assert!(Confidence::new(wrong).is_err(), "{wrong}");
        }
    }
}
