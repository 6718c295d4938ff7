//! Sentences of a study's page, compared with its samples.

use std::collections::BTreeSet;

use numalab_page::{Format, Style};
use numalab_record::Kind;
use numalab_record::study::{
    Arm, CachedFile, Counted, EndReason, GuestPlace, JournalEntry, Published, Quantity, Setting,
    StudyDocument, counter,
};
use numalab_record::tiering::TierLook;
use numalab_results::study::page::command_times;
use numalab_results::study::{Effect, EffectKind, StudySummary};
use numalab_results::{Report, change_words};
use numalab_stats::{Ground, Verdict};

use crate::studies;

fn effect<'a>(summary: &'a StudySummary<'_>, subject: &str, label: &str) -> &'a Effect {
    let found = summary
        .subjects
        .iter()
        .filter(|s| s.title() == subject)
        .flat_map(|s| &s.effects)
        .find(|effect| change_words(effect.kind, &effect.change) == label);
    found.unwrap_or_else(|| panic!("no {subject}: {label}"))
}

/// Regression: samples of the baseline against itself counted, too.
#[test]
fn a_command_s_time_is_that_of_the_samples_that_its_verdict_uses() {
    let document = studies::two_by_two();
    let warm_ups = document.run.rules.warm_ups;
    let of_baseline = |arm: Arm| {
        let samples = document.samples().filter(|of| of.treatment == 0 && of.block >= warm_ups);
        let cells = samples.filter(|of| of.arm == arm).map(|of| (of.block, of.workload));
        cells.collect::<BTreeSet<_>>().len()
    };
    assert!(of_baseline(Arm::Again) > 0);
    let text = command_times(&document);
    let expected = format!("half of {} runs", of_baseline(Arm::Main));
    assert!(text.lines().next().is_some_and(|line| line.contains(&expected)), "{text}");
}

/// Effects have gauges with verdicts in addition to the samples.
#[test]
fn gauges_of_a_study_have_its_changes_and_verdicts() {
    let document = studies::two_by_two();
    let text = StudySummary::of(&document).exported(Format::OpenMetrics).expect("gauges");
    let value = |name: &str, metric: &str, change: &str| {
        let labels = format!("metric=\"{metric}\",change=\"{change}\"");
        let line = text.lines().find(|line| line.starts_with(name) && line.contains(&labels));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
    };
    let verdict = |metric, change| value("numalab_study_effect_verdict{", metric, change);
    assert_eq!(verdict("latency", "host off → on"), Some(1.0), "{text}");
    assert_eq!(verdict("rate", "guest off → on"), Some(-1.0));
    assert_eq!(verdict("time", "guest off → on"), Some(0.0));
    let change = value("numalab_study_effect_change_ratio{", "latency", "host off → on");
    assert!(change.is_some_and(|change| (change + 0.1).abs() < 0.01), "{change:?}");
    assert!(text.contains("# TYPE numalab_study_sample_latency_value_seconds gauge"), "{text}");
    assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1);
}

fn percent(effect: &Effect) -> f64 {
    effect.found.percent().expect("a change in percent")
}

#[test]
fn main_effects_interactions_and_verdicts_of_a_two_by_two_are_as_it_was_made() {
    let document = studies::two_by_two();
    let summary = StudySummary::of(&document);
    let host = effect(&summary, "chase latency", "host off → on");
    assert!((percent(host) + 10.0).abs() < 0.7, "{}", percent(host));
    assert_eq!((host.found.verdict, host.kind), (Verdict::Better, EffectKind::Main));
    let guest = effect(&summary, "copy rate", "guest off → on");
    assert!((percent(guest) + 5.0).abs() < 0.7 && guest.found.verdict == Verdict::Worse);
    let idle = effect(&summary, "idle time", "guest off → on");
    assert_eq!(idle.found.verdict, Verdict::Equivalent);
    let both = effect(&summary, "chase latency", "host off → on, guest off → on");
    assert!((percent(both) + 28.0).abs() < 1.0 && both.kind == EffectKind::Together);
    let within = effect(&summary, "chase latency", "guest off → on where host=on");
    assert!((percent(within) + 20.0).abs() < 1.0 && within.kind == EffectKind::Within);
    let with = effect(&summary, "chase latency", "host off → on with guest off → on");
    assert_eq!((with.found.verdict, with.kind), (Verdict::Equivalent, EffectKind::Interaction));
    assert!(summary.any_worse());
    // The bootstrap of the mean and the permutation test agree with the ranks.
    assert!((host.bootstrap.value - host.found.effect).abs() < 0.005);
    assert!(host.bootstrap.interval.contains(host.found.effect) && host.permutation.p < 0.01);
}

#[test]
fn a_two_by_two_has_a_table_of_its_four_cells_and_a_trend_has_none() {
    let document = studies::two_by_two();
    let text = StudySummary::of(&document).page().markdown();
    let cells = "latency in ns by host and guest, medians; change from the first, from pairs \
                 within blocks";
    assert!(text.contains(cells), "{text}");
    let after = text.split(cells).nth(1).expect("the table");
    assert!(after.trim_start().starts_with("| host | guest off | guest on |"), "{after}");
    let both = after.lines().find(|line| line.starts_with("| host on |")).expect("a row");
    let change =
        both.rsplit(", ").next().and_then(|cell| cell.split(' ').next()).expect("a change");
    assert!((change.parse::<f64>().expect("a number") + 28.0).abs() < 1.0, "{both}");
    let numbers = studies::scaling();
    assert!(
        !StudySummary::of(&numbers).page().markdown().contains("medians; change from the first")
    );
}

