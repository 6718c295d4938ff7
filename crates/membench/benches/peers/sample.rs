//! Medians and the spread of the values.

use std::fmt;

/// The median of a sample, with its lower and upper quartile.
pub struct Summary {
    pub median: f64,
    low: f64,
    high: f64,
    digits: usize,
}

impl Summary {
    pub fn of(mut values: Vec<f64>, digits: usize) -> Summary {
        values.sort_by(f64::total_cmp);
        // Interpolated between two neighbours if a quartile falls between them.
        let at = |quarters: usize| {
            let place = (values.len() - 1) * quarters;
            let (below, above) = (values[place / 4], values[place.div_ceil(4)]);
            below + (above - below) * (place % 4) as f64 / 4.0
        };
        Summary { median: at(2), low: at(1), high: at(3), digits }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.digits;
        write!(f, "{:.digits$} ({:.digits$}-{:.digits$})", self.median, self.low, self.high)
    }
}

/// Alternating values of two things, so that a disturbance affects both.
#[derive(Default)]
pub struct Paired {
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

impl Paired {
    /// Takes `pairs` values of each, with the order within a pair alternating.
    pub fn take(
        pairs: usize,
        mut ours: impl FnMut() -> f64,
        mut theirs: impl FnMut() -> f64,
    ) -> Paired {
        let mut paired = Paired::default();
        for pair in 0..pairs {
            if pair % 2 == 0 {
                paired.ours.push(ours());
                paired.theirs.push(theirs());
            } else {
                paired.theirs.push(theirs());
                paired.ours.push(ours());
            }
        }
        paired
    }

    pub fn ours(&self, digits: usize) -> Summary {
        Summary::of(self.ours.clone(), digits)
    }

    pub fn theirs(&self, digits: usize) -> Summary {
        Summary::of(self.theirs.clone(), digits)
    }

    /// Returns our value as a multiple of theirs, pair by pair.
    pub fn ratio(&self) -> Summary {
        let ratios = self.ours.iter().zip(&self.theirs).map(|(ours, theirs)| ours / theirs);
        Summary::of(ratios.collect(), 3)
    }
}
