//! Studies listed, shown and planned, settings of backends, and a search for a commit.

use std::collections::BTreeMap;

use numalab_page::Style;
use numalab_record::Kind;
use numalab_record::bisect::{BisectAnswer, BisectDocument, Commit, CommitSide, JudgedCommit};
use numalab_record::study::{
    Arm, BackendSettings, Decision, Decisions, ListedSetting, ListedStudy, Notice, PlannedLevel,
    PlannedStudy, PlannedWorkload, Quantity, Setting, SettingList, ShownStudy, StudyList,
    StudyTime, Visit,
};
use numalab_results::Report;
use numalab_results::bisect::{foreseen_words, mail};
use numalab_results::study::plan::{time_words, too_few_blocks};

use crate::whole;

fn visit(treatment: usize) -> Visit {
    Visit { treatment, arm: Arm::Main }
}

fn plan() -> PlannedStudy {
    let again = Visit { treatment: 0, arm: Arm::Again };
    let decision = |blocks, is_planned, least: [Option<f64>; 2]| Decision {
        blocks,
        is_planned,
        least_percent: least.to_vec(),
    };
    let set = BTreeMap::from([
        ("pages".to_owned(), Setting::Text("2m".to_owned())),
        ("guests".to_owned(), Setting::Integer(4)),
    ]);
    PlannedStudy {
        name: "hugepages".to_owned(),
        question: "Do huge pages help?".to_owned(),
        note: Some("  Boots guests.\n".to_owned()),
        backend: "guests of this machine".to_owned(),
        cannot_run: Some("qemu-system-x86_64 is missing".to_owned()),
        notices: vec![Notice::PolicyWithoutEffect, Notice::VirtualTime],
        memory_bytes: 3 << 29,
        downloads: vec!["linux-image".to_owned(), "sysbench".to_owned()],
        treatments: vec!["pages=4k".to_owned(), "pages=2m".to_owned()],
        levels: vec![PlannedLevel { factor: "pages".to_owned(), level: "2m".to_owned(), set }],
        workloads: vec![PlannedWorkload {
            name: "memory".to_owned(),
            command: ["sysbench", "--a b", "memory"].map(str::to_owned).to_vec(),
            service: Some(vec!["redis-server".to_owned()]),
        }],
        seed: 7,
        warm_ups: 1,
        blocks: (0..6).map(|_| vec![visit(1), visit(0), again]).collect(),
        samples: 18,
        taken: 3,
        time: StudyTime::About { seconds: 754.0 },
        decisions: Decisions {
            primary: Some("memory.rate".to_owned()),
            spreads_percent: vec![1.0, 2.5],
            rows: vec![
                decision(6, true, [Some(2.25), None]),
                decision(12, false, [Some(1.0), Some(2.4)]),
            ],
        },
        fewest_blocks: Some(6),
        fewest_with_added: Some(8),
    }
}

#[test]
fn a_plan_with_everything_in_it_is_as_it_was_in_every_format() {
    whole::compare("plan", &plan());
}

#[test]
fn the_lines_of_a_note_stay_lines_on_a_terminal() {
    let note = Some("Published:\nhost 4k: 154.73\n".to_owned());
    let text = PlannedStudy { note, ..plan() }.page().terminal(Style::Plain);
    assert!(text.contains("Published:\nhost 4k: 154.73\n"), "{text}");
}

/// Returns the lines of a part of a plan.
fn lines(of: &PlannedStudy, title: &str) -> Vec<String> {
    let page = of.page();
    let part = page.parts.iter().find(|part| part.title.starts_with(title));
    let listing = part.and_then(|part| part.listing.clone()).unwrap_or_default();
    listing.lines().map(str::to_owned).collect()
}

#[test]
fn the_order_shows_four_blocks_and_counts_the_others() {
    let mut of = plan();
    let order = lines(&of, "Order");
    assert_eq!(order[0], "  warm-up 1: B, A, A again");
    assert_eq!(order[1], "  block 1: B, A, A again");
    assert_eq!((order.len(), order[4].as_str()), (5, "  ... and 2 more blocks"));
    of.blocks.truncate(4);
    assert_eq!(lines(&of, "Order").len(), 4);
    of.blocks = vec![vec![visit(25), visit(26)]];
    of.warm_ups = 0;
    assert_eq!(lines(&of, "Order"), ["  block 1: Z, T27"], "there are 26 letters");
}

