//! The data of charts of measured figures.

use numalab_stats::Interval;

/// A value with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The value, in the chart's unit.
    pub value: f64,
    /// 95 % confidence interval; `None` with too few values for one.
    pub interval: Option<Interval>,
}

/// Values between rows and columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Heatmap {
    pub unit: String,
    /// The word for a row: `node`.
    pub rows_are: &'static str,
    pub rows: Vec<u32>,
    pub columns_are: &'static str,
    pub columns: Vec<u32>,
    /// `entries[row][column]`; `None` if nothing was measured.
    pub entries: Vec<Vec<Option<HeatmapEntry>>>,
}

/// One value of a heat map.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatmapEntry {
    /// The value in the map's unit.
    pub value: f64,
    /// Uncertainty and origin of the value, line by line; empty if unknown.
    pub detail: String,
}

impl Heatmap {
    /// Returns the smallest and the largest value; `None` without values.
    pub fn range(&self) -> Option<Interval> {
        let values = self.entries.iter().flatten().flatten().map(|entry| entry.value);
        values.fold(None, |range, value| {
            let range = range.unwrap_or(Interval { lo: value, hi: value });
            Some(Interval { lo: range.lo.min(value), hi: range.hi.max(value) })
        })
    }
}

/// A curve of latency by size.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeCurve {
    pub name: String,
    /// The points, smallest size first.
    pub points: Vec<CurvePoint>,
    /// The plateaus, smallest size first.
    pub levels: Vec<CurveLevel>,
}

/// A point of latency by size.
#[derive(Clone, Debug, PartialEq)]
pub struct CurvePoint {
    /// The buffer's length in bytes.
    pub size_bytes: u64,
    pub figure: Figure,
    pub cell: String,
}

/// A plateau of latency by size.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveLevel {
    /// Name of the level: `L2`.
    pub name: String,
    pub latency_ns: f64,
    /// The first size on it, in bytes.
    pub from_bytes: u64,
    /// The last size on it, in bytes.
    pub to_bytes: u64,
    /// The size at which it ends, in bytes; `None` for the last one.
    pub capacity_bytes: Option<f64>,
}

/// A point of latency by bandwidth.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadPoint {
    /// The setting of the load: `delay 400`.
    pub load: String,
    pub traffic_gb_per_s: f64,
    pub latency: Figure,
    pub cell: String,
}
