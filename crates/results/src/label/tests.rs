//! All labels, one snapshot per kind.

use numalab_record::{
    AccessPattern, BandwidthCell, C2cCell, Cell, FramesCell, IsaName, LoadedCell, Pages,
    StreamKernel,
};
use numalab_topology::{CpuId, NodeId};

use super::*;
use crate::compare::Answer;
use crate::study::{HeldLevel, LevelChange};

fn on(cpu: u32, node: u32) -> WorkerPlan {
    WorkerPlan { cpu: CpuId(cpu), node: NodeId(node) }
}

fn latency(pattern: AccessPattern, size_bytes: u64, pages: Pages, team: Team) -> Experiment {
    Experiment::Latency(LatencyCell { worker: on(3, 1), size_bytes, pattern, pages, team })
}

#[test]
fn a_latency_names_its_worker_its_order_its_size_its_pages_and_who_else_chases() {
    let random = latency(AccessPattern::Random, 1 << 30, Pages::BASE_4K, Team::Serial);
    assert_eq!(experiment(&random), "cpu 3 → node 1, random over 1G, 4k pages, one at a time");
    let stride =
        latency(AccessPattern::Stride(256), 96 << 10, Pages::Transparent, Team::Concurrent);
    assert_eq!(experiment(&stride), "cpu 3 → node 1, stride:256 over 96K, thp pages, all at once");
}

#[test]
fn a_bandwidth_names_its_kernel_its_workers_and_its_instructions() {
    let cell = |workers| {
        let cell = BandwidthCell {
            workers,
            kernel: StreamKernel::Triad,
            pattern: AccessPattern::Sequential,
            size_bytes: 64 << 20,
            pages: Pages::BASE_4K,
            isa: IsaName("avx2".to_owned()),
        };
        experiment(&Experiment::Bandwidth(cell))
    };
    let ending = "64M each, 4k pages, avx2";
    for (workers, words) in [
        (vec![], "no worker"),
        (vec![on(0, 0)], "cpu 0 → node 0"),
        (vec![on(0, 1), on(4, 1), on(5, 1)], "3 cpus → node 1"),
        (vec![on(0, 1), on(4, 0), on(5, 1)], "3 cpus → 2 nodes"),
    ] {
        assert_eq!(cell(workers), format!("triad sequential, {words}, {ending}"));
    }
}

#[test]
fn a_loaded_latency_names_the_chaser_the_load_and_its_throttle() {
    for (delay, words) in
        [(None, "no load"), (Some(0), "full load"), (Some(1), "delay 1"), (Some(250), "delay 250")]
    {
        let cell = LoadedCell {
            chaser: on(0, 0),
            load: vec![on(1, 0), on(2, 0)],
            kernel: StreamKernel::Read,
            delay,
            size_bytes: 64 << 20,
            pages: Pages::BASE_4K,
        };
        let expected = format!("cpu 0 → node 0 against 2 cpus → node 0 read, {words}");
        assert_eq!(experiment(&Experiment::Loaded(cell)), expected);
    }
}

#[test]
fn lines_cores_and_frames_are_named_by_their_cpus() {
    let line = C2cCell { from: CpuId(1), to: CpuId(9), home: NodeId(1) };
    assert_eq!(experiment(&Experiment::C2c(line)), "cpu 1 ↔ cpu 9, line on node 1");
    let core = CoreCell { cpu: CpuId(7) };
    assert_eq!(experiment(&Experiment::Core(core)), "core of cpu 7");
    let frames = |cpus: u32, size_bytes| {
        let cpus = (0..cpus).map(CpuId).collect();
        experiment(&Experiment::Frames(FramesCell { work: "storm".to_owned(), cpus, size_bytes }))
    };
    assert_eq!(frames(1, 0), "storm, 1 cpu");
    assert_eq!(frames(2, 0), "storm, 2 cpus");
    assert_eq!(frames(2, 8 << 20), "storm, 2 cpus, 8M each");
}

