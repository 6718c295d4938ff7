//! The JSON document of published figures and their gains.

use serde::Serialize;

use crate::document::Bounds;
use crate::samples::{Published, PublishedRow};

/// Published figures with the gains that follow from them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedGains {
    /// One entry per row of figures.
    pub published: Vec<PublishedGain>,
}

/// A row of published figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedGain {
    /// The thing measured, as published.
    pub what: String,
    /// The baseline's figure.
    pub baseline: f64,
    /// The candidate's figure.
    pub candidate: f64,
    /// The gain that these figures give, in percent.
    pub gain_percent: f64,
    /// The range of gains over all figures that round to these, in percent.
    pub gain_range_percent: Bounds,
    /// The gain as it was published, in percent.
    pub published_percent: Option<f64>,
    /// True if the published gain follows; `None` if none was published.
    pub follows: Option<bool>,
}

impl PublishedGains {
    pub(crate) fn of(of: &Published) -> Self {
        let row = |row: &PublishedRow| PublishedGain {
            what: row.what.clone(),
            baseline: row.baseline,
            candidate: row.candidate,
            gain_percent: of.gain(row),
            gain_range_percent: [of.gain_range(row).lo, of.gain_range(row).hi],
            published_percent: row.gain.map(|(gain, _)| gain),
            follows: row.gain.map(|_| of.follows(row)),
        };
        Self { published: of.rows.iter().map(row).collect() }
    }
}
