//! Two files of numbers compared, and a machine file compared with a run.

use numalab_results::Report;
use numalab_results::machine::{Access, FigurePair, LoadedPlace, MachineComparison, MachineFigure};
use numalab_results::samples::SampleComparison;
use numalab_stats::{Direction, Rng};
use numalab_topology::NodeId;

use crate::whole;

/// Returns values around `middle`, in no order.
fn values(count: usize, middle: f64, seed: u64) -> Vec<f64> {
    let mut rng = Rng::new(seed);
    let mut values: Vec<f64> = (0..count).map(|_| middle * (1.0 + 0.02 * rng.uniform())).collect();
    for value in &mut values {
        *value = (*value * 1e4).round() / 1e4;
    }
    values
}

fn compared(values: [Vec<f64>; 2], direction: Direction) -> SampleComparison {
    let names = ["before.txt", "after.txt"].map(str::to_owned);
    SampleComparison::of(names, values, "ms".to_owned(), direction, 2.0).unwrap()
}

#[test]
fn two_samples_are_as_they_were_in_every_format() {
    let found = compared([values(12, 100.0, 1), values(10, 112.0, 2)], Direction::LowerIsBetter);
    whole::compare("samples", &found);
}

/// Returns the first sentence of a comparison.
fn headline(values: [Vec<f64>; 2]) -> (String, String) {
    let lead = compared(values, Direction::LowerIsBetter).page().lead.remove(0);
    (lead.name, lead.sentence)
}

#[test]
fn an_open_answer_names_the_number_of_values_needed() {
    let (name, sentence) = headline([values(3, 100.0, 1), values(3, 120.0, 2)]);
    assert_eq!(name, "Inconclusive");
    assert!(sentence.ends_with("; at least 10 values on each side are needed"), "{sentence}");
    let noisy = |seed| {
        let mut rng = Rng::new(seed);
        (0..12).map(|_| 100.0 * (0.5 + rng.uniform())).collect::<Vec<f64>>()
    };
    let (name, sentence) = headline([noisy(1), noisy(2)]);
    assert_eq!(name, "Inconclusive");
    assert!(
        sentence.contains("more values on each side")
            || sentence.contains("more values would not settle it"),
        "{sentence}"
    );
}

#[test]
fn drifting_samples_are_undecided_and_the_remedy_is_given() {
    let rising: Vec<f64> = (0..40).map(|at| 100.0 + f64::from(at)).collect();
    let falling: Vec<f64> = rising.iter().rev().copied().collect();
    let found = compared([rising, falling], Direction::LowerIsBetter);
    let page = found.page();
    let notes = &page.parts.iter().find(|part| part.title == "Effects").unwrap().notes;
    assert!(
        notes[0].starts_with("before.txt: values rise in the order taken (p < 1e-12"),
        "{notes:?}"
    );
    assert!(
        notes[1].starts_with("after.txt: values fall in the order taken (p < 1e-12"),
        "{notes:?}"
    );
    assert!(
        notes[0].contains("% above that of the first")
            && notes[1].contains("% below that of the first"),
        "{notes:?}"
    );
    assert!(
        page.lead[0]
            .sentence
            .ends_with("undecided because the values rise or fall in the order taken"),
        "{:?}",
        page.lead
    );
}

#[test]
fn values_that_resemble_the_ones_before_them_are_worth_fewer() {
    let runs = |seed| {
        let mut rng = Rng::new(seed);
        let mut level = 0.0;
        let mut next = || {
            level = 0.8 * level + rng.uniform() - 0.5;
            100.0 + level
        };
        (0..60).map(|_| next()).collect::<Vec<f64>>()
    };
    let found = compared([runs(5), runs(6)], Direction::LowerIsBetter);
    assert!(found.order.autocorrelation > 0.3, "{:?}", found.order);
    let page = found.page();
    let notes = &page.parts.iter().find(|part| part.title == "Effects").unwrap().notes;
    let worth = notes.iter().find(|note| note.contains("lag-1 correlation")).expect("it is said");
    assert!(worth.contains("the 120 are worth about"), "{worth}");
}

fn pair(what: MachineFigure, file: Option<f64>, result: Option<f64>) -> FigurePair {
    let percent = file.zip(result).map(|(file, result)| 100.0 * (result / file - 1.0));
    FigurePair { what, file, result, percent }
}

fn machine() -> MachineComparison {
    let (from, to) = (NodeId(0), NodeId(1));
    let place = |from| LoadedPlace { node: to, from, writes_percent: 33.3 };
    let pairs = vec![
        pair(MachineFigure::Latency { access: Access::Load, from, to }, Some(100.0), Some(104.0)),
        pair(MachineFigure::Latency { access: Access::Store, from, to }, Some(100.0), None),
        pair(MachineFigure::Bandwidth { access: Access::Load, from, to }, Some(50.0), Some(40.0)),
        pair(MachineFigure::Bandwidth { access: Access::Store, from, to }, None, Some(30.0)),
        pair(MachineFigure::CacheHit(2), Some(4.0), Some(4.0)),
        pair(MachineFigure::CacheSize(3), Some(32_768.0), Some(16_384.0)),
        pair(
            MachineFigure::TlbEntries { level: 1, page_bytes: vec![4096, 2 << 20] },
            Some(64.0),
            Some(72.0),
        ),
        pair(MachineFigure::LineWithinGroup, Some(20.0), Some(21.5)),
        pair(MachineFigure::LineBetweenNodes(0, 1), Some(90.0), Some(91.0)),
        pair(MachineFigure::Peak(place(None)), Some(30.0), Some(29.5)),
        pair(MachineFigure::LatencyAtPeak(place(Some(from))), Some(300.0), Some(420.0)),
    ];
    MachineComparison { margin_percent: 10.0, pairs }
}

fn names() -> [String; 2] {
    ["epyc.toml", "results/again"].map(str::to_owned)
}

#[test]
fn the_machine_file_of_a_run_is_unchanged_in_every_format() {
    whole::compare("machine", &machine().document(names()));
}

#[test]
fn the_widest_difference_is_named_and_figures_of_one_side_are_counted_apart() {
    let said = |of: &MachineComparison| of.document(names()).page().lead.remove(0).sentence;
    let expected = "4 of 9 figures differ by more than 10 %; the widest is -50.0 %, size of L3; 2 on one side only.";
    assert!(said(&machine()).contains("the widest is"), "{}", said(&machine()));
    let sentence = said(&machine());
    assert!(sentence.ends_with("2 on one side only."), "{sentence}");
    assert_eq!(sentence, expected);
    let none = MachineComparison { margin_percent: 1.0, pairs: Vec::new() };
    assert_eq!(said(&none), "0 of 0 figures differ by more than 1 %; 0 on one side only.");
}
