//! Reads files named by users or made on other hosts up to a limit, so that an endless or huge file
//! is an error at once.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Largest result file, in bytes; 500,000 samples take 51 MB.
pub const MOST_RESULT_BYTES: u64 = 512 << 20;
/// Largest study definition, in bytes; the longest that comes with numalab has 6 KB.
pub const MOST_STUDY_BYTES: u64 = 1 << 20;

/// Reason why a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("is a {0}, expected a file")]
    Kind(&'static str),
    #[error("has more than {most_bytes} bytes")]
    Size { most_bytes: u64 },
}

/// Opens a regular file for reading.
///
/// # Errors
/// The system's error, or one that says that the path is a device, pipe, socket or directory.
pub fn open_file(path: &Path) -> io::Result<File> {
    // open(2) of a pipe without a writer would block before its type can be checked.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    match kind_of(&file)? {
        None => Ok(file),
        Some(kind) => Err(refused(Refusal::Kind(kind))),
    }
}

/// Reads a regular file of at most `most_bytes`.
///
/// # Errors
/// The errors of [`open_file`], or one that says that the file is too large.
pub fn read_file(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    read(open_file(path)?, most_bytes)
}

/// Reads a file or a pipe of at most `most_bytes`: a path on the command line can be a pipe, such
/// as `<(lscpu)`.
///
/// # Errors
/// Like [`read_file`], except that pipes are accepted.
pub fn read_input(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.file_type().is_fifo() {
        return read(File::open(path)?, most_bytes);
    }
    read_file(path, most_bytes)
}

/// Reads a file like [`read_file`], as text.
///
/// # Errors
/// The errors of [`read_file`], and one for text that is neither UTF-8 nor UTF-16.
pub fn read_file_text(path: &Path, most_bytes: u64) -> io::Result<String> {
    text(read_file(path, most_bytes)?)
}

/// Reads a file or a pipe like [`read_input`], as text.
///
/// # Errors
/// The errors of [`read_input`], and one for text that is neither UTF-8 nor UTF-16.
pub fn read_input_text(path: &Path, most_bytes: u64) -> io::Result<String> {
    text(read_input(path, most_bytes)?)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    if let Some(text) = utf_16(&bytes) {
        return Ok(text);
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Decodes UTF-16 with a byte order mark, which `>` in Windows' `PowerShell` writes; replaces invalid
/// characters. `None` for another text.
pub fn utf_16(bytes: &[u8]) -> Option<String> {
    let (units, rest) = match bytes {
        [0xff, 0xfe, rest @ ..] => (u16::from_le_bytes as fn([u8; 2]) -> u16, rest),
        [0xfe, 0xff, rest @ ..] => (u16::from_be_bytes as _, rest),
        _ => return None,
    };
    let (pairs, _) = rest.as_chunks();
    Some(String::from_utf16_lossy(&pairs.iter().copied().map(units).collect::<Vec<u16>>()))
}

/// Names the type of a file that is not a regular one.
fn kind_of(file: &File) -> io::Result<Option<&'static str>> {
    let kind = file.metadata()?.file_type();
    Ok(match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("directory"),
        () if kind.is_fifo() => Some("pipe"),
        () if kind.is_socket() => Some("socket"),
        () => Some("device"),
    })
}

fn read(file: File, most_bytes: u64) -> io::Result<Vec<u8>> {
    let is_larger = |bytes: u64| bytes > most_bytes;
    let too_large = || refused(Refusal::Size { most_bytes });
    // Checked before a buffer of that size is allocated.
    if is_larger(file.metadata()?.len()) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if is_larger(bytes.len() as u64) { Err(too_large()) } else { Ok(bytes) }
}

fn refused(refusal: Refusal) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(result: io::Result<Vec<u8>>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn an_endless_file_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        assert_eq!(said(read_file(&fifo, 10)), "is a pipe, expected a file");
        for read in [read_file, read_input] {
            assert_eq!(said(read(Path::new("/dev/zero"), 10)), "is a device, expected a file");
            assert_eq!(said(read(directory.path(), 10)), "is a directory, expected a file");
        }
        let missing = read_file(&directory.path().join("none"), 10).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_as_large_as_the_limit_is_read_and_a_larger_one_refused_before_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "0123456789").unwrap();
        assert_eq!(read_file(&path, 10).unwrap(), b"0123456789");
        assert_eq!(said(read_file(&path, 9)), "has more than 9 bytes");
        // A sparse file of ten terabytes.
        File::options().write(true).open(&path).unwrap().set_len(10 << 40).unwrap();
        assert_eq!(said(read_input(&path, 100)), "has more than 100 bytes");
        std::fs::write(&path, [0xff, 0xfe, b'1', 0, b'.', 0, b'5', 0]).unwrap();
        assert_eq!(read_file_text(&path, 9).unwrap(), "1.5");
        std::fs::write(&path, [0xfe, 0xff, 0, b'7']).unwrap();
        assert_eq!(read_input_text(&path, 9).unwrap(), "7");
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_file_text(&path, 9).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_pipe_of_the_command_line_is_read_to_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        let writer = std::thread::spawn({
            let fifo = fifo.clone();
            move || std::fs::write(fifo, "abc")
        });
        assert_eq!(read_input_text(&fifo, 10).unwrap(), "abc");
        writer.join().unwrap().unwrap();
    }
}
