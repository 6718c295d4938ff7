//! Parts that all JSON documents share.

use numalab_record::Kind;
use numalab_stats::Interval;
use serde::Serialize;

/// Returns a document as indented JSON with its kind as `schema`.
///
/// # Errors
/// Any error of `serde_json`.
pub fn document(kind: Kind, of: &impl Serialize) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Document<'a, T> {
        schema: Kind,
        #[serde(flatten)]
        of: &'a T,
    }
    serde_json::to_string_pretty(&Document { schema: kind, of })
}

/// Implements `Report::json` for a type that is its own document of this kind.
macro_rules! document_of {
    ($kind:ident) => {
        fn json(&self) -> serde_json::Result<String> {
            crate::document(numalab_record::Kind::$kind, self)
        }
    };
}
pub(crate) use document_of;

/// Lower and upper bound.
pub(crate) type Bounds = [f64; 2];

pub(crate) fn bounds(interval: Option<Interval>) -> Option<Bounds> {
    interval.map(|interval| [interval.lo, interval.hi])
}
