//! Comparisons of two files of numbers.

use numalab_page::Style;
use numalab_results::Report;
use numalab_results::samples::SampleComparison;
use numalab_stats::{Direction, Error, Rng, Verdict};

fn compared(values: [Vec<f64>; 2], direction: Direction, margin: f64) -> SampleComparison {
    let names = ["before", "after"].map(str::to_owned);
    SampleComparison::of(names, values, "ms".to_owned(), direction, margin).unwrap()
}

/// Returns values around `middle` in no order; every `far`th value is `times` as large.
fn values(count: usize, middle: f64, far: usize, times: f64) -> Vec<f64> {
    let mut rng = Rng::new(7);
    let value = |at: usize| {
        let value = middle * (1.0 + 0.01 * rng.uniform());
        if far > 0 && at % far == far - 1 { times * value } else { value }
    };
    let mut values: Vec<f64> = (0..count).map(value).collect();
    rng.shuffle(&mut values);
    values
}

#[test]
fn a_slower_candidate_is_worse_and_a_lower_rate_too() {
    let [fast, slow] = [values(30, 100.0, 0, 1.0), values(30, 110.0, 0, 1.0)];
    let times = compared([fast.clone(), slow.clone()], Direction::LowerIsBetter, 2.0);
    assert!(times.is_worse() && times.found.verdict == Verdict::Worse, "{times:?}");
    let rates = compared([fast.clone(), slow.clone()], Direction::HigherIsBetter, 2.0);
    assert!(!rates.is_worse() && rates.found.verdict == Verdict::Better, "{rates:?}");
    let turned = compared([slow.clone(), fast.clone()], Direction::HigherIsBetter, 2.0);
    assert!(turned.is_worse());
    assert_eq!(turned.names, ["before", "after"].map(str::to_owned));
    assert_eq!((turned.unit.as_str(), turned.baseline.len()), ("ms", 30));
}

/// The interval went from -100 to 1.5e14 %, and the drift had p = 0.00.
#[test]
fn two_sorted_files_have_no_interval_and_no_p_of_zero() {
    let sorted: Vec<f64> = (1..=10).map(f64::from).collect();
    let page = compared([sorted.clone(), sorted], Direction::LowerIsBetter, 2.0).page();
    let page = page.terminal(Style::Plain);
    let effect = page.lines().find(|line| line.contains("Hodges-Lehmann effect, in")).unwrap();
    assert!(effect.ends_with("  –"), "{effect}");
    assert!(page.contains("values rise in the order taken (p < 1e-12"), "{page}");
    assert!(!page.contains("p = 0.00"), "{page}");
}

