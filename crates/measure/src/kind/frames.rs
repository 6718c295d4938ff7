//! Frame allocator cells, which only numalab's kernel can measure.

use numalab_record::FramesCell;

use super::{Measurement, Together};
use crate::error::MeasureError;
use crate::measured::Give;

impl Measurement for FramesCell {
    fn run(&self, _: Together<'_>, _: Give<'_>) -> Result<(), MeasureError> {
        Err(MeasureError::KernelOnly { work: self.work.clone() })
    }
}
