//! Trust in the cache's files: kernels and programs run only if no other user can have placed them
//! there, and if they have not changed since.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use numalab_guest_agent::sha256;
use serde::{Deserialize, Serialize};

use super::{CacheError, io_at};

/// The file of an entry that records its files' sizes and hashes at creation.
pub(super) const SEAL: &str = ".numalab-seal";
const OTHERS_WRITE: u32 = 0o002;

/// A file of an entry at the time of creation.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sealed {
    path: PathBuf,
    size_bytes: u64,
    sha256: String,
}

/// Rejects an existing directory that others may write to or that belongs to another user; root's
/// are accepted.
pub(super) fn check_owner(directory: &Path) -> Result<(), CacheError> {
    let data = match fs::metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        data => data.map_err(|source| io_at(directory, source))?,
    };
    let user = rustix::process::geteuid().as_raw();
    let path = directory.to_path_buf();
    if data.uid() != user && data.uid() != 0 {
        return Err(CacheError::Foreign { path, owner: data.uid(), user });
    }
    if data.mode() & OTHERS_WRITE != 0 {
        return Err(CacheError::Open { path, mode: data.mode() & 0o7777 });
    }
    Ok(())
}

/// Rejects a name with several path components: it may come from a package's index.
pub(super) fn check_name(name: &str) -> Result<(), CacheError> {
    let mut components = Path::new(name).components();
    let is_one = matches!(components.next(), Some(Component::Normal(part)) if part == name);
    if is_one && !name.contains('\0') {
        return Ok(());
    }
    Err(CacheError::Name { name: name.to_owned() })
}

/// Records the files of an entry, except links.
pub(super) fn seal(entry: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    list(entry, Path::new(""), &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    fs::write(entry.join(SEAL), serde_json::to_vec(&files)?)
}

fn list(entry: &Path, below: &Path, files: &mut Vec<Sealed>) -> io::Result<()> {
    for child in fs::read_dir(entry.join(below))? {
        let child = child?;
        let path = below.join(child.file_name());
        let kind = child.file_type()?;
        if kind.is_dir() {
            list(entry, &path, files)?;
        } else if kind.is_file() {
            files.push(read(entry, path)?);
        }
    }
    Ok(())
}

fn read(entry: &Path, path: PathBuf) -> io::Result<Sealed> {
    let content = fs::read(entry.join(&path))?;
    Ok(Sealed { path, size_bytes: content.len() as u64, sha256: sha256(&content) })
}

/// Returns the first of the `wanted` files (paths in the entry) that has changed since the entry
/// was created, by another user, a crash or a full disk; `None` for an entry of an earlier version,
/// which has no seal.
pub(crate) fn altered(entry: &Path, wanted: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    let seal = entry.join(SEAL);
    let text = match File::open(&seal) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(_) => return Some(seal),
        Ok(mut file) => {
            let mut text = Vec::new();
            file.read_to_end(&mut text).ok().map(|_| text)
        }
    };
    let Some(files) = text.and_then(|text| numalab_host::from_json::<Vec<Sealed>>(&text).ok())
    else {
        return Some(seal);
    };
    let mut wanted = files.into_iter().filter(|file| wanted(&file.path));
    let changed = wanted.find(|file| !is_as_sealed(entry, file))?;
    Some(entry.join(changed.path))
}

fn is_as_sealed(entry: &Path, file: &Sealed) -> bool {
    let place = entry.join(&file.path);
    // A link in place of a file is a change, whatever it points to.
    let is_same_size = fs::symlink_metadata(&place)
        .is_ok_and(|data| data.is_file() && data.len() == file.size_bytes);
    is_same_size && read(entry, file.path.clone()).is_ok_and(|now| now == *file)
}

#[cfg(test)]
mod tests;
