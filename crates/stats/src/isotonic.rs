//! The non-decreasing curve nearest to noisy values: pool adjacent violators (Ayer et al., "An
//! empirical distribution function for sampling with incomplete information", Ann. Math. Stat. 26,
//! 1955).

/// Returns the non-decreasing least-squares fit, of the same length as `values`.
pub(crate) fn rising(values: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<(f64, usize)> = Vec::with_capacity(values.len());
    for value in values {
        let mut block = (*value, 1);
        while let Some((mean, size)) = blocks.pop_if(|(mean, _)| *mean > block.0) {
            let total = size + block.1;
            block = ((mean * size as f64 + block.0 * block.1 as f64) / total as f64, total);
        }
        blocks.push(block);
    }
    blocks.into_iter().flat_map(|(mean, size)| std::iter::repeat_n(mean, size)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falling_neighbours_are_pooled_and_rising_ones_stay() {
        assert_eq!(rising(&[1.0, 3.0, 2.0, 5.0]), [1.0, 2.5, 2.5, 5.0]);
        assert_eq!(rising(&[3.0, 2.0, 1.0]), [2.0; 3]);
        assert!(rising(&[]).is_empty());
    }
}
