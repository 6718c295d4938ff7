//! Files over the channel.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use super::frame::{FrameError, FrameReader, FrameWriter, MAX_PAYLOAD_BYTES};
use super::message::{FileHeader, Message};

/// Reasons why a file was not transferred.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The channel failed.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("file name {path:?} from the guest: expected a relative path without \"..\"")]
    UnsafePath { path: String },
    /// The stream had something else in place of the file's content.
    #[error("file {path}: {missing} bytes missing")]
    Interrupted { path: String, missing: u64 },
}

/// Sends a file under the name `path`.
///
/// The size is that at the start: a file that shrinks meanwhile is padded with zeros, one that
/// grows is truncated, so that the frames stay in step.
///
/// # Errors
/// The file's errors, before anything was sent, and the writer's.
pub fn send_file<W: Write>(out: &mut FrameWriter<W>, file: &Path, path: &str) -> io::Result<()> {
    let mut content = File::open(file)?;
    let data = content.metadata()?;
    let header = FileHeader {
        path: path.to_owned(),
        permissions: data.permissions().mode() & 0o777,
        size_bytes: data.len(),
    };
    let mut left = header.size_bytes;
    Message::File(header).send(out)?;
    while left > 0 {
        let mut part = vec![0; usize::try_from(left).unwrap_or(usize::MAX).min(MAX_PAYLOAD_BYTES)];
        read_what_is_there(&mut content, &mut part)?;
        left -= part.len() as u64;
        Message::Data(part).send(out)?;
    }
    Ok(())
}

fn read_what_is_there(content: &mut File, part: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < part.len() {
        match content.read(&mut part[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(())
}

/// Receives the content that follows `header` into the file `place` of a guest, from its host.
pub fn receive_file<R: Read>(
    input: &mut FrameReader<R>,
    header: &FileHeader,
    place: &Path,
) -> Result<(), TransferError> {
    let at = |source| TransferError::File { path: place.to_path_buf(), source };
    if let Some(directory) = place.parent() {
        fs::create_dir_all(directory).map_err(at)?;
    }
    let mut open = OpenOptions::new();
    open.write(true).create(true).truncate(true).mode(header.permissions & 0o777);
    receive_content(input, header, (open.open(place).map_err(at)?, place))
}

/// Receives the content that follows `header` into an open file, with its path for messages.
pub fn receive_content<R: Read>(
    input: &mut FrameReader<R>,
    header: &FileHeader,
    (mut file, place): (File, &Path),
) -> Result<(), TransferError> {
    let at = |source| TransferError::File { path: place.to_path_buf(), source };
    let mut left = header.size_bytes;
    while left > 0 {
        let interrupted =
            || TransferError::Interrupted { path: header.path.clone(), missing: left };
        let Message::Data(bytes) = Message::receive(input)? else {
            return Err(interrupted());
        };
        left = left.checked_sub(bytes.len() as u64).ok_or_else(interrupted)?;
        file.write_all(&bytes).map_err(at)?;
    }
    Ok(())
}

/// Returns the path below `directory`, if the name from the other side stays within it.
pub fn safe_relative(directory: &Path, path: &str) -> Result<PathBuf, TransferError> {
    let relative = Path::new(path);
    let plain = |part: Component| matches!(part, Component::Normal(_));
    if path.is_empty() || !relative.components().all(plain) {
        return Err(TransferError::UnsafePath { path: path.to_owned() });
    }
    Ok(directory.join(relative))
}

#[cfg(test)]
mod tests {
    use super::super::job::Exit;
    use super::*;

    #[test]
    fn a_file_of_several_frames_arrives_complete_with_its_permissions() {
        let directory = tempfile::tempdir().unwrap();
        let from = directory.path().join("from");
        let content: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[0] ^ 0x5a).collect();
        fs::write(&from, &content).unwrap();
        fs::set_permissions(&from, fs::Permissions::from_mode(0o750)).unwrap();
        let mut bytes = Vec::new();
        send_file(&mut FrameWriter::new(&mut bytes), &from, "a/b").unwrap();

        let mut reader = FrameReader::new(bytes.as_slice());
        let Message::File(header) = Message::receive(&mut reader).unwrap() else {
            panic!("no header");
        };
        let to = safe_relative(directory.path(), &header.path).unwrap();
        receive_file(&mut reader, &header, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), content);
        assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o750);
    }

    #[test]
    fn names_outside_the_directory_are_refused() {
        let directory = Path::new("/results");
        for path in ["", "/etc/passwd", "../x", "a/../../x", "."] {
            assert!(safe_relative(directory, path).is_err(), "{path:?}");
        }
        let fine = safe_relative(directory, "a/b.txt").unwrap();
        assert_eq!(fine, Path::new("/results/a/b.txt"));
    }

    #[test]
    fn missing_content_is_an_error_with_the_missing_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let header = FileHeader { path: "x".to_owned(), permissions: 0o644, size_bytes: 10 };
        let mut bytes = Vec::new();
        let mut writer = FrameWriter::new(&mut bytes);
        Message::Data(vec![0; 4]).send(&mut writer).unwrap();
        Message::Exit(Exit::Code(0)).send(&mut writer).unwrap();
        let mut reader = FrameReader::new(bytes.as_slice());
        let error = receive_file(&mut reader, &header, &directory.path().join("x")).unwrap_err();
        assert_eq!(error.to_string(), "file x: 6 bytes missing");
    }
}