/// "latency in by host and guest", and "medians 10.0 → 12.0 ; 96.8 % interval".
#[test]
fn a_metric_without_a_unit_leaves_no_gap() {
    let text = |mut document: StudyDocument| {
        for entry in &mut document.journal {
            if let JournalEntry::Sample(of) = entry {
                of.observation.readings.iter_mut().for_each(|of| of.quantity.unit.clear());
            }
        }
        StudySummary::of(&document).page().markdown()
    };
    let cells = text(studies::two_by_two());
    assert!(cells.contains("latency by host and guest, medians; "), "{cells}");
    let medians = text(studies::without_variance());
    assert!(medians.contains("(medians 226 → 106)."), "{medians}");
}

#[test]
fn a_few_treatments_are_judged_against_the_first_in_one_sentence() {
    let mut document = studies::two_by_two();
    document.run.rules.primary = Some("chase.latency".to_owned());
    let summary = StudySummary::of(&document);
    let text = summary.page().markdown();
    let answer = text.lines().find(|line| line.starts_with("- **Answer:**")).expect("an answer");
    assert!(answer.contains("chase latency against host=off guest=off (110 ns): -20."), "{answer}");
    let both = effect(&summary, "chase latency", "host off → on, guest off → on");
    let [low, high] = both.found.percent_interval().map(|of| [of.lo, of.hi]).expect("an interval");
    let said =
        format!("under host=on guest=on (79.6 ns; {low:.1} to {high:.1} %): better under each");
    assert!(answer.contains(&said), "{answer}");
    assert!(!answer.contains("on average over"), "{answer}");
}

#[test]
fn a_change_is_the_same_in_the_answer_the_table_and_next_to_the_published_one() {
    let document = repeated([200.0, 150.0, 190.0, 100.0]);
    let summary = StudySummary::of(&document);
    let guest = effect(&summary, "chase latency", "guest off → on where host=off");
    let medians = summary.asked().map(|chase| [0, 1].map(|at| chase.median(at).expect("a median")));
    let [first, last] = medians.expect("the metric that answers");
    let of_medians = 100.0 * (last / first - 1.0);
    let change = format!("{:.1} %", percent(guest));
    assert_ne!(change, format!("{of_medians:.1} %"), "else this shows nothing");
    let text = summary.page().markdown();
    let (top, _) = text.split_once("## Each change").expect("a part");
    let row = top.lines().find(|line| line.starts_with("| host off |")).expect("a row");
    assert!(row.contains(&format!(", {change} | ")), "{change}: {row}");
    for lead in [format!("{change} under host=off guest=on"), format!("-25.0 %, here {change};")] {
        assert!(top.contains(&lead), "{lead}: {top}");
    }
}

/// Returns a study of two factors with published figures for its primary metric.
fn repeated(published: [f64; 4]) -> StudyDocument {
    let mut document = studies::two_by_two();
    document.run.rules.primary = Some("chase.latency".to_owned());
    let names = document.run.treatments.iter().map(|of| of.name.clone());
    document.run.published = vec![Published {
        metric: "chase.latency".to_owned(),
        source: "a lab".to_owned(),
        unit: "us".to_owned(),
        values: names.zip(published).collect(),
    }];
    document
}

#[test]
fn published_figures_are_next_to_the_studys_own_with_their_order() {
    let document = repeated([200.0, 150.0, 190.0, 100.0]);
    let text = StudySummary::of(&document).page().markdown();
    let lead = text.lines().find(|line| line.starts_with("- **Published:**")).expect("a lead");
    assert!(lead.contains("chase latency (a lab): host=off guest=on -25.0 %, here -20."), "{lead}");
    assert!(lead.contains("; host=on guest=on -50.0 %, here -27."), "{lead}");
    assert!(lead.ends_with("; the treatments have the same order."), "{lead}");
    let (top, rest) = text.split_once("## Each change").expect("a part");
    assert!(
        top.contains(
            "| host | guest off | guest on | published: guest off | published: guest on |"
        )
    );
    let both = top.lines().find(|line| line.starts_with("| host on |")).expect("a row");
    assert!(both.ends_with("| 190, -5.00 % | 100, -50.0 % |"), "{both}");
    assert!(!rest.contains("published: guest on"), "the table is the picture");
    let html = StudySummary::of(&document).page().html();
    assert_eq!(html.matches("as published").count() % 3, 0, "below each change");
    let other = repeated([200.0, 190.0, 150.0, 100.0]);
    let text = StudySummary::of(&other).page().markdown();
    assert!(text.contains("; the treatments have another order."), "{text}");
    // All are faster than the first here and were slower there, in the same order among themselves.
    let opposite = repeated([100.0, 105.0, 110.0, 102.0]);
    let text = StudySummary::of(&opposite).page().markdown();
    assert!(text.contains("; the treatments have another order."), "{text}");
}

