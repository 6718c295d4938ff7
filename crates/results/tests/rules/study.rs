//! Findings from samples in blocks: effects, looks, the best treatment, two runs compared.

use numalab_record::Fact;
use numalab_record::study::{
    Arm, EndReason, GuestPlace, JournalEntry, Quantity, Reading, StudyDocument,
};
use numalab_results::compare::{Answer, Tolerance};
use numalab_results::study::document::StudyComparison;
use numalab_results::study::{
    Effect, EffectKind, OwnDifference, StudyObservation, StudyPair, StudySummary, Subject,
};
use numalab_stats::{Ground, Rng, Verdict};

use crate::study_lab::{began, choice, disturbed, document, ended, jitter, run, sample, scale};

/// Returns a study of two levels, the second `factor` times as slow, in 12 blocks.
fn simple(factor: f64) -> StudyDocument {
    let study = run(vec![choice("v", &["a", "b"])], 12);
    document(study, |_, treatment| if treatment == 1 { factor } else { 1.0 })
}

fn kinds(summary: &StudySummary<'_>) -> Vec<usize> {
    EffectKind::ALL.map(|kind| summary.effects(kind).count()).to_vec()
}

#[test]
fn a_factor_of_two_levels_has_one_effect_with_its_sides_and_verdict() {
    let of = simple(1.2);
    let summary = StudySummary::of(&of);
    let (subject, effect) = summary.answers().next().expect("an answer");
    assert_eq!((subject.title().as_str(), subject.blocks()), ("w time", 12));
    assert_eq!((effect.sides, effect.found.verdict), (Some((0, 1)), Verdict::Worse));
    assert!((effect.found.percent().unwrap() - 20.0).abs() < 0.5, "{effect:?}");
    let change = &effect.change.changed[0];
    assert_eq!((&*change.factor, &*change.from, &*change.to), ("v", "a", "b"));
    assert_eq!(effect.differences.len(), 12);
    assert!(effect.permutation.p < 0.01 && effect.bootstrap.interval.contains(effect.found.effect));
    assert!(summary.any_worse() && summary.worse().count() == 1);
    assert!(!StudySummary::of(&simple(0.8)).any_worse(), "it is better");
    assert!(!StudySummary::of(&simple(1.01)).any_worse(), "within the margin of 2 %");
}

#[test]
fn two_factors_have_effects_of_all_kinds_but_trends() {
    let factors = vec![choice("v", &["a", "b"]), choice("w", &["x", "y", "z"])];
    let of = document(run(factors, 8), |_, treatment| 1.0 + treatment as f64);
    // Main: b, y, z. Within: b at three levels, y and z at two. Together: b with y and with z.
    assert_eq!(kinds(&StudySummary::of(&of)), [3, 7, 2, 2, 0]);
    let scaled = vec![choice("v", &["a", "b"]), scale("guests", &[1.0, 2.0, 4.0])];
    let of = document(run(scaled, 8), |_, treatment| 1.0 + treatment as f64);
    // The trend of the scale, and that of the change with it; no levels of a scale are compared.
    assert_eq!(kinds(&StudySummary::of(&of)), [1, 3, 0, 0, 2]);
    let alone =
        document(run(vec![scale("n", &[1.0, 2.0])], 8), |_, treatment| 1.0 + treatment as f64);
    let summary = StudySummary::of(&alone);
    assert_eq!(kinds(&summary), [0, 0, 0, 0, 1]);
    assert_eq!(summary.answers().next().unwrap().1.kind, EffectKind::Trend);
}

fn two_by_two(value: impl Fn(usize, usize) -> f64) -> StudyDocument {
    document(run(vec![choice("v", &["a", "b"]), choice("w", &["x", "y"])], 12), value)
}

