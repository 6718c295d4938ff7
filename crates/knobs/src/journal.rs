//! The journal of prior values, synced to disk before anything is changed.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::error::KnobError;
use numalab_host::Root;
use numalab_host::files::whole_lines;

/// Path of the journal below the root; `/var/lib` survives a crash.
pub const JOURNAL: &str = "var/lib/numalab/knobs.journal";
const LOCK: &str = "var/lib/numalab/knobs.lock";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum JournalLine {
    /// The writer: the boot that the values belong to, and the process.
    Begin { boot: String, pid: u32 },
    /// Prior values by file, before any of these files is written.
    Save(BTreeMap<String, String>),
    /// The file has been restored.
    Restored(String),
}

/// Files and prior values in the order in which they were saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    /// The boot during which the values were read.
    pub(super) boot: String,
    /// The files that have yet to be restored.
    pub(super) saved: Vec<(String, String)>,
}

/// The journal, locked by this process.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    /// Locked while open; the kernel releases it however the process ends.
    _lock: File,
    /// Opened for appending at the first save.
    file: Option<File>,
}

impl Journal {
    /// Takes the lock. The journal itself is created at the first save.
    pub(super) fn hold(root: &Root) -> Result<Self, KnobError> {
        let path = root.path(JOURNAL);
        let lock = root.path(LOCK);
        let failed = |error: &io::Error| no_journal(&path, error);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(|error| failed(&error))?;
        }
        // The lock is on a separate file, because the journal is removed and created again.
        let file = OpenOptions::new().create(true).append(true).open(&lock);
        let file = file.map_err(|error| failed(&error))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| KnobError::Busy { lock })?;
        Ok(Self { path, _lock: file, file: None })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the entries that an earlier process left.
    pub(super) fn left(&self) -> Result<Content, KnobError> {
        match fs::read_to_string(&self.path) {
            Ok(text) => parse(&self.path, &text),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Content::default()),
            Err(error) => Err(no_journal(&self.path, &error)),
        }
    }

    /// Appends prior values; they are on disk when this returns.
    pub(super) fn save(
        &mut self,
        root: &Root,
        values: BTreeMap<String, String>,
    ) -> Result<(), KnobError> {
        if self.file.is_none() {
            self.begin(root)?;
        }
        self.append(&JournalLine::Save(values))
    }

    /// Records that a file has been restored.
    pub(super) fn restored(&mut self, path: &str) -> Result<(), KnobError> {
        if self.file.is_none() {
            self.file = Some(self.reopen()?);
        }
        self.append(&JournalLine::Restored(path.to_owned()))
    }

    /// Removes the journal after everything has been restored.
    pub(super) fn close(&mut self) -> Result<(), KnobError> {
        self.file = None;
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(no_journal(&self.path, &error))
            }
            _ => self.sync_directory(),
        }
    }

    /// Starts a new journal; the old entries have been restored or were undone by a restart.
    fn begin(&mut self, root: &Root) -> Result<(), KnobError> {
        let file = File::create(&self.path).map_err(|error| no_journal(&self.path, &error))?;
        self.file = Some(file);
        let pid = std::process::id();
        self.append(&JournalLine::Begin { boot: root.boot_id(), pid })?;
        self.sync_directory()
    }

    /// Opens the journal of an earlier process, without its unfinished last line, to which the next
    /// entry would otherwise be appended.
    fn reopen(&self) -> Result<File, KnobError> {
        let reopened = || {
            let whole = whole_lines(&fs::read_to_string(&self.path)?).len();
            let file = OpenOptions::new().append(true).open(&self.path)?;
            file.set_len(whole as u64)?;
            Ok(file)
        };
        reopened().map_err(|error| no_journal(&self.path, &error))
    }

    fn append(&mut self, line: &JournalLine) -> Result<(), KnobError> {
        let failed = |error: io::Error| no_journal(&self.path, &error);
        let mut text = serde_json::to_string(line).map_err(|error| failed(error.into()))?;
        text.push('\n');
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).map_err(failed)
    }

    fn sync_directory(&self) -> Result<(), KnobError> {
        // fsync(2) of a file does not cover its directory entry.
        let Some(directory) = self.path.parent() else { return Ok(()) };
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| no_journal(&self.path, &error))
    }
}

