//! Files that a guest sends back. A guest is not trusted: it may send any file at any time.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use numalab_guest_agent::protocol::{
    FileHeader, FrameReader, TransferError, receive_content, safe_relative,
};
use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
use rustix::io::Errno;

/// Maximum size of all files of a job together, in bytes.
const MOST_BYTES: u64 = 64 << 30;
/// Maximum number of files of a job.
const MOST_FILES: usize = 100_000;
/// The directory in a guest that relative paths begin from.
const HOME: &str = "/root";

/// The reason why a file of a guest was refused.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    #[error("result channel: the guest sent file {path:?}, expected only those of --collect")]
    NotAsked { path: String },
    #[error(
        "result channel: with {path:?}, of {size_bytes} bytes, the guest sent more than \
         {MOST_FILES} files or {MOST_BYTES} bytes"
    )]
    TooMuch { path: String, size_bytes: u64 },
    /// The file could not be created.
    #[error("{path}: {source}")]
    Create { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Transfer(#[from] TransferError),
}

/// The directory for the files of one job.
#[derive(Debug)]
pub(super) struct Collected<'t> {
    path: &'t Path,
    directory: OwnedFd,
    asked: Vec<PathBuf>,
    left_bytes: u64,
    pub files: Vec<PathBuf>,
}

impl<'t> Collected<'t> {
    /// Opens the directory, which is created if necessary, for these files and directories of the
    /// guest. Those of an earlier job are refused now, and not at the job's end.
    pub fn open(path: &'t Path, asked: &[String]) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let directory = open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let asked: Vec<_> = asked.iter().map(|path| Path::new(HOME).join(path)).collect();
        let mut places = asked.iter().filter_map(|asked| asked.strip_prefix("/").ok());
        if let Some(old) = places.find(|place| path.join(place).symlink_metadata().is_ok()) {
            let said = format!("{} already exists: expected a new directory", old.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, said));
        }
        Ok(Self { path, directory, asked, left_bytes: MOST_BYTES, files: Vec::new() })
    }

    /// Receives one of the requested files. It is created new, with no more permissions than this
    /// user's files have, and no link is followed to it: a link from an earlier job may lead
    /// anywhere.
    pub fn receive<R: Read>(
        &mut self,
        input: &mut FrameReader<R>,
        header: &FileHeader,
    ) -> Result<(), CollectError> {
        let FileHeader { path, permissions, size_bytes } = header;
        let place = safe_relative(self.path, path)?;
        let in_guest = Path::new("/").join(path);
        if !self.asked.iter().any(|asked| in_guest.starts_with(asked)) {
            return Err(CollectError::NotAsked { path: path.clone() });
        }
        let left =
            self.left_bytes.checked_sub(*size_bytes).filter(|_| self.files.len() < MOST_FILES);
        let too_much = || CollectError::TooMuch { path: path.clone(), size_bytes: *size_bytes };
        self.left_bytes = left.ok_or_else(too_much)?;
        let created = self.create(Path::new(path), *permissions);
        let file =
            created.map_err(|source| CollectError::Create { path: place.clone(), source })?;
        receive_content(input, header, (file, &place))?;
        self.files.push(place);
        Ok(())
    }

    /// Creates a file and the directories above it, one component after the other.
    fn create(&self, relative: &Path, permissions: u32) -> io::Result<File> {
        let mut directory = self.directory.try_clone()?;
        let mut parts = relative.components().peekable();
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        while let Some(part) = parts.next() {
            let name = part.as_os_str();
            if parts.peek().is_none() {
                // Other users may write only where this user lets them, whatever the guest says.
                let mode = Mode::from_raw_mode(permissions & 0o755 | 0o600);
                let flags = flags | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                return Ok(openat(&directory, name, flags, mode)?.into());
            }
            match mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            directory = openat(&directory, name, flags | OFlags::DIRECTORY, Mode::empty())?;
        }
        Err(io::ErrorKind::InvalidInput.into())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use numalab_guest_agent::protocol::{FrameWriter, Message};

    use super::*;

    /// Sends one file with these permissions, and then nothing.
    fn sent(
        collected: &mut Collected<'_>,
        path: &str,
        permissions: u32,
    ) -> Result<(), CollectError> {
        let mut bytes = Vec::new();
        Message::Data(b"text".to_vec()).send(&mut FrameWriter::new(&mut bytes)).unwrap();
        let header = FileHeader { path: path.to_owned(), permissions, size_bytes: 4 };
        collected.receive(&mut FrameReader::new(bytes.as_slice()), &header)
    }

    #[test]
    fn requested_files_arrive_with_no_permissions_beyond_this_users() {
        let directory = tempfile::tempdir().unwrap();
        let asked = ["out".to_owned(), "/etc/x".to_owned()];
        let mut collected = Collected::open(directory.path(), &asked).unwrap();
        for (path, permissions) in
            [("root/out/a/b", 0o777), ("root/out/c", 0o000), ("etc/x", 0o640)]
        {
            sent(&mut collected, path, permissions).unwrap();
        }
        for (path, most) in collected.files.iter().zip([0o755, 0o600, 0o640]) {
            let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert!(mode & !most == 0 && mode & 0o600 == 0o600, "{path:?}: {mode:o}");
        }
        for path in ["root/other", "root/outer", "etc/x.y", "root"] {
            let refused = sent(&mut collected, path, 0o644).unwrap_err();
            assert!(matches!(refused, CollectError::NotAsked { .. }), "{path}: {refused}");
        }
    }

    #[test]
    fn no_file_goes_through_a_link_or_replaces_another() {
        let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let victim = elsewhere.path().join("victim");
        fs::write(&victim, "kept").unwrap();
        let asked = ["out".to_owned()];
        let mut collected = Collected::open(directory.path(), &asked).unwrap();
        let out = directory.path().join("root/out");
        fs::create_dir_all(&out).unwrap();
        symlink(elsewhere.path(), out.join("directory")).unwrap();
        symlink(&victim, out.join("file")).unwrap();
        symlink(elsewhere.path().join("new"), out.join("dangling")).unwrap();
        fs::write(out.join("old"), "kept").unwrap();
        for name in ["directory/victim", "directory/new", "file", "dangling", "old"] {
            let refused = sent(&mut collected, &format!("root/out/{name}"), 0o644).unwrap_err();
            assert!(matches!(refused, CollectError::Create { .. }), "{name}: {refused}");
        }
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
        for kept in [victim, out.join("old")] {
            assert_eq!(fs::read_to_string(kept).unwrap(), "kept");
        }
        let again = Collected::open(directory.path(), &asked).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists, "{again}");
    }

    #[test]
    fn a_guest_cannot_fill_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let asked = ["out".to_owned()];
        let mut collected = Collected::open(directory.path(), &asked).unwrap();
        collected.left_bytes = 7;
        sent(&mut collected, "root/out/a", 0o644).unwrap();
        let refused = sent(&mut collected, "root/out/b", 0o644).unwrap_err();
        assert!(matches!(refused, CollectError::TooMuch { size_bytes: 4, .. }), "{refused}");
    }
}
