//! The k-th smallest of all differences, or of all Walsh averages, without computing all of them.
//!
//! Both are sums over two sorted lists, so the number that is at most t is counted in one walk down
//! a staircase; t is then found by bisection over the bit patterns of floats, in at most 64 walks.
//! (The staircase is that of Johnson & Mizoguchi, "Selecting the Kth element in X + Y and X1 + X2 +
//! ... + Xm", SIAM J. Comput. 7, 1978.) The result is exact, because rounding is monotone.

/// Returns the k-th smallest (from 1) of `candidate[j] - baseline[i]` over two sorted slices.
pub(crate) fn kth_difference(baseline: &[f64], candidate: &[f64], k: usize) -> f64 {
    let lowest = candidate[0] - baseline[baseline.len() - 1];
    let highest = candidate[candidate.len() - 1] - baseline[0];
    kth(k, lowest, highest, |limit| {
        let mut inside = 0;
        let mut count = 0;
        for from in baseline {
            while inside < candidate.len() && candidate[inside] - from <= limit {
                inside += 1;
            }
            count += inside;
        }
        count
    })
}

/// Returns the k-th smallest (from 1) of `(x[i] + x[j]) / 2` with `i <= j` over a sorted slice.
pub(crate) fn kth_walsh_average(sorted: &[f64], k: usize) -> f64 {
    let (lowest, highest) = (sorted[0], sorted[sorted.len() - 1]);
    kth(k, lowest, highest, |limit| {
        let mut inside = sorted.len();
        let mut count = 0;
        for (first, value) in sorted.iter().enumerate() {
            while inside > first && walsh_average(*value, sorted[inside - 1]) > limit {
                inside -= 1;
            }
            if inside <= first {
                break;
            }
            count += inside - first;
        }
        count
    })
}

fn walsh_average(first: f64, second: f64) -> f64 {
    0.5 * (first + second)
}

/// Returns the smallest float t in `lowest..=highest` with `count(t) >= k`.
fn kth(k: usize, lowest: f64, highest: f64, count: impl Fn(f64) -> usize) -> f64 {
    let (mut low, mut high) = (ordered(lowest), ordered(highest));
    while low < high {
        let middle = low.midpoint(high);
        if count(float(middle)) >= k {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    float(high) + 0.0
}

/// Maps a float to an integer with the same order.
fn ordered(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Returns the float of an [`ordered`] integer.
fn float(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered ^ (1 << 63) } else { !ordered })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(mut values: Vec<f64>) -> Vec<f64> {
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    fn values() -> impl Strategy<Value = Vec<f64>> {
        let whole = (-6_i32..6).prop_map(f64::from);
        proptest::collection::vec(prop_oneof![whole, -1e3_f64..1e3], 1..14).prop_map(sorted)
    }

    proptest! {
        #[test]
        fn every_difference_is_found_at_its_place(a in values(), b in values()) {
            let all: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| y - x)).collect();
            for (index, expected) in sorted(all).iter().enumerate() {
                prop_assert_eq!(kth_difference(&a, &b, index + 1), *expected);
            }
        }

        #[test]
        fn every_walsh_average_is_found_at_its_place(x in values()) {
            let all = (0..x.len()).flat_map(|i| (i..x.len()).map(move |j| (i, j)));
            let all: Vec<f64> = all.map(|(i, j)| walsh_average(x[i], x[j])).collect();
            for (index, expected) in sorted(all).iter().enumerate() {
                prop_assert_eq!(kth_walsh_average(&x, index + 1), *expected);
            }
        }
    }

    #[test]
    fn floats_survive_the_round_trip_through_ordered_bits() {
        let line = [-1e300, -1.0, -1e-310, -0.0, 0.0, 5e-324, 2.5, 1e300];
        assert!(line.windows(2).all(|pair| ordered(pair[0]) < ordered(pair[1])));
        assert!(line.iter().all(|x| float(ordered(*x)).to_bits() == x.to_bits()));
    }
}
