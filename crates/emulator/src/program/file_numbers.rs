//! Numbers of the files that a process reads and writes by calls.

use std::collections::BTreeMap;

/// Files in the order of their first use: inodes differ from run to run, and the places of pages in the
/// caches must not.
#[derive(Debug, Default)]
pub struct FileNumbers(BTreeMap<u64, u64>);

impl FileNumbers {
    /// Returns the number of the file with this inode.
    pub fn number(&mut self, inode: u64) -> u64 {
        let next = u64::try_from(self.0.len()).unwrap_or(u64::MAX);
        *self.0.entry(inode).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_numbered_by_their_first_use_and_not_by_their_inodes() {
        let numbers = |inodes: [u64; 4]| {
            let mut files = FileNumbers::default();
            inodes.map(|inode| files.number(inode))
        };
        assert_eq!(numbers([70, 9, 70, 8]), [0, 1, 0, 2]);
        assert_eq!(numbers([5, 6, 5, 7]), [0, 1, 0, 2]);
    }
}
