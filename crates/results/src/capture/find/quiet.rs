//! The quiet part of a run, when nothing else uses the machine.

use numalab_record::{Document, Experiment, Metric, Sample};

/// Inverse of the share of a metric's values that count, the best ones.
const SHARE: usize = 10;
/// Minimum number of values that count.
const LEAST: usize = 3;

/// Returns the run with the best tenth of each cell's values: neighbours increase latencies
/// and slow clocks, never the reverse. Cells under load are unchanged, because their values belong
/// together.
pub(super) fn quiet(document: &Document) -> Document {
    let mut quiet = document.clone();
    for cell in &mut quiet.cells {
        if !matches!(cell.cell.experiment, Experiment::Loaded(_)) {
            let samples = Metric::ALL.into_iter().flat_map(|metric| best(&cell.samples, metric));
            cell.samples = samples.collect();
        }
    }
    quiet
}

/// Returns the best tenth of a metric's values in time order, undisturbed ones first.
fn best(samples: &[Sample], metric: Metric) -> Vec<Sample> {
    let mut all: Vec<&Sample> = samples
        .iter()
        .filter(|sample| sample.metric == metric && sample.value.is_finite())
        .collect();
    let count = all.len().div_ceil(SHARE).max(LEAST);
    all.sort_by(|a, b| {
        let (low, high) = if metric.lower_is_better() { (a, b) } else { (b, a) };
        let by_value = low.value.total_cmp(&high.value);
        a.disturbed.is_some().cmp(&b.disturbed.is_some()).then(by_value)
    });
    all.truncate(count);
    all.sort_by_key(|sample| sample.index);
    all.into_iter().cloned().collect()
}
