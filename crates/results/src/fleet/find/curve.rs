//! Detection power: the fleet's own units, shifted by 3 to 8 standard deviations and judged by the
//! rule and threshold in force.

use serde::{Deserialize, Serialize};

use super::Scope;
use super::score::{Selection, Subject, Test, Tests};

/// The share of shifted units that is detected.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DetectionPoint {
    /// The shift of each figure, in robust standard deviations.
    pub shift: f64,
    /// The share detected if all figures of a unit shift, 0 to 1.
    pub units: Option<f64>,
    /// The share detected if a single figure shifts, 0 to 1.
    pub figures: Option<f64>,
}

impl DetectionPoint {
    /// Returns the larger of the two shares.
    pub fn power(&self) -> f64 {
        [self.units, self.figures].into_iter().flatten().fold(0.0, f64::max)
    }
}

/// Approximate number of units that are shifted, each by every shift.
const MOST_UNITS: usize = 400;

pub(super) fn detection(tests: &Tests, selection: &Selection<'_>) -> Vec<DetectionPoint> {
    let odd = selection.hosts();
    let step = tests.count() / MOST_UNITS + 1;
    let places = tests.all.iter().flat_map(|test| (0..test.units.len()).map(move |at| (test, at)));
    let usual: Vec<(&Test, usize)> = places
        .step_by(step)
        .filter(|(test, at)| !odd.contains(&test.units[*at].host))
        .filter(|(test, _)| {
            !matches!(test.subject, Subject::All(Scope::Host) | Subject::Relative(_))
        })
        .collect();
    let share = |shift: f64, single: bool| {
        let is_single = |test: &Test| matches!(test.subject, Subject::Figure(_));
        let (mut all, mut found) = (0_u32, 0_u32);
        for (test, at) in usual.iter().filter(|(test, _)| is_single(test) == single) {
            all += 1;
            found += u32::from(test.chance_of_moved(*at, shift) <= selection.threshold);
        }
        (all > 0).then(|| f64::from(found) / f64::from(all))
    };
    let point = |shift: u32| {
        let shift = f64::from(shift);
        DetectionPoint { shift, units: share(shift, false), figures: share(shift, true) }
    };
    (3..=8).map(point).collect()
}
