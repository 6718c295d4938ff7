//! Latency of memory or a link under load: curves of latency over bandwidth, one for each share of
//! writes, as measured by Mess.
//!
//! P. Esmaili-Dokht et al., "A Mess of Memory System Benchmarking, Simulation and Application
//! Profiling", MICRO 2024.

use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Latency over bandwidth at one share of writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// Share of bytes written, in percent.
    pub writes_percent: f64,
    /// Bandwidth in 10^6 bytes per second and latency in ns, both rising, beginning with the point
    /// without load. Only the rise of latency above the first point counts; the last point has the
    /// highest bandwidth.
    pub points: Vec<(f64, f64)>,
}

/// A fault in curves.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum CurveError {
    /// There are too few or too many points to interpolate.
    #[error("has {0} points, expected 2 to 1000")]
    Points(usize),
    /// A point is not above the one before it.
    #[error(
        "has ({mb_s} MB/s, {ns} ns) as point {at}, expected more bandwidth than the point \
         before it and no less latency, up to 1e12 MB/s and 1e9 ns"
    )]
    Point {
        /// Position of the point, from 1.
        at: usize,
        /// Bandwidth in MB/s.
        mb_s: f64,
        /// Latency in ns.
        ns: f64,
    },
    /// Shares of writes do not rise.
    #[error("has writes_percent {0}, expected 0 to 100, each curve's above that of the one before")]
    Writes(f64),
}

/// Graviton3 with DDR5 (AWS c7g, one package) without writes and with 42 % writes, relative to the
/// peak without writes and to the latency without load: `bwlat_100.txt` and `bwlat_58.txt` of
/// `memory_curve/graviton3-ddr5` in github.com/bsc-mem/Mess-simulator, commit e387efc8.
const GRAVITON3: [(f64, &[(f64, f64)]); 2] = [
    (
        0.0,
        &[
            (0.0, 98.0),
            (77_883.0, 103.7),
            (121_451.0, 108.7),
            (165_021.0, 117.7),
            (205_735.0, 129.5),
            (231_262.0, 140.2),
            (247_742.0, 153.2),
            (263_332.0, 175.4),
            (275_545.0, 204.3),
            (284_106.0, 260.3),
            (284_524.0, 282.4),
        ],
    ),
    (
        42.0,
        &[
            (0.0, 98.0),
            (66_097.0, 110.8),
            (99_708.0, 116.5),
            (138_241.0, 136.0),
            (173_617.0, 165.2),
            (205_444.0, 201.5),
            (224_944.0, 238.2),
            (235_584.0, 277.2),
            (241_111.0, 311.1),
            (247_721.0, 392.1),
            (250_548.0, 465.3),
        ],
    ),
];
const GRAVITON3_PEAK_MB_S: f64 = 284_524.0;
const GRAVITON3_UNLOADED_NS: f64 = 98.0;
const MOST_MB_S: f64 = 1e12;
const MOST_NS: f64 = 1e9;

impl Curve {
    /// Returns curves of the shape that Mess measured on a Graviton3, for memory or a link with
    /// this peak bandwidth (10^6 bytes per second, without writes) and this latency without load;
    /// none for a bandwidth of 0, which means no limit.
    pub fn typical(peak_mb_s: f64, unloaded_ns: f64) -> Vec<Self> {
        let scale = |&(mb_s, ns): &(f64, f64)| {
            (mb_s / GRAVITON3_PEAK_MB_S * peak_mb_s, ns / GRAVITON3_UNLOADED_NS * unloaded_ns)
        };
        let curve = |(writes_percent, points): (f64, &[(f64, f64)])| Self {
            writes_percent,
            points: points.iter().map(scale).collect(),
        };
        if peak_mb_s > 0.0 { GRAVITON3.map(curve).into() } else { Vec::new() }
    }

    /// Validates the curves of one memory or link.
    ///
    /// # Errors
    /// The first [`CurveError`].
    pub fn check(curves: &[Self]) -> Result<(), CurveError> {
        let mut least_percent = 0.0;
        for (at, curve) in curves.iter().enumerate() {
            let percent = curve.writes_percent;
            if !(least_percent..=100.0).contains(&percent)
                || (at > 0 && percent <= curves[at - 1].writes_percent)
            {
                return Err(CurveError::Writes(percent));
            }
            least_percent = percent;
            curve.check_points()?;
        }
        Ok(())
    }

    fn check_points(&self) -> Result<(), CurveError> {
        if !(2..=1000).contains(&self.points.len()) {
            return Err(CurveError::Points(self.points.len()));
        }
        for (at, &(mb_s, ns)) in self.points.iter().enumerate() {
            let behind = match at.checked_sub(1).map(|before| self.points[before]) {
                Some(before) => mb_s > before.0 && ns >= before.1,
                None => mb_s >= 0.0 && ns > 0.0,
            };
            if !behind || !(0.0..=MOST_MB_S).contains(&mb_s) || !(0.0..=MOST_NS).contains(&ns) {
                return Err(CurveError::Point { at: at + 1, mb_s, ns });
            }
        }
        Ok(())
    }

