//! Collects new and changed result directories into the store.

mod digest;

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::UNIX_EPOCH;

use numalab_host::bounded::{MOST_RESULT_BYTES, read_file_text};
use numalab_page::number::count;
use numalab_record::{Document, Kind, KindError, file};

use crate::error::FleetError;
use crate::store::{CopyOfRun, Digest, Store, Writing};
use crate::submit::HOSTS;

/// Digests that may wait for the store.
const WAITING: usize = 64;
const PARTS: [&str; 3] = [file::RUN, file::CELLS, file::SAMPLES];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub read: usize,
    /// Runs that had not changed.
    pub unchanged: usize,
    /// Reasons why runs could not be read.
    pub failed: Vec<String>,
    /// Runs that were not stored, because each is a copy of another.
    pub copies: Vec<CopyOfRun>,
}

impl Collected {
    /// Checks that at least one run was readable.
    pub fn expect_any(&self, directory: &Path) -> Result<(), FleetError> {
        match self.read + self.unchanged + self.copies.len() {
            0 => Err(FleetError::NoneReadable {
                path: directory.to_owned(),
                runs: self.failed.len(),
            }),
            _ => Ok(()),
        }
    }
}

impl Display for Collected {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let read = count(self.read, "run");
        write!(f, "{read} read, {} unchanged, {} unreadable", self.unchanged, self.failed.len())
    }
}

/// The numbers of runs that a collection would read, and that have not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreseen {
    pub new: usize,
    pub unchanged: usize,
}

impl Display for Foreseen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} to read, {} unchanged", count(self.new, "run"), self.unchanged)
    }
}

/// A result directory: its host's name, its path, and a fingerprint that changes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FoundResult {
    host: String,
    run: String,
    path: PathBuf,
    fingerprint: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runs {
    found: Vec<FoundResult>,
}

impl Runs {
    /// Finds the runs `directory/hosts/HOST/RUN/`, or without `hosts`.
    ///
    /// # Errors
    /// [`FleetError::Io`], and [`FleetError::Empty`] or [`FleetError::NoFleet`] if there is none.
    pub fn find(directory: &Path) -> Result<Self, FleetError> {
        let hosts = directory.join(HOSTS);
        let directory = if hosts.is_dir() { &hosts } else { directory };
        let found = scan(directory)?;
        match (found.is_empty(), held(directory)) {
            (true, Some(held)) => Err(FleetError::NoFleet { path: directory.to_owned(), held }),
            (true, None) => Err(FleetError::Empty { path: directory.to_owned() }),
            (false, _) => Ok(Self { found }),
        }
    }

    /// Returns the number of runs that [`Runs::collect`] would read, and of those unchanged since
    /// they were collected into the store; without a store all are new.
    pub fn foreseen(&self, store: Option<&Store>) -> Foreseen {
        let new = store.map_or(self.found.len(), |store| self.new_since(store).len());
        Foreseen { new, unchanged: self.found.len() - new }
    }

    /// Returns the runs that are new to the store or have changed.
    fn new_since(&self, store: &Store) -> Vec<&FoundResult> {
        let is_new =
            |found: &&FoundResult| store.fingerprint(&found.run) != Some(&found.fingerprint);
        self.found.iter().filter(is_new).collect()
    }

    /// Reads new and changed runs into the store at `path`, with one thread per cpu. Either all of
    /// them are stored or none. Waits for another collection into the same store.
    ///
    /// # Errors
    /// The errors of [`Store::open`] except [`FleetError::NothingCollected`]. Unreadable runs are
    /// counted, not errors.
    pub fn collect(&self, path: &Path) -> Result<Collected, FleetError> {
        let mut writing = Writing::begin(path)?;
        let new = self.new_since(writing.store());
        let unchanged = self.found.len() - new.len();
        let mut collected = Collected { unchanged, ..Collected::default() };
        each_read(&new, |found, digest| match digest {
            Ok(digest) => {
                writing.put(&found.host, &found.run, &found.fingerprint, digest);
                collected.read += 1;
            }
            Err(reason) => collected.failed.push(format!("{}: {reason}", found.run)),
        });
        if collected.read > 0 {
            let new: BTreeSet<&str> = new.iter().map(|found| found.run.as_str()).collect();
            collected.copies = writing.remove_copies(&new);
            collected.read -=
                collected.copies.iter().filter(|copy| new.contains(copy.run.as_str())).count();
            writing.finish()?;
        }
        Ok(collected)
    }
}

/// Reads the runs on all cpus, and passes each to `taken` on this thread.
fn each_read(runs: &[&FoundResult], mut taken: impl FnMut(&FoundResult, Result<Digest, String>)) {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(runs.len().max(1));
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (send, receive) = mpsc::sync_channel(WAITING);
        for _ in 0..threads {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                while let Some(found) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // The receiver outlives the senders.
                    let _ = send.send((*found, read(&found.path)));
                }
            });
        }
        drop(send);
        receive.iter().for_each(|(found, digest)| taken(found, digest));
    });
}

/// Returns every directory with files of a run two levels below; the first level names the host.
fn scan(directory: &Path) -> Result<Vec<FoundResult>, FleetError> {
    let failed = |path: &Path, source| FleetError::Io { path: path.to_owned(), source };
    let mut found = Vec::new();
    for host in directories(directory).map_err(|error| failed(directory, error))? {
        let name = file_name(&host);
        for path in directories(&host).map_err(|error| failed(&host, error))? {
            if let Some(fingerprint) = fingerprint(&path) {
                let run = format!("{name}/{}", file_name(&path));
                found.push(FoundResult { host: name.clone(), run, path, fingerprint });
            }
        }
    }
    Ok(found)
}

fn directories(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns the kind of results in a directory.
fn held(path: &Path) -> Option<Kind> {
    Kind::of_directory(|name| path.join(name).is_file())
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns lengths and modification times of the files; `None` if there is no run.
fn fingerprint(path: &Path) -> Option<String> {
    let part = |name: &str| {
        let data = fs::metadata(path.join(name)).ok()?;
        let changed = data.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(format!("{}@{}", data.len(), changed.as_nanos()))
    };
    // A run that has lost one of its files is not passed over, but unreadable.
    let parts = PARTS.map(part);
    let is_run = parts.iter().any(Option::is_some);
    is_run.then(|| parts.map(Option::unwrap_or_default).join(" "))
}

fn read(path: &Path) -> Result<Digest, String> {
    if let Some(found) = held(path).filter(|&kind| kind != Kind::Run) {
        return Err(KindError::Other { found, expected: Kind::Run }.to_string());
    }
    let text = |name: &str| {
        read_file_text(&path.join(name), MOST_RESULT_BYTES)
            .map_err(|error| format!("{name}: {error}"))
    };
    let [run, cells, samples] = PARTS.map(text);
    let document = Document::from_files(&run?, &cells?, &samples?);
    document.map(|document| digest::digest(&document)).map_err(|error| error.to_string())
}
