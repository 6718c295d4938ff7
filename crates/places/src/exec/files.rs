//! The files that a workload reads. The page cache has them on the nodes where another treatment
//! read them, so each sample begins by reading them again under its own treatment.

use std::collections::BTreeSet;
use std::path::PathBuf;

use numalab_host::{cached_bytes, drop_cached};
use numalab_record::study::CachedFile;
use numalab_study::BackendError;

use super::reading::{LEAST_BYTES, reading};

/// Maximum number of times that a sample is taken again because it read a file for the first time.
const MOST_RETAKEN: usize = 2;

/// The files that samples have read so far.
#[derive(Debug, Default)]
pub(crate) struct FilesRead {
    /// True if pages can be on more than one node.
    is_placed: bool,
    known: BTreeSet<PathBuf>,
}

impl FilesRead {
    /// Creates the value for a machine with this number of nodes with memory; on one node, files
    /// are left alone.
    pub(crate) fn on(memory_nodes: usize) -> Self {
        Self { is_placed: memory_nodes > 1, known: BTreeSet::new() }
    }

    /// Runs a workload with the files that it reads in the page cache placed by its own treatment:
    /// they are dropped and read again by an additional run, which is not measured. A run that
    /// reads a file for the first time does not count either.
    pub(crate) fn run<T>(
        &mut self,
        mut run: impl FnMut() -> Result<T, BackendError>,
    ) -> Result<(T, Vec<CachedFile>), BackendError> {
        if !self.is_placed {
            return Ok((run()?, Vec::new()));
        }
        let mut retaken = 0;
        loop {
            let files = self.dropped();
            if files.iter().any(|file| file.dropped_bytes > 0) {
                run()?;
            }
            let (ran, found) = reading(&mut run);
            let ran = ran?;
            let before = self.known.len();
            self.known.extend(found.into_keys());
            if self.known.len() == before || retaken == MOST_RETAKEN {
                return Ok((ran, files));
            }
            retaken += 1;
        }
    }

    /// Drops the known files from the page cache, and returns those that were in it.
    fn dropped(&self) -> Vec<CachedFile> {
        let drop = |path: &PathBuf| {
            let before = cached_bytes(path).ok()?;
            // A file that cannot be dropped is found in the cache again afterwards.
            let _ = drop_cached(path);
            let kept_bytes = cached_bytes(path).unwrap_or(before);
            let dropped_bytes = before.saturating_sub(kept_bytes);
            let path = path.to_string_lossy().into_owned();
            Some(CachedFile { path, dropped_bytes, kept_bytes })
        };
        let files = self.known.iter().filter_map(drop);
        files.filter(|file| file.dropped_bytes.max(file.kept_bytes) >= LEAST_BYTES).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::thread;

    use numalab_host::data_files;

    use super::*;

    const BYTES: u64 = 4 << 20;

    /// A process that keeps the file open until it is dropped.
    struct Reader(Child);

    impl Reader {
        /// Reads the file, and also returns the bytes that were in the page cache before.
        fn start(path: &Path) -> (Self, u64) {
            let cached = cached_bytes(path).unwrap();
            let mut tail = Command::new("tail");
            let child = tail.arg("-f").arg(path).stdout(Stdio::null()).spawn().unwrap();
            while !data_files(child.id()).contains(path) {
                thread::yield_now();
            }
            fs::read(path).unwrap();
            (Self(child), cached)
        }
    }

    impl Drop for Reader {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn a_sample_reads_its_files_anew_before_it_is_measured() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().canonicalize().unwrap().join("model");
        fs::write(&path, vec![1; usize::try_from(BYTES).unwrap()]).unwrap();
        let mut files = FilesRead::on(2);
        let mut sample = || {
            let mut readers = Vec::new();
            let run = || {
                readers.push(Reader::start(&path));
                Ok(())
            };
            let (_, renewed) = files.run(run).unwrap();
            let cached: Vec<u64> = readers.iter().map(|(_, cached)| *cached).collect();
            (cached, renewed)
        };
        let (cached, renewed) = sample();
        // The run that discovers the file, the run that reads it again, and the measured run.
        assert_eq!(cached, [BYTES, 0, BYTES]);
        let path = path.to_string_lossy().into_owned();
        assert_eq!(renewed, [CachedFile { path, dropped_bytes: BYTES, kept_bytes: 0 }]);
        assert_eq!(sample().0, [0, BYTES], "the next sample knows the file");
    }

    #[test]
    fn a_machine_with_one_node_runs_each_sample_once() {
        let mut runs = 0;
        let run = || {
            runs += 1;
            Ok(runs)
        };
        assert_eq!(FilesRead::on(1).run(run).unwrap(), (1, Vec::new()));
    }

    #[test]
    fn files_in_memory_are_reported_as_kept() {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = directory.path().join("segment");
        fs::write(&path, vec![1; usize::try_from(BYTES).unwrap()]).unwrap();
        let files = FilesRead { is_placed: true, known: [path].into() };
        let kept: Vec<u64> = files.dropped().iter().map(|file| file.kept_bytes).collect();
        assert_eq!(kept, [BYTES]);
    }
}