#[test]
fn a_plan_without_obstacles_prints_only_its_size() {
    let of = PlannedStudy {
        note: None,
        cannot_run: None,
        notices: Vec::new(),
        memory_bytes: 0,
        downloads: Vec::new(),
        levels: Vec::new(),
        taken: 0,
        fewest_blocks: None,
        fewest_with_added: None,
        ..plan()
    };
    let said: Vec<(String, String)> =
        of.page().lead.into_iter().map(|lead| (lead.name, lead.sentence)).collect();
    let plan = ("Plan".to_owned(), "18 samples in 6 blocks, about 13 min".to_owned());
    assert_eq!(said, [plan]);
    assert!(lines(&of, "Levels").is_empty() && !lines(&of, "Workloads").is_empty());
}

#[test]
fn decidable_effects_are_a_table_of_blocks_by_spread() {
    let found = lines(&plan(), "Detectable changes");
    assert_eq!(found[0], "The smallest change in memory.rate that four of five studies detect,");
    assert_eq!(found[2], "  blocks       1 %     2.5 %");
    assert_eq!(found[3], "       6     2.2 %   nothing  as planned");
    assert_eq!(found[4], "      12     1.0 %     2.4 %");
}

#[test]
fn a_time_is_in_the_unit_that_people_use_and_says_where_it_is_from() {
    let about = |seconds| time_words(&StudyTime::About { seconds });
    assert_eq!(
        [about(40.0), about(119.4), about(120.0), about(7199.0)],
        ["about 40 s", "about 119 s", "about 2 min", "about 120 min"]
    );
    assert_eq!(about(12_600.0), "about 3.5 h");
    assert_eq!(time_words(&StudyTime::Budget { seconds: 300.0 }), "5 min, its budget");
    let most = |seconds| time_words(&StudyTime::AtMost { seconds });
    assert_eq!(most(900.0), "at most 15 min by the time limits of its workloads");
    assert_eq!(most(901.0), "the first block shows how long it takes");
    let few = too_few_blocks([9, 11]);
    assert!(few.starts_with("too few blocks") && few.contains("need at least 9, or 11"), "{few}");
}

fn listed(name: &str, blocks: usize) -> ListedStudy {
    ListedStudy {
        name: name.to_owned(),
        question: "Does it, or not?".to_owned(),
        blocks,
        time: StudyTime::Budget { seconds: 60.0 },
    }
}

#[test]
fn a_list_of_studies_is_as_it_was_in_every_format() {
    whole::compare(
        "study-list",
        &StudyList { studies: vec![listed("noise", 1), listed("tiering", 21)] },
    );
}

#[test]
fn a_study_that_is_shown_is_a_study_to_edit() {
    let toml = "name = \"noise\"\n[rules]\nblocks = 1\n".to_owned();
    let study = serde_json::json!({"name": "noise"});
    let shown = ShownStudy { line: listed("noise", 1), toml, study };
    assert_eq!(
        shown.terminal(Style::Colour),
        "# 1 block, 60 s, its budget\nname = \"noise\"\n[rules]\nblocks = 1\n"
    );
    whole::compare("study-shown", &shown);
}

fn setting(name: &str, default: Option<&str>) -> ListedSetting {
    ListedSetting {
        name: name.to_owned(),
        about: format!("what {name} does"),
        expected: "a number, or none".to_owned(),
        default: default.map(str::to_owned),
    }
}

#[test]
fn settings_of_backends_are_as_they_were_in_every_format() {
    let backend = |name: &str, settings, levels| BackendSettings {
        backend: name.to_owned(),
        about: format!("the {name}"),
        settings,
        levels,
    };
    let backends = vec![
        backend(
            "linux-guest",
            vec![setting("cpus", Some("2")), setting("kernel", None)],
            vec![setting("pages", None)],
        ),
        backend("host", Vec::new(), vec![setting("knobs", None)]),
    ];
    whole::compare("settings", &SettingList { backends });
}

