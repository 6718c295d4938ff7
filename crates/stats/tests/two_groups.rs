//! Values of two kinds: where the boundary is, and where there is none.

use numalab_stats::two_groups;

/// Returns values about 0 and about 10, all different.
fn values(low: usize, high: usize) -> Vec<f64> {
    let about = |middle: f64, count: usize| {
        (0..count).map(move |at| middle + 0.1 * (at as f64 / count as f64 - 0.5))
    };
    about(0.0, low).chain(about(10.0, high)).collect()
}

#[test]
fn the_boundary_is_between_groups_of_two_fifths_or_more() {
    for (low, high) in [(20, 20), (16, 24), (24, 16)] {
        let boundary = two_groups(&values(low, high)).expect("two kinds");
        assert!((4.9..5.1).contains(&boundary), "{low} and {high}: {boundary}");
    }
}

#[test]
fn a_smaller_group_is_not_a_mode_and_takes_no_value_of_the_other() {
    for (low, high) in [(25, 15), (15, 25), (30, 10), (39, 1)] {
        assert_eq!(two_groups(&values(low, high)), None, "{low} and {high}");
    }
}

#[test]
fn one_value_far_from_both_groups_does_not_hide_them() {
    for far in [-500.0, 500.0] {
        let mut with_outlier = values(20, 20);
        with_outlier.push(far);
        // It lies so far out that the deviation within the groups is that of one value.
        assert_eq!(two_groups(&with_outlier), None);
        with_outlier.pop();
        with_outlier.push(far.signum() * 12.0);
        let boundary = two_groups(&with_outlier);
        assert!(boundary.is_none_or(|at| (0.1..9.9).contains(&at)), "{boundary:?}");
    }
}

#[test]
fn values_of_one_kind_and_a_few_have_no_boundary() {
    let even: Vec<f64> = (0..40).map(f64::from).collect();
    assert_eq!(two_groups(&even), None);
    assert_eq!(two_groups(&[1.0, 1.0, 9.0]), None, "two of each at least");
    assert_eq!(two_groups(&[]), None);
    assert_eq!(two_groups(&[1.0, 1.0, 1.0, 1.0]), None, "all alike");
}