/// When each kind of effect had the whole error, 6 to 10 % of such studies found a difference.
#[test]
fn a_study_of_two_factors_in_which_nothing_differs_finds_a_difference_in_5_percent() {
    let long = std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1");
    let studies = if long { 2_000 } else { 200 };
    let mut rng = Rng::new(5);
    let found = (0..studies).filter(|_| {
        let even = |rng: &mut Rng| 0.05 * (rng.uniform() + rng.uniform() + rng.uniform());
        let noise: Vec<f64> = (0..48).map(|_| even(&mut rng).exp()).collect();
        let of = two_by_two(|block, treatment| noise[4 * block + treatment]);
        let summary = StudySummary::of(&of);
        let mut effects = summary.subjects.iter().flat_map(|subject| &subject.effects);
        effects.any(|effect| matches!(effect.found.verdict, Verdict::Better | Verdict::Worse))
    });
    let found = found.count() as f64 / f64::from(studies);
    println!("two factors without effects: {:.1} % find one", 100.0 * found);
    // The simulation's own standard error is allowed.
    assert!(found <= 0.05 + (0.05 * 0.95 / f64::from(studies)).sqrt(), "{found}");
}

#[test]
fn an_effect_within_a_level_counts_if_its_factor_or_an_interaction_has_one() {
    // b is slower with x, and varies with y by more than any difference, or not at all.
    let with = |spread: f64| {
        let of = two_by_two(|block, treatment| match treatment {
            2 => 1.05,
            3 => 1.0 + spread * (block as f64 * 2.4).sin(),
            _ => 1.0,
        });
        let summary = StudySummary::of(&of);
        let found = |kind| summary.effects(kind).next().expect("two factors").1.found.clone();
        (found(EffectKind::Main).verdict, found(EffectKind::Within))
    };
    let (main, within) = with(0.0);
    assert_eq!((main, within.verdict), (Verdict::Worse, Verdict::Worse));
    let (main, within) = with(0.5);
    assert!(matches!(main, Verdict::Inconclusive { .. }) && within.difference.p < 0.001);
    assert_eq!(within.ground, Ground::Gated);
}

#[test]
fn treatments_that_are_not_those_of_the_factors_are_not_compared() {
    let mut of = simple(1.2);
    of.run.factors[0].levels.push("c".to_owned());
    let summary = StudySummary::of(&of);
    assert_eq!(summary.answers().count(), 0);
    let what: Vec<_> = summary.findings().into_iter().map(|of| of.what).collect();
    assert_eq!(what[0], StudyObservation::Unfinished);
}

#[test]
fn each_session_that_ended_and_was_gone_on_with_is_a_look_that_narrows_the_level() {
    let with = |reasons: &[EndReason]| {
        let mut of = simple(1.2);
        for (at, reason) in reasons.iter().enumerate() {
            of.journal.insert(3 * (at + 1), ended(reason.clone()));
        }
        let summary = StudySummary::of(&of);
        (summary.looks, summary.confidence.get())
    };
    let (looks, level) = with(&[]);
    assert!(looks == 1 && level > 0.95, "a study may be gone on with: {level}");
    let (looks, narrower) = with(&[EndReason::BudgetSpent]);
    assert!(looks == 2 && narrower > level, "{narrower}");
    assert_eq!(with(&[EndReason::BudgetSpent, EndReason::Interrupted]).0, 3);
    assert_eq!(with(&[EndReason::Failed("killed".to_owned())]).0, 1, "it printed nothing");
}

/// With the level of the present look, a study resumed for the blocks it needed would need more
/// again.
#[test]
fn the_blocks_that_are_needed_are_those_of_the_next_look() {
    let of_blocks = |blocks: usize| {
        let study = run(vec![choice("v", &["a", "b"])], blocks);
        document(study, |_, treatment| if treatment == 1 { 1.2 } else { 1.0 })
    };
    let mut of = of_blocks(4);
    let needed = |of: &StudyDocument| {
        StudySummary::of(of).answers().next().map(|(_, effect)| effect.found.ground)
    };
    of.journal.retain(|entry| !matches!(entry, JournalEntry::Ended { .. }));
    assert_eq!(needed(&of), Some(Ground::TooFew { needed: 6 }), "the session goes on");
    of.journal.push(ended(EndReason::Done));
    assert_eq!(needed(&of), Some(Ground::TooFew { needed: 8 }));
    let added = of_blocks(8).journal.into_iter().filter(|entry| match entry {
        JournalEntry::Sample(sample) => sample.block >= 4,
        _ => false,
    });
    of.journal.extend(added);
    assert_eq!(StudySummary::of(&of).looks, 2);
    assert_eq!(needed(&of), Some(Ground::Tested), "eight blocks suffice at the second look");
}

