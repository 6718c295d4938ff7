//! Synthetic studies with fixed numbers.

use std::collections::BTreeMap;

use numalab_record::study::*;
use numalab_record::{Environment, Fact, Kind, NoEffect};

/// Returns a disturbance by other processes that ran this long within two seconds.
pub fn disturbed_by(foreign_ms: u64) -> Disturbance {
    let load = Load::Foreign { foreign_ms, of_ms: 2000 };
    Disturbance::Load { on: LoadedMachine::Own, load }
}

/// The parts of a study.
pub struct Made {
    pub factors: Vec<Factor>,
    pub metrics: Vec<(&'static str, Quantity)>,
    pub blocks: usize,
    pub aa: bool,
    pub notices: Vec<Notice>,
    pub end: Option<EndReason>,
}

/// Returns a factor of choices.
pub fn choice(name: &str, levels: &[&str]) -> Factor {
    let levels = levels.iter().map(|level| (*level).to_owned()).collect();
    Factor { name: name.to_owned(), kind: FactorKind::Choice, levels, numbers: Vec::new() }
}

pub fn scale(name: &str, numbers: &[f64]) -> Factor {
    let levels = numbers.iter().map(f64::to_string).collect();
    let numbers = numbers.to_vec();
    Factor { name: name.to_owned(), kind: FactorKind::Scale, levels, numbers }
}

impl Made {
    pub fn of(factors: Vec<Factor>, metrics: Vec<(&'static str, Quantity)>, blocks: usize) -> Self {
        Self {
            factors,
            metrics,
            blocks,
            aa: false,
            notices: Vec::new(),
            end: Some(EndReason::Done),
        }
    }

    /// Returns the study in which metric `m` has `value(m, block, treatment, again)`; the first
    /// sample of every seventh cell is disturbed and ten times as large.
    pub fn document(
        &self,
        disturbed: bool,
        value: impl Fn(usize, usize, usize, bool) -> f64,
    ) -> StudyDocument {
        let run = self.run();
        let mut journal = vec![JournalEntry::Began {
            plan: run.plan.clone(),
            unix_ms: run.started_unix_ms,
            environment: environment(),
            notices: self.notices.clone(),
        }];
        let mut taken = 0;
        for block in 0..self.blocks {
            let mut visits: Vec<(usize, Arm)> =
                (0..run.treatments.len()).map(|treatment| (treatment, Arm::Main)).collect();
            visits.extend(self.aa.then_some((0, Arm::Again)));
            let shift = block % visits.len();
            visits.rotate_left(shift);
            for (treatment, arm) in visits {
                journal.push(JournalEntry::Applied(applied(block, treatment, arm, &run)));
                for (metric, (_, quantity)) in self.metrics.iter().enumerate() {
                    taken += 1;
                    let value = value(metric, block, treatment, arm == Arm::Again);
                    let mut attempt = 0;
                    let mut add = |value: f64, disturbances: Vec<Disturbance>| {
                        let reading = Reading { quantity: quantity.clone(), value };
                        let counters =
                            BTreeMap::from([("numa_hint_faults".to_owned(), 10.0 * value)]);
                        journal.push(JournalEntry::Sample(SampleEntry {
                            block,
                            treatment,
                            arm,
                            workload: metric,
                            attempt,
                            unix_ms: run.started_unix_ms + 1000 * taken,
                            took_s: 1.0,
                            observation: Observation {
                                readings: vec![reading],
                                counters,
                                disturbances,
                                ..Observation::default()
                            },
                        }));
                        attempt += 1;
                    };
                    if disturbed && taken % 7 == 0 {
                        add(10.0 * value, vec![disturbed_by(120)]);
                    }
                    add(value, Vec::new());
                }
            }
        }
        if let Some(reason) = self.end.clone() {
            journal
                .push(JournalEntry::Ended { reason, unix_ms: run.started_unix_ms + 1000 * taken });
        }
        StudyDocument { run, journal }
    }

    fn run(&self) -> StudyRun {
        let workload = |(name, _): &(&str, Quantity)| Workload {
            name: (*name).to_owned(),
            command: vec!["bench".to_owned(), format!("--{name}"), "<all>".to_owned()],
        };
        StudyRun {
            schema: Kind::Study.into(),
            version: "0.1.0".to_owned(),
            command: ["numalab", "study", "run", "s"].map(str::to_owned).to_vec(),
            started_unix_ms: 1_795_228_980_000,
            seed: 7,
            plan: "00112233aabbccdd".to_owned(),
            name: "s".to_owned(),
            question: "Do larger pages help?".to_owned(),
            note: None,
            backend: "this machine".to_owned(),
            factors: self.factors.clone(),
            workloads: self.metrics.iter().map(workload).collect(),
            rules: Rules { blocks: self.blocks, warm_ups: 0, aa: self.aa, ..Rules::default() },
            treatments: treatments(&self.factors),
            published: Vec::new(),
        }
    }
}

fn treatments(factors: &[Factor]) -> Vec<Treatment> {
    let mut combinations: Vec<Vec<usize>> = vec![Vec::new()];
    for factor in factors {
        let longer = |levels: &Vec<usize>| {
            let levels = levels.clone();
            (0..factor.levels.len()).map(move |level| [&levels[..], &[level]].concat())
        };
        combinations = combinations.iter().flat_map(longer).collect();
    }
    let treatment = |levels: Vec<usize>| {
        let names = factors.iter().zip(&levels);
        let names: Vec<String> =
            names.map(|(f, level)| format!("{}={}", f.name, f.levels[*level])).collect();
        Treatment { name: names.join(" "), levels, settings: BTreeMap::new() }
    };
    combinations.into_iter().map(treatment).collect()
}

fn applied(block: usize, treatment: usize, arm: Arm, run: &StudyRun) -> Applied {
    let wanted = &run.treatments[treatment].name;
    let evidence = vec![Evidence::of("levels", wanted, wanted)];
    Applied { block, treatment, arm, took_s: 0.5, evidence }
}

fn environment() -> Environment {
    let facts = [
        ("architecture", "x86_64"),
        ("cpu_model", "Some CPU @ 2GHz"),
        ("cpus", "8"),
        ("nodes", "1"),
        ("kernel", "6.1.0"),
        ("load_average", "0.1 0.2 0.3 1/100 9"),
    ];
    let owned = |(name, value): (&str, &str)| (name.to_owned(), Fact::read(name, value));
    Environment { facts: facts.into_iter().map(owned).collect() }
}

/// Returns pseudorandom noise of about one percent, the same in every run.
pub fn noise(index: usize) -> f64 {
    let step = (index * 7919 + 104_729) % 1_009;
    1.0 + 0.02 * (f64::from(u16::try_from(step).expect("below 1009")) / 1_009.0 - 0.5)
}

/// Returns a study of pages and guests, two levels each, with three metrics: one better, one worse,
/// one unchanged.
pub fn two_by_two() -> StudyDocument {
    let metrics = vec![
        ("chase", Quantity::lower("latency", "ns")),
        ("copy", Quantity::higher("rate", "MiB/s")),
        ("idle", Quantity::lower("time", "s")),
    ];
    let factors = vec![choice("host", &["off", "on"]), choice("guest", &["off", "on"])];
    let made = Made { aa: true, ..Made::of(factors, metrics, 12) };
    made.document(true, |metric, block, treatment, again| {
        let drift = 1.0 + 0.02 * block as f64;
        let (host, guest) = (treatment / 2 == 1, treatment % 2 == 1);
        let effect = match metric {
            0 if host && guest => 0.72,
            0 if host => 0.9,
            0 if guest => 0.8,
            1 if guest => 0.95,
            _ => 1.0,
        };
        let index = metric + 5 * block + 70 * treatment + usize::from(again) * 991;
        100.0 * drift * effect * noise(index)
    })
}

/// Returns a study with and without a patch on 4 to 16 guests; the gain grows.
pub fn scaling() -> StudyDocument {
    let metrics = vec![("dbench", Quantity::higher("throughput", "MB/s"))];
    let factors = vec![choice("numa", &["off", "on"]), scale("guests", &[4.0, 8.0, 16.0])];
    Made::of(factors, metrics, 8).document(false, |_, block, treatment, _| {
        let (on, doublings) = (treatment / 3 == 1, treatment % 3);
        let gain = if on { 1.0 + 0.1 * doublings as f64 } else { 1.0 };
        600.0
            * 1.6_f64.powi(i32::try_from(doublings).expect("small"))
            * gain
            * noise(9 * block + treatment)
    })
}

/// Returns a study of published single figures of four treatments; one block shows nothing.
pub fn one_block() -> StudyDocument {
    let metrics = vec![("memory", Quantity::higher("rate", "MiB/s"))];
    let factors = vec![choice("host", &["off", "on"]), choice("guest", &["off", "on"])];
    let figures = [154.73, 173.47, 164.75, 177.50];
    Made::of(factors, metrics, 1).document(false, |_, _, treatment, _| figures[treatment])
}

/// Returns a study in virtual time, in which every block has the same values.
pub fn without_variance() -> StudyDocument {
    let metrics = vec![("chase", Quantity::lower("latency", "ns"))];
    let reason = NoEffect::OneNode;
    let notices = vec![Notice::KnobWithoutEffect { knob: "numa_balancing".to_owned(), reason }];
    let made =
        Made { notices, ..Made::of(vec![choice("numa_balancing", &["0", "1"])], metrics, 5) };
    made.document(false, |_, _, treatment, _| if treatment == 1 { 106.0 } else { 226.0 })
}

/// Returns a study that was interrupted in its first block.
pub fn begun() -> StudyDocument {
    let metrics = vec![("w", Quantity::lower("t", "s"))];
    let made = Made { end: None, ..Made::of(vec![choice("v", &["a", "b"])], metrics, 4) };
    let mut document = made.document(false, |_, _, _, _| 1.0);
    document.journal.truncate(3);
    document
}

pub fn all() -> [(&'static str, StudyDocument); 5] {
    [
        ("two-by-two", two_by_two()),
        ("scaling", scaling()),
        ("one-block", one_block()),
        ("without-variance", without_variance()),
        ("begun", begun()),
    ]
}
