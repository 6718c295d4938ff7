//! Windows that resemble their neighbours, made into values that hardly do.

use numalab_stats::{Confidence, Sample, median_interval_serial};

/// Values of a side that are enough for any test here; more only cost time.
const MOST_BATCHES: usize = 40;
/// With an effective size above this share of the windows they count as independent.
const INDEPENDENT_SHARE: f64 = 0.9;
/// Batches where the windows resemble each other so much that no effective size
/// could be established: too few for a verdict, as they should be.
const FALLBACK_BATCHES: usize = 5;

/// Medians of consecutive windows, in time order. Independent windows are taken as
/// they are up to [`MOST_BATCHES`]; of others a batch is twice as long as the span
/// over which they resemble each other (windows over effective size), since medians
/// of batches of just that span would still be alike. What remains between batches
/// makes the tests somewhat too sure, never the medians wrong.
pub(super) fn batch_medians(values: &[f64]) -> Vec<f64> {
    let batches = batch_count(values).clamp(1, MOST_BATCHES).min(values.len());
    (0..batches)
        .filter_map(|batch| {
            let from = batch * values.len() / batches;
            let to = (batch + 1) * values.len() / batches;
            let sample = Sample::new(&values[from..to]).ok()?;
            Some(sample.median())
        })
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "counts of windows, bounded by the caller"
)]
fn batch_count(values: &[f64]) -> usize {
    let Ok(sample) = Sample::new(values) else {
        return 0;
    };
    if sample.is_constant() {
        return values.len();
    }
    match median_interval_serial(&sample, Confidence::P95) {
        Ok(found) if found.effective_size >= INDEPENDENT_SHARE * values.len() as f64 => {
            values.len()
        }
        Ok(found) => (found.effective_size / 2.0) as usize,
        Err(_) => FALLBACK_BATCHES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_stats::Rng;

    #[test]
    fn independent_windows_are_taken_as_they_are() {
        let mut rng = Rng::new(3);
        let values: Vec<f64> = (0..30).map(|_| 100.0 + rng.uniform()).collect();
        assert_eq!(batch_medians(&values), values);
    }

    #[test]
    fn windows_that_drift_together_become_few_values() {
        let mut rng = Rng::new(4);
        let mut level = 0.0;
        let walk: Vec<f64> = (0..200)
            .map(|_| {
                level = 0.9 * level + rng.uniform() - 0.5;
                100.0 + level
            })
            .collect();
        let batches = batch_medians(&walk).len();
        assert!((1..=20).contains(&batches), "{batches}");
    }
}
