//! Deterministic statistics against numpy and scipy (`reference/make.py`), to 1e-9.

use numalab_stats::{
    Alternative, Confidence, Draws, Estimate, Method, Resampling, Sample, benjamini_hochberg,
    bootstrap_bca, equivalence_paired, hodges_lehmann_interval, paired_permutation, percent_change,
    rank_sum, ratio_of_means, ratio_of_means_paired, shift_interval, signed_rank,
};
use serde::Deserialize;

const SIDES: [Alternative; 3] = [Alternative::TwoSided, Alternative::Less, Alternative::Greater];

#[derive(Deserialize)]
struct Reference {
    samples: Vec<Description>,
    signed_rank: Vec<OneSampleTest>,
    rank_sum: Vec<TwoSampleTest>,
    permutation: Vec<OneSampleTest>,
    shift: Vec<TwoSampleEffect>,
    hodges_lehmann: Vec<OneSampleEffect>,
    fieller: Vec<TwoSampleEffect>,
    equivalence: Vec<TwoOneSided>,
    p_values: Vec<f64>,
    benjamini_hochberg: Vec<f64>,
    bootstrap: Vec<Bootstrap>,
}

#[derive(Deserialize)]
struct Description {
    values: Vec<f64>,
    mean: f64,
    variance: f64,
    quantiles: Vec<[f64; 2]>,
}

#[derive(Deserialize)]
struct OneSampleTest {
    differences: Vec<f64>,
    statistic: Option<f64>,
    p: [f64; 3],
}

#[derive(Deserialize)]
struct TwoSampleTest {
    baseline: Vec<f64>,
    candidate: Vec<f64>,
    statistic: f64,
    p: [f64; 3],
}

#[derive(Deserialize)]
struct TwoSampleEffect {
    baseline: Vec<f64>,
    candidate: Vec<f64>,
    #[serde(default)]
    paired: bool,
    value: f64,
    interval: [f64; 2],
}

#[derive(Deserialize)]
struct OneSampleEffect {
    values: Vec<f64>,
    value: f64,
    interval: [f64; 2],
}

#[derive(Deserialize)]
struct TwoOneSided {
    values: Vec<f64>,
    bound: f64,
    p_not_below: f64,
    p_not_above: f64,
}

#[derive(Deserialize)]
struct Bootstrap {
    values: Vec<f64>,
    ends: Vec<(String, String, f64, f64)>,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("reference/reference.json")).unwrap()
}

fn sample(values: &[f64]) -> Sample {
    Sample::new(values).unwrap()
}

fn assert_close(found: f64, expected: f64, what: &str) {
    let error = (found - expected).abs() / expected.abs().max(1e-3);
    assert!(error < 1e-9, "{what}: {found} instead of {expected}");
}

fn assert_estimate(found: &Estimate, value: f64, interval: [f64; 2], what: &str) {
    assert_close(found.value, value, what);
    assert_close(found.interval.lo, interval[0], what);
    assert_close(found.interval.hi, interval[1], what);
}

#[test]
fn descriptions_agree_with_numpy() {
    for expected in reference().samples {
        let found = sample(&expected.values);
        assert_close(found.mean(), expected.mean, "mean");
        assert_close(found.variance(), expected.variance, "variance");
        assert_close(found.standard_deviation(), expected.variance.sqrt(), "deviation");
        for [probability, value] in expected.quantiles {
            assert_close(found.quantile(probability), value, "quantile");
        }
    }
}

#[test]
fn signed_rank_tests_agree_exact_tied_and_normal() {
    let mut methods = Vec::new();
    for expected in reference().signed_rank {
        for (side, p) in SIDES.into_iter().zip(expected.p) {
            let found = signed_rank(&sample(&expected.differences), side);
            assert_close(found.p, p, "signed rank p");
            assert_close(found.statistic, expected.statistic.unwrap(), "signed rank statistic");
            methods.push(found.method);
        }
    }
    assert!(methods.contains(&Method::Exact) && methods.contains(&Method::Normal));
}

#[test]
fn rank_sum_tests_agree_exact_tied_and_normal() {
    let mut methods = Vec::new();
    for expected in reference().rank_sum {
        for (side, p) in SIDES.into_iter().zip(expected.p) {
            let found = rank_sum(&sample(&expected.baseline), &sample(&expected.candidate), side);
            assert_close(found.p, p, "rank sum p");
            assert_close(found.statistic, expected.statistic, "rank sum statistic");
            methods.push(found.method);
        }
    }
    assert!(methods.contains(&Method::Exact) && methods.contains(&Method::Normal));
}

