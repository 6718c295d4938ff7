//! The pages of files in the kernel's page cache. A page is on the node of the cpu that read it
//! first; later memory policies do not move it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise, fdatasync};
use rustix::param::page_size;

use crate::proc::maps;
use crate::syscall;

/// Bytes of a file that are examined at a time.
const WINDOW_BYTES: u64 = 1 << 30;

/// Returns the regular files that a process has open, or has mapped with no executable part.
pub fn data_files(process: u32) -> BTreeSet<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let lines: Vec<_> = maps(&text).filter(|line| line.name.starts_with('/')).collect();
    let is_code = |name: &str| lines.iter().any(|line| line.executable && line.name == name);
    let mapped = lines.iter().filter(|line| !is_code(&line.name));
    let mapped = mapped.map(|line| PathBuf::from(&line.name));
    let opened = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let opened = opened.filter_map(|entry| fs::read_link(entry.path()).ok());
    mapped.chain(opened).filter(|path| path.is_file()).collect()
}

/// Returns the bytes of a file that the page cache has (`mincore(2)`); all of them for a file that
/// this process may neither write nor owns.
///
/// # Errors
/// An I/O error if the file cannot be read.
pub fn cached_bytes(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    let (all, page) = (file.metadata()?.len(), page_size());
    let mut pages = 0;
    for offset in (0..all).step_by(usize::try_from(WINDOW_BYTES).unwrap_or(usize::MAX)) {
        let bytes = usize::try_from((all - offset).min(WINDOW_BYTES)).map_err(io::Error::other)?;
        let found = syscall::pages_cached(file.as_fd(), offset, bytes)?;
        pages += found.iter().filter(|page| **page & 1 == 1).count() as u64;
    }
    Ok((pages * page as u64).min(all))
}

/// Drops a file from the page cache, after writing back what was changed (`posix_fadvise(2)`).
/// Pages that a process maps stay, and so do those of a file system in memory.
///
/// # Errors
/// An I/O error if the file cannot be read or written back.
pub fn drop_cached(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    fdatasync(&file)?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_file_that_was_read_is_cached_until_it_is_dropped() {
        // Not in /tmp, which may be in memory.
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("data");
        fs::write(&path, vec![7; 2 * MIB + 5]).unwrap();
        assert_eq!(cached_bytes(&path).unwrap(), 2 * MIB as u64 + 5);
        drop_cached(&path).unwrap();
        assert_eq!(cached_bytes(&path).unwrap(), 0);
        fs::read(&path).unwrap();
        assert_eq!(cached_bytes(&path).unwrap(), 2 * MIB as u64 + 5);
    }

    #[test]
    fn a_process_names_its_input_but_neither_its_code_nor_its_devices() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("data");
        fs::write(&path, "text").unwrap();
        let mut sleep = Command::new("sleep");
        let input = sleep.arg("60").stdin(File::open(&path).unwrap()).stdout(Stdio::null());
        let mut child = input.spawn().unwrap();
        let found = data_files(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&path), "{found:?}");
        let name = |path: &PathBuf| path.to_string_lossy().into_owned();
        let others = found.iter().map(name).filter(|name| name.contains("libc.so"));
        assert_eq!(others.count(), 0, "{found:?}");
        assert!(!found.contains(Path::new("/dev/null")), "{found:?}");
    }
}
