//! Charts, as data.

use numalab_stats::{Interval, Knee};

use super::figures::{Figure, Heatmap, LoadPoint, SizeCurve};
use super::memory_chart::{AccessMap, MemoryOverTime};
use crate::mood::Mood;

#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Values between rows and columns.
    Heatmap(Heatmap),
    /// Latency by size, with the plateaus of the first curve.
    LatencyOverSize(Vec<SizeCurve>),
    /// Latency by bandwidth, with the knee.
    LatencyOverBandwidth(Vec<LoadPoint>, Option<Knee>),
    Bars(Vec<BarGroup>),
    Curves(Curves),
    /// Changes with their intervals, one per row.
    Intervals(Vec<IntervalRow>),
    Blocks(BlockChanges),
    /// Every value in the order of the run.
    Order(RunOrder),
    /// Regions of memory, the nodes that hold them and the threads that use them.
    Map(AccessMap),
    /// The use of memory regions over time.
    OverTime(MemoryOverTime),
}

impl Chart {
    /// Returns the strings in the chart that name programs and their data.
    pub(super) fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            Self::Heatmap(_) | Self::LatencyOverSize(_) | Self::LatencyOverBandwidth(..) => {
                Vec::new()
            }
            Self::Bars(groups) => groups.iter_mut().flat_map(BarGroup::texts_mut).collect(),
            Self::Curves(curves) => curves.series.iter_mut().map(|of| &mut of.name).collect(),
            Self::Intervals(rows) => {
                rows.iter_mut().flat_map(|row| [&mut row.name, &mut row.detail]).collect()
            }
            Self::Blocks(changes) => vec![&mut changes.described],
            Self::Order(order) => {
                let dots = order.dots.iter_mut().map(|dot| &mut dot.detail);
                dots.chain(&mut order.names).chain([&mut order.described]).collect()
            }
            Self::Map(map) => map.texts_mut(),
            Self::OverTime(over_time) => {
                over_time.rows.iter_mut().map(|row| &mut row.name).collect()
            }
        }
    }
}

/// Bars under one heading.
#[derive(Clone, Debug, PartialEq)]
pub struct BarGroup {
    pub title: String,
    pub bars: Vec<Bar>,
}

impl BarGroup {
    fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let bars = self.bars.iter_mut().flat_map(|bar| [&mut bar.label, &mut bar.cell]);
        bars.chain([&mut self.title])
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    pub label: String,
    pub figure: Figure,
    pub unit: String,
    pub cell: String,
}

/// Curves over one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// The name of the horizontal axis.
    pub x_name: String,
    /// True if the horizontal axis is logarithmic.
    pub x_is_logarithmic: bool,
    /// The name of the vertical axis, with its unit.
    pub y_name: String,
    pub series: Vec<Series>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: String,
    /// Points (x, y), from left to right.
    pub points: Vec<(f64, f64)>,
}

/// A change with its interval and the margin within which it counts as no change.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalRow {
    pub name: String,
    /// The change in percent; `None` if it is not a ratio.
    pub percent: Option<f64>,
    /// 95 % interval in percent.
    pub interval: Option<Interval>,
    pub margin_percent: f64,
    pub mood: Mood,
    /// The change and the verdict, in a few words.
    pub verdict: String,
    /// A full description.
    pub detail: String,
}

/// The change in each block of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockChanges {
    /// The change of each block, in percent or the metric's unit.
    pub changes: Vec<f64>,
    pub effect: f64,
    pub interval: Option<Interval>,
    /// The unit of the changes; `None` for percent.
    pub unit: Option<String>,
    pub described: String,
}

/// Every value in the order in which it was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOrder {
    pub dots: Vec<Dot>,
    pub names: Vec<String>,
    pub unit: String,
    pub described: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Dot {
    pub value: f64,
    pub kind: usize,
    /// True if the sample was disturbed.
    pub disturbed: bool,
    /// A full description.
    pub detail: String,
}