fn no_journal(path: &Path, error: &io::Error) -> KnobError {
    let denied =
        matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem);
    KnobError::NoJournal { journal: path.to_owned(), reason: error.to_string(), denied }
}

/// Parses a journal. An unterminated last line was never acted on, because the file is synced
/// before a setting is written.
fn parse(path: &Path, text: &str) -> Result<Content, KnobError> {
    let mut content = Content::default();
    // After a power loss a file can have its length but not its data.
    if let Some(at) = text.find('\0') {
        let line = text[..at].matches('\n').count() + 1;
        let reason = "it holds NUL bytes".to_owned();
        return Err(KnobError::Damaged { journal: path.to_owned(), line, reason });
    }
    for (index, line) in whole_lines(text).lines().enumerate() {
        let parsed: JournalLine =
            serde_json::from_str(line).map_err(|error| KnobError::Damaged {
                journal: path.to_owned(),
                line: index + 1,
                reason: error.to_string(),
            })?;
        match parsed {
            JournalLine::Begin { boot, .. } => content.boot = boot,
            JournalLine::Save(values) => content.saved.extend(values),
            JournalLine::Restored(path) => content.saved.retain(|(saved, _)| *saved != path),
        }
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_text(text: &str) -> Result<Content, KnobError> {
        parse(Path::new("/j"), text)
    }

    #[test]
    fn a_journal_cut_off_anywhere_keeps_every_whole_line() {
        let text = "{\"begin\":{\"boot\":\"b\",\"pid\":7}}\n{\"save\":{\"proc/a\":\"1\"}}\n\
                    {\"save\":{\"proc/b\":\"x [y] \\\"z\\\"\"}}\n{\"restored\":\"proc/a\"}\n";
        for end in 0..=text.len() {
            let content = parse_text(&text[..end]).unwrap();
            let whole = text[..end].matches('\n').count();
            let expected: &[&str] = match whole {
                0 | 1 => &[],
                2 => &["proc/a"],
                3 => &["proc/a", "proc/b"],
                _ => &["proc/b"],
            };
            let paths: Vec<&str> = content.saved.iter().map(|(path, _)| path.as_str()).collect();
            assert_eq!(paths, expected, "{end}");
        }
    }

    /// A process was killed while it wrote; so is the one that restores, after its first file.
    #[test]
    fn a_journal_whose_last_line_was_cut_off_can_be_continued() {
        let whole = "{\"begin\":{\"boot\":\"b\",\"pid\":7}}\n{\"save\":{\"proc/a\":\"1\",\"proc/b\":\"2\"}}\n";
        let directory = tempfile::tempdir().unwrap();
        let root = Root::at(directory.path());
        let path = root.path(JOURNAL);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("{whole}{{\"save\":{{\"proc/c\"")).unwrap();
        Journal::hold(&root).unwrap().restored("proc/a").unwrap();
        let left = Journal::hold(&root).unwrap().left().unwrap();
        assert_eq!(left.saved, [("proc/b".to_owned(), "2".to_owned())]);
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            format!("{whole}{{\"restored\":\"proc/a\"}}\n")
        );
    }

    #[test]
    fn a_damaged_line_is_named() {
        let error = parse_text("{\"begin\":{\"boot\":\"b\",\"pid\":7}}\nnonsense\n").unwrap_err();
        let KnobError::Damaged { line, .. } = &error else { panic!("{error}") };
        assert_eq!(*line, 2);
        assert!(error.to_string().contains("by hand"), "{error}");
        let error = parse_text("\0\0\0\0").unwrap_err().to_string();
        assert!(error.contains("NUL bytes"), "{error}");
    }
}
