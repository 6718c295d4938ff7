//! A study's run in one value, and its samples in blocks.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::definition::{Factor, Rules, Workload};
use super::journal::{Entry, SampleEntry};
use super::plan::{Arm, Treatment};
use crate::kind::{Kind, KindError, file};

/// What is known before the first sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyRun {
    /// That of [`Kind::Study`].
    pub schema: String,
    /// The version of numalab.
    pub version: String,
    /// The command line as given.
    pub command: Vec<String>,
    /// Start in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// The seed of every order.
    pub seed: u64,
    /// The plan's hash, which every session of the journal names.
    pub plan: String,
    /// The study's name.
    pub name: String,
    /// What it answers.
    pub question: String,
    /// What a reader must know to judge the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What the place of the samples is, in words.
    #[serde(alias = "world")]
    pub backend: String,
    /// What is varied.
    pub factors: Vec<Factor>,
    /// What is run.
    pub workloads: Vec<Workload>,
    /// How much is run, and when it ends.
    pub rules: Rules,
    /// Every combination of levels, the baseline first.
    pub treatments: Vec<Treatment>,
}

/// A study's run with everything that was written while it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyDocument {
    /// What was known before.
    #[serde(flatten)]
    pub run: StudyRun,
    /// The journal in order.
    pub journal: Vec<Entry>,
}

/// Which attempts of a cell count; neither rule looks at a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The first undisturbed attempt; where all were disturbed, the last.
    Undisturbed,
    /// The first attempt, disturbed or not.
    First,
}

/// The values of one metric, a row for each finished block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells {
    /// The block of each row.
    pub blocks: Vec<usize>,
    /// A value for each treatment, in the run's order; fewer for one that was not tried to the
    /// end.
    pub treatments: Vec<Vec<f64>>,
    /// The baseline once more; empty without an A/A arm.
    pub again: Vec<f64>,
}

/// Why files are no results of a study.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// `run.json` cannot be read, or is of something else.
    #[error("{name} {0}", name = file::RUN)]
    Run(#[source] KindError),
    /// A whole line of the journal cannot be read.
    #[error("{}, line {line}: {source}", file::JOURNAL)]
    Journal {
        /// Line number from 1.
        line: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// The journal is that of another plan.
    #[error(
        "{}, line {line}: follows the plan {found}, {} has {expected}",
        file::JOURNAL,
        file::RUN
    )]
    OtherPlan {
        /// Line number from 1.
        line: usize,
        /// The hash in the journal.
        found: String,
        /// The hash of the run.
        expected: String,
    },
}

impl StudyDocument {
    /// Joins the texts of `run.json` and `journal.jsonl`. A last line without an end, as
    /// a crash leaves it, is dropped.
    ///
    /// # Errors
    /// [`StudyError`] names the file, the line and what is wrong.
    pub fn from_files(run: &str, journal: &str) -> Result<Self, StudyError> {
        let run: StudyRun = Kind::Study.read(run).map_err(StudyError::Run)?;
        let journal = parse_journal(journal, &run.plan)?;
        Ok(Self { run, journal })
    }

    /// Every sample in the order of time, disturbed ones and warm-ups included.
    pub fn samples(&self) -> impl Iterator<Item = &SampleEntry> {
        self.journal.iter().filter_map(|entry| match entry {
            Entry::Sample(sample) => Some(sample),
            _ => None,
        })
    }

    /// The sample that counts for each cell, by block, treatment, arm and workload.
    #[must_use]
    pub fn counted(&self, counted: Counted) -> BTreeMap<(usize, usize, Arm, usize), &SampleEntry> {
        let mut cells: BTreeMap<_, &SampleEntry> = BTreeMap::new();
        for sample in self.samples() {
            let key = (sample.block, sample.treatment, sample.arm, sample.workload);
            let wanted = cells.get(&key).is_none_or(|kept| match counted {
                Counted::Undisturbed => !kept.observation.disturbances.is_empty(),
                Counted::First => false,
            });
            if wanted {
                cells.insert(key, sample);
            }
        }
        cells
    }

    /// The treatments that were not tried to the end, each with the first block without it.
    #[must_use]
    pub fn out(&self) -> BTreeMap<usize, usize> {
        let out = self.journal.iter().filter_map(|entry| match entry {
            Entry::Out { treatment, from_block } => Some((*treatment, *from_block)),
            _ => None,
        });
        out.collect()
    }

    /// The values of a metric in the blocks in which every treatment that was still tried has one;
    /// warm-ups are left out.
    #[must_use]
    pub fn cells(&self, workload: usize, metric: &str, counted: Counted) -> Cells {
        let samples = self.counted(counted);
        let (treatments, aa) = (self.run.treatments.len(), self.run.rules.aa);
        let value = |block, treatment, arm| {
            let sample = samples.get(&(block, treatment, arm, workload))?;
            let mut readings = sample.observation.readings.iter();
            readings.find(|reading| reading.quantity.metric == metric).map(|reading| reading.value)
        };
        let out = self.out();
        let is_tried = |treatment, block| out.get(&treatment).is_none_or(|from| block < *from);
        let mut cells = Cells { treatments: vec![Vec::new(); treatments], ..Cells::default() };
        // Those that there are: a damaged number may be far from all others.
        let blocks: BTreeSet<usize> = samples.keys().map(|key| key.0).collect();
        for block in blocks.into_iter().filter(|block| *block >= self.run.rules.warm_ups) {
            let tried = (0..treatments).filter(|treatment| is_tried(*treatment, block));
            let valued = |at| Some((at, value(block, at, Arm::Main)?));
            let row: Option<Vec<(usize, f64)>> = tried.map(valued).collect();
            let again = value(block, 0, Arm::Again);
            let Some(row) = row.filter(|_| !aa || again.is_some()) else { continue };
            cells.blocks.push(block);
            row.into_iter().for_each(|(at, value)| cells.treatments[at].push(value));
            cells.again.extend(again);
        }
        cells
    }
}

fn parse_journal(text: &str, plan: &str) -> Result<Vec<Entry>, StudyError> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.split('\n').enumerate().filter(|(_, line)| !line.is_empty());
    lines
        .map(|(index, line)| {
            let line_number = index + 1;
            let entry: Entry = serde_json::from_str(line)
                .map_err(|source| StudyError::Journal { line: line_number, source })?;
            match &entry {
                Entry::Began { plan: found, .. } if found != plan => Err(StudyError::OtherPlan {
                    line: line_number,
                    found: found.clone(),
                    expected: plan.to_owned(),
                }),
                _ => Ok(entry),
            }
        })
        .collect()
}