/// Adds the rate, a metric for which more is better.
fn with_rate(mut of: StudyDocument) -> StudyDocument {
    for entry in &mut of.journal {
        let JournalEntry::Sample(sample) = entry else { continue };
        let value = 10.0 / sample.observation.readings[0].value;
        let quantity = Quantity::higher("rate", "1/s");
        sample.observation.readings.push(Reading { quantity, value });
    }
    of
}

#[test]
fn the_primary_metric_comes_first_and_facts_are_shown_and_not_tested() {
    let mut of = with_rate(simple(1.2));
    let titles = |of: &StudyDocument| -> Vec<(String, usize)> {
        let summary = StudySummary::of(of);
        summary.subjects.iter().map(|of| (of.title(), of.effects.len())).collect()
    };
    let row = |title: &str, effects| (title.to_owned(), effects);
    assert_eq!(titles(&of), [row("w time", 1), row("w rate", 1)]);
    of.run.rules.primary = Some("w.rate".to_owned());
    assert_eq!(titles(&of), [row("w rate", 1), row("w time", 1)]);
    of.run.rules.facts.insert("w.time".to_owned());
    assert_eq!(titles(&of), [row("w rate", 1), row("w time", 0)]);
    let summary = StudySummary::of(&of);
    assert!(summary.subjects[1].is_fact && summary.subjects[1].aa.is_none());
    assert_eq!(summary.asked().map(|of| of.title()), Some("w rate".to_owned()));
}

#[test]
fn a_study_names_the_obstacle_to_an_answer() {
    let first = |of: &StudyDocument| StudySummary::of(of).findings()[0].what.clone();
    let mut of = with_rate(simple(1.2));
    assert_eq!(first(&of), StudyObservation::NoPrimary);
    of.run.rules.primary = Some("w.other".to_owned());
    let primary = "w.other".to_owned();
    assert_eq!(first(&of), StudyObservation::PrimaryWithoutValues { primary });
    of.run.rules.primary = Some("w.time".to_owned());
    let disturbed = StudyObservation::Disturbed { samples: 24, disturbed: 0, is_repeated: true };
    assert_eq!(first(&of), disturbed, "it has one");
    of.journal.truncate(2);
    assert_eq!(first(&of), StudyObservation::Unfinished);
}

#[test]
fn an_unfinished_study_reports_its_progress_and_the_reason() {
    let of_reason = |reason: Option<EndReason>| {
        let mut of = simple(1.2);
        of.run.rules.blocks = 20;
        of.journal.pop();
        of.journal.extend(reason.map(ended));
        let findings = StudySummary::of(&of).findings();
        findings.into_iter().find_map(|of| match of.what {
            StudyObservation::Incomplete { finished, planned, reason } => {
                Some((finished, planned, reason))
            }
            _ => None,
        })
    };
    assert_eq!(of_reason(Some(EndReason::Done)), None);
    let spent = EndReason::BudgetSpent;
    assert_eq!(of_reason(Some(spent.clone())), Some((12, 20, Some(spent))));
    assert_eq!(of_reason(None), Some((12, 20, None)), "it was killed");
}

#[test]
fn the_best_of_several_choices_is_the_lowest_median_and_shown_only_if_it_is() {
    let three = |values: [f64; 3]| {
        let study = run(vec![choice("v", &["a", "b", "c"])], 12);
        document(study, |_, treatment| values[treatment])
    };
    let best = |of: &StudyDocument| {
        StudySummary::of(of).best().map(|of| (of.treatment, of.baseline, of.is_shown))
    };
    let row = |treatment: &str, is_shown| Some((treatment.to_owned(), "v=a".to_owned(), is_shown));
    assert_eq!(best(&three([1.0, 0.8, 0.9])), row("v=b", true));
    assert_eq!(best(&three([1.0, 1.2, 1.1])), row("v=a", false), "nothing is better");
    assert_eq!(best(&simple(0.8)), None, "two treatments are no choice");
    let scaled = document(run(vec![scale("n", &[1.0, 2.0, 4.0])], 12), |_, at| 1.0 + at as f64);
    assert_eq!(best(&scaled), None, "a scale is none either");
    let best = StudySummary::of(&three([1.0, 0.8, 0.9])).best().unwrap();
    assert!((best.change_percent.unwrap() + 20.0).abs() < 0.5, "{best:?}");
    assert!((best.median / best.baseline_median - 0.8).abs() < 0.01, "{best:?}");
}