#[test]
fn paired_permutation_tests_agree() {
    let draws = Draws { draws: 1, seed: 0 };
    for expected in reference().permutation {
        for (side, p) in SIDES.into_iter().zip(expected.p) {
            let found = paired_permutation(&sample(&expected.differences), side, &draws);
            assert_eq!(found.method, Method::Exact);
            assert_close(found.p, p, "permutation p");
        }
    }
}

#[test]
fn hodges_lehmann_effects_agree() {
    for expected in reference().hodges_lehmann {
        let found = hodges_lehmann_interval(&sample(&expected.values), Confidence::P95).unwrap();
        assert_estimate(&found, expected.value, expected.interval, "one sample");
    }
    for expected in reference().shift {
        let (baseline, candidate) = (sample(&expected.baseline), sample(&expected.candidate));
        let found = shift_interval(&baseline, &candidate, Confidence::P95).unwrap();
        assert_estimate(&found, expected.value, expected.interval, "shift");
    }
}

#[test]
fn ratios_of_means_agree_with_a_root_search() {
    for expected in reference().fieller {
        let (baseline, candidate) = (sample(&expected.baseline), sample(&expected.candidate));
        let of = if expected.paired { ratio_of_means_paired } else { ratio_of_means };
        let found = of(&baseline, &candidate, Confidence::P95).unwrap();
        assert_estimate(&found, expected.value, expected.interval, "ratio of means");
    }
}

#[test]
fn equivalence_tests_agree() {
    for expected in reference().equivalence {
        let found = equivalence_paired(&sample(&expected.values), expected.bound);
        assert_close(found.p_not_below, expected.p_not_below, "not below");
        assert_close(found.p_not_above, expected.p_not_above, "not above");
    }
}

#[test]
fn false_discovery_rates_agree() {
    let reference = reference();
    let found = benjamini_hochberg(&reference.p_values);
    for (found, expected) in found.iter().zip(&reference.benjamini_hochberg) {
        assert_close(*found, *expected, "Benjamini-Hochberg");
    }
}

/// Ends of intervals from 20,000 resamples vary by a few hundredths of the interval's width.
#[test]
fn bootstrap_ends_agree_within_their_monte_carlo_error() {
    let resampling = Resampling { resamples: 20_000, ..Resampling::new(11) };
    for expected in reference().bootstrap {
        let values = sample(&expected.values);
        let bca = expected.ends.into_iter().filter(|(_, method, ..)| method == "BCa");
        for (statistic, method, lo, hi) in bca {
            let of = |values: &[f64]| {
                let drawn = sample(values);
                if statistic == "mean" { drawn.mean() } else { drawn.median() }
            };
            let found = bootstrap_bca(&values, of, &resampling);
            let allowed = 0.04 * (hi - lo);
            let what = format!("{statistic} {method}: {found:?}, not {lo} to {hi}");
            assert!((found.interval.lo - lo).abs() < allowed, "{what}");
            assert!((found.interval.hi - hi).abs() < allowed, "{what}");
        }
    }
}

/// The forty published run times: 9.201 s and 9.926 s on average and "7.88 % speedup".
#[test]
fn the_published_speedup_of_the_frame_allocator_is_7_88_percent_with_its_interval() {
    let reference = reference();
    let (aware, unaware) =
        (sample(&reference.samples[0].values), sample(&reference.samples[1].values));
    assert_eq!((aware.len(), unaware.len()), (20, 20));
    let ratio = ratio_of_means(&aware, &unaware, Confidence::P95).unwrap();
    assert_eq!(format!("{:.2}", 100.0 * (ratio.value - 1.0)), "7.88");
    assert!(ratio.interval.lo > 1.03 && ratio.interval.hi < 1.13, "{ratio:?}");
    let logs = (aware.logs().unwrap(), unaware.logs().unwrap());
    let effect = shift_interval(&logs.0, &logs.1, Confidence::P95).unwrap();
    assert!((7.0..9.0).contains(&percent_change(effect.value)), "{effect:?}");
    assert!(effect.interval.lo > 0.0);
}
