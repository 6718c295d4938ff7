//! Windows that resemble their neighbours, made into values that hardly do.

use numalab_stats::{Confidence, Sample, median_interval_serial};

/// Values of a side that are enough for any test here; more only cost time.
const MOST_BATCHES: usize = 40;
/// Batches where the windows resemble each other so much that no effective size
/// could be established: too few for a verdict, as they should be.
const FALLBACK_BATCHES: usize = 5;

/// Medians of consecutive windows, in time order: as many as the windows' effective
/// size, up to [`MOST_BATCHES`]. Neighbouring batches still resemble each other a
/// little, which makes the tests somewhat too sure; that, too, the tolerance is for.
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
        Ok(found) => found.effective_size as usize,
        Err(_) => FALLBACK_BATCHES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_stats::Rng;

    #[test]
    fn independent_windows_stay_many_values() {
        let mut rng = Rng::new(3);
        let values: Vec<f64> = (0..30).map(|_| 100.0 + rng.uniform()).collect();
        let batches = batch_medians(&values).len();
        assert!((12..=30).contains(&batches), "{batches}");
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
        assert!((1..=25).contains(&batches), "{batches}");
    }
}