#[test]
fn of_a_rate_the_best_treatment_is_the_highest() {
    let mut of = with_rate(document(run(vec![choice("v", &["a", "b", "c"])], 12), |_, at| {
        [1.0, 0.8, 1.3][at]
    }));
    of.run.rules.primary = Some("w.rate".to_owned());
    let best = StudySummary::of(&of).best().expect("a choice");
    assert_eq!(
        (best.treatment.as_str(), best.metric.as_str(), best.unit.as_str()),
        ("v=b", "rate", "1/s")
    );
}

#[test]
fn the_baseline_against_itself_gives_the_smallest_visible_effect() {
    let mut study = run(vec![choice("v", &["a", "b"])], 12);
    study.rules.aa = true;
    let of = document(study, |_, treatment| 1.0 + 0.2 * treatment as f64);
    let found = StudySummary::of(&of).findings();
    let against = found.last().expect("a finding");
    let StudyObservation::BaselineAgainstItself { metrics: 1, differing, own } = against.what
    else {
        panic!("{against:?}")
    };
    assert_eq!((differing, against.threshold), (0, Some(0.05)));
    let OwnDifference::Least { percent: Some([low, high]) } = own else { panic!("{own:?}") };
    assert!(low == high && low > 0.0 && low < 2.0, "{low}");
}

#[test]
fn disturbed_samples_are_counted_without_warm_ups_and_a_second_attempt_counts() {
    let mut of = simple(1.2);
    of.run.rules.warm_ups = 1;
    let JournalEntry::Sample(first) = of.journal[4].clone() else { panic!("a sample") };
    let mut again = disturbed(first.clone());
    again.observation.readings[0].value *= 3.0;
    assert_eq!(first.block, 1);
    of.journal[4] = JournalEntry::Sample(again);
    of.journal.insert(
        5,
        JournalEntry::Sample(numalab_record::study::SampleEntry { attempt: 1, ..first }),
    );
    let JournalEntry::Sample(warm_up) = of.journal[1].clone() else { panic!("a sample") };
    of.journal[1] = JournalEntry::Sample(disturbed(warm_up));
    let summary = StudySummary::of(&of);
    assert_eq!(summary.disturbed(), [(11, 0), (12, 1)]);
    assert_eq!(summary.subjects[0].blocks(), 11);
    assert!(summary.answers().next().unwrap().1.first.is_some(), "the first samples differ");
}

#[test]
fn memory_of_guests_is_a_share_over_all_samples_of_a_treatment() {
    let mut of = simple(1.0);
    let place = |memory: Vec<(Option<u32>, u64)>, cpus: Option<&str>| GuestPlace {
        guest: "g1".to_owned(),
        home: Some(0),
        memory,
        cpus: cpus.map(str::to_owned),
    };
    let places = [
        place(vec![(Some(0), 30), (None, 10)], None),
        place(vec![(Some(0), 30), (Some(1), 30)], Some("0-3")),
    ];
    let samples = of.journal.iter_mut().filter_map(|entry| match entry {
        JournalEntry::Sample(sample) if sample.treatment == 1 => Some(sample),
        _ => None,
    });
    samples.zip(places).for_each(|(sample, place)| sample.observation.guests = vec![place]);
    let maps = StudySummary::of(&of).guest_maps();
    let [map] = &maps[..] else { panic!("{maps:?}") };
    assert_eq!((map.treatment, &map.cpus["g1"][..]), (1, "0-3"));
    let shares: Vec<_> = map.memory["g1"].iter().map(|(node, share)| (*node, *share)).collect();
    assert_eq!(shares, [(None, 0.1), (Some(0), 0.6), (Some(1), 0.3)]);
}

