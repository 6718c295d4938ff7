//! Values of several kinds: where the boundaries are, and where there is none.

use numalab_stats::{GROUPS_APART, Rng, groups};

/// Returns values about 0, 10, 20 and so on, as many of each as given, all different.
fn values(counts: &[usize]) -> Vec<f64> {
    let about = |(at, &count): (usize, &usize)| {
        (0..count).map(move |of| 10.0 * at as f64 + 0.1 * (of as f64 / count as f64 - 0.5))
    };
    counts.iter().enumerate().flat_map(about).collect()
}

#[test]
fn boundaries_are_between_groups_of_a_sixth_or_more() {
    for counts in [&[20, 20][..], &[33, 7], &[16, 14, 10], &[8, 8, 8, 8, 8], &[7, 5], &[5, 5]] {
        let boundaries = groups(&values(counts), GROUPS_APART);
        assert_eq!(boundaries.len(), counts.len() - 1, "{counts:?}: {boundaries:?}");
        for (at, boundary) in boundaries.iter().enumerate() {
            assert!((boundary - 10.0 * at as f64 - 5.0).abs() < 0.1, "{counts:?}: {boundaries:?}");
        }
    }
}

#[test]
fn a_smaller_group_is_no_kind_and_takes_no_value_of_another() {
    assert_eq!(groups(&values(&[34, 6]), GROUPS_APART), Vec::<f64>::new());
    assert_eq!(groups(&values(&[6, 34]), GROUPS_APART), Vec::<f64>::new());
    assert_eq!(groups(&values(&[8, 4]), GROUPS_APART), Vec::<f64>::new(), "they are outliers");
    let boundaries = groups(&values(&[18, 4, 18]), GROUPS_APART);
    assert!(matches!(boundaries[..], [middle] if (9.9..10.1).contains(&middle)), "{boundaries:?}");
}

#[test]
fn a_few_values_far_from_all_groups_do_not_hide_them() {
    for far in [-500.0, 500.0, 12.0] {
        let mut with_outliers = values(&[20, 20]);
        with_outliers.extend([far, 1.01 * far]);
        let boundaries = groups(&with_outliers, GROUPS_APART);
        assert!(
            matches!(boundaries[..], [one] if (0.1..9.9).contains(&one)),
            "{far}: {boundaries:?}"
        );
    }
}

/// Draws a value of one of these kinds, `apart` standard deviations from the next, by place.
fn of_kinds(shares: &[f64], apart: f64, place: f64, rng: &mut Rng) -> f64 {
    let mut end = 0.0;
    let kind = shares.iter().position(|share| {
        end += share;
        place < end
    });
    kind.unwrap_or(shares.len() - 1) as f64 * apart + normal(rng)
}

fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0
}

/// Sums of squares found none of the boundaries with four bad hosts, and two groups of two fifths
/// none of those between three kinds.
#[test]
fn kinds_are_found_with_up_to_a_tenth_of_bad_values() {
    let mut rng = Rng::new(3);
    let shapes: [&[f64]; 4] =
        [&[0.6, 0.4], &[0.4, 0.3, 0.3], &[0.5, 0.3, 0.2], &[0.25, 0.25, 0.25, 0.25]];
    for shares in shapes {
        for bad in [0, 4, 20] {
            let found = (0..100).filter(|_| {
                let mut value = |at: usize| {
                    let place = ((at * 7 % 200) as f64 + 0.5) / 200.0;
                    let fault = if at < bad { 18.0 + 6.0 * rng.uniform() } else { 0.0 };
                    of_kinds(shares, 6.0, place, &mut rng) + fault
                };
                let values: Vec<f64> = (0..200).map(&mut value).collect();
                groups(&values, GROUPS_APART).len() == shares.len() - 1
            });
            let found = found.count();
            println!("{shares:?}, {bad} bad of 200: kinds found in {found} of 100");
            assert!(found >= 95, "{shares:?}, {bad}: {found}");
        }
    }
}

#[test]
fn values_of_one_kind_are_rarely_divided() {
    let mut rng = Rng::new(5);
    let even = |rng: &mut Rng| rng.uniform();
    let heavy = |rng: &mut Rng| normal(rng) / (rng.uniform() + 0.05);
    type Shape<'a> = (&'a str, &'a dyn Fn(&mut Rng) -> f64);
    let shapes: [Shape<'_>; 3] = [("normal", &normal), ("even", &even), ("heavy tails", &heavy)];
    for (name, draw) in shapes {
        for count in [10, 12, 15, 16, 30, 60, 200] {
            let (mut divided, mut further) = (0, 0);
            for _ in 0..300 {
                let values: Vec<f64> = (0..count).map(|_| draw(&mut rng)).collect();
                divided += u32::from(!groups(&values, GROUPS_APART).is_empty());
                further += u32::from(!groups(&values, 5.0).is_empty());
            }
            println!("{count} values, {name}: {divided} of 300 divided; at 5 deviations {further}");
            assert!(divided <= 9, "{count}, {name}: {divided}");
            assert!(count < 60 || further == 0, "{count}, {name}: {further} at 5 deviations");
        }
    }
}

#[test]
fn values_without_a_gap_and_few_values_have_no_boundary() {
    let even: Vec<f64> = (0..40).map(f64::from).collect();
    assert_eq!(groups(&even, GROUPS_APART), Vec::<f64>::new());
    assert_eq!(groups(&[1.0, 1.0, 9.0, 9.0], GROUPS_APART), Vec::<f64>::new(), "of two");
    assert_eq!(groups(&[], GROUPS_APART), Vec::<f64>::new());
    assert_eq!(groups(&[1.0; 40], GROUPS_APART), Vec::<f64>::new(), "all alike");
}
