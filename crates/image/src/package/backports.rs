//! Packages of Debian that the host's own sources do not have: newer ones from backports or a later
//! release, and those for another processor.

use std::fs;

use super::archive::Archive;
use super::error::PackageError;
use crate::architecture::Architecture;
use crate::cache::{Cache, CacheError, EntryKind};

/// The first release with firmware for aarch64 (edk2 2025.02) that passes nodes to Linux: that of
/// Debian 12 lists its flash memory, which is on no node, and Linux then ignores all nodes.
const OF_FIRMWARE: &str = "trixie";

/// Returns the backports of the host's own Debian release for a guest's processor, with lists kept
/// in the cache.
///
/// # Errors
/// [`PackageError::OtherSystem`] on another system, or if the lists cannot be fetched.
pub fn backports(
    cache: &Cache,
    architecture: Architecture,
    note: &mut dyn FnMut(&str),
) -> Result<Archive, PackageError> {
    debian(cache, "-backports", architecture, note)
}

/// Returns the packages of the host's own Debian release for a guest's processor: the host's own
/// sources, or lists kept in the cache.
///
/// # Errors
/// As [`backports`].
pub fn packages_for(
    cache: &Cache,
    architecture: Architecture,
    note: &mut dyn FnMut(&str),
) -> Result<Archive, PackageError> {
    match architecture.foreign() {
        None => Ok(Archive::host()),
        Some(_) => debian(cache, "", architecture, note),
    }
}

/// Returns the packages of the release with usable firmware for aarch64.
///
/// # Errors
/// As [`backports`].
pub fn with_firmware(cache: &Cache, note: &mut dyn FnMut(&str)) -> Result<Archive, PackageError> {
    codename(&format!("packages of Debian ({OF_FIRMWARE})"))?;
    of_suite(cache, OF_FIRMWARE, Architecture::X86_64, note)
}

/// Returns a suite of the host's release, such as `-backports`, for the host's processor or
/// another.
fn debian(
    cache: &Cache,
    suite: &str,
    architecture: Architecture,
    note: &mut dyn FnMut(&str),
) -> Result<Archive, PackageError> {
    let of = architecture.foreign().map(|name| format!(" for {name}")).unwrap_or_default();
    let codename = codename(&format!("packages of Debian{suite}{of}"))?;
    of_suite(cache, &format!("{codename}{suite}"), architecture, note)
}

/// Returns a suite such as `bookworm-backports`, with its lists fetched into the cache.
fn of_suite(
    cache: &Cache,
    suite: &str,
    architecture: Architecture,
    note: &mut dyn FnMut(&str),
) -> Result<Archive, PackageError> {
    let foreign = architecture.foreign();
    let of = foreign.map(|name| format!(" for {name}")).unwrap_or_default();
    note(&format!("fetching the package lists of {suite}{of}"));
    let only = foreign.map(|name| format!("arch={name} ")).unwrap_or_default();
    let line = format!(
        "deb [{only}signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
         http://deb.debian.org/debian {suite} main"
    );
    let name = format!("{}lists-{suite}", architecture.prefix());
    let lists = cache.path(EntryKind::Probe, &name);
    fs::create_dir_all(&lists).map_err(|source| CacheError::Io { path: lists.clone(), source })?;
    Archive::of_source(&line, &lists, foreign)
}

/// Returns the codename of the host's release, for the packages to fetch.
fn codename(packages: &str) -> Result<String, PackageError> {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let known = debian_codename(&release).map(ToOwned::to_owned);
    known.ok_or_else(|| PackageError::OtherSystem {
        system: field(&release, "PRETTY_NAME").unwrap_or("unknown").to_owned(),
        packages: packages.to_owned(),
    })
}

/// Returns the codename if `os-release` is Debian's (os-release(5)).
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
