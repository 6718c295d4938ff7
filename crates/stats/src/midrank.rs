//! Ranks with ties at their mean, doubled so that they are integers.

/// The doubled ranks of `values`: twice the mean of the positions, counted from 1, that equal
/// values share.
pub(crate) struct Midranks {
    /// Twice the rank of each value, in the order given.
    pub doubled: Vec<usize>,
    /// `sum(t^3 - t)` over groups of t equal values, by which ties reduce the variance.
    pub tie_loss: f64,
}

impl Midranks {
    /// Ranks finite values.
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
        let mut doubled = vec![0; values.len()];
        let mut tie_loss = 0.0;
        let mut before = 0;
        for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
            for index in group {
                doubled[*index] = 2 * before + group.len() + 1;
            }
            let size = group.len() as f64;
            tie_loss += size.powi(3) - size;
            before += group.len();
        }
        Self { doubled, tie_loss }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_the_mean_of_their_positions() {
        let ranks = Midranks::of(&[3.0, 1.0, 3.0, 2.0, -0.0, 0.0]);
        assert_eq!(ranks.doubled, [11, 6, 11, 8, 3, 3]);
        assert_eq!(ranks.tie_loss, 12.0);
    }
}
