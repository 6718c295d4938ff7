//! A kept study, a request, and an observer that keeps remarks, for tests.

use numalab_record::Kind;
use numalab_record::study::StudyDocument;
use numalab_study::Observer;
use numalab_workload::MetricSpec;

use crate::request::Request;
use crate::watch::{Remark, Watch};

/// Returns the study of weighted interleaving that the documentation keeps: five treatments in 8
/// blocks, of which the third, 2:1, has by far the most bandwidth.
pub(crate) fn kept_study() -> StudyDocument {
    let kept = include_str!("../../../docs/studies/documents/weights.json");
    Kind::Study.read(kept).expect("a study")
}

/// Returns the usual request for a program that does nothing.
pub(crate) fn request() -> Request {
    Request {
        command: ["sh", "-c", "true"].map(str::to_owned).into(),
        stdin: None,
        metric: MetricSpec::of_time(),
        predict_only: false,
        trials_only: false,
        tries: None,
        blocks: 8,
        budget: None,
        to_the_end: false,
        keep: None,
        version: "0".to_owned(),
    }
}

/// Keeps the remarks.
#[derive(Default)]
pub(crate) struct KeptRemarks(pub Vec<Remark>);

impl Observer for KeptRemarks {}

impl Watch for KeptRemarks {
    fn remark(&mut self, remark: &Remark) {
        self.0.push(remark.clone());
    }
}
