//! Writes the archive that a Linux kernel unpacks as its first root: cpio in the
//! "newc" format (Linux `Documentation/driver-api/early-userspace/buffer-format.rst`).
//!
//! Times are 0 and inodes count up, so the same tree always gives the same bytes.

use std::io::{self, Write};

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;
const CHARACTER: u32 = 0o020_000;
const TRAILER: &str = "TRAILER!!!";

/// Writes entries of a newc archive. A directory must come before what is in it.
#[derive(Debug)]
pub struct CpioWriter<W> {
    out: W,
    written: u64,
    inode: u32,
}

/// One entry's header, as far as it differs between kinds.
struct Header<'a> {
    path: &'a str,
    mode: u32,
    links: u32,
    size: u32,
    device: (u32, u32),
}

impl<W: Write> CpioWriter<W> {
    /// A writer of an archive into `out`.
    pub fn new(out: W) -> Self {
        Self { out, written: 0, inode: 0 }
    }

    /// Adds a directory; `path` without a leading slash.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn directory(&mut self, path: &str, permissions: u32) -> io::Result<()> {
        self.entry(path, DIRECTORY | permissions, &[], (0, 0))
    }

    /// Adds a regular file with this content.
    ///
    /// # Errors
    /// Those of the writer; `InvalidInput` for 4 GiB and more, which the format
    /// has no room for.
    pub fn file(&mut self, path: &str, permissions: u32, content: &[u8]) -> io::Result<()> {
        self.entry(path, REGULAR | permissions, content, (0, 0))
    }

    /// Adds a symbolic link.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn symlink(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.entry(path, SYMLINK | 0o777, target.as_bytes(), (0, 0))
    }

    /// Adds a character device; making one in an archive needs no privilege.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn character_device(
        &mut self,
        path: &str,
        permissions: u32,
        (major, minor): (u32, u32),
    ) -> io::Result<()> {
        self.entry(path, CHARACTER | permissions, &[], (major, minor))
    }

    /// Ends the archive and gives the writer back.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.inode = 0;
        self.header(&Header { path: TRAILER, mode: 0, links: 1, size: 0, device: (0, 0) })?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn entry(
        &mut self,
        path: &str,
        mode: u32,
        content: &[u8],
        device: (u32, u32),
    ) -> io::Result<()> {
        let too_big =
            |_| io::Error::new(io::ErrorKind::InvalidInput, format!("{path}: over 4 GiB"));
        let size = u32::try_from(content.len()).map_err(too_big)?;
        self.inode += 1;
        let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
        self.header(&Header { path, mode, links, size, device })?;
        self.put(content)?;
        self.pad()
    }

    fn header(&mut self, header: &Header) -> io::Result<()> {
        let name_size = header.path.len() + 1;
        let (major, minor) = header.device;
        let text = format!(
            "070701{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}",
            self.inode,
            header.mode,
            0,
            0,
            header.links,
            0,
            header.size,
            0,
            0,
            major,
            minor,
            name_size,
            0
        );
        self.put(text.as_bytes())?;
        self.put(header.path.as_bytes())?;
        self.put(&[0])?;
        self.pad()
    }

    /// Names and contents end on multiples of 4 bytes.
    fn pad(&mut self) -> io::Result<()> {
        let missing = match self.written % 4 {
            0 => 0,
            rest => 4 - rest,
        };
        let zeros: &[u8] = match missing {
            0 => &[],
            1 => &[0],
            2 => &[0; 2],
            _ => &[0; 3],
        };
        self.put(zeros)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_archive_is_only_the_trailer() {
        let bytes = CpioWriter::new(Vec::new()).finish().unwrap();
        let expected = format!("070701{}{:08X}{:08X}", "0".repeat(8 * 4), 1, 0);
        assert_eq!(&bytes[..expected.len()], expected.as_bytes());
        assert_eq!(&bytes[110..121], b"TRAILER!!!\0");
        assert_eq!(bytes.len() % 4, 0);
    }

    #[test]
    fn a_file_has_its_size_mode_and_padded_content() {
        let mut cpio = CpioWriter::new(Vec::new());
        cpio.file("ab", 0o755, b"hello").unwrap();
        let bytes = cpio.finish().unwrap();
        assert_eq!(&bytes[..6], b"070701");
        assert_eq!(&bytes[14..22], b"000081ED");
        assert_eq!(&bytes[54..62], b"00000005");
        // header 110 + "ab\0" = 113, padded to 116
        assert_eq!(&bytes[110..121], b"ab\0\0\0\0hello");
        assert_eq!(&bytes[121..124], [0; 3]);
        assert_eq!(&bytes[124..130], b"070701");
    }

    #[test]
    fn the_same_tree_gives_the_same_bytes() {
        let archive = || {
            let mut cpio = CpioWriter::new(Vec::new());
            cpio.directory("dev", 0o755).unwrap();
            cpio.character_device("dev/console", 0o600, (5, 1)).unwrap();
            cpio.symlink("bin", "usr/bin").unwrap();
            cpio.finish().unwrap()
        };
        assert_eq!(archive(), archive());
    }
}