#[test]
fn a_share_that_was_zero_grows_by_points() {
    let metrics = vec![("probe", Quantity::higher("local", "%"))];
    let factors = vec![studies::choice("balancing", &["0", "1"])];
    let made = studies::Made::of(factors, metrics, 8);
    let document = made.document(false, |_, _, treatment, _| [0.0, 98.0][treatment]);
    let text = StudySummary::of(&document).page().markdown();
    assert!(text.contains("probe local changes by +98.0 points"), "{text}");
}

#[test]
fn treatments_that_do_not_differ_here_have_no_order_to_compare() {
    let mut document = repeated([200.0, 190.0, 150.0, 100.0]);
    document.run.rules.margin_percent = 15.0;
    let text = StudySummary::of(&document).page().markdown();
    // The treatments differ by less than the margin here (host=on -10 %, guest=on -20 %) and as
    // published.
    let order = "; the treatments that differ here by more than 15 % have the same order.";
    assert!(text.contains(order), "{text}");
}

#[test]
fn a_change_over_a_number_has_the_published_one_at_the_same_number() {
    let mut document = studies::scaling();
    let values = [("numa=off guests=16", 1450.0), ("numa=on guests=16", 2175.0)];
    document.run.published = vec![Published {
        metric: "dbench.throughput".to_owned(),
        source: "an evaluation".to_owned(),
        unit: "MB/s".to_owned(),
        values: values.map(|(name, value)| (name.to_owned(), value)).into(),
    }];
    let text = StudySummary::of(&document).page().markdown();
    assert!(
        text.contains("dbench throughput (an evaluation): numa=on guests=16 +50.0 %, here +20."),
        "{text}"
    );
    assert!(text.contains("| dbench throughput | numa=off guests=16 | "), "{text}");
}

#[test]
fn page_walks_are_explained_by_their_counts() {
    let mut document = studies::without_variance();
    let counted = [
        (counter::WALKS, 1_066_910.0),
        (counter::REFERENCES, 2_667_275.0),
        (counter::LONGEST, 24.0),
        (counter::TRANSLATION_NS, 32_007_300.0),
        (counter::TIME_NS, 320_073_000.0),
    ];
    for sample in document.journal.iter_mut().filter_map(|entry| match entry {
        JournalEntry::Sample(sample) => Some(sample),
        _ => None,
    }) {
        sample.observation.counters =
            counted.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
    }
    let text = StudySummary::of(&document).page().markdown();
    let lead = "10.0 % of the time of chase, including its start and end, under numa_balancing=0, \
                10.0 % under numa_balancing=1.";
    assert!(text.replace('\\', "").contains(lead), "{text}");
    let part = text.split("## Page walks").nth(1).expect("a part");
    for row in [
        "| page walks | 1.07 million | 1.07 million |",
        "| entries of tables that the longest walk read | 24 | 24 |",
        "| entries that a walk read, mean | 2.50 | 2.50 |",
        "| time of a walk in ns, mean | 30.0 | 30.0 |",
        "| share of the cpu's time, including start and end | 10.0 % | 10.0 % |",
    ] {
        assert!(part.contains(row), "{row}: {part}");
    }
    let without = studies::without_variance();
    assert!(!StudySummary::of(&without).page().markdown().contains("Page walks"));
}

