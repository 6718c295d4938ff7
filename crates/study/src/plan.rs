//! Turns factors into treatments, and treatments into randomised complete blocks.

use std::collections::BTreeMap;

use numalab_record::Kind;
use numalab_record::study::{Arm, FactorKind, StudyRun, Treatment, Visit};
use numalab_stats::Rng;
use numalab_workload::{SpecError, Workload, WorkloadSpec};
use sha2::{Digest, Sha256};

use crate::backend::Scope;
use crate::definition::{Factor, Study};

/// A study with its seed; every order follows from the two.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    study: Study,
    seed: u64,
    treatments: Vec<Treatment>,
    workloads: Vec<Workload>,
}

impl Plan {
    /// Creates the plan of a study.
    ///
    /// # Errors
    /// The [`SpecError`] of the first invalid workload; never for a [parsed](crate::parse) study.
    pub fn new(study: Study, seed: u64) -> Result<Self, SpecError> {
        let workloads = study.workloads.iter().map(WorkloadSpec::resolve);
        let (treatments, workloads) = (treatments(&study), workloads.collect::<Result<_, _>>()?);
        Ok(Self { study, seed, treatments, workloads })
    }

    pub fn study(&self) -> &Study {
        &self.study
    }

    /// Returns the seed of every order.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns every combination of levels; that of the first levels of all factors comes first.
    pub fn treatments(&self) -> &[Treatment] {
        &self.treatments
    }

    /// Returns the workloads, ready to run.
    pub fn workloads(&self) -> &[Workload] {
        &self.workloads
    }

    /// Returns what the study requires of a backend.
    pub fn scope(&self) -> Scope<'_> {
        Scope { treatments: &self.treatments, workloads: &self.workloads }
    }

    /// Returns the number of blocks, including warm-ups.
    pub fn blocks(&self) -> usize {
        self.study.rules.warm_ups + self.study.rules.blocks
    }

    /// Returns the visits of a block in their random order.
    pub fn visits(&self, block: usize) -> Vec<Visit> {
        // Complete blocks: drift of the machine between blocks affects all treatments alike.
        let main = (0..self.treatments.len()).map(|treatment| Visit { treatment, arm: Arm::Main });
        let again = self.study.rules.aa.then_some(Visit { treatment: 0, arm: Arm::Again });
        let mut visits: Vec<Visit> = main.chain(again).collect();
        // Streams 0, 1 and 2 onwards keep the orders of visits, of workloads and the seeds
        // independent: another workload does not change the order of treatments.
        self.rng(block, 0).shuffle(&mut visits);
        visits
    }

    /// Returns the order of the workloads in a block. It is the same under every treatment, since a
    /// workload can be affected by the previous one.
    pub fn workload_order(&self, block: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.workloads.len()).collect();
        self.rng(block, 1).shuffle(&mut order);
        order
    }

    /// Returns the seed of a workload in a block, the same under every treatment.
    pub fn sample_seed(&self, block: usize, workload: usize) -> u64 {
        self.rng(block, 2 + workload as u64).next_u64()
    }

    /// Returns 16 hexadecimal digits of the SHA-256 over everything that decides the work in a
    /// block. The number of blocks, the rule that ends the study and published figures are not
    /// included: a study may be resumed with more blocks.
    pub fn hash(&self) -> String {
        let mut study = self.study.clone();
        study.rules.blocks = 0;
        study.rules.budget_s = None;
        study.rules.precision_percent = None;
        study.published.clear();
        // A seed taken from the clock is part of the plan too, as orders follow from it.
        study.rules.seed = Some(self.seed);
        // Serialising plain data with string keys cannot fail.
        let text = serde_json::to_string(&study).unwrap_or_default();
        Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the facts known before the first sample.
    pub fn run(&self, backend: String, started: Started) -> StudyRun {
        let study = &self.study;
        let shown = |workload: &Workload| numalab_record::study::Workload {
            name: workload.name.clone(),
            command: workload.command.clone(),
        };
        StudyRun {
            schema: Kind::Study.into(),
            version: started.version,
            command: started.command,
            started_unix_ms: started.unix_ms,
            seed: self.seed,
            plan: self.hash(),
            name: study.name.clone(),
            question: study.question.clone(),
            note: study.note.clone(),
            backend,
            factors: study.factors.iter().map(factor).collect(),
            workloads: self.workloads.iter().map(shown).collect(),
            rules: study.rules.clone(),
            treatments: self.treatments.clone(),
            published: study.published.clone(),
        }
    }

    fn rng(&self, block: usize, stream: u64) -> Rng {
        // 2^64 divided by the golden ratio gives neighbouring blocks distant seeds (D. E. Knuth,
        // The Art of Computer Programming 3, 6.4). Journals depend on it.
        let block = (block as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Rng::new(self.seed ^ block.wrapping_add(stream.rotate_left(32)))
    }
}

/// The start of a run: its time, program and command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The version and build of the program.
    pub version: String,
    pub command: Vec<String>,
    /// Milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
}