    /// Returns the latency in ns without load.
    pub fn unloaded_ns(&self) -> f64 {
        self.points[0].1
    }

    /// Returns the latency in ns at a bandwidth in 10^6 bytes per second. Beyond the last point it
    /// rises in proportion to the demand.
    pub fn at_ns(&self, mb_s: f64) -> f64 {
        let above = self.points.iter().position(|point| mb_s <= point.0);
        let Some(above) = above else {
            let (most_mb_s, ns) = self.points[self.points.len() - 1];
            return ns * mb_s / most_mb_s;
        };
        let [low, high] = [above.saturating_sub(1), above].map(|at| self.points[at]);
        if high.0 <= low.0 {
            return low.1;
        }
        low.1 + (mb_s - low.0) / (high.0 - low.0) * (high.1 - low.1)
    }

    /// Returns the latency in ns at which demand equals the bandwidth of the curve, by Little's
    /// law. `under_way` is the product of bandwidth in 10^6 bytes per second and latency in ns, a
    /// constant for a given number of bytes in flight. Beyond the last point, latency rises until
    /// demand equals the highest bandwidth.
    pub fn settled_ns(&self, under_way: f64) -> f64 {
        let mut before = self.points[0];
        if under_way <= before.0 * before.1 {
            return before.1;
        }
        for &point in &self.points[1..] {
            if under_way <= point.0 * point.1 {
                return between(before, point, under_way);
            }
            before = point;
        }
        under_way / before.0
    }
}

/// Returns the latency at which bandwidth × latency is `under_way`, between two points.
fn between(low: (f64, f64), high: (f64, f64), under_way: f64) -> f64 {
    let (mut least, mut most) = (0.0, 1.0);
    let at = |part: f64| (low.0 + part * (high.0 - low.0), low.1 + part * (high.1 - low.1));
    for _ in 0..24 {
        let middle = (least + most) / 2.0;
        let (mb_s, ns) = at(middle);
        if mb_s * ns < under_way {
            least = middle;
        } else {
            most = middle;
        }
    }
    at(most).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve() -> Curve {
        Curve {
            writes_percent: 0.0,
            points: vec![(0.0, 100.0), (8000.0, 150.0), (10_000.0, 300.0)],
        }
    }

    #[test]
    fn a_constant_number_of_bytes_in_flight_settles_on_the_curve() {
        let curve = curve();
        assert!((curve.settled_ns(0.0) - 100.0).abs() < 1e-3);
        // A point on each segment gives its own latency.
        for (mb_s, ns) in [(4000.0, 125.0), (8000.0, 150.0), (9000.0, 225.0), (10_000.0, 300.0)] {
            let found = curve.settled_ns(mb_s * ns);
            assert!((found - ns).abs() < 0.01, "{mb_s} MB/s: {found}, expected {ns}");
        }
        // With twice the bytes in flight of the end, bandwidth stays and latency doubles.
        assert!((curve.settled_ns(10_000.0 * 600.0) - 600.0).abs() < 1e-3);
    }

    #[test]
    fn a_bandwidth_has_its_latency_between_points_and_behind_the_last() {
        for (mb_s, ns) in [(0.0, 100.0), (4000.0, 125.0), (9000.0, 225.0), (20_000.0, 600.0)] {
            assert!((curve().at_ns(mb_s) - ns).abs() < 1e-9, "{mb_s} MB/s");
        }
    }

    #[test]
    fn invalid_curves_are_refused_with_the_reason() {
        let with = |points: &[(f64, f64)]| {
            Curve::check(&[Curve { writes_percent: 0.0, points: points.to_vec() }])
        };
        assert_eq!(with(&[(0.0, 100.0)]), Err(CurveError::Points(1)));
        let falls = with(&[(0.0, 100.0), (5.0, 90.0)]).unwrap_err().to_string();
        assert!(falls.starts_with("has (5 MB/s, 90 ns) as point 2, expected more"), "{falls}");
        assert!(with(&[(0.0, 100.0), (0.0, 110.0)]).is_err());
        assert!(with(&[(0.0, f64::NAN), (1.0, 110.0)]).is_err());
        let twice = Curve::check(&[curve(), curve()]);
        assert_eq!(twice, Err(CurveError::Writes(0.0)));
        assert_eq!(Curve::check(&Curve::typical(10_000.0, 80.0)), Ok(()));
    }

    #[test]
    fn the_typical_curve_has_its_knee_near_two_thirds_and_triples_at_the_peak() {
        let curves = Curve::typical(10_000.0, 100.0);
        let at = |share: f64| {
            let points = &curves[0].points;
            let after = points.iter().position(|point| point.0 >= share * 10_000.0).unwrap();
            points[after].1
        };
        assert!(at(0.5) < 125.0 && at(0.97) > 200.0 && at(1.0) > 280.0);
        assert!(curves[1].points.last().unwrap().0 < 9000.0, "writes cost bandwidth");
        assert!(Curve::typical(0.0, 100.0).is_empty());
    }
}
