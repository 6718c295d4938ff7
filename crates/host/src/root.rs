//! The directory that holds `sys/` and `proc/`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::bounded::read_file;

/// Limit for a file with one value or list. The longest real ones, masks of 8,192 cpus, have about
/// 2,300 bytes.
const VALUE_LIMIT_BYTES: u64 = 64 << 10;

/// Limit for a file with a paragraph for each cpu or mapping: `/proc/cpuinfo` of a thousand cpus
/// has about 2 MiB, `numa_maps` of the 65,530 mappings allowed to a process about 10 MiB.
const DOCUMENT_LIMIT_BYTES: u64 = 64 << 20;

/// A directory that holds `sys/` and `proc/`: the live system's `/`, or a copied tree of another
/// machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    directory: PathBuf,
    live: bool,
}

impl Root {
    /// Returns the running system.
    pub fn live() -> Self {
        Self { directory: PathBuf::from("/"), live: true }
    }

    /// Returns a copied tree.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), live: false }
    }

    /// Reports whether this is the running system, where more than files can be queried.
    pub fn is_live(&self) -> bool {
        self.live
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the path of `relative`, which begins with `sys/` or `proc/`.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.directory.join(relative)
    }

    /// Reads a file with one value or list, without NUL bytes and blanks at its ends; invalid UTF-8
    /// is replaced.
    ///
    /// # Errors
    /// The system's error; a file that is not a regular one or exceeds 64 KiB is refused.
    pub fn value(&self, relative: &str) -> io::Result<String> {
        let bytes = read_file(&self.path(relative), VALUE_LIMIT_BYTES)?;
        let text = String::from_utf8_lossy(&bytes);
        // Lists of some machines end in NUL bytes.
        Ok(text.trim_matches(|c: char| c == '\0' || c.is_whitespace()).to_owned())
    }

    /// Reads a longer file; invalid UTF-8 is replaced.
    ///
    /// # Errors
    /// As [`Root::value`], with a limit of 64 MiB.
    pub fn document(&self, relative: &str) -> io::Result<String> {
        let bytes = read_file(&self.path(relative), DOCUMENT_LIMIT_BYTES)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the arguments with which a process was started, its program's name first; none for a
    /// kernel thread.
    ///
    /// # Errors
    /// As [`Root::value`].
    pub fn arguments(&self, process: u32) -> io::Result<Vec<String>> {
        let line = self.document(&format!("proc/{process}/cmdline"))?;
        let line = line.trim_end_matches('\0');
        let arguments = line.split('\0').map(str::to_owned);
        Ok(if line.is_empty() { Vec::new() } else { arguments.collect() })
    }

    /// Returns the id of the current boot, which distinguishes state left before a restart; empty
    /// if the kernel does not report it.
    pub fn boot_id(&self) -> String {
        self.value("proc/sys/kernel/random/boot_id").unwrap_or_default()
    }

    /// Reads a binary file.
    ///
    /// # Errors
    /// As [`Root::document`].
    pub fn bytes(&self, relative: &str) -> io::Result<Vec<u8>> {
        read_file(&self.path(relative), DOCUMENT_LIMIT_BYTES)
    }

    /// Returns the numbers N of the entries `<prefix>N` in `relative`, ascending; none if the
    /// directory cannot be read.
    pub fn numbered(&self, relative: &str, prefix: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> = self
            .names(relative)
            .iter()
            .filter_map(|name| name.strip_prefix(prefix)?.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Returns the names in the directory `relative`, sorted; none if it cannot be read.
    pub fn names(&self, relative: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(relative)) else {
            return Vec::new();
        };
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_a_process_are_separate_as_they_were_given() {
        let tree = tempfile::tempdir().unwrap();
        let process = tree.path().join("proc/7");
        fs::create_dir_all(&process).unwrap();
        let given = |line: &str| {
            fs::write(process.join("cmdline"), line).unwrap();
            Root::at(tree.path()).arguments(7).unwrap()
        };
        assert_eq!(given("echo\0two words\0\0x\0"), ["echo", "two words", "", "x"]);
        assert!(given("").is_empty());
        assert!(Root::at(tree.path()).arguments(8).is_err());
    }

    #[test]
    fn a_file_beyond_the_limit_is_refused_and_not_read_in_part() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        let write = |name: &str, size: u64| {
            let file = fs::File::create(tree.path().join(name)).unwrap();
            file.set_len(size).unwrap();
        };
        write("value", VALUE_LIMIT_BYTES);
        assert_eq!(root.value("value").unwrap(), "");
        write("value", VALUE_LIMIT_BYTES + 1);
        write("document", DOCUMENT_LIMIT_BYTES + 1);
        for (error, limit) in [
            (root.value("value").unwrap_err(), 65_536),
            (root.document("document").unwrap_err(), 67_108_864),
            (root.bytes("document").unwrap_err(), 67_108_864),
        ] {
            let expected = format!("has more than {limit} bytes");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_tree_without_a_boot_id_has_an_empty_one() {
        let tree = tempfile::tempdir().unwrap();
        assert_eq!(Root::at(tree.path()).boot_id(), "");
        assert_eq!(Root::live().boot_id().len(), 36);
    }
}