fn factor(factor: &Factor) -> numalab_record::study::Factor {
    let numbers = match factor.kind {
        FactorKind::Choice => Vec::new(),
        FactorKind::Scale => factor.levels.iter().filter_map(|level| level.number()).collect(),
    };
    numalab_record::study::Factor {
        name: factor.name.clone(),
        kind: factor.kind,
        levels: factor.levels.iter().map(|level| level.name()).collect(),
        numbers,
    }
}

/// Returns every combination of levels, the baseline first.
pub(crate) fn treatments(study: &Study) -> Vec<Treatment> {
    let mut combinations: Vec<Vec<usize>> = vec![Vec::new()];
    for factor in &study.factors {
        let longer = |combination: &Vec<usize>| {
            let combination = combination.clone();
            (0..factor.levels.len()).map(move |level| [&combination[..], &[level]].concat())
        };
        // The last factor varies fastest, so the combination of first levels, the baseline, is
        // number 0.
        combinations = combinations.iter().flat_map(longer).collect();
    }
    combinations.into_iter().map(|levels| treatment(study, levels)).collect()
}

fn treatment(study: &Study, levels: Vec<usize>) -> Treatment {
    let chosen = || study.factors.iter().zip(&levels).map(|(f, level)| (f, &f.levels[*level]));
    let names: Vec<String> =
        chosen().map(|(factor, level)| format!("{}={}", factor.name, level.name())).collect();
    let settings: BTreeMap<_, _> =
        chosen().flat_map(|(factor, level)| level.settings(&factor.name)).collect();
    Treatment { name: names.join(" "), levels, settings }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Backends, parse};

    const STUDY: &str = r#"
        name = "s"
        question = "q?"
        [[factor]]
        name = "pages"
        levels = ["4k", { name = "huge", set = { pages = "2m", pool = 512 } }]
        [[factor]]
        name = "cpus"
        levels = [1, 2, 4]
        [[workload]]
        name = "w"
        command = ["true", "{pages}"]
        metric = [{ name = "t", better = "lower", exit-time = true }]
        [[workload]]
        tool = "sysbench-cpu"
    "#;

    fn plan(seed: u64) -> Plan {
        Plan::new(parse(STUDY, "s.toml", Backends::NONE).unwrap(), seed).unwrap()
    }

    #[test]
    fn every_combination_of_levels_is_a_treatment_the_baseline_first() {
        let plan = plan(1);
        let names: Vec<&str> = plan.treatments().iter().map(|t| t.name.as_str()).collect();
        let expected = ["pages=4k cpus=1", "pages=4k cpus=2", "pages=4k cpus=4"];
        assert_eq!(names[..3], expected);
        assert_eq!((names.len(), names[5]), (6, "pages=huge cpus=4"));
        let settings = &plan.treatments()[5].settings;
        let shown: Vec<String> = settings.iter().map(|(name, v)| format!("{name}={v}")).collect();
        assert_eq!(shown, ["cpus=4", "pages=2m", "pool=512"]);
    }

    #[test]
    fn a_block_has_every_treatment_once_and_the_baseline_again() {
        let plan = plan(7);
        for block in 0..20 {
            let mut visits = plan.visits(block);
            assert_eq!(visits.len(), 7);
            visits.sort_by_key(|visit| (visit.arm, visit.treatment));
            let main: Vec<usize> = visits[..6].iter().map(|visit| visit.treatment).collect();
            assert_eq!(main, [0, 1, 2, 3, 4, 5]);
            assert_eq!(visits[6], Visit { treatment: 0, arm: Arm::Again });
        }
    }

    #[test]
    fn orders_follow_from_the_seed_alone_and_differ_between_blocks() {
        let orders = |seed| (0..12).map(|b| plan(seed).visits(b)).collect::<Vec<_>>();
        assert_eq!(orders(3), orders(3));
        assert_ne!(orders(3), orders(4));
        let firsts: BTreeSet<usize> = orders(3).iter().map(|visits| visits[0].treatment).collect();
        assert!(firsts.len() > 2, "the same treatment comes first: {firsts:?}");
        assert_eq!(plan(3).sample_seed(2, 0), plan(3).sample_seed(2, 0));
        assert_ne!(plan(3).sample_seed(2, 0), plan(3).sample_seed(2, 1));
    }

    #[test]
    fn each_position_in_a_block_is_equally_frequent_for_each_treatment() {
        let plan = plan(11);
        let mut counts = [[0_u32; 7]; 6];
        for block in 0..2_100 {
            for (place, visit) in plan.visits(block).iter().enumerate() {
                if visit.arm == Arm::Main {
                    counts[visit.treatment][place] += 1;
                }
            }
        }
        // 300 expected, standard deviation 16: five of them either way.
        assert!(counts.iter().flatten().all(|count| (220..380).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_hash_covers_the_work_and_not_its_duration() {
        let hash = |change: fn(&mut Study)| {
            let mut study = parse(STUDY, "s.toml", Backends::NONE).unwrap();
            change(&mut study);
            Plan::new(study, 5).unwrap().hash()
        };
        let same = hash(|_| {});
        assert_eq!(same.len(), 16);
        assert_eq!(hash(|study| study.rules.blocks = 99), same);
        assert_eq!(hash(|study| study.rules.budget_s = Some(9.0)), same);
        assert_ne!(hash(|study| study.rules.repeats = 9), same);
        assert_ne!(hash(|study| study.workloads[1].arguments = Some(vec![])), same);
        assert_ne!(
            Plan::new(parse(STUDY, "s.toml", Backends::NONE).unwrap(), 6).unwrap().hash(),
            same
        );
    }

    /// A later numalab that resumes a study must find the same orders, so these values are fixed.
    #[test]
    fn hash_orders_and_seeds_of_a_seed_are_stable() {
        let plan = plan(3);
        let visits = |block| -> Vec<String> {
            let shown = |visit: Visit| match visit.arm {
                Arm::Main => visit.treatment.to_string(),
                Arm::Again => format!("{}again", visit.treatment),
            };
            plan.visits(block).into_iter().map(shown).collect()
        };
        let workloads: Vec<Vec<usize>> = (0..4).map(|block| plan.workload_order(block)).collect();
        let seeds = [(0, 0), (0, 1), (1, 0)].map(|(block, of)| plan.sample_seed(block, of));
        let found = [
            plan.hash(),
            visits(0).join(" "),
            visits(1).join(" "),
            visits(13).join(" "),
            format!("{workloads:?}"),
            format!("{seeds:?}"),
        ];
        let expected = [
            "96b027bba02edaae",
            "2 0again 1 5 4 3 0",
            "1 2 5 0 4 3 0again",
            "3 4 1 0again 0 2 5",
            "[[1, 0], [0, 1], [0, 1], [1, 0]]",
            "[6615889050698921950, 3228562299408511810, 9185129783265416309]",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_question_is_complete_before_the_first_sample() {
        let study = parse(STUDY, "s.toml", Backends::NONE).unwrap();
        let started =
            Started { version: "1.2".to_owned(), command: vec!["numalab".to_owned()], unix_ms: 99 };
        let plan = Plan::new(study, 4).unwrap();
        let run = plan.run("a place".to_owned(), started);
        assert_eq!((run.seed, run.plan, run.started_unix_ms), (4, plan.hash(), 99));
        assert_eq!((run.version.as_str(), run.backend.as_str()), ("1.2", "a place"));
        let factors: Vec<(&str, usize, usize)> = run
            .factors
            .iter()
            .map(|of| (of.name.as_str(), of.levels.len(), of.numbers.len()))
            .collect();
        assert_eq!(factors, [("pages", 2, 0), ("cpus", 3, 0)], "choices have no numbers");
        let names: Vec<&str> = run.workloads.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["w", "sysbench-cpu"]);
        assert_eq!(run.workloads[0].command, ["true", "{pages}"]);
        assert_eq!(run.treatments, plan.treatments());
    }

    #[test]
    fn a_scale_has_the_numbers_of_its_levels() {
        let text = STUDY.replace("name = \"cpus\"", "name = \"cpus\"\nkind = \"scale\"");
        let plan = Plan::new(parse(&text, "s.toml", Backends::NONE).unwrap(), 1).unwrap();
        let started = Started { version: String::new(), command: Vec::new(), unix_ms: 0 };
        let run = plan.run(String::new(), started);
        assert_eq!(run.factors[1].numbers, [1.0, 2.0, 4.0]);
        assert_eq!(run.factors[1].levels, ["1", "2", "4"]);
    }

    #[test]
    fn warm_ups_are_blocks_before_the_judged_ones() {
        let text = format!("{STUDY}[rules]\nblocks = 7\nwarm-ups = 2\n");
        let plan = Plan::new(parse(&text, "s.toml", Backends::NONE).unwrap(), 1).unwrap();
        assert_eq!(plan.blocks(), 9);
    }
}
