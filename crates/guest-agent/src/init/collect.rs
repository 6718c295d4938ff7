//! Sends files of the guest to the host.

use std::fs;
use std::io;
use std::path::Path;

use super::{InitError, Out, lock};
use crate::protocol::{Message, send_file};

/// Sends the file, or all files below the directory, with their paths without the leading slash.
/// Unreadable files are reported, and are not fatal.
pub(super) fn send(path: &str, out: &Out) -> Result<(), InitError> {
    let absolute = Path::new("/root").join(path);
    if let Err(error) = send_below(&absolute, out) {
        let text = format!("{path}: {error} (in the guest)");
        super::send(out, &Message::Complaint(text))?;
    }
    Ok(())
}

fn send_below(path: &Path, out: &Out) -> io::Result<()> {
    let data = fs::symlink_metadata(path)?;
    if data.is_dir() {
        let mut entries = fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        return entries.iter().try_for_each(|entry| send_below(&entry.path(), out));
    }
    let name = path.to_string_lossy();
    send_file(&mut lock(out), path, name.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{FrameReader, FrameWriter};
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_directory_is_sent_recursively_and_a_missing_path_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("b")).unwrap();
        fs::write(directory.path().join("b/c"), "x").unwrap();
        fs::write(directory.path().join("a"), "").unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let out: Out = Arc::new(Mutex::new(FrameWriter::new(file.reopen().unwrap())));
        send(directory.path().to_str().unwrap(), &out).unwrap();
        send("/no/such", &out).unwrap();

        let mut reader = FrameReader::new(file.reopen().unwrap());
        let mut names = Vec::new();
        while let Ok(message) = Message::receive(&mut reader) {
            match message {
                Message::File(header) => names.push(header.path),
                Message::Complaint(text) => names.push(text),
                _ => {}
            }
        }
        assert!(names[0].ends_with("/a") && names[1].ends_with("/b/c"), "{names:?}");
        assert!(names[2].starts_with("/no/such: "), "{names:?}");
    }
}
