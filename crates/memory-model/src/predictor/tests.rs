use super::*;

/// Returns the mispredictions among the last thousand branches at an address.
fn missed(direction: impl Fn(u64) -> bool) -> usize {
    let mut predictor = Predictor::new(None);
    let wrong: Vec<bool> =
        (0..20_000).map(|at| predictor.misses(0x40_1000, direction(at))).collect();
    wrong[19_000..].iter().filter(|wrong| **wrong).count()
}

fn random(at: u64) -> u64 {
    let mixed = (at ^ 0x1234_5678).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
}

#[test]
fn repeating_branches_are_predicted_and_random_ones_half_the_time() {
    assert_eq!(missed(|_| true), 0);
    assert!(missed(|at| at % 7 < 3) < 5);
    assert!(missed(|at| at % 60 == 0) < 8, "a loop of sixty rounds");
    assert!((400..600).contains(&missed(|at| random(at).is_multiple_of(2))));
    assert!((50..130).contains(&missed(|at| random(at).is_multiple_of(16))), "rare ones");
}

#[test]
fn thousands_of_random_branches_are_learnt_when_they_are_repeated_fewer_by_zen_1() {
    let missed = |family, count: u64, rounds| {
        let mut predictor = Predictor::new(family);
        let mut round = || {
            let wrong = (0..count).filter(|at| {
                let wrong = predictor.misses(0x1000, random(*at).is_multiple_of(2));
                predictor.misses(0x1010, true);
                wrong
            });
            100 * wrong.count() as u64 / count
        };
        (0..rounds).map(|_| round()).last().unwrap()
    };
    let (few, many) = (missed(None, 8_000, 12), missed(None, 60_000, 4));
    assert!(few < 8 && many > 40, "{few} % and {many} %");
    let [few, many] = [1_500, 8_000].map(|count| missed(Some(Family::Zen1), count, 12));
    assert!(few < 15 && many > 20, "{few} % and {many} % on a Zen 1");
}

#[test]
fn zen_4_learns_twice_as_many_random_branches_as_zen_3_and_half_of_a_few_at_once() {
    let missed = |family, count: u64| -> Vec<u64> {
        let mut predictor = Predictor::new(Some(family));
        let mut round = || {
            let wrong = (0..count).filter(|at| {
                let wrong = predictor.misses(0x1000, random(*at).is_multiple_of(2));
                predictor.misses(0x1010, true);
                wrong
            });
            200 * wrong.count() as u64 / count
        };
        (0..15).map(|_| round()).collect()
    };
    let [larger, smaller] = [Family::Zen4, Family::Zen3].map(|of| missed(of, 32_000)[14]);
    assert!(larger < 25 && smaller > 50, "{larger} % and {smaller} %");
    let [soon, late] = [Family::Zen4, Family::Zen3].map(|of| missed(of, 8_000)[1]);
    assert!(soon < 60 && late > 80, "{soon} % and {late} % in the second round");
}

#[test]
fn zen_4_learns_a_search_in_a_text_of_random_letters_in_a_few_rounds_unless_it_is_too_long() {
    let wrong = |letters: u64| -> Vec<usize> {
        let mut predictor = Predictor::new(Some(Family::Zen4));
        let mut at_letter = |at: u64| {
            let same = (0..4).take_while(|more| random(at + more) % 4 == *more).count();
            let mut wrong = usize::from(predictor.misses(0x1000, same > 0));
            for more in 1..=same {
                wrong += usize::from(predictor.misses(0x1010, false));
                wrong += usize::from(predictor.misses(0x1000, same > more));
            }
            wrong
        };
        (0..6).map(|_| (0..letters).map(&mut at_letter).sum()).collect()
    };
    let [short, long] = [15_000, 120_000].map(wrong);
    assert!(short[2] < short[0] / 5 && long[5] > long[0] * 3 / 4, "{short:?} and {long:?}");
}

