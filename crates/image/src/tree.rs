//! The files of an initramfs, by path, before they are written.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cpio::newc::Builder;

use super::elf;

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
const CHARACTER: u32 = 0o020_000;

/// Top-level directories that are links into `usr`, as in all distributions.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// The files of an initramfs: guest paths without a leading slash.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: BTreeMap<String, Node>,
}

#[derive(Debug)]
enum Node {
    Directory,
    File { permissions: u32, content: Vec<u8> },
    Link(String),
    CharacterDevice(u32, u32),
}

impl Tree {
    /// Creates a tree with the directories and links of every system.
    pub(super) fn new() -> Self {
        let mut tree = Self::default();
        let directories = [
            "dev",
            "etc",
            "proc",
            "root",
            "run",
            "sys",
            "tmp",
            "usr/bin",
            "usr/lib",
            "usr/lib64",
            "usr/sbin",
            "var/lib",
            "var/log",
        ];
        for directory in directories {
            tree.directory(directory);
        }
        for name in MERGED {
            tree.nodes.insert(name.to_owned(), Node::Link(format!("usr/{name}")));
        }
        tree.put("dev/console", Node::CharacterDevice(5, 1));
        tree
    }

    /// Adds a file; the first one at a path is kept.
    pub(super) fn file(&mut self, path: &str, permissions: u32, content: impl Into<Vec<u8>>) {
        let content = content.into();
        self.put(path, Node::File { permissions, content });
    }

    /// Adds a copy of a program of the host without symbols and debugging information, which would
    /// take more of a small guest's memory than the program itself.
    pub(super) fn host_program(&mut self, path: &str, file: &Path) -> io::Result<()> {
        let permissions = fs::metadata(file)?.permissions().mode() & 0o755;
        let loaded = elf::loaded_part(fs::read(file)?).map_err(io::Error::other)?;
        self.file(path, permissions, loaded);
        Ok(())
    }

    /// Adds a copy of a file of the host.
    pub(super) fn host_file(&mut self, path: &str, file: &Path) -> io::Result<()> {
        let permissions = fs::metadata(file)?.permissions().mode() & 0o755;
        self.file(path, permissions, fs::read(file)?);
        Ok(())
    }

    pub(super) fn link(&mut self, path: &str, target: &str) {
        self.put(path, Node::Link(target.to_owned()));
    }

    pub(super) fn directory(&mut self, path: &str) {
        self.put(path, Node::Directory);
    }

    /// Writes the tree as an archive that Linux unpacks as its first root: cpio in the
    /// "newc" format (`Documentation/driver-api/early-userspace/buffer-format.rst`). Times
    /// are 0 and inodes count up, so that the same tree always gives the same bytes.
    pub(super) fn write<W: Write>(&self, mut out: W) -> io::Result<W> {
        for (inode, (path, node)) in (1..).zip(&self.nodes) {
            let (mode, links, device, content) = match node {
                Node::Directory => (DIRECTORY | 0o755, 2, (0, 0), &[][..]),
                Node::File { permissions, content } => {
                    (REGULAR | permissions, 1, (0, 0), content.as_slice())
                }
                Node::Link(target) => (SYMLINK | 0o777, 1, (0, 0), target.as_bytes()),
                Node::CharacterDevice(major, minor) => {
                    (CHARACTER | 0o600, 1, (*major, *minor), &[][..])
                }
            };
            let size = u32::try_from(content.len()).map_err(|_| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("{path}: over 4 GiB"))
            })?;
            let entry = Builder::new(path).ino(inode).mode(mode).nlink(links);
            let entry = entry.rdev_major(device.0).rdev_minor(device.1);
            let mut entry = entry.write(out, size);
            entry.write_all(content)?;
            out = entry.finish()?;
        }
        cpio::newc::trailer(out)
    }

    fn put(&mut self, path: &str, node: Node) {
        let path = merged(path);
        let mut parent = path.as_str();
        while let Some((above, _)) = parent.rsplit_once('/') {
            self.nodes.entry(above.to_owned()).or_insert(Node::Directory);
            parent = above;
        }
        self.nodes.entry(path).or_insert(node);
    }
}

/// Returns the path below `usr` if its first directory is a link into it.
fn merged(path: &str) -> String {
    let path = path.trim_start_matches("./").trim_matches('/');
    let first = path.split('/').next().unwrap_or_default();
    if MERGED.contains(&first) {
        return format!("usr/{path}");
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_links_are_resolved() {
        assert_eq!(merged("/lib64/ld.so"), "usr/lib64/ld.so");
        assert_eq!(merged("./usr/bin/a"), "usr/bin/a");
        assert_eq!(merged("/opt/lib/b"), "opt/lib/b");
    }

    #[test]
    fn directories_come_before_their_contents() {
        let mut tree = Tree::default();
        tree.file("/opt/a/b", 0o644, "x");
        let bytes = tree.write(Vec::new()).unwrap();
        let at = |name: &[u8]| bytes.windows(name.len()).position(|part| part == name);
        assert!(at(b"opt\0") < at(b"opt/a\0"));
        assert!(at(b"opt/a\0") < at(b"opt/a/b\0"));
    }

    #[test]
    fn the_first_file_at_a_path_is_kept() {
        let mut tree = Tree::default();
        tree.file("a", 0o644, "first");
        tree.file("a", 0o644, "second");
        let bytes = tree.write(Vec::new()).unwrap();
        assert!(bytes.windows(5).any(|part| part == b"first"));
        assert!(!bytes.windows(6).any(|part| part == b"second"));
    }

    #[test]
    fn an_entry_has_its_mode_size_and_padded_content_and_the_same_tree_the_same_bytes() {
        let mut tree = Tree::default();
        tree.file("ab", 0o755, "hello");
        let bytes = tree.write(Vec::new()).unwrap();
        assert_eq!(&bytes[..6], b"070701");
        assert_eq!(bytes[14..22].to_ascii_uppercase(), b"000081ED");
        assert_eq!(&bytes[54..62], b"00000005");
        // header 110 + "ab\0" = 113, padded to 116
        assert_eq!(&bytes[110..121], b"ab\0\0\0\0hello");
        assert_eq!(&bytes[121..130], b"\0\0\x00070701");
        let system = || Tree::new().write(Vec::new()).unwrap();
        assert_eq!(system(), system());
        assert_eq!(system().len() % 4, 0);
    }
}
