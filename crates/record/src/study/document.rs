//! A study's run as one value, and its samples by block.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::definition::{Factor, Rules, Workload};
use super::journal::{JournalEntry, SampleEntry};
use super::plan::{Arm, Treatment};
use super::published::Published;
use crate::kind::{Kind, KindError, file};

/// A study's run, as known before the first sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StudyRun {
    /// The schema of [`Kind::Study`].
    pub schema: String,
    /// The version of numalab.
    pub version: String,
    /// The command line as given.
    pub command: Vec<String>,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// The seed of every random order.
    pub seed: u64,
    /// The plan's hash, which every session of the journal repeats.
    pub plan: String,
    /// The study's name.
    pub name: String,
    /// The question that the study answers.
    pub question: String,
    /// A note that readers need in order to judge the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// A description of where the samples are taken.
    #[serde(alias = "world")]
    pub backend: String,
    /// The factors that are varied.
    pub factors: Vec<Factor>,
    /// The workloads that are run.
    pub workloads: Vec<Workload>,
    /// The size of the study and its stopping rules.
    pub rules: Rules,
    /// Every combination of levels, the baseline first.
    pub treatments: Vec<Treatment>,
    /// Published figures that the study repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
}

/// A study's run with its journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StudyDocument {
    /// Everything known before the first sample.
    #[serde(flatten)]
    pub run: StudyRun,
    /// The journal, in order.
    pub journal: Vec<JournalEntry>,
}

/// The attempt at a cell that counts; neither rule looks at a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The first undisturbed attempt, or the last one if all were disturbed.
    Undisturbed,
    /// The first attempt, disturbed or not.
    First,
}

/// The values of one metric, one row per finished block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells {
    pub blocks: Vec<usize>,
    /// One value per treatment, in the run's order; fewer for a treatment that was dropped.
    pub treatments: Vec<Vec<f64>>,
    /// The values of the repeated baseline; empty without an A/A arm.
    pub again: Vec<f64>,
}

/// An error in the files of a study.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// `run.json` cannot be read, or is of another kind.
    #[error("{name} {0}", name = file::RUN)]
    Run(#[source] KindError),
    /// A complete line of the journal cannot be read.
    #[error("{}, line {line}: {source}", file::JOURNAL)]
    Journal {
        /// The line number, from 1.
        line: usize,
        source: serde_json::Error,
    },
    #[error(
        "{}, line {line}: follows plan {found}, but {} has {expected}",
        file::JOURNAL,
        file::RUN
    )]
    OtherPlan {
        /// The line number, from 1.
        line: usize,
        /// The hash in the journal.
        found: String,
        /// The hash of the run.
        expected: String,
    },
}

impl StudyDocument {
    /// Joins the contents of `run.json` and `journal.jsonl`. An unterminated last line, as a crash
    /// leaves it, is dropped.
    ///
    /// # Errors
    ///
    /// [`StudyError`] names the file, the line and the error.
    pub fn from_files(run: &str, journal: &str) -> Result<Self, StudyError> {
        let run: StudyRun = Kind::Study.read(run).map_err(StudyError::Run)?;
        let journal = parse_journal(journal, &run.plan)?;
        Ok(Self { run, journal })
    }

    /// Returns every sample in time order, including disturbed ones and warm-ups.
    pub fn samples(&self) -> impl Iterator<Item = &SampleEntry> {
        self.journal.iter().filter_map(|entry| match entry {
            JournalEntry::Sample(sample) => Some(sample),
            _ => None,
        })
    }

    /// Returns the sample that counts for each cell, by block, treatment, arm and workload.
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

    /// Returns the treatments that were dropped, each with the first block without it.
    pub fn out(&self) -> BTreeMap<usize, usize> {
        let out = self.journal.iter().filter_map(|entry| match entry {
            JournalEntry::Out { treatment, from_block } => Some((*treatment, *from_block)),
            _ => None,
        });
        out.collect()
    }

    /// Returns the values of a metric in the blocks where every remaining treatment has one;
    /// warm-ups are left out.
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
        // Not a loop over numbers up to the last block, which may be huge in a damaged file.
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

fn parse_journal(text: &str, plan: &str) -> Result<Vec<JournalEntry>, StudyError> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.split('\n').enumerate().filter(|(_, line)| !line.is_empty());
    lines
        .map(|(index, line)| {
            let line_number = index + 1;
            let entry: JournalEntry = serde_json::from_str(line)
                .map_err(|source| StudyError::Journal { line: line_number, source })?;
            match &entry {
                JournalEntry::Began { plan: found, .. } if found != plan => {
                    Err(StudyError::OtherPlan {
                        line: line_number,
                        found: found.clone(),
                        expected: plan.to_owned(),
                    })
                }
                _ => Ok(entry),
            }
        })
        .collect()
}
