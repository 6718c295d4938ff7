//! The store's file: lines of JSON, the first with the keys and each other one with a run. It is
//! replaced atomically, so that a killed collection leaves the previous content.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use numalab_host::bounded::read_file;
use numalab_host::files::{remove_drafts_of, write_atomically};
use numalab_host::{from_json, open_locked};
use serde::{Deserialize, Serialize};

use super::copies::CopyOfRun;
use super::{Digest, KeptRun, Key, Store};
use crate::error::FleetError;

const SCHEMA: &str = "numalab/fleet-store-2";
/// First bytes of stores of version 1.
const SQLITE: &[u8] = b"SQLite format 3\0";
/// Size limit: a million runs of a hundred figures each.
const MOST_BYTES: u64 = 4 << 30;
/// Characters of an unexpected first line that a message quotes.
const QUOTED: usize = 60;

/// The first line. Every key is written only here, so that a run takes a few kilobytes.
#[derive(Serialize, Deserialize)]
struct Header<Keys> {
    schema: String,
    keys: Keys,
}

impl Store {
    /// Reads the file.
    ///
    /// # Errors
    /// [`FleetError::NothingCollected`], [`FleetError::Store`], [`FleetError::Sqlite`],
    /// [`FleetError::NoStore`] and [`FleetError::Line`].
    pub fn open(path: &Path) -> Result<Self, FleetError> {
        if !path.exists() {
            return Err(FleetError::NothingCollected { path: path.to_owned() });
        }
        let bytes = read_file(path, MOST_BYTES).map_err(FleetError::store(path))?;
        if bytes.starts_with(SQLITE) {
            return Err(FleetError::Sqlite { path: path.to_owned() });
        }
        // A collection that ended early has created the file and written nothing.
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let mut lines = bytes.split(|&byte| byte == b'\n');
        let mut store =
            Self { keys: keys(path, lines.next().unwrap_or_default())?, ..Self::default() };
        for (line, number) in lines.zip(2..).filter(|(line, _)| !line.is_empty()) {
            let run = from_json(line);
            store.keep(run.map_err(|source| FleetError::Line {
                path: path.to_owned(),
                line: number,
                source,
            })?);
        }
        Ok(store)
    }

    fn text(&self) -> serde_json::Result<String> {
        let header = Header { schema: SCHEMA.to_owned(), keys: &self.keys };
        let mut text = serde_json::to_string(&header)? + "\n";
        for run in self.runs.values() {
            text.push_str(&serde_json::to_string(run)?);
            text.push('\n');
        }
        Ok(text)
    }
}

fn keys(path: &Path, line: &[u8]) -> Result<Vec<Key>, FleetError> {
    match from_json::<Header<Vec<Key>>>(line) {
        Ok(header) if header.schema == SCHEMA => Ok(header.keys),
        _ => Err(FleetError::NoStore {
            path: path.to_owned(),
            first: String::from_utf8_lossy(line).chars().take(QUOTED).collect(),
            expected: SCHEMA,
        }),
    }
}

/// A collection in progress.
#[derive(Debug)]
pub(crate) struct Writing {
    path: PathBuf,
    store: Store,
    positions: HashMap<Key, usize>,
    /// Other collections wait until it is closed.
    _held: File,
}

impl Writing {
    /// Reads or creates the file, after waiting for other collections.
    pub(crate) fn begin(path: &Path) -> Result<Self, FleetError> {
        // Without locks, the file of the last of several concurrent collections stays, and the next
        // collection reads the missing runs.
        let held = open_locked(path, Duration::MAX).map_err(io::Error::from);
        let held = held.map_err(FleetError::store(path))?;
        let store = Store::open(path)?;
        let positions = store.keys.iter().cloned().zip(0..).collect();
        // If the path is a link, its target is replaced.
        let path = fs::canonicalize(path).map_err(FleetError::store(path))?;
        remove_drafts_of(&path);
        Ok(Self { path, store, positions, _held: held })
    }

    /// Returns the content before this collection.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Stores a run, replacing an earlier state of it.
    pub(crate) fn put(&mut self, host: &str, run: &str, fingerprint: &str, digest: Digest) {
        let figures = digest.figures.into_iter();
        let medians: BTreeMap<usize, f64> =
            figures.map(|(key, median)| (self.position(Key::of(key)), median)).collect();
        self.store.keep(KeptRun {
            host: host.to_owned(),
            run: run.to_owned(),
            fingerprint: fingerprint.to_owned(),
            started_unix_ms: digest.started_unix_ms,
            planned: digest.planned,
            ended: digest.ended,
            facts: digest.facts,
            medians: medians.into_iter().collect(),
        });
    }

    fn position(&mut self, key: Key) -> usize {
        let keys = &mut self.store.keys;
        *self.positions.entry(key).or_insert_with_key(|key| {
            keys.push(key.clone());
            keys.len() - 1
        })
    }

    /// Removes runs that are copies of others; among equal runs, one that is not `new`, or the
    /// first, stays.
    pub(crate) fn remove_copies(&mut self, new: &BTreeSet<&str>) -> Vec<CopyOfRun> {
        let copies = self.store.copies(new);
        for CopyOfRun { run, .. } in &copies {
            self.store.runs.remove(run);
        }
        copies
    }

    pub(crate) fn finish(self) -> Result<(), FleetError> {
        let text = self.store.text().map_err(io::Error::from);
        text.and_then(|text| write_atomically(&self.path, &text))
            .map_err(FleetError::store(&self.path))
    }
}