fn changed(changes: &[(&str, &str, &str)], held: &[(&str, &str)]) -> Change {
    let changed = changes.iter().map(|(factor, from, to)| LevelChange {
        factor: (*factor).to_owned(),
        from: (*from).to_owned(),
        to: (*to).to_owned(),
    });
    let held = held.iter().map(|(factor, level)| HeldLevel {
        factor: (*factor).to_owned(),
        level: (*level).to_owned(),
    });
    Change { changed: changed.collect(), held: held.collect(), scale: None }
}

#[test]
fn a_change_names_its_factors_with_the_levels_that_others_have() {
    let pages = ("pages", "4k", "2m");
    let guest = ("guest", "off", "on");
    let held = [("host", "on"), ("size", "1G")];
    for (kind, change, expected) in [
        (EffectKind::Main, changed(&[pages], &[]), "pages 4k → 2m"),
        (EffectKind::Within, changed(&[pages], &held), "pages 4k → 2m where host=on, size=1G"),
        (EffectKind::Together, changed(&[pages, guest], &[]), "pages 4k → 2m, guest off → on"),
        (
            EffectKind::Interaction,
            changed(&[pages, guest], &[]),
            "pages 4k → 2m with guest off → on",
        ),
    ] {
        assert_eq!(change_words(kind, &change), expected);
    }
}

#[test]
fn a_trend_is_with_each_doubling_of_its_scale_and_of_an_effect_where_a_factor_changes() {
    let over = |change| Change { scale: Some("guests".to_owned()), ..change };
    let plain = over(changed(&[], &[]));
    assert_eq!(change_words(EffectKind::Trend, &plain), "with each doubling of guests");
    let of_effect = over(changed(&[("pages", "4k", "2m")], &[]));
    let expected = "effect of pages 4k → 2m with each doubling of guests";
    assert_eq!(change_words(EffectKind::Trend, &of_effect), expected);
}

#[test]
fn every_verdict_has_its_word_and_its_mood() {
    let open = Verdict::Inconclusive { further_blocks: Some(3) };
    for (verdict, word, expected) in [
        (Verdict::Better, "better", Mood::Good),
        (Verdict::Worse, "worse", Mood::Bad),
        (Verdict::Equivalent, "equivalent", Mood::Fine),
        (open, "inconclusive", Mood::Odd),
    ] {
        assert_eq!((verdict_word(verdict), mood(verdict)), (word, expected));
        let answer = AnswerWord::from(Answer::Judged(verdict));
        assert_eq!((answer.name(), answer_mood(answer)), (word, expected));
    }
    for answer in [Answer::NotJudged, Answer::SeenOnce].map(AnswerWord::from) {
        // JSON uses the same name.
        assert_eq!(serde_json::to_value(answer).unwrap(), answer.name());
    }
}

#[test]
fn a_compared_row_is_a_cell_or_all_of_a_kind_with_the_metric_where_the_kind_has_more_than_one() {
    let row = |of, metric| ComparedCell {
        of,
        metric,
        means: None,
        change_percent: 0.0,
        spread_percent: None,
        interval_percent: None,
        least_percent: None,
        answer: Answer::NotJudged,
        tail: None,
        pages_differ: None,
    };
    let of_kind = |kind, cells, metric| compared(&row(Compared::Kind { kind, cells }, metric));
    assert_eq!(of_kind("latency", 12, Metric::Latency), "latency, 12 cells");
    assert_eq!(of_kind("loaded", 1, Metric::Latency), "loaded latency, 1 cell");
    assert_eq!(of_kind("loaded", 2, Metric::Bandwidth), "loaded bandwidth, 2 cells");
    assert_eq!(of_kind("c2c", 6, Metric::RoundTrip), "c2c, 6 cells");
    let core = Cell::of(Experiment::Core(CoreCell { cpu: CpuId(2) }));
    assert_eq!(compared(&row(Compared::Cell(core), Metric::CoreClock)), "core of cpu 2");
}
