//! A kept study, and an observer that keeps remarks, for tests.

use numalab_record::Kind;
use numalab_record::study::StudyDocument;
use numalab_study::Observer;

use crate::watch::{Remark, Watch};

/// Returns the study of weighted interleaving that the documentation keeps: five treatments in 8
/// blocks, of which the third, 2:1, has by far the most bandwidth.
pub(crate) fn kept_study() -> StudyDocument {
    let kept = include_str!("../../../docs/studies/documents/weights.json");
    Kind::Study.read(kept).expect("a study")
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
