//! Finds runs that are in a fleet twice: a directory that was copied under another name.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use super::{KeptRun, Store};

/// A run that is a copy of another, under another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOfRun {
    /// The path of the copy, `HOST/RUN`.
    pub run: String,
    /// The path of the run that is counted.
    pub of: String,
}

impl fmt::Display for CopyOfRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, of } = self;
        write!(f, "{run}: has the start and the samples of {of}: a copy, which is not counted")
    }
}

/// The start in milliseconds and the medians, which two runs never share. A run without figures
/// counts for nothing.
type Identity = (u64, Vec<(usize, u64)>);

fn identity(run: &KeptRun) -> Option<Identity> {
    let medians = run.medians.iter().map(|&(key, median)| (key, median.to_bits()));
    let medians: Vec<_> = medians.collect();
    (!medians.is_empty()).then_some((run.started_unix_ms, medians))
}

impl Store {
    /// Returns the runs that are copies of others; among equal runs, one that is not `new`, or the
    /// first, counts as the original.
    pub(super) fn copies(&self, new: &BTreeSet<&str>) -> Vec<CopyOfRun> {
        let mut runs: Vec<&KeptRun> = self.runs.values().collect();
        runs.sort_by_key(|kept| new.contains(kept.run.as_str()));
        let mut first: HashMap<Identity, &str> = HashMap::new();
        let copies = runs.into_iter().filter_map(|KeptRun { run, .. }| {
            let of = *first.entry(identity(self.runs.get(run)?)?).or_insert(run);
            (of != run).then(|| CopyOfRun { run: run.clone(), of: of.to_owned() })
        });
        copies.collect()
    }
}
