//! The store of collected runs.

mod copies;
mod file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use numalab_record::Metric;
use numalab_results::fleet::{Family, FigureKey, HostRun};
use serde::{Deserialize, Serialize};

pub use copies::CopyOfRun;
pub(crate) use file::Writing;

/// The digests of all collected runs.
#[derive(Debug, Default)]
pub struct Store {
    keys: Vec<Key>,
    runs: BTreeMap<String, KeptRun>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Digest {
    /// Start time, in milliseconds since 1970.
    pub(crate) started_unix_ms: u64,
    pub(crate) planned: usize,
    /// Number of cells that ended with samples.
    pub(crate) ended: usize,
    /// Facts about the system and its topology by name.
    pub(crate) facts: BTreeMap<String, String>,
    /// The medians of the undisturbed samples.
    pub(crate) figures: Vec<(FigureKey, f64)>,
}

/// The identity of a figure as strings, so that values unknown to this version are kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Key {
    cell: String,
    metric: String,
    family: String,
    memory_node: Option<u32>,
    package: Option<u32>,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct KeptRun {
    host: String,
    run: String,
    /// The fingerprint of the files when they were read.
    fingerprint: String,
    started_unix_ms: u64,
    planned: usize,
    ended: usize,
    facts: BTreeMap<String, String>,
    /// Medians by the index of their key, in ascending order.
    medians: Vec<(usize, f64)>,
}

/// Name of the store in the fleet's directory.
const STORE: &str = "fleet.jsonl";
/// Name of the store in earlier versions.
const EARLIER: &str = "fleet.sqlite";

impl Store {
    /// Returns the file in a fleet's directory.
    pub fn path_in(directory: &Path) -> PathBuf {
        directory.join(STORE)
    }

    /// Returns the store of an earlier version if the directory has no other.
    pub fn earlier_in(directory: &Path) -> Option<PathBuf> {
        let earlier = directory.join(EARLIER);
        (!Self::path_in(directory).exists() && earlier.exists()).then_some(earlier)
    }

    /// Returns the fingerprint of a run's files when it was read.
    pub(crate) fn fingerprint(&self, run: &str) -> Option<&str> {
        Some(&self.runs.get(run)?.fingerprint)
    }

    /// Returns every key, and the last run of every host by its name.
    pub fn latest(&self) -> (Vec<FigureKey>, Vec<HostRun>) {
        let mut keys = Vec::new();
        // A key unknown to this version has no index.
        let places: Vec<Option<usize>> = self
            .keys
            .iter()
            .map(|key| {
                keys.push(key.figure_key()?);
                Some(keys.len() - 1)
            })
            .collect();
        let place = |&(key, median): &(usize, f64)| Some(((*places.get(key)?)?, median));
        let medians = |run: &KeptRun| run.medians.iter().filter_map(place).collect();
        let mut runs_of: BTreeMap<&str, Vec<&KeptRun>> = BTreeMap::new();
        for run in self.runs.values() {
            runs_of.entry(&run.host).or_default().push(run);
        }
        let latest = runs_of.into_values().filter_map(|mut runs| {
            runs.sort_by_key(|run| run.started_unix_ms);
            let last = runs.pop()?;
            Some(HostRun {
                host: last.host.clone(),
                run: last.run.clone(),
                started_unix_ms: last.started_unix_ms,
                planned: last.planned,
                ended: last.ended,
                facts: last.facts.clone(),
                medians: medians(last),
                medians_before: runs.last().copied().map(medians),
            })
        });
        let latest = latest.collect();
        (keys, latest)
    }

    fn keep(&mut self, run: KeptRun) {
        self.runs.insert(run.run.clone(), run);
    }
}

impl Key {
    fn of(key: FigureKey) -> Self {
        Self {
            cell: key.cell,
            metric: key.metric.name().to_owned(),
            family: key.family.name().to_owned(),
            memory_node: key.memory_node,
            package: key.package,
        }
    }

    fn figure_key(&self) -> Option<FigureKey> {
        Some(FigureKey {
            cell: self.cell.clone(),
            metric: Metric::ALL.into_iter().find(|known| known.name() == self.metric)?,
            family: Family::named(&self.family)?,
            memory_node: self.memory_node,
            package: self.package,
        })
    }
}
