//! Factors to treatments, and treatments to randomised complete blocks.

use std::collections::BTreeMap;

use numalab_record::study::{Arm, Treatment, Visit};
use numalab_stats::Rng;
use sha2::{Digest, Sha256};

use crate::definition::Study;

/// A study with its seed: every order follows from the two.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    study: Study,
    seed: u64,
    treatments: Vec<Treatment>,
}

impl Plan {
    /// The plan of a study that was checked when it was read.
    #[must_use]
    pub fn new(study: Study, seed: u64) -> Self {
        let treatments = treatments(&study);
        Self { study, seed, treatments }
    }

    /// The study.
    #[must_use]
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// The seed of every order.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Every combination of levels; the first levels of all factors come first.
    #[must_use]
    pub fn treatments(&self) -> &[Treatment] {
        &self.treatments
    }

    /// All blocks, warm-ups included.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.study.rules.warm_ups + self.study.rules.blocks
    }

    /// The visits of a block, in their random order.
    #[must_use]
    pub fn visits(&self, block: usize) -> Vec<Visit> {
        let main = (0..self.treatments.len()).map(|treatment| Visit { treatment, arm: Arm::Main });
        let again = self.study.rules.aa.then_some(Visit { treatment: 0, arm: Arm::Again });
        let mut visits: Vec<Visit> = main.chain(again).collect();
        self.rng(block, 0).shuffle(&mut visits);
        visits
    }

    /// The order of the workloads in a block, the same under every treatment: a workload
    /// feels the one before it.
    #[must_use]
    pub fn workloads(&self, block: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.study.workloads.len()).collect();
        self.rng(block, 1).shuffle(&mut order);
        order
    }

    /// The seed that a workload gets in a block, the same under every treatment.
    #[must_use]
    pub fn sample_seed(&self, block: usize, workload: usize) -> u64 {
        self.rng(block, 2 + workload as u64).next_u64()
    }

    /// SHA-256 over everything that decides what is done in a block, as 16 hexadecimal
    /// digits. How many blocks there are and when the study ends is not in it: a study
    /// may go on with more.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut study = self.study.clone();
        study.rules.blocks = 0;
        study.rules.budget_s = None;
        study.rules.precision_percent = None;
        study.rules.seed = Some(self.seed);
        // Serialising plain data with string keys cannot fail.
        let text = serde_json::to_string(&study).unwrap_or_default();
        Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    fn rng(&self, block: usize, stream: u64) -> Rng {
        let block = (block as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Rng::new(self.seed ^ block.wrapping_add(stream.rotate_left(32)))
    }
}

fn treatments(study: &Study) -> Vec<Treatment> {
    let mut combinations: Vec<Vec<usize>> = vec![Vec::new()];
    for factor in &study.factors {
        let longer = |combination: &Vec<usize>| {
            let combination = combination.clone();
            (0..factor.levels.len()).map(move |level| [&combination[..], &[level]].concat())
        };
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
