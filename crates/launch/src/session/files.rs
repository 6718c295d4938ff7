//! The files that rank 0 writes next to the suite's CSV.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use numalab_host::files::write_atomically;
use numalab_host::{Classed, open_locked};
use numalab_record::RankTable;

use super::SessionError;
use crate::suite::{csv_header, csv_row, mapping_check};

/// Time for the ranks of a killed launcher to end: `mpirun` and `srun` take seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// A CSV that grows row by row under a temporary name, and is renamed when complete.
#[derive(Debug)]
pub(super) struct PartialCsv {
    path: PathBuf,
    part: PathBuf,
    file: File,
}

impl PartialCsv {
    /// Creates the file, discarding rows of an earlier attempt.
    ///
    /// # Errors
    ///
    /// [`SessionError::InUse`] while another run is writing it, [`SessionError::Create`],
    /// [`SessionError::Write`].
    pub fn create(path: &Path, ranks: usize) -> Result<Self, SessionError> {
        let part = with_more(path, ".part");
        let failed = |error| SessionError::Write { path: part.clone(), error };
        let mut file = open_locked(&part, PATIENCE).map_err(|error| match error {
            TryLockError::WouldBlock => SessionError::InUse { path: part.clone() },
            TryLockError::Error(error) => SessionError::Create { path: part.clone(), error },
        })?;
        file.set_len(0).map_err(failed)?;
        file.write_all(csv_header(ranks).as_bytes()).map_err(failed)?;
        Ok(Self { path: path.to_owned(), part, file })
    }

    /// Returns its temporary name.
    pub fn part(&self) -> &Path {
        &self.part
    }

    /// Appends a row with each rank's mean, and syncs it.
    pub fn row(&mut self, size_bytes: u64, means: &[f64]) -> Result<(), SessionError> {
        let before = self.file.metadata().map_or(0, |metadata| metadata.len());
        let row = csv_row(size_bytes, means);
        let written = self.file.write_all(row.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            // Readers of the .part file must find only complete rows.
            let _ = self.file.set_len(before);
            SessionError::Write { path: self.part.clone(), error }
        })
    }

    /// Writes `<stem>.json`, the run in one file, and `mapping_check.log`, and renames the CSV
    /// last, so that its presence implies the others.
    pub fn finish(self, run: &str, table: &RankTable) -> Result<(), SessionError> {
        let write = |path: PathBuf, text: &str| {
            write_atomically(&path, text).map_err(|error| SessionError::Write { path, error })
        };
        write(json_path(&self.path), run)?;
        write(self.path.with_file_name("mapping_check.log"), &mapping_check(table))?;
        let named = self.file.sync_all().and_then(|()| fs::rename(&self.part, &self.path));
        named.map_err(|error| SessionError::Write { path: self.path.clone(), error })?;
        forget_failures(&self.path);
        Ok(())
    }
}

/// Returns `x.json` for `x.csv`; `.json` is appended to other names.
fn json_path(csv: &Path) -> PathBuf {
    if csv.extension().is_some_and(|end| end == "csv") {
        csv.with_extension("json")
    } else {
        with_more(csv, ".json")
    }
}

fn with_more(path: &Path, more: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(more);
    path.with_file_name(name)
}

fn failure_stem(csv: &Path) -> String {
    let name = csv.file_name().unwrap_or_default().to_string_lossy().into_owned();
    format!("{}.rank", name.strip_suffix(".csv").unwrap_or(&name))
}

/// Writes the exit code and the message of a failed rank.
pub(super) fn note_failure(csv: &Path, rank: usize, error: &SessionError) {
    let path = csv.with_file_name(format!("{}{rank}.failed", failure_stem(csv)));
    let text = format!("{}\n{error}\n", error.class().exit_code());
    // If even this cannot be written, only the message on stderr remains.
    let _: io::Result<()> = fs::write(path, text);
}

/// Removes the failure files of an earlier attempt at the same result.
fn forget_failures(csv: &Path) {
    let stem = failure_stem(csv);
    let directory = csv.parent().filter(|parent| !parent.as_os_str().is_empty());
    for entry in fs::read_dir(directory.unwrap_or(Path::new("."))).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&stem) && name.ends_with(".failed") {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_whole_and_the_name_comes_last() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a_1,2MB.csv");
        let mut csv = PartialCsv::create(&path, 2).unwrap();
        csv.row(1 << 20, &[11.534, 2.0]).unwrap();
        let text = fs::read_to_string(directory.path().join("a_1,2MB.csv.part")).unwrap();
        assert_eq!(text, "size (MB),0,1\n1,11.53,2.00\n");
        assert!(!path.exists());
    }

    #[test]
    fn rows_of_an_attempt_that_was_killed_go_and_a_running_one_keeps_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let (path, part) = (directory.path().join("a.csv"), directory.path().join("a.csv.part"));
        fs::write(&part, "size (MB),0\n1,11.53\n2,12.").unwrap();
        let mut csv = PartialCsv::create(&path, 1).unwrap();
        csv.row(1 << 20, &[7.0]).unwrap();
        assert_eq!(fs::read_to_string(&part).unwrap(), "size (MB),0\n1,7.00\n");
        assert!(matches!(open_locked(&part, Duration::ZERO), Err(TryLockError::WouldBlock)));
    }

    #[test]
    fn a_failure_is_noted_and_forgotten_by_success() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        let error = SessionError::Message("x".to_owned());
        note_failure(&path, 3, &error);
        let noted = directory.path().join("a.rank3.failed");
        assert!(fs::read_to_string(&noted).unwrap().starts_with("1\n"));
        forget_failures(&path);
        assert!(!noted.exists());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let error = PartialCsv::create(Path::new("/no/such/a.csv"), 1).unwrap_err();
        let expected = "/no/such/a.csv.part: No such file or directory (os error 2)";
        assert_eq!(error.to_string(), expected);
    }
}
