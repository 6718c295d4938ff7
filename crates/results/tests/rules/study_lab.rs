//! Synthetic studies, block by block.

use std::collections::BTreeMap;

use numalab_record::study::{
    Arm, Disturbance, EndReason, Factor, FactorKind, JournalEntry, Load, LoadedMachine,
    Observation, Quantity, Reading, Rules, SampleEntry, StudyDocument, StudyRun, Treatment,
    Workload,
};
use numalab_record::{Environment, Kind};

/// Returns a factor with these levels.
pub fn choice(name: &str, levels: &[&str]) -> Factor {
    let levels = levels.iter().map(|level| (*level).to_owned()).collect();
    Factor { name: name.to_owned(), kind: FactorKind::Choice, levels, numbers: Vec::new() }
}

/// Returns a factor of numbers.
pub fn scale(name: &str, numbers: &[f64]) -> Factor {
    let levels = numbers.iter().map(f64::to_string).collect();
    Factor { name: name.to_owned(), kind: FactorKind::Scale, levels, numbers: numbers.to_vec() }
}

/// Returns a small deviation of each block, so that no rank statistic finds ties.
pub fn jitter(block: usize, treatment: usize) -> f64 {
    1.0 + 0.0005 * ((block * 7 + treatment * 5) % 11) as f64
}

/// Returns a study of one workload `w` with all combinations of levels, no warm-ups and no A/A arm.
pub fn run(factors: Vec<Factor>, blocks: usize) -> StudyRun {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for factor in &factors {
        let with = |levels: &Vec<usize>, level| [&levels[..], &[level]].concat();
        let each = |levels: &Vec<usize>| {
            (0..factor.levels.len()).map(|level| with(levels, level)).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(each).collect();
    }
    let named = |levels: Vec<usize>| {
        let word = |(factor, level): (&Factor, &usize)| {
            format!("{}={}", factor.name, factor.levels[*level])
        };
        let name = factors.iter().zip(&levels).map(word).collect::<Vec<_>>().join(" ");
        Treatment { name, levels, settings: BTreeMap::new() }
    };
    let treatments = all.into_iter().map(named).collect();
    StudyRun {
        schema: Kind::Study.into(),
        version: String::new(),
        command: Vec::new(),
        started_unix_ms: 0,
        seed: 3,
        plan: "plan".to_owned(),
        name: "lab".to_owned(),
        question: "q?".to_owned(),
        note: None,
        backend: "this machine".to_owned(),
        factors,
        workloads: vec![Workload { name: "w".to_owned(), command: Vec::new() }],
        rules: Rules { blocks, warm_ups: 0, aa: false, ..Rules::default() },
        treatments,
        published: Vec::new(),
    }
}

pub fn began(kernel: &str) -> JournalEntry {
    let facts = BTreeMap::from([("kernel".to_owned(), kernel.into())]);
    let environment = Environment { facts };
    JournalEntry::Began { plan: "plan".to_owned(), unix_ms: 0, environment, notices: Vec::new() }
}

pub fn ended(reason: EndReason) -> JournalEntry {
    JournalEntry::Ended { reason, unix_ms: 1 }
}

/// Returns a sample of the time of `w`.
pub fn sample(block: usize, treatment: usize, arm: Arm, value: f64) -> SampleEntry {
    let reading = Reading { quantity: Quantity::lower("time", "s"), value };
    SampleEntry {
        block,
        treatment,
        arm,
        workload: 0,
        attempt: 0,
        unix_ms: 0,
        took_s: 1.0,
        observation: Observation { readings: vec![reading], ..Observation::default() },
    }
}

/// Marks a sample as disturbed by other load.
pub fn disturbed(mut sample: SampleEntry) -> SampleEntry {
    let load = Load::Foreign { foreign_ms: 900, of_ms: 1000 };
    sample.observation.disturbances = vec![Disturbance::Load { on: LoadedMachine::Own, load }];
    sample
}

/// Returns one finished session in which every block has a value for each treatment.
pub fn document(run: StudyRun, value: impl Fn(usize, usize) -> f64) -> StudyDocument {
    let mut journal = vec![began("6.1")];
    for block in 0..run.rules.blocks {
        for treatment in 0..run.treatments.len() {
            let of = value(block, treatment) * jitter(block, treatment);
            journal.push(JournalEntry::Sample(sample(block, treatment, Arm::Main, of)));
        }
        if run.rules.aa {
            let of = value(block, 0) * jitter(run.rules.blocks - 1 - block, 0);
            journal.push(JournalEntry::Sample(sample(block, 0, Arm::Again, of)));
        }
    }
    journal.push(ended(EndReason::Done));
    StudyDocument { run, journal }
}
