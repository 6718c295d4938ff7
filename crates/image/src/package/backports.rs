//! Debian's backports: newer packages for the release that the host runs.

use std::fs;

use super::archive::{Archive, PackageError};
use crate::cache::{Cache, CacheError, EntryKind};

/// The backports of the host's own Debian release, with lists kept in the cache.
///
/// # Errors
/// [`PackageError::NoBackports`] on another system, or if the lists cannot be fetched.
pub fn backports(cache: &Cache, note: &mut dyn FnMut(&str)) -> Result<Archive, PackageError> {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let codename = debian_codename(&release).ok_or_else(|| PackageError::NoBackports {
        system: field(&release, "PRETTY_NAME").unwrap_or("unknown").to_owned(),
    })?;
    note(&format!("fetching the package lists of {codename}-backports"));
    let line = format!(
        "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
         http://deb.debian.org/debian {codename}-backports main"
    );
    let lists = cache.path(EntryKind::Probe, "backports");
    fs::create_dir_all(&lists).map_err(|source| CacheError::Io { path: lists.clone(), source })?;
    Archive::of_source(&line, &lists)
}

/// The codename if `os-release` is Debian's (os-release(5)).
fn debian_codename(release: &str) -> Option<&str> {
    (field(release, "ID") == Some("debian")).then(|| field(release, "VERSION_CODENAME"))?
}

fn field<'a>(release: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix('=');
    release.lines().find_map(value).map(|value| value.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_debian_has_its_backports() {
        let debian = "PRETTY_NAME=\"Debian GNU/Linux 12\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(debian_codename(debian), Some("bookworm"));
        let other = "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n";
        assert_eq!(debian_codename(other), None);
        assert_eq!(debian_codename(""), None);
    }
}