#[test]
fn pages_by_tier_over_time_are_medians_of_the_samples_of_each_treatment() {
    let mut document = studies::without_variance();
    for sample in document.journal.iter_mut().filter_map(|entry| match entry {
        JournalEntry::Sample(sample) => Some(sample),
        _ => None,
    }) {
        // The number of pages that balancing moves differs between blocks; the median is the third
        // of five.
        let moved = if sample.treatment == 1 { 100 * (sample.block as u64 + 1) } else { 0 };
        sample.observation.looks = (0..8)
            .map(|at| TierLook {
                at_ns: at * 500_000_000,
                latency_ns: if at < 4 { 300.0 } else { 300.0 - moved as f64 / 2.0 },
                fast_pages: if at < 4 { 0 } else { moved },
                slow_pages: if at < 4 { 1000 } else { 1000 - moved },
                tier_pages: Vec::new(),
                marked_pages: 0,
            })
            .collect();
    }
    let page = StudySummary::of(&document).page();
    let text = page.markdown();
    let rows = |caption: &str| -> Vec<String> {
        let after = text.lines().skip_while(|line| !line.contains(caption));
        after.filter(|line| line.starts_with('|')).skip(2).take(2).map(str::to_owned).collect()
    };
    let words = |row: &String| {
        row.split(['|', ' ']).filter(|w| !w.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let shares: Vec<Vec<String>> =
        rows("pages on the fast tier over time").iter().map(words).collect();
    assert_eq!(shares, [["1.5", "0.00", "0.00"], ["3.5", "0.00", "30.0"]], "{text}");
    let times: Vec<Vec<String>> = rows("an access over time").iter().map(words).collect();
    assert_eq!(times, [["1.5", "300", "300"], ["3.5", "300", "150"]], "{text}");
    let curves = page.html().matches("<path class=\"curve ").count();
    assert_eq!(curves, 4, "two pictures with a curve for each treatment");
    let [course, folded] = ["over time", "lower is better"].map(|of| text.find(of).expect(of));
    assert!(course < folded, "the pictures are first: {text}");
    let plain = StudySummary::of(&studies::without_variance()).page().markdown();
    assert!(!plain.contains("over time"), "{plain}");
}

#[test]
fn a_placeholder_filled_in_by_levels_is_explained_next_to_the_command() {
    let mut document = studies::two_by_two();
    for (index, value) in [(0, "off"), (1, "on"), (2, "off"), (3, "on")] {
        let settings = &mut document.run.treatments[index].settings;
        settings.insert("hugetlb".to_owned(), Setting::Text(value.to_owned()));
        settings.insert("unused".to_owned(), Setting::Integer(1));
    }
    document.run.workloads[0].command.push("--hugetlb={hugetlb}".to_owned());
    let summary = StudySummary::of(&document);
    let wanted = "{hugetlb} is off in host=off guest=off, host=on guest=off; \
                  on in host=off guest=on, host=on guest=on.";
    assert_eq!(summary.page().markdown().matches(wanted).count(), 1);
    assert_eq!(summary.page().html().matches(wanted).count(), 1);
    assert!(!summary.page().markdown().contains("{unused} is"));
}

#[test]
fn disturbed_samples_are_kept_counted_and_leave_the_verdict_alone() {
    let document = studies::two_by_two();
    let summary = StudySummary::of(&document);
    let host = effect(&summary, "chase latency", "host off → on");
    let first = host.first.as_ref().expect("another analysis");
    // Including samples that are ten times too high makes the interval far wider.
    let width = |found: &numalab_stats::Comparison| found.percent_interval().unwrap().width();
    assert!(width(first) > 3.0 * width(&host.found));
    let (taken, disturbed) =
        summary.disturbed().into_iter().fold((0, 0), |sum, n| (sum.0 + n.0, sum.1 + n.1));
    assert_eq!((taken, disturbed), (document.samples().count(), 180 / 7));
    let kept = document.cells(0, "latency", Counted::Undisturbed);
    let raw = document.cells(0, "latency", Counted::First);
    assert!(kept.treatments.iter().flatten().all(|value| *value < 200.0));
    assert!(raw.treatments.iter().flatten().any(|value| *value > 500.0));
}

#[test]
fn on_a_shared_machine_no_interval_is_narrower_than_that_of_the_baseline_against_itself() {
    let shared = |document: &mut StudyDocument| {
        for entry in &mut document.journal {
            let JournalEntry::Sample(sample) = entry else { continue };
            sample.observation.disturbances = vec![studies::disturbed_by(900)];
        }
    };
    // A change of 1 % in every block, and equal values that are 8 % apart.
    let metrics = vec![("w", Quantity::lower("t", "s"))];
    let made = studies::Made {
        aa: true,
        ..studies::Made::of(vec![studies::choice("v", &["a", "b"])], metrics, 12)
    };
    let value = |block: usize, treatment: usize, again: bool| {
        let drift = 1.0 + 1e-4 * block as f64;
        drift
            * if again {
                1.08
            } else if treatment == 1 {
                1.05
            } else {
                1.0
            }
    };
    let document =
        made.document(false, |_, block, treatment, again| value(block, treatment, again));
    let quiet = StudySummary::of(&document);
    let found = |summary: &StudySummary<'_>| summary.subjects[0].effects[0].found.clone();
    let narrow = found(&quiet);
    let mut document = document.clone();
    shared(&mut document);
    let summary = StudySummary::of(&document);
    let wide = found(&summary);
    assert!(narrow.interval.unwrap().half_width() < 0.01);
    let reach = 1.08_f64.ln();
    let interval = wide.interval.unwrap();
    assert!(
        interval.lo <= wide.effect - reach && interval.hi >= wide.effect + reach,
        "{interval:?}"
    );
    assert!(matches!(wide.verdict, Verdict::Inconclusive { .. }), "{:?}", wide.verdict);
    let page = summary.page().markdown();
    assert_eq!(
        page.matches("This machine is shared: other load disturbed 36 of 36 samples").count(),
        1
    );
    assert!(!quiet.page().markdown().contains("shared"));
}

#[test]
fn a_gain_that_grows_with_the_number_of_guests_is_a_trend() {
    let document = studies::scaling();
    let summary = StudySummary::of(&document);
    let label = "effect of numa off → on with each doubling of guests";
    let trend = effect(&summary, "dbench throughput", label);
    // 1, 1.1, 1.2: least squares on log2 is half the log of the outer ratio.
    let expected = 100.0 * (1.2_f64.sqrt() - 1.0);
    assert!((percent(trend) - expected).abs() < 1.0, "{}", percent(trend));
    assert_eq!(trend.found.verdict, Verdict::Better);
    let plain = effect(&summary, "dbench throughput", "with each doubling of guests");
    let expected = 100.0 * (1.6 * 1.2_f64.sqrt().sqrt() - 1.0);
    assert!((percent(plain) - expected).abs() < 1.5, "{}", percent(plain));
    let at_16 = effect(&summary, "dbench throughput", "numa off → on where guests=16");
    assert!((percent(at_16) - 20.0).abs() < 1.5);
    let main = effect(&summary, "dbench throughput", "numa off → on");
    assert_eq!(main.found.verdict, Verdict::Better);
}

#[test]
fn one_block_shows_nothing_whatever_its_figures() {
    let document = studies::one_block();
    let summary = StudySummary::of(&document);
    let both = effect(&summary, "memory rate", "host off → on, guest off → on");
    // As published: 177.50 is 14.7 % more than 154.73.
    assert!((percent(both) - 14.7).abs() < 0.05, "{}", percent(both));
    assert_eq!(both.found.ground, Ground::TooFew { needed: 8 }, "at the next look");
    let open = |effect: &Effect| matches!(effect.found.verdict, Verdict::Inconclusive { .. });
    assert!(summary.subjects.iter().flat_map(|s| &s.effects).all(open));
    assert!(!summary.any_worse());
}

#[test]
fn virtual_time_without_variance_has_a_verdict() {
    let document = studies::without_variance();
    let summary = StudySummary::of(&document);
    let found = &effect(&summary, "chase latency", "numa_balancing 0 → 1").found;
    assert_eq!((found.ground, found.verdict), (Ground::NoVariance, Verdict::Better));
    let text = summary.page().terminal(Style::Plain);
    let answer = "numa_balancing cannot show an effect here (memory is on one node);";
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (first, then) = (words.find(answer), words.find("numa_balancing 0 → 1: better"));
    assert!(first.is_some() && first < then, "what is seen anyway is reported: {text}");
    let names: Vec<String> = summary.page().lead.into_iter().map(|lead| lead.name).collect();
    assert_eq!(names, ["Answer", "Unexpected"], "not as a second answer");
}

#[test]
fn a_study_without_a_finished_block_says_so() {
    let document = studies::begun();
    let summary = StudySummary::of(&document);
    assert!(summary.answers().next().is_none() && !summary.is_precise(100.0));
    let text = summary.page().terminal(Style::Plain);
    assert!(text.contains("No block is finished, so there is no answer yet."), "{text}");
}

#[test]
fn a_study_is_precise_when_every_answer_is_narrow() {
    let document = studies::two_by_two();
    let summary = StudySummary::of(&document);
    assert!(summary.is_precise(2.0) && !summary.is_precise(0.01));
}

#[test]
fn a_session_that_ended_and_was_gone_on_with_is_a_look_that_is_paid_for() {
    let mut document = studies::two_by_two();
    let once = StudySummary::of(&document);
    assert_eq!(once.looks, 1);
    let width = |summary: &StudySummary<'_>| {
        effect(summary, "copy rate", "guest off → on").found.interval.expect("an interval").width()
    };
    let narrow = width(&once);
    let half = document.journal.len() / 2;
    document.journal.insert(half, JournalEntry::Ended { reason: EndReason::Done, unix_ms: 5 });
    let twice = StudySummary::of(&document);
    assert_eq!(twice.looks, 2);
    assert!(twice.confidence > StudySummary::of(&studies::two_by_two()).confidence);
    assert!(width(&twice) > narrow);
    // A session that was interrupted in its first block printed no result.
    let mut begun = studies::two_by_two();
    begun.journal.insert(2, JournalEntry::Ended { reason: EndReason::Interrupted, unix_ms: 5 });
    assert_eq!(StudySummary::of(&begun).looks, 1);
    let text = twice.page().markdown();
    assert!(text.contains("This is look 2") && text.contains("99.1 %"), "{text}");
}

#[test]
fn files_that_could_not_be_dropped_limit_the_verdicts() {
    let mut document = studies::two_by_two();
    for entry in &mut document.journal {
        let JournalEntry::Sample(sample) = entry else { continue };
        let path = "/srv/model.bin".to_owned();
        sample.observation.files =
            vec![CachedFile { path, dropped_bytes: 2 << 20, kept_bytes: 3 << 20 }];
    }
    let text = StudySummary::of(&document).page().markdown();
    let basis = text.split("## Basis of the verdicts").nth(1).expect("a basis");
    for said in [
        "Page cache: Before each sample 2 MiB of files were dropped",
        "3 MiB of files, such as /srv/model.bin, could not be dropped: they stay on the node",
    ] {
        assert!(basis.contains(said), "{basis}");
    }
    assert!(!StudySummary::of(&studies::two_by_two()).page().markdown().contains("Page cache"));
}

#[test]
fn a_study_is_answered_on_its_primary_metric_first() {
    let mut document = studies::two_by_two();
    document.run.rules.primary = Some("chase.latency".to_owned());
    let summary = StudySummary::of(&document);
    assert!(summary.subjects[0].is_primary && summary.subjects[0].title() == "chase latency");
    let text = summary.page().markdown();
    let answer = "- **Answer:** chase latency against host=off guest=off (110 ns): -20.2 % under \
                  host=off guest=on (";
    assert!(
        text.contains(answer) && text.contains("- **guest off → on:** Worse: copy rate"),
        "{text}"
    );
    for text in [text, summary.page().html(), summary.page().terminal(Style::Plain)] {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let at = |wanted: &str| words.find(wanted).unwrap_or_else(|| panic!("{wanted}: {text}"));
        let said = at("chase latency against host=off guest=off");
        assert!(at("(96.8 % intervals)") > said && at("Worse: copy rate") > said, "{text}");
    }
}

#[test]
fn the_best_of_several_treatments_is_named_with_its_value_and_how_sure_it_is() {
    let mut document = studies::two_by_two();
    document.run.rules.primary = Some("chase.latency".to_owned());
    let said = |document: &StudyDocument| {
        let text = StudySummary::of(document).page().markdown();
        let line = text.lines().find(|line| line.starts_with("- **Best treatment:** "));
        line.unwrap_or_else(|| panic!("no best treatment in {text}")).to_owned()
    };
    let best = said(&document);
    let begin = "- **Best treatment:** host=on guest=on, with a median chase latency of 79.6 ns: ";
    assert!(best.starts_with(begin), "{best}");
    assert!(
        best.contains(
            "better than the baseline, host=off guest=off, which has 110 ns: -27.8 % (-28.5"
        ),
        "{best}"
    );
    // The rate is better if larger, so other treatments beat the baseline only by noise.
    document.run.rules.primary = Some("copy.rate".to_owned());
    assert!(said(&document).contains("not shown to be better"), "{}", said(&document));
    // One block shows nothing, whatever its values.
    assert!(said(&studies::one_block()).contains("not shown to be better"));
    // A trend has no best level.
    let scaling = studies::scaling();
    assert!(!StudySummary::of(&scaling).page().markdown().contains("Best treatment"));
}

#[test]
fn the_best_of_many_treatments_is_the_first_sentence() {
    let kept = include_str!("../../../../docs/studies/documents/weights.json");
    let document: StudyDocument = Kind::Study.read(kept).expect("a study");
    let page = StudySummary::of(&document).page();
    let names: Vec<&str> = page.lead.iter().take(2).map(|lead| &*lead.name).collect();
    assert_eq!(names, ["Best treatment", "Answer"]);
    assert!(
        page.lead[0].sentence.starts_with("weights=2:1, with a median stream bandwidth of 2.95")
    );
    let few = StudySummary::of(&studies::two_by_two()).page();
    assert_ne!(few.lead[0].name, "Best treatment", "four treatments are compared in one sentence");
}

#[test]
fn guests_are_on_a_map_of_nodes_with_a_row_a_treatment() {
    let mut document = studies::scaling();
    for entry in &mut document.journal {
        let JournalEntry::Sample(sample) = entry else { continue };
        let place = |guest: &str, memory| GuestPlace {
            guest: guest.to_owned(),
            home: Some(0),
            memory,
            cpus: Some("0-3".to_owned()),
        };
        let split = vec![(Some(0), 3), (Some(1), 1)];
        sample.observation.guests = vec![
            place("g01", vec![(Some(0), 4)]),
            place("g02", split),
            place("g03", vec![(None, 1)]),
        ];
    }
    let text = StudySummary::of(&document).page().markdown();
    let row = "| numa=off guests=4 | g01, g02 75 % | g02 25 % | g03 |";
    assert!(text.contains("| node 0 | node 1 | no node |") && text.contains(row), "{text}");
    assert!(text.contains("| numa=off guests=4 | 0-3 | g01, g02, g03 |"), "{text}");
}

#[test]
fn a_study_without_a_primary_metric_opens_with_what_all_of_them_show() {
    let document = studies::two_by_two();
    let page = StudySummary::of(&document).page();
    let first = &page.lead[0];
    assert!(first.name == "host off → on" && first.sentence.starts_with("Better: "), "{first:?}");
    let text = page.markdown();
    let told = "Primary metric: None is named (rules.primary), so all metrics are tested together.";
    let (told, basis) = (text.find(told), text.find("## Basis of the verdicts"));
    assert!(told > basis && basis.is_some(), "{text}");
}

#[test]
fn facts_are_shown_and_not_tested() {
    let tested = studies::two_by_two();
    let mut document = studies::two_by_two();
    document.run.rules.facts.insert("idle.time".to_owned());
    let (with, without) = (StudySummary::of(&tested), StudySummary::of(&document));
    let of_idle = |(subject, _): &(&_, &Effect)| {
        let subject: &numalab_results::study::Subject = subject;
        subject.title() == "idle time"
    };
    assert_eq!(with.effects(EffectKind::Main).count(), 6);
    assert_eq!(without.effects(EffectKind::Main).count(), 4);
    assert!(!EffectKind::ALL.iter().any(|kind| without.effects(*kind).any(|e| of_idle(&e))));
    let page = without.page();
    let facts = page.parts.iter().find(|part| part.title == "Facts").expect("a part of facts");
    assert_eq!(facts.panels[0].table.rows.len(), 1);
    assert_eq!(facts.panels[0].table.rows[0][0], "idle time");
    assert!(with.page().parts.iter().all(|part| part.title != "Facts"));
    for text in [page.markdown(), page.html(), page.terminal(Style::Plain)] {
        assert!(text.contains("not tested") && !text.contains("idle time (within"), "{text}");
    }
}

#[test]
fn six_blocks_decide_a_metric_when_the_others_are_facts() {
    let metrics =
        vec![("copy", Quantity::lower("time", "s")), ("copy", Quantity::higher("local", "%"))];
    let factors = vec![studies::choice("alloc", &["blind", "numa"])];
    let made = studies::Made::of(factors, metrics, 6);
    let mut document = made.document(false, |metric, block, treatment, _| {
        let changed = if treatment == 1 { [0.5, 2.0][metric] } else { 1.0 };
        100.0 * changed * studies::noise(metric + 5 * block + 70 * treatment)
    });
    let verdict = |document: &StudyDocument| {
        effect(&StudySummary::of(document), "copy time", "alloc blind → numa").found.verdict
    };
    assert!(matches!(verdict(&document), Verdict::Inconclusive { .. }));
    document.run.rules.facts.insert("copy.local".to_owned());
    assert_eq!(verdict(&document), Verdict::Better);
}

#[test]
fn the_texts_of_every_study_are_as_they_were() {
    for (name, document) in studies::all() {
        let summary = StudySummary::of(&document);
        let text = summary.page().terminal(Style::Plain);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{name} is {widest:?} wide:\n{text}");
        insta::assert_snapshot!(format!("study-text-{name}"), text);
        insta::assert_snapshot!(format!("study-markdown-{name}"), summary.page().markdown());
    }
}

#[test]
fn the_csv_has_every_value_and_the_json_every_sample() {
    let document: StudyDocument = studies::two_by_two();
    let summary = StudySummary::of(&document);
    let csv = summary.exported(Format::Csv).unwrap();
    assert_eq!(csv.lines().count(), 1 + document.samples().count());
    assert!(csv.contains(",again,") && csv.contains("foreign 120 of 2000 ms"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&summary.json().unwrap()).unwrap();
    let journal = json["journal"].as_array().unwrap();
    assert_eq!(journal.len(), document.journal.len());
    let text = serde_json::to_string(&journal).unwrap();
    let run = serde_json::to_string(&document.run).unwrap();
    let lines: String =
        journal.iter().map(|entry| format!("{entry}\n")).collect::<Vec<_>>().concat();
    assert!(text.contains("numa_hint_faults"));
    assert_eq!(StudyDocument::from_files(&run, &lines).unwrap(), document);
}

/// Returns a study of a factor that cannot act, with eight metrics that change by chance alone.
fn on_one_node(blocks: usize) -> StudyDocument {
    let metrics = (0..8).map(|metric| match metric % 2 {
        0 => (["a", "b", "c", "d", "e", "f", "g", "h"][metric], Quantity::lower("time", "s")),
        _ => (["a", "b", "c", "d", "e", "f", "g", "h"][metric], Quantity::higher("rate", "op/s")),
    });
    let reason = numalab_record::NoEffect::OneNode;
    let knob = "numa_balancing".to_owned();
    let factors = vec![studies::choice("numa_balancing", &["0", "1"])];
    let made = studies::Made {
        aa: true,
        notices: vec![numalab_record::study::Notice::KnobWithoutEffect { knob, reason }],
        ..studies::Made::of(factors, metrics.collect(), blocks)
    };
    let mut document = made.document(false, |metric, block, treatment, again| {
        let far = if again && metric == 3 { 1.94 } else { 1.0 };
        far * 100.0 * studies::noise(metric + 5 * block + 70 * treatment + usize::from(again) * 991)
    });
    document.run.rules.primary = Some("a.time".to_owned());
    document
}

#[test]
fn a_factor_that_no_command_mentions_shows_the_noise_of_the_machine_first() {
    let of_blocks = |blocks: usize| {
        let metrics = vec![("copy", Quantity::lower("time", "s"))];
        let (setting, variable) = ("label".to_owned(), "NUMALAB_LABEL".to_owned());
        let made = studies::Made {
            notices: vec![numalab_record::study::Notice::OnlyInEnvironment { setting, variable }],
            ..studies::Made::of(vec![studies::choice("label", &["a", "b"])], metrics, blocks)
        };
        made.document(false, |_, block, treatment, _| studies::noise(5 * block + 70 * treatment))
    };
    let document = of_blocks(10);
    let summary = StudySummary::of(&document);
    let found = effect(&summary, "copy time", "label a → b").found.percent_interval();
    let found = found.expect("an interval");
    let farthest = found.lo.abs().max(found.hi.abs());
    let unless = "No command mentions label (passed as NUMALAB_LABEL). Unless one reads it, nothing \
                  differs between its levels, and";
    let lead = summary.page().lead.remove(0);
    assert_eq!(lead.name, "Answer");
    let expected =
        format!("{unless} changes of up to {farthest:.2} % (copy time) are noise of this machine.");
    assert_eq!(lead.sentence, expected);
    let few = of_blocks(2);
    let lead = StudySummary::of(&few).page().lead.remove(0);
    assert_eq!(lead.sentence, format!("{unless} the blocks are too few to bound the noise."));
}

#[test]
fn a_treatment_without_effect_here_is_the_first_sentence_with_its_largest_cost() {
    let document = on_one_node(10);
    let summary = StudySummary::of(&document);
    let asked = effect(&summary, "a time", "numa_balancing 0 → 1");
    let most = asked.found.percent_interval().expect("an interval").hi;
    let page = summary.page();
    let expected = format!(
        "numa_balancing cannot show an effect here (memory is on one node); it costs at most \
         {most:.2} % (a time)."
    );
    assert_eq!(page.lead[0].sentence, expected);
    let text = page.terminal(Style::Plain);
    assert!(!text.contains("Not decided:"), "no table of undecided metrics leads: {text}");
    let mut few = on_one_node(2);
    let too_few = "2 blocks are too few to bound its cost";
    let sentence = StudySummary::of(&few).page().lead.remove(0).sentence;
    assert!(sentence.contains(too_few), "{sentence}");
    few.run.rules.primary = None;
    let answers: Vec<_> = StudySummary::of(&few).page().lead;
    let answers: Vec<_> = answers.iter().filter(|lead| lead.name == "Answer").collect();
    assert_eq!(answers.len(), 1, "a missing primary metric is no second answer: {answers:?}");
    assert!(answers[0].sentence.contains(too_few), "{answers:?}");
}

#[test]
fn figures_of_a_software_tlb_are_qualified_before_the_explanation() {
    let mut document = on_one_node(10);
    document.run.backend = "a Linux guest".to_owned();
    for entry in &mut document.journal {
        if let JournalEntry::Began { notices, .. } = entry {
            *notices = vec![numalab_record::study::Notice::SoftwareTlb];
        }
    }
    let page = StudySummary::of(&document).page();
    assert_eq!((&*page.lead[0].name, &*page.lead[1].name), ("Answer", "Under TCG"));
    let said = &page.lead[1].sentence;
    assert!(said.starts_with("Under TCG every access goes through QEMU's software TLB"), "{said}");
    assert_eq!(page.markdown().matches("software TLB").count(), 1);
}

#[test]
fn too_few_baseline_blocks_give_no_assurance() {
    let document = on_one_node(2);
    let text = StudySummary::of(&document).page().markdown();
    let expected = "Too few blocks to tell (2; at least 8 are needed); the baseline differed from itself \
                    by up to 92.9 %.";
    assert!(text.contains(expected), "{text}");
    assert!(!text.contains("differs in 0 of 8 metrics"), "{text}");
    let enough = StudySummary::of(&on_one_node(12)).page().markdown();
    assert!(enough.contains("Compared with itself, the baseline differs in "), "{enough}");
}

/// Without variance every change is detectable, so there is no limit to state.
#[test]
fn no_effect_is_reported_to_be_smaller_than_zero() {
    let metrics = vec![("chase", Quantity::lower("latency", "ns"))];
    let factors = vec![studies::choice("pages", &["4k", "2m"])];
    let made = studies::Made { aa: true, ..studies::Made::of(factors, metrics, 8) };
    let document = made.document(false, |_, _, treatment, _| 100.0 - treatment as f64);
    let text = StudySummary::of(&document).page().markdown();
    assert!(text.contains("Compared with itself, the baseline differs in 0 of 1 metric"), "{text}");
    assert!(!text.contains("could not be detected"), "{text}");
}

#[test]
fn a_study_over_a_number_is_answered_at_each_level_and_by_its_trend() {
    let mut document = studies::scaling();
    document.run.rules.primary = Some("dbench.throughput".to_owned());
    let page = StudySummary::of(&document).page();
    let answer = &page.lead[0].sentence;
    let start = "numa off → on: dbench throughput changes by ";
    assert!(answer.starts_with(start), "{answer}");
    assert!(answer.contains(" % at 4, 8 and 16 guests: "), "{answer}");
    assert!(answer.contains("better at 8 and 16") && answer.contains("at 4"), "{answer}");
    assert_eq!(page.lead[1].name, "Trend");
    let trend = &page.lead[1].sentence;
    assert!(trend.starts_with("effect of numa off → on with each doubling of guests"), "{trend}");
    let picture = page.picture.expect("a picture");
    assert_eq!(picture.table.rows.len(), 3, "a row a level");
}

#[test]
fn a_page_opens_with_the_answer_and_its_picture_and_ends_with_the_method() {
    let mut document = on_one_node(10);
    document.run.rules.primary = Some("a.time".to_owned());
    let html = StudySummary::of(&document).page().html();
    let at = |wanted: &str| html.find(wanted).unwrap_or_else(|| panic!("no {wanted}: {html}"));
    let (answer, picture) = (at("cannot show an effect here"), at("<figure"));
    assert!(answer < picture && picture < at("<nav"), "the picture stands behind the sentence");
    let sections = html.find("<section").expect("evidence");
    let evidence = &html[sections..at("Basis of the verdicts</h2>")];
    let shown = evidence.replace("<details>", "\u{1}");
    let open = shown.matches("<figure").count() - shown.matches("</summary>\n<figure").count();
    assert_eq!(open, 0, "evidence is folded");
    assert!(html.rfind("Before it started").expect("a notice") > sections);
}

#[test]
fn where_no_number_of_blocks_decides_the_page_names_a_better_way() {
    let said = |spread: f64| {
        let metrics = vec![("shell", Quantity::lower("time", "s"))];
        let factors = vec![studies::choice("command", &["A", "B"])];
        let made = studies::Made::of(factors, metrics, 12);
        let document = made.document(false, |_, block, treatment, _| {
            let noise = studies::noise(5 * block + 70 * treatment) - 1.0;
            (1.0 + 0.021 * treatment as f64) * (1.0 + spread * noise)
        });
        StudySummary::of(&document).page().markdown()
    };
    let busy = said(40.0);
    assert!(busy.contains("more blocks, more than are worth running"), "{busy}");
    let decides = "- **What would decide:** More blocks would not: identical runs differ here";
    assert!(busy.contains(decides) && busy.contains("numalab emulate -- COMMAND"), "{busy}");
    assert!(!said(0.1).contains("What would decide"));
}
