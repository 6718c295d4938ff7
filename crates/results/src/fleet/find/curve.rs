//! Detection power: the fleet's own units, shifted by 3 to 8 standard deviations and judged by the
//! rule and threshold in force.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::Scope;
use super::score::{Selection, Unit, Units};

/// The share of shifted units that is detected.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DetectionPoint {
    /// The shift of each figure, in robust standard deviations.
    pub shift: f64,
    /// The share detected if all figures of a unit shift, 0 to 1.
    pub units: Option<f64>,
    /// The share detected if a single figure shifts, 0 to 1.
    pub figures: Option<f64>,
}

/// Approximate number of units that are shifted, each by every shift.
const MOST_UNITS: usize = 400;

pub(super) fn detection(units: &Units, selection: &Selection) -> Vec<DetectionPoint> {
    let odd: HashSet<usize> =
        selection.claimed.iter().map(|claim| units.all[claim.unit].host).collect();
    let step = units.all.len() / MOST_UNITS + 1;
    let usual: Vec<&Unit> =
        units.all.iter().step_by(step).filter(|unit| !odd.contains(&unit.host)).collect();
    let share = |shift: f64, single: bool| {
        let of = usual.iter().filter(|unit| {
            let is_single = matches!(unit.scope, Scope::Figure(_));
            is_single == single && unit.scope != Scope::Host
        });
        let (mut all, mut found) = (0_u32, 0_u32);
        for unit in of {
            all += 1;
            found += u32::from(units.chance_of_moved(unit, shift) <= selection.threshold);
        }
        (all > 0).then(|| f64::from(found) / f64::from(all))
    };
    let point = |shift: u32| {
        let shift = f64::from(shift);
        DetectionPoint { shift, units: share(shift, false), figures: share(shift, true) }
    };
    (3..=8).map(point).collect()
}