/// The -1 of a failed run was the best of all times, and nothing said so.
#[test]
fn zero_and_minus_one_among_times_are_pointed_out() {
    let times = values(30, 100.0, 0, 1.0);
    let failed = [values(28, 100.0, 0, 1.0), vec![-1.0, 0.0]].concat();
    let page = |values: &Vec<f64>| {
        let page = compared([times.clone(), values.clone()], Direction::LowerIsBetter, 2.0).page();
        page.terminal(Style::Plain).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = "Values of zero or less 2 of 30 values in after, far below the others.";
    assert!(page(&failed).contains(said), "{}", page(&failed));
    let differences: Vec<f64> = (-9..21).map(f64::from).collect();
    assert!(!page(&differences).contains("zero or less"));
    assert!(!page(&times).contains("zero or less"));
}

#[test]
fn a_loss_within_the_margin_is_not_called_worse() {
    let [fast, slow] = [values(60, 100.0, 0, 1.0), values(60, 101.5, 0, 1.0)];
    let within = compared([fast.clone(), slow.clone()], Direction::LowerIsBetter, 5.0);
    assert!(!within.is_worse(), "{:?}", within.found);
    assert!(compared([fast, slow], Direction::LowerIsBetter, 0.5).is_worse());
}

#[test]
fn the_gain_of_means_of_times_is_the_baseline_over_the_candidate() {
    let [slow, fast] = [values(30, 120.0, 0, 1.0), values(30, 100.0, 0, 1.0)];
    let times = compared([slow.clone(), fast.clone()], Direction::LowerIsBetter, 2.0);
    let gain = times.gain_of_means().unwrap();
    assert!((gain.value - 20.0).abs() < 0.5, "{gain:?}");
    assert!(gain.interval.lo < gain.value && gain.value < gain.interval.hi, "{gain:?}");
    let rates = compared([slow, fast], Direction::HigherIsBetter, 2.0);
    let loss = rates.gain_of_means().unwrap();
    assert!((loss.value + 100.0 / 6.0).abs() < 0.5, "{loss:?}");
}

#[test]
fn values_below_zero_are_compared_by_differences_and_have_no_gain_of_means() {
    let below = |values: Vec<f64>| values.into_iter().map(|value| -value).collect::<Vec<f64>>();
    let [near, far] = [values(4000, 100.0, 0, 1.0), values(4000, 120.0, 50, 3.0)].map(below);
    let deeper = compared([near, far], Direction::HigherIsBetter, 2.0);
    assert_eq!(deeper.found.verdict, Verdict::Worse);
    let change = deeper.found.percent().unwrap();
    assert!((change + 20.0).abs() < 1.0, "{change}");
    assert_eq!(deeper.gain_of_means(), None);
    assert!(deeper.is_tail_worse(), "{:?}", deeper.tail());
    let page = deeper.page().markdown();
    assert!(page.contains("Hodges-Lehmann effect, a difference"), "{page}");
    assert!(!page.contains("logarithms"), "{page}");
}

#[test]
fn values_and_margins_that_are_not_numbers_are_refused() {
    let of = |values: [Vec<f64>; 2], margin| {
        let names = ["a", "b"].map(str::to_owned);
        SampleComparison::of(names, values, String::new(), Direction::LowerIsBetter, margin)
            .map(|_| ())
    };
    assert!(matches!(of([vec![], vec![1.0]], 2.0), Err(Error::Empty)));
    assert!(of([vec![1.0], vec![f64::NAN]], 2.0).is_err());
    assert!(of([vec![1.0], vec![2.0]], -1.0).is_err());
    assert!(of([vec![1.0], vec![2.0]], 1001.0).is_err());
    assert!(of([vec![1.0], vec![2.0]], 0.0).is_ok(), "no change is admitted");
    assert!(of([vec![1.0], vec![2.0]], 2.0).is_ok(), "two values can be set side by side");
}

#[test]
fn few_values_have_no_tail() {
    let few = compared(
        [values(200, 1.0, 0, 1.0), values(200, 1.0, 0, 1.0)],
        Direction::LowerIsBetter,
        2.0,
    );
    assert!(few.extremes.is_empty() && few.tail().is_none());
    let uneven = compared(
        [values(200, 1.0, 0, 1.0), values(9000, 1.0, 0, 1.0)],
        Direction::LowerIsBetter,
        2.0,
    );
    assert!(uneven.extremes.is_empty(), "the smaller sample decides");
}

#[test]
fn stalls_of_a_few_in_a_thousand_are_named_at_the_farthest_percentile_that_shows_them() {
    let calm = values(6000, 100.0, 0, 1.0);
    let stalls = values(6000, 100.0, 50, 8.0);
    let found = compared([calm.clone(), stalls.clone()], Direction::LowerIsBetter, 2.0);
    let percentiles: Vec<f64> = found.extremes.iter().map(|of| of.percentile).collect();
    assert_eq!(percentiles, [99.0, 99.9]);
    let extreme = found.tail().expect("it is far off");
    assert!(extreme.is_shown && extreme.change_percent > 600.0, "{extreme:?}");
    assert_eq!(extreme.percentile, 99.9, "{extreme:?}");
    assert!(!found.is_worse(), "medians say nothing of it");
    let same = compared([calm.clone(), calm], Direction::LowerIsBetter, 2.0);
    assert_eq!(same.tail(), None);
}

#[test]
fn a_tail_of_rates_is_the_low_one() {
    let calm = values(6000, 100.0, 0, 1.0);
    let stalls = values(6000, 100.0, 50, 0.1);
    let found = compared([calm, stalls], Direction::HigherIsBetter, 2.0);
    let extreme = found.tail().expect("it is far off");
    assert!(extreme.change_percent < -80.0 && extreme.values[1] < 11.0, "{extreme:?}");
}

#[test]
fn a_tail_within_the_margin_is_not_named() {
    let [calm, other] = [values(6000, 100.0, 0, 1.0), values(6000, 100.0, 50, 1.05)];
    let narrow = compared([calm.clone(), other.clone()], Direction::LowerIsBetter, 2.0);
    assert!(narrow.tail().is_some(), "{:?}", narrow.extremes);
    let wide = compared([calm, other], Direction::LowerIsBetter, 10.0);
    assert_eq!(wide.tail(), None, "{:?}", wide.extremes);
}

#[test]
fn two_modes_are_named_where_they_are_farther_apart_than_the_margin() {
    let mixed = |apart: f64| {
        let mut rng = Rng::new(23);
        let mut both = [values(300, 100.0, 0, 1.0), values(100, 100.0 * apart, 0, 1.0)].concat();
        rng.shuffle(&mut both);
        both
    };
    let one = || values(400, 100.0, 0, 1.0);
    let found = compared([one(), mixed(1.4)], Direction::LowerIsBetter, 2.0);
    let [None, Some(modes)] = &found.modes else { panic!("{:?}", found.modes) };
    assert!((modes.centres[0] - 100.5).abs() < 0.5 && (modes.centres[1] - 140.7).abs() < 0.7);
    assert_eq!(modes.upper_share, 0.25);
    let wide = compared([one(), mixed(1.4)], Direction::LowerIsBetter, 50.0);
    assert_eq!(wide.modes, [None, None], "within the margin");
}