#[test]
fn facts_that_sessions_do_not_share_are_listed_a_value_each() {
    let mut of = simple(1.0);
    of.journal.insert(5, began("6.12"));
    let summary = StudySummary::of(&of);
    let changed = summary.changed_facts();
    assert_eq!(changed["kernel"], ["6.1", "6.12"]);
    assert_eq!(summary.first_facts()["kernel"], Fact::from("6.1"));
}

/// Makes this number of sessions of four blocks.
fn sessions(count: usize, factor: f64) -> StudyDocument {
    let study = run(vec![choice("v", &["a", "b"])], 4 * count);
    let mut journal = Vec::new();
    for session in 0..count {
        journal.push(began("6.1"));
        for block in 4 * session..4 * session + 4 {
            for treatment in 0..2 {
                let of_session = 1.0 + 0.001 * (session % 3) as f64;
                let value = factor * of_session * jitter(block, treatment);
                journal.push(JournalEntry::Sample(sample(block, treatment, Arm::Main, value)));
            }
        }
    }
    StudyDocument { run: study, journal }
}

#[test]
fn two_runs_are_compared_by_sessions_and_one_a_side_is_not_judged() {
    let (old, slow) = (sessions(5, 1.0), sessions(4, 1.2));
    let tolerance = Tolerance::default();
    let pair = StudyPair::of(&old, &slow, &tolerance).expect("treatments in common");
    assert_eq!(pair.rows.len(), 2);
    for row in &pair.rows {
        assert_eq!((row.metric.as_str(), row.sessions), ("w time", [5, 4]));
        assert!((row.change_percent.unwrap() - 20.0).abs() < 0.5, "{row:?}");
        assert_eq!(row.answer, Answer::Judged(Verdict::Worse));
    }
    assert!(pair.any_worse() && pair.is_judged());
    let (one, other) = (sessions(1, 1.0), sessions(1, 1.2));
    let pair = StudyPair::of(&one, &other, &tolerance).unwrap();
    assert!(!pair.is_judged() && !pair.any_worse());
    assert!(pair.rows.iter().all(|row| row.interval_percent.is_none()), "{:?}", pair.rows);
}

/// Returns sessions of 150 blocks each, in which every 50th block takes `far` times as long.
fn with_far_blocks(sessions: usize, far: f64) -> StudyDocument {
    let study = run(vec![choice("v", &["a"])], 150 * sessions);
    let value = |block: usize, _| if block % 50 == 7 { far } else { 1.0 };
    let mut of = document(study, value);
    for session in (1..sessions).rev() {
        of.journal.insert(1 + 150 * session, began("6.1"));
    }
    of
}

#[test]
fn comparisons_of_studies_that_called_tails_far_ends_are_read() {
    let sides = [1.0, 4.0].map(|far| with_far_blocks(3, far));
    let pair = StudyPair::of(&sides[0], &sides[1], &Tolerance::default()).expect("in common");
    let document = pair.document();
    assert!(document.values[0].tail.is_some());
    let before = serde_json::to_string(&document).unwrap().replace("\"tail\"", "\"far_end\"");
    assert_eq!(serde_json::from_str::<StudyComparison>(&before).unwrap(), document);
}

#[test]
fn tails_of_two_runs_differ_where_medians_do_not_if_each_has_several_sessions() {
    let against = |sessions: usize, [before, after]: [f64; 2]| {
        let (before, after) = (with_far_blocks(sessions, before), with_far_blocks(sessions, after));
        let pair = StudyPair::of(&before, &after, &Tolerance::default()).expect("in common");
        assert!(!pair.any_worse(), "equal medians: {:?}", pair.rows);
        let shown = pair.rows[0].tail.as_ref().is_some_and(|end| end.is_shown);
        (shown, pair.any_tail_worse())
    };
    assert_eq!(against(3, [1.0, 4.0]), (true, true));
    assert_eq!(against(3, [4.0, 1.0]), (true, false), "better");
    assert_eq!(against(3, [4.0, 4.0]), (false, false));
    assert_eq!(against(1, [1.0, 4.0]), (false, false), "one session's tail");
}

