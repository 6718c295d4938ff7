//! Checks the members of a package's archive before they are used: numalab often runs as root, and
//! a member's name, kind and size are untrusted.

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::process::{ChildStdout, Stdio};

use numalab_host::{CommandError, tool};
use tar::{Entry, EntryType};

use super::error::{MOST_MEMBER_BYTES, MemberError, OWN_PREFIX, PackageError};

const PROGRAM: &str = "dpkg-deb";
/// Limit of a package's uncompressed bytes: a few KB can claim to be terabytes.
const MOST_PACKAGE_BYTES: u64 = 16 << 30;

pub(crate) struct Member<'a> {
    /// The name without `./`.
    pub(crate) path: String,
    pub(crate) entry: Entry<'a, io::Take<ChildStdout>>,
}

impl Member<'_> {
    /// Returns true for a regular file.
    pub(crate) fn is_file(&self) -> bool {
        is_file(self.entry.header().entry_type())
    }
}

/// Calls `take` with each member of the package.
///
/// # Errors
/// [`PackageError`] for a rejected member, an error of `take`, or a damaged package.
pub(crate) fn each_member(
    package: &Path,
    take: &mut dyn FnMut(&mut Member<'_>) -> Result<(), MemberError>,
) -> Result<(), PackageError> {
    let io = |source| PackageError::Io { path: package.to_path_buf(), source };
    let mut command = tool(PROGRAM, ["--fsys-tarfile".as_ref(), package.as_os_str()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => CommandError::NotFound { program: PROGRAM.to_owned() }.into(),
        _ => io(source),
    })?;
    let walked = match child.stdout.take() {
        Some(pipe) => walk(package, pipe.take(MOST_PACKAGE_BYTES), take),
        None => Ok(()),
    };
    // The program's error output is one line, which fits into the pipe.
    let ended = child.wait_with_output().map_err(io)?;
    if ended.status.success() || matches!(walked, Err(PackageError::Member { .. })) {
        return walked;
    }
    let reason = String::from_utf8_lossy(&ended.stderr);
    let mut said = format!("{PROGRAM}: {}: {}", ended.status, reason.trim());
    if let Err(error) = walked {
        said = format!("{error}; {said}");
    }
    Err(io(io::Error::other(said)))
}

/// Unpacks a package below `directory`. Nothing is written outside of it, and nothing in it is a
/// device or setuid.
///
/// # Errors
/// [`PackageError`] for a rejected member, a damaged package, or a file that cannot be written.
pub fn extract(package: &Path, directory: &Path) -> Result<(), PackageError> {
    each_member(package, &mut |member| unpack(member, directory))
}

fn walk(
    package: &Path,
    pipe: io::Take<ChildStdout>,
    take: &mut dyn FnMut(&mut Member<'_>) -> Result<(), MemberError>,
) -> Result<(), PackageError> {
    let io = |source| PackageError::Io { path: package.to_path_buf(), source };
    let mut archive = tar::Archive::new(pipe);
    for entry in archive.entries().map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let taken = checked(&name, entry).and_then(|mut member| take(&mut member));
        taken.map_err(|source| {
            let package = package.to_path_buf();
            PackageError::Member { package, member: name, source }
        })?;
    }
    Ok(())
}

fn checked<'a>(
    name: &str,
    entry: Entry<'a, io::Take<ChildStdout>>,
) -> Result<Member<'a>, MemberError> {
    let path = inside(name).ok_or(MemberError::Name)?;
    if path.starts_with(OWN_PREFIX) {
        return Err(MemberError::Own);
    }
    match entry.header().entry_type() {
        kind if is_file(kind) || matches!(kind, EntryType::Directory | EntryType::Symlink) => {}
        EntryType::Link => {
            let target = entry.link_name_bytes().unwrap_or_default();
            let target = String::from_utf8_lossy(&target).into_owned();
            inside(&target).ok_or(MemberError::HardLink(target))?;
        }
        kind => return Err(MemberError::Kind(kind)),
    }
    match entry.size() {
        0..=MOST_MEMBER_BYTES => Ok(Member { path, entry }),
        size_bytes => Err(MemberError::Size { size_bytes }),
    }
}

const fn is_file(kind: EntryType) -> bool {
    matches!(kind, EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse)
}

/// Returns the name without `./` if it is below the target directory; empty for that directory
/// itself.
fn inside(name: &str) -> Option<String> {
    let mut path = Vec::new();
    for component in Path::new(name).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(part) => path.push(part.to_str()?),
            _ => return None,
        }
    }
    let is_plain = !name.is_empty() && !name.chars().any(char::is_control);
    is_plain.then(|| path.join("/"))
}

fn unpack(member: &mut Member<'_>, directory: &Path) -> Result<(), MemberError> {
    if member.path.is_empty() {
        return Ok(());
    }
    let place = directory.join(&member.path);
    if member.entry.header().entry_type() == EntryType::Directory {
        // An existing path may be a link to another directory of the package.
        stay_inside(&place, directory)?;
        fs::create_dir_all(&place)?;
        return Ok(());
    }
    if let Some(parent) = place.parent() {
        stay_inside(parent, directory)?;
    }
    // Owners and setuid bits are not preserved (tar's default), and no other user may change the
    // programs.
    member.entry.set_mask(0o022);
    if member.entry.unpack_in(directory)? { Ok(()) } else { Err(MemberError::Name) }
}

/// Rejects a path with an existing part outside of `directory`.
fn stay_inside(place: &Path, directory: &Path) -> Result<(), MemberError> {
    let exists = |place: &&Path| fs::symlink_metadata(place).is_ok();
    let Some(existing) = place.ancestors().find(exists) else { return Ok(()) };
    // A dangling link cannot be resolved: it may lead anywhere.
    let real = existing.canonicalize().map_err(|_| MemberError::ThroughLink)?;
    let inside: PathBuf = directory.canonicalize()?;
    if real.starts_with(inside) { Ok(()) } else { Err(MemberError::ThroughLink) }
}

#[cfg(test)]
pub(super) mod tests;