fn commit(letter: &str) -> Commit {
    Commit {
        hash: letter.repeat(40),
        subject: format!("mm: change {letter} | <b>"),
        author: "A <a@b.org>".to_owned(),
    }
}

fn judged(
    letter: &str,
    samples: &[f64],
    change_percent: Option<f64>,
    side: CommitSide,
) -> JudgedCommit {
    JudgedCommit {
        commit: commit(letter),
        build_s: 62.5,
        samples: samples.to_vec(),
        change_percent,
        side,
    }
}

fn bisection() -> BisectDocument {
    BisectDocument {
        schema: Kind::Bisect.into(),
        version: "1".to_owned(),
        command: ["numalab", "study", "bisect", "a b"].map(str::to_owned).to_vec(),
        started_unix_ms: 0,
        study: "tiering".to_owned(),
        backend: "a guest".to_owned(),
        treatment: "balancing=2".to_owned(),
        workload: "probe".to_owned(),
        quantity: Quantity::lower("latency", "ns"),
        error_percent: 1.0,
        margin_percent: 2.0,
        most_samples: 32,
        candidates: 24,
        good: judged("a", &[100.0, 101.0], Some(0.0), CommitSide::Good),
        bad: judged("b", &[120.0, 122.0, 121.0], Some(20.4), CommitSide::Bad),
        judged: vec![
            judged("c", &[119.0], Some(18.4), CommitSide::Bad),
            judged("d", &[], None, CommitSide::NotBuilt("mm/x.c:7: error".to_owned())),
            judged("e", &[110.0, 111.0], Some(9.9), CommitSide::Undecided),
            judged("f", &[], None, CommitSide::NotRun("no boot".to_owned())),
            judged("0", &[], None, CommitSide::Open),
        ],
        answer: Some(BisectAnswer::FirstBad { commit: commit("c") }),
    }
}

#[test]
fn a_bisection_with_its_mail_is_as_it_was_in_every_format() {
    whole::compare("bisect", &bisection());
}

#[test]
fn a_bisection_is_described_before_its_first_build() {
    let words = foreseen_words(&bisection(), 5);
    assert!(words.starts_with("latency of probe, balancing=2, in a guest\n24 commits after aaaa"));
    assert!(words.contains("at most 5 are built in addition to aaaa"), "{words}");
}

#[test]
fn without_a_commit_there_is_no_mail_and_the_reason_is_given() {
    for (answer, words) in [
        (None, "the search was interrupted"),
        (Some(BisectAnswer::NotWorse), "does not get worse by more than 2"),
        (Some(BisectAnswer::EndsUndecided), "32 samples do not show"),
        (Some(BisectAnswer::Interrupted), "the search was interrupted"),
        (Some(BisectAnswer::OneOf { commits: vec![commit("c"), commit("b")] }), "one of cccc"),
    ] {
        let found = BisectDocument { answer, ..bisection() };
        assert_eq!(mail(&found), None);
        let page = found.page().markdown();
        assert!(page.contains(words), "{words}: {page}");
        let rows = found.rows().expect("samples");
        assert_eq!(rows.rows.len(), 2 + 3 + 1 + 2, "a row for each sample");
    }
}

#[test]
fn the_mail_leaves_the_last_commit_out_where_that_is_the_first_bad_one() {
    let last = BisectDocument {
        answer: Some(BisectAnswer::FirstBad { commit: commit("b") }),
        ..bisection()
    };
    let text = mail(&last).expect("a commit");
    assert!(text.contains("  first bad  bbbbbbbbbbbb         121 ns  (3 samples)\n"), "{text}");
    assert!(!text.contains("  bad "), "{text}");
    let unknown = BisectDocument {
        answer: Some(BisectAnswer::FirstBad { commit: commit("9") }),
        ..bisection()
    };
    assert_eq!(mail(&unknown), None, "it was not judged");
}
