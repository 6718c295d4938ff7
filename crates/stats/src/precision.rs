//! The rule that decides when enough windows have been taken.
//!
//! Stopping when an interval looks narrow selects the moments at which it is narrow by luck, so it
//! covers less than it says (Anscombe, "Large-sample theory of sequential estimation", 1952; Chow &
//! Robbins, Ann. Math. Stat. 36, 1965 show that the loss vanishes as n grows). There are four
//! guards. No look comes before 20 values. Looks are few, at sizes that grow by half each time.
//! Intervals are made at a stricter level, 97 % for 95 %, which costs a fifth more windows, and
//! these intervals are the ones shown. Windows that depend on each other must be worth 30
//! independent ones. The result covers 93 % or more up to a lag-1 correlation of 0.9 and in bursts
//! (`tests/coverage.rs`).

use crate::{Confidence, Error, Sample, SerialEstimate, median_interval_serial, whole};

/// Number of values before the first look.
const FIRST_LOOK: usize = 20;
/// The number of independent values that dependent windows must be worth before a narrow interval
/// counts: fewer do not show how strongly they depend.
const FEWEST_EFFECTIVE: f64 = 30.0;
/// The share of alpha at which intervals are made; the rest pays for the stopping.
const STRICTNESS: f64 = 0.6;

/// A sequential rule: stop when the relative half width of the median's interval is small
/// enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    half_width: f64,
}

/// The decision of a look at the values so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// The interval is narrow enough.
    Reached(SerialEstimate),
    /// More values are needed.
    Continue {
        /// Number of values at the next look.
        look_at: usize,
        /// The interval so far, if there is one.
        so_far: Option<SerialEstimate>,
        /// The total number of values that the precision will take, projected from the width so
        /// far.
        expected: Option<usize>,
    },
}

impl Precision {
    /// Creates the rule for a relative half width, 0.01 for 1 %, at 95 % confidence.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] unless `0 < half_width < 1`.
    pub fn relative(half_width: f64) -> Result<Self, Error> {
        if half_width > 0.0 && half_width < 1.0 {
            Ok(Self { half_width })
        } else {
            Err(Error::OutOfRange {
                what: "precision",
                value: half_width,
                expected: "a fraction between 0 and 1, both excluded (0.01 for 1 %)",
            })
        }
    }

    /// Returns the requested relative half width.
    pub fn half_width(&self) -> f64 {
        self.half_width
    }

    /// Returns the number of values at the first look.
    pub fn first_look(&self) -> usize {
        FIRST_LOOK
    }

    /// Decides from the values so far, in time order. The intervals it gives allow for the
    /// stopping, so they are a little wider than those of [`median_interval_serial`].
    ///
    /// Call it when the sample has the last requested size ([`first_look`](Self::first_look), then
    /// `look_at`): looking more often reduces the coverage.
    pub fn look(&self, windows: &Sample) -> Progress {
        let n = windows.len();
        let so_far = stopped_interval(windows, Confidence::P95).ok();
        if let Some(serial) = so_far
            && n >= self.first_look()
            && serial.effective_size >= FEWEST_EFFECTIVE.min(n as f64)
            && serial.estimate.relative_half_width() <= self.half_width
        {
            return Progress::Reached(serial);
        }
        let expected = so_far.map(|serial| self.projected(n, &serial));
        Progress::Continue { look_at: self.next_look(n), so_far, expected }
    }

    /// Adds half to the number of values.
    fn next_look(&self, n: usize) -> usize {
        if n < self.first_look() {
            return self.first_look();
        }
        n.saturating_add(n.div_ceil(2))
    }

    /// Projects the number of values, given that the width of an interval falls with its root.
    fn projected(&self, n: usize, serial: &SerialEstimate) -> usize {
        let excess = serial.estimate.relative_half_width() / self.half_width;
        whole::ceil(n as f64 * excess * excess).max(n + 1)
    }
}

/// Returns the interval of the median of windows that ended when it looked narrow enough:
/// [`median_interval_serial`] at a stricter level, with the requested coverage. The interval that
/// stops a measurement is the one that is shown.
///
/// # Errors
/// As [`median_interval_serial`].
pub fn stopped_interval(windows: &Sample, confidence: Confidence) -> Result<SerialEstimate, Error> {
    let strict = Confidence::new(1.0 - STRICTNESS * confidence.alpha())?;
    let mut serial = median_interval_serial(windows, strict)?;
    serial.estimate.coverage = confidence.get();
    Ok(serial)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns independent values around 100, up to `spread` on either side.
    fn windows(n: usize, spread: f64) -> Sample {
        let at = |i: usize| 100.0 + spread * ((i * 7919 % 101) as f64 / 50.0 - 1.0);
        Sample::new((0..n).map(at).collect::<Vec<_>>()).unwrap()
    }

    fn one_percent() -> Precision {
        Precision::relative(0.01).unwrap()
    }

    #[test]
    fn narrow_windows_are_enough_at_the_first_look() {
        let progress = one_percent().look(&windows(one_percent().first_look(), 0.5));
        assert!(
            matches!(progress, Progress::Reached(serial)
                if serial.estimate.relative_half_width() <= 0.01),
            "{progress:?}"
        );
    }

    #[test]
    fn narrow_windows_are_not_enough_before_the_first_look() {
        let progress = one_percent().look(&windows(19, 0.001));
        assert!(matches!(progress, Progress::Continue { look_at: 20, .. }), "{progress:?}");
    }

    #[test]
    fn looks_come_at_sizes_that_grow_by_half() {
        let mut sizes = vec![one_percent().first_look()];
        while let Progress::Continue { look_at, .. } =
            one_percent().look(&windows(sizes[sizes.len() - 1], 30.0))
        {
            sizes.push(look_at);
            assert!(sizes.len() < 30);
        }
        assert_eq!(sizes[..5], [20, 30, 45, 68, 102]);
    }

    #[test]
    fn intervals_are_made_at_97_percent_so_that_95_percent_remain_after_stopping() {
        let sample = windows(45, 0.5);
        let Progress::Reached(serial) = one_percent().look(&sample) else {
            panic!("narrow windows must be enough");
        };
        let strict = Confidence::new(0.97).unwrap();
        let expected = median_interval_serial(&sample, strict).unwrap().estimate.interval;
        assert!((serial.estimate.interval.lo - expected.lo).abs() < 1e-9);
        assert!((serial.estimate.interval.hi - expected.hi).abs() < 1e-9);
        assert_eq!(serial.estimate.coverage, 0.95);
    }

    #[test]
    fn the_projection_is_about_four_times_for_half_the_width() {
        let sample = windows(101, 20.0);
        let Progress::Continue { so_far: Some(serial), .. } = one_percent().look(&sample) else {
            panic!("wide windows must go on");
        };
        let half = Precision::relative(serial.estimate.relative_half_width() / 2.0).unwrap();
        let progress = half.look(&sample);
        assert!(
            matches!(progress, Progress::Continue { expected: Some(404 | 405), .. }),
            "{progress:?}"
        );
    }

    #[test]
    fn a_precision_of_one_meaning_one_percent_is_refused() {
        for wrong in [1.0, 0.0, -0.01, f64::NAN] {
            assert!(Precision::relative(wrong).is_err(), "{wrong}");
        }
        assert_eq!(one_percent().half_width(), 0.01);
    }
}
