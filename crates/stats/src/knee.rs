//! The knee of a loaded-latency curve, at which queues begin to matter.

use crate::{Error, Sample, isotonic};

/// The multiple of idle latency at which a memory system is conventionally called saturated.
pub const KNEE_FACTOR: f64 = 2.0;

/// A point of a loaded-latency curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadPoint {
    /// Bandwidth achieved, in any unit.
    pub bandwidth: f64,
    /// Latency of a load at this bandwidth, in ns.
    pub latency_ns: f64,
}

/// The point at which a loaded-latency curve bends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// The latency at the lowest load, in ns.
    pub idle_ns: f64,
    /// The bandwidth at which the latency reaches the factor times idle, in the unit of the points.
    pub bandwidth: f64,
    /// The latency at the knee, in ns.
    pub latency_ns: f64,
}

/// Finds the load at which latency first reaches `factor` times the latency at the lowest load;
/// `None` if the load never gets that far.
///
/// A stated multiple of idle is the usual meaning of "loaded" (Intel's Memory Latency Checker
/// curves are read this way), and unlike the point of largest curvature (Kneedle) it does not
/// depend on the range measured. Points are given in order of rising load, not of bandwidth: past
/// saturation the bandwidth can fall. Latencies are first made non-decreasing in the load (isotonic
/// regression), so that one disturbed point is not taken for a knee unless it is the last.
///
/// # Errors
/// [`Error::Empty`] without points, [`Error::NotPositive`] or [`Error::NotFinite`] for a latency or
/// bandwidth that is not a positive number, [`Error::OutOfRange`] unless `factor > 1`.
pub fn knee(points: &[LoadPoint], factor: f64) -> Result<Option<Knee>, Error> {
    if !(factor > 1.0 && factor.is_finite()) {
        return Err(Error::OutOfRange {
            what: "factor",
            value: factor,
            expected: "a number above 1",
        });
    }
    let positive = |value: fn(&LoadPoint) -> f64| -> Result<Sample, Error> {
        let sample = Sample::new(points.iter().map(value).collect::<Vec<_>>())?;
        sample.logs()?;
        Ok(sample)
    };
    let bandwidths = positive(|point| point.bandwidth)?;
    let latencies = positive(|point| point.latency_ns)?;
    let rising = isotonic::rising(latencies.values());
    let (idle_ns, latency_ns) = (rising[0], factor * rising[0]);
    let Some(above) = rising.iter().position(|latency| *latency >= latency_ns) else {
        return Ok(None);
    };
    let share = (latency_ns - rising[above - 1]) / (rising[above] - rising[above - 1]);
    let (before, after) = (bandwidths.values()[above - 1], bandwidths.values()[above]);
    Ok(Some(Knee { idle_ns, bandwidth: before + share * (after - before), latency_ns }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(of: &[(f64, f64)]) -> Vec<LoadPoint> {
        of.iter()
            .map(|(bandwidth, latency_ns)| LoadPoint {
                bandwidth: *bandwidth,
                latency_ns: *latency_ns,
            })
            .collect()
    }

    /// Returns a queue with latency = idle / (1 - load), which doubles at half of the peak.
    fn queue(peak: f64) -> Vec<LoadPoint> {
        let at = |i: u32| {
            let load = f64::from(i) / 20.0;
            LoadPoint { bandwidth: peak * load, latency_ns: 100.0 / (1.0 - load) }
        };
        (1..20).map(at).collect()
    }

    #[test]
    fn a_queue_doubles_its_latency_at_half_of_its_peak() {
        let knee = knee(&queue(40.0), 2.0).unwrap().unwrap();
        // Idle is taken at a twentieth of the load: 105.3 ns, doubled at 0.525 of the peak.
        assert!((knee.bandwidth - 21.0).abs() < 0.2, "{knee:?}");
        assert!((knee.latency_ns - 2.0 * knee.idle_ns).abs() < 1e-9);
    }

    #[test]
    fn a_curve_that_bends_back_gives_the_bandwidth_on_the_way_up() {
        let curve =
            points(&[(10.0, 100.0), (20.0, 110.0), (30.0, 150.0), (36.0, 250.0), (33.0, 600.0)]);
        let knee = knee(&curve, KNEE_FACTOR).unwrap().unwrap();
        assert_eq!(knee, Knee { idle_ns: 100.0, bandwidth: 33.0, latency_ns: 200.0 });
    }

    #[test]
    fn one_disturbed_point_is_not_a_knee() {
        let curve =
            points(&[(10.0, 100.0), (20.0, 101.0), (25.0, 230.0), (30.0, 103.0), (35.0, 105.0)]);
        assert_eq!(knee(&curve, KNEE_FACTOR).unwrap(), None);
    }

    #[test]
    fn a_load_too_light_has_no_knee_and_invalid_points_are_refused() {
        assert_eq!(knee(&points(&[(1.0, 100.0)]), 2.0).unwrap(), None);
        assert_eq!(knee(&[], 2.0), Err(Error::Empty));
        assert!(knee(&queue(1.0), 1.0).is_err());
        let refused = knee(&points(&[(1.0, 100.0), (2.0, 0.0)]), 2.0);
        assert_eq!(refused, Err(Error::NotPositive { index: 1, value: 0.0 }));
    }
}
