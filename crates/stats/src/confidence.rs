use crate::Error;

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

    /// The level as a fraction.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }

    /// The chance of error, `1 - level`.
    #[must_use]
    pub fn alpha(self) -> f64 {
        1.0 - self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_of_95_instead_of_0_95_is_refused() {
        assert!(Confidence::new(0.95).is_ok());
        for wrong in [95.0, 1.0, 0.0, -0.5, f64::NAN] {
            assert!(Confidence::new(wrong).is_err(), "{wrong}");
        }
    }
}