#[test]
fn runs_without_a_common_treatment_or_metric_are_not_a_pair() {
    let old = sessions(2, 1.0);
    let mut other = sessions(2, 1.0);
    other.run.treatments.iter_mut().for_each(|of| of.name.push('!'));
    assert!(StudyPair::of(&old, &other, &Tolerance::default()).is_none());
    let mut in_ms = sessions(2, 1.0);
    for entry in &mut in_ms.journal {
        let JournalEntry::Sample(sample) = entry else { continue };
        sample.observation.readings[0].quantity.unit = "ms".to_owned();
    }
    assert!(StudyPair::of(&old, &in_ms, &Tolerance::default()).is_none(), "another unit");
}

#[test]
fn the_kept_study_still_has_the_findings_of_its_report() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/study");
    let read = |name: &str| std::fs::read_to_string(format!("{directory}/{name}")).expect(name);
    let of = StudyDocument::from_files(&read("run.json"), &read("journal.jsonl")).expect("kept");
    let summary = StudySummary::of(&of);
    let said = |(subject, effect): (&Subject, &Effect)| {
        let percent = effect.found.percent().unwrap_or(f64::NAN);
        format!("{} {percent:+.1} % {:?}", subject.title(), effect.found.verdict)
    };
    let said: Vec<String> = summary.answers().map(said).collect();
    let expected = [
        "walk latency +75.3 % Worse",
        "walk latency +150.8 % Worse",
        "walk fast-accesses -49.7 % Worse",
        "walk fast-accesses -98.7 % Worse",
    ];
    assert_eq!(said, expected);
    let best = summary.best().expect("three treatments");
    assert_eq!((best.treatment.as_str(), best.is_shown), ("placement=local", false));
}

#[test]
fn a_tail_that_differs_is_found_in_a_study_of_equal_medians() {
    let with_stall_in = |blocks: &[usize]| {
        document(run(vec![choice("v", &["a", "b"])], 400), |block, treatment| {
            if treatment == 1 && blocks.contains(&block) { 30.0 } else { 1.0 }
        })
    };
    let stalls: Vec<usize> = (3..400).step_by(40).collect();
    let of = with_stall_in(&stalls);
    let summary = StudySummary::of(&of);
    let (_, effect) = summary.answers().next().expect("an answer");
    assert_eq!(effect.found.verdict, Verdict::Equivalent);
    let tail = effect.tail.as_ref().expect("ten stalls in 400");
    assert!(tail.is_worse && tail.is_shown && tail.percentile == 99.0, "{tail:?}");
    let found = summary.findings();
    let is_far = |what: &StudyObservation| matches!(what, StudyObservation::Tails { .. });
    let far = found.iter().find(|finding| is_far(&finding.what)).expect("said of the study");
    assert_eq!((&*far.evidence[0].workload, &*far.evidence[0].metric), ("w", "time"));
    let of = with_stall_in(&[]);
    assert!(!StudySummary::of(&of).findings().iter().any(|finding| is_far(&finding.what)));
}

#[test]
fn a_treatment_with_two_modes_is_named_with_both_and_their_shares() {
    let of = document(run(vec![choice("v", &["a", "b"])], 60), |block, treatment| {
        if treatment == 1 && block % 3 == 0 { 1.5 } else { 1.0 }
    });
    let summary = StudySummary::of(&of);
    let two: Vec<_> = summary
        .findings()
        .into_iter()
        .filter_map(|finding| match finding.what {
            StudyObservation::TwoModes { treatment, modes, .. } => Some((treatment, modes)),
            _ => None,
        })
        .collect();
    let [(treatment, modes)] = &two[..] else { panic!("{two:?}") };
    assert!(treatment.contains('b'), "{treatment}");
    assert!((modes.centres[1] / modes.centres[0] - 1.5).abs() < 0.05, "{modes:?}");
    assert!((modes.upper_share - 1.0 / 3.0).abs() < 0.01, "{modes:?}");
}
