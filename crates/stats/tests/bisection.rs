//! The rate at which a bisection decided while samples come in names a wrong state, and the number
//! of states it takes, over thousands of simulated searches.

mod process;

use numalab_stats::{Bisection, Confidence, LookResult, Rng, ThresholdSide, ThresholdTest, score};
use process::Noise;

/// Number of states that could be the first bad one.
const STATES: usize = 24;
const SEARCHES: u64 = 2_000;
const MARGIN: f64 = 0.01;

/// A history in which the states from `first_bad` on take `effect` (a log ratio) longer.
struct History {
    first_bad: Option<usize>,
    effect: f64,
    spread: f64,
    noise: Noise,
    rng: Rng,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    First(usize),
    NoDifference,
    Undecided,
}

impl History {
    fn sample(&mut self, state: usize) -> f64 {
        let is_bad = self.first_bad.is_some_and(|first| state >= first);
        let effect = if is_bad { self.effect } else { 0.0 };
        100.0 * (effect + self.spread * self.noise.draw(&mut self.rng)).exp()
    }

    /// Looks until a test has decided.
    fn decide(
        &mut self,
        test: ThresholdTest,
        mut value: impl FnMut(&mut Self, usize) -> f64,
    ) -> LookResult {
        let mut values = Vec::new();
        let mut wanted = test.first_look();
        loop {
            while values.len() < wanted {
                let next = value(self, values.len());
                values.push(next);
            }
            match test.look(&values) {
                LookResult::Continue { look_at } => wanted = look_at,
                decided => return decided,
            }
        }
    }

    /// Searches states 1 to [`STATES`], the last of which is known as bad; state 0 is good. Also
    /// returns the number of states that were judged.
    fn search(&mut self, confidence: Confidence) -> (Found, usize) {
        let bisection = Bisection::new(confidence, STATES, 48);
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        let ends = bisection.ends(MARGIN).unwrap();
        let looked = self.decide(ends, |history, _| {
            good.push(history.sample(0));
            bad.push(history.sample(STATES));
            (bad[bad.len() - 1] / good[good.len() - 1]).ln()
        });
        match looked {
            LookResult::Decided(ThresholdSide::Above) => {}
            LookResult::Decided(ThresholdSide::Below) => return (Found::NoDifference, 0),
            _ => return (Found::Undecided, 0),
        }
        let (mut last_good, mut first_bad, mut judged) = (0, STATES, 0);
        while first_bad - last_good > 1 {
            let middle = usize::midpoint(last_good, first_bad);
            judged += 1;
            let looked = self.decide(bisection.state().unwrap(), |history, nth| {
                if nth == good.len() {
                    good.push(history.sample(0));
                    bad.push(history.sample(STATES));
                }
                score(good[nth], history.sample(middle), bad[nth])
            });
            match looked {
                LookResult::Decided(ThresholdSide::Above) => first_bad = middle,
                LookResult::Decided(ThresholdSide::Below) => last_good = middle,
                _ => return (Found::Undecided, judged),
            }
        }
        (Found::First(first_bad), judged)
    }
}

/// Searches with the change at every place in turn. Returns the numbers of correct and of wrong
/// results, and the largest number of states judged.
fn searched(effect: f64, spread: f64, noise: Noise, confidence: Confidence) -> (u64, u64, usize) {
    let (mut right, mut wrong, mut most) = (0, 0, 0);
    for seed in 0..SEARCHES {
        let first_bad = (effect > 0.0).then(|| 1 + usize::try_from(seed).unwrap() % STATES);
        let mut history = History { first_bad, effect, spread, noise, rng: Rng::new(seed) };
        let (found, judged) = history.search(confidence);
        most = most.max(judged);
        match found {
            Found::First(state) if Some(state) == first_bad => right += 1,
            Found::First(_) => wrong += 1,
            Found::NoDifference | Found::Undecided => {}
        }
    }
    println!(
        "effect {effect}, spread {spread}, {noise:?}, {}: {right} found, {wrong} wrong, {most} judged",
        confidence.get()
    );
    (right, wrong, most)
}

/// Returns a count three standard deviations above the allowed one.
fn most_wrong(confidence: Confidence) -> u64 {
    let mean = confidence.alpha() * SEARCHES as f64;
    (0..SEARCHES).find(|&n| n as f64 >= mean + 3.0 * mean.sqrt()).unwrap()
}

#[test]
fn a_change_four_times_the_noise_is_found_in_the_number_of_states_that_halving_needs() {
    for noise in [Noise::Normal, Noise::HeavyTailed, Noise::Skewed] {
        let (right, wrong, most) = searched(0.04, 0.01, noise, Confidence::P99);
        assert!(wrong <= most_wrong(Confidence::P99), "{noise:?}: {wrong} of {SEARCHES} are wrong");
        assert!(right * 100 >= SEARCHES * 97, "{noise:?}: {right} of {SEARCHES} are found");
        assert!(most <= 5, "{noise:?}: {most} states were judged");
    }
}

#[test]
fn a_wrong_state_is_named_no_more_often_than_the_level_allows() {
    for noise in Noise::ALL {
        let (_, wrong, _) = searched(0.02, 0.02, noise, Confidence::P95);
        assert!(wrong <= most_wrong(Confidence::P95), "{noise:?}: {wrong} of {SEARCHES} are wrong");
    }
}

#[test]
fn nothing_is_named_where_nothing_changed() {
    for noise in Noise::ALL {
        let (_, named, _) = searched(0.0, 0.02, noise, Confidence::P95);
        assert!(named <= most_wrong(Confidence::P95), "{noise:?}: {named} of {SEARCHES} are named");
    }
}

#[test]
fn samples_without_noise_need_three_of_each_state() {
    let mut history = History {
        first_bad: Some(7),
        effect: 0.02,
        spread: 0.0,
        noise: Noise::Normal,
        rng: Rng::new(1),
    };
    assert_eq!(history.search(Confidence::P99).0, Found::First(7));
}