#[test]
fn a_branch_is_predicted_from_hundreds_of_earlier_branches_where_fewer_are_ambiguous() {
    let mut predictor = Predictor::new(Some(Family::Zen4));
    // One of six parts of forty branches each, identified by its first branch.
    let mut round = || -> usize {
        let parts = (0..2_000).map(|part| random(part) % 6);
        let branches = |part| (0..40).map(move |at| (0x1000 + at * 4, at == part || at > 20));
        let wrong = |(address, taken): (u64, bool)| usize::from(predictor.misses(address, taken));
        parts.flat_map(branches).map(wrong).sum()
    };
    let wrong: Vec<usize> = (0..15).map(|_| round()).collect();
    assert!(wrong[14] < wrong[0] / 2, "{wrong:?}");
}

#[test]
fn a_branch_correlated_with_an_earlier_one_is_predicted() {
    let mut predictor = Predictor::new(None);
    let mut wrong = 0;
    for at in 0..20_000 {
        let taken = random(at).is_multiple_of(2);
        predictor.misses(0x1000, taken);
        wrong += u32::from(predictor.misses(0x2000, taken) && at >= 19_000);
    }
    assert!(wrong < 30, "{wrong}");
}

#[test]
fn targets_that_repeat_after_a_history_are_known_and_known_late_if_they_vary() {
    let of = |family, target: &dyn Fn(u64) -> u64| {
        let mut predictor = Predictor::new(family);
        let all: Vec<Prediction> =
            (0..40_000).map(|at| predictor.target(0x1000, target(at))).collect();
        let count = |one| all[39_000..].iter().filter(|other| **other == one).count();
        [Prediction::Known, Prediction::Late, Prediction::Wrong].map(count)
    };
    assert_eq!(of(None, &|_| 0x5000), [1000, 0, 0]);
    assert!(of(None, &|at| 0x5000 + at % 5 * 64)[1] > 980);
    assert!(of(None, &|at| 0x5000 + random(at) % 8 * 64)[2] > 700);
}

#[test]
fn a_long_loop_changes_no_later_prediction() {
    let (mut one, mut other) = (Predictor::new(None), Predictor::new(None));
    let mut wrong = [0, 0];
    for at in 0..100_000_u64 {
        let taken = at % 2000 < 1500 || !random(at).is_multiple_of(3);
        let address = 0x1000 + at / 500 % 3 * 64;
        wrong[0] += u32::from(one.misses(address, taken));
        other.steady.ends();
        wrong[1] += u32::from(other.misses(address, taken));
    }
    assert_eq!(wrong[0], wrong[1]);
    assert!(one.tables == other.tables && one.base == other.base);
}

#[test]
fn zen_tells_long_code_apart_by_fewer_branches() {
    let wrong = |family| {
        let mut predictor = Predictor::new(family);
        let mut wrong = |at: u64| {
            predictor.misses(0x10, true);
            predictor.misses(0x20, false);
            let target = 0x5000 + random(at % 200) % 2 * 48;
            predictor.target(0x1000, target) == Prediction::Wrong
        };
        (0..20_000).filter(|at| wrong(*at) && *at >= 19_000).count()
    };
    let [other, zen] = [None, Some(Family::Zen3)].map(wrong);
    assert!(other < 150 && zen > 200, "{other} and {zen}");
}

#[test]
fn zen_4_predicts_the_last_target_of_a_call_unless_branches_tell_its_rounds_apart() {
    let wrong = |family, is_call, branches: bool| {
        let mut predictor = Predictor::new(Some(family));
        let mut wrong = |at: u64| {
            predictor.misses(0x10, true);
            if branches {
                predictor.misses(0x20, at.is_multiple_of(2));
            }
            let target = 0x5000 + at % 2 * 48;
            let leads = if is_call { Predictor::called } else { Predictor::target };
            leads(&mut predictor, 0x1000, target) == Prediction::Wrong
        };
        (0..2_000).filter(|at| wrong(*at) && *at >= 1_000).count()
    };
    assert_eq!(wrong(Family::Zen4, true, false), 1_000);
    assert_eq!(wrong(Family::Zen4, true, true), 0);
    assert_eq!(wrong(Family::Zen4, false, false), 0, "of a jump");
    assert_eq!(wrong(Family::Zen3, true, false), 0);
}
