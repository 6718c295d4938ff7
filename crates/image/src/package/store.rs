//! Unpacked packages in the cache, each with the packages it depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use numalab_host::files::write_atomically;
use numalab_host::{output_of, tool};

use super::archive::Archive;
use super::backports::packages_for;
use super::error::PackageError;
use super::members::extract;
use super::record::PackageRecord;
use crate::architecture::Architecture;
use crate::cache::{Cache, EntryKind};

/// A package's files, and those of its dependencies that the host lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpacked {
    /// The tree with the package's own files.
    pub own: PathBuf,
    pub dependencies: Vec<PathBuf>,
}

/// Ensures that the package is unpacked in the cache; calls apt only if it is not.
///
/// Dependencies that are installed on the host are not downloaded: their files are used from there.
pub fn ensure_unpacked(
    cache: &Cache,
    name: &str,
    note: &mut dyn FnMut(&str),
) -> Result<Unpacked, PackageError> {
    ensure_unpacked_for(cache, name, Architecture::X86_64, note)
}

/// Ensures, like [`ensure_unpacked`], that a package for a guest's processor is unpacked; for
/// another processor than the host's, with every dependency.
pub fn ensure_unpacked_for(
    cache: &Cache,
    name: &str,
    architecture: Architecture,
    note: &mut dyn FnMut(&str),
) -> Result<Unpacked, PackageError> {
    ensure(cache, (name, architecture), &|_| true, note)
}

/// Ensures, like [`ensure_unpacked`], that a package is unpacked, with only libraries (packages
/// named `lib...`) as dependencies, for programs with packages that depend on a whole system.
pub fn ensure_with_libraries(
    cache: &Cache,
    name: &str,
    note: &mut dyn FnMut(&str),
) -> Result<Unpacked, PackageError> {
    ensure(cache, (name, Architecture::X86_64), &|dependency| dependency.starts_with("lib"), note)
}

fn ensure(
    cache: &Cache,
    (name, architecture): (&str, Architecture),
    wanted: &dyn Fn(&str) -> bool,
    note: &mut dyn FnMut(&str),
) -> Result<Unpacked, PackageError> {
    let prefix = architecture.prefix();
    if let Some(known) = recall(cache, &format!("{prefix}{name}")) {
        return Ok(known);
    }
    let archive = packages_for(cache, architecture, note)?;
    let here = if prefix.is_empty() { installed()? } else { BTreeSet::new() };
    let records = closure_beyond(&here, &archive, &[name], wanted)?;
    let mut trees = Vec::new();
    let mut list = Vec::new();
    for record in &records {
        let entry = format!("{prefix}{}", record.entry_name());
        trees.push(unpack(cache, &archive, (record, &entry), note)?);
        list.push(entry);
    }
    let list_path = trees[0].join(LIST_NAME);
    write_atomically(&list_path, &list.join("\n"))
        .map_err(|source| PackageError::Io { path: list_path, source })?;
    let own = trees.remove(0);
    Ok(Unpacked { own, dependencies: trees })
}

/// The file in the tree of a requested package that lists the entries of its closure.
const LIST_NAME: &str = ".numalab-closure";

/// Returns the package as unpacked before, if all its trees still exist.
fn recall(cache: &Cache, name: &str) -> Option<Unpacked> {
    let parent = cache.path(EntryKind::Package, "");
    let prefix = format!("{name}_");
    let own = fs::read_dir(parent).ok()?.filter_map(Result::ok).find(|entry| {
        entry.file_name().to_string_lossy().starts_with(&prefix)
            && entry.path().join(LIST_NAME).exists()
    })?;
    let own = own.path();
    let list = fs::read_to_string(own.join(LIST_NAME)).ok()?;
    let trees = list.lines().map(|entry| cache.path(EntryKind::Package, entry));
    let (mut names, mut trees) = (list.lines(), trees);
    // The package itself comes first; a power cut can leave an empty list.
    let begins = trees.next().as_ref() == Some(&own);
    let whole = begins && names.all(|entry| cache.holds(EntryKind::Package, entry));
    whole.then(|| Unpacked { own, dependencies: trees.collect() })
}

fn unpack(
    cache: &Cache,
    archive: &Archive,
    (package, entry): (&PackageRecord, &str),
    note: &mut dyn FnMut(&str),
) -> Result<PathBuf, PackageError> {
    let done = cache.path(EntryKind::Package, entry);
    if cache.holds(EntryKind::Package, entry) {
        return Ok(done);
    }
    note(&format!("downloading package {} {}", package.name, package.version));
    cache.make(EntryKind::Package, entry, |directory| {
        let file = archive.download(package, directory)?;
        extract(&file, directory)?;
        fs::remove_file(&file).map_err(|source| PackageError::Io { path: file, source })
    })
}

/// Returns the named packages first, installed or not, then those of their dependencies that are
/// not installed on the host and that `wanted_name` accepts.
pub fn closure(
    archive: &Archive,
    names: &[&str],
    wanted_name: &dyn Fn(&str) -> bool,
) -> Result<Vec<PackageRecord>, PackageError> {
    closure_beyond(&installed()?, archive, names, wanted_name)
}

/// Returns the same as [`closure`], for a system with these installed packages.
fn closure_beyond(
    installed: &BTreeSet<String>,
    archive: &Archive,
    names: &[&str],
    wanted_name: &dyn Fn(&str) -> bool,
) -> Result<Vec<PackageRecord>, PackageError> {
    let mut records = Vec::new();
    for name in names {
        records.push(archive.record(name)?);
    }
    let mut seen: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut next = 0;
    while next < records.len() {
        let level = &records[next..];
        let wanted: BTreeSet<&str> = level
            .iter()
            .flat_map(|record| &record.depends)
            .filter(|any| !any.iter().any(|name| installed.contains(name)))
            .filter_map(|any| any.first())
            .map(String::as_str)
            .filter(|name| !seen.contains(*name) && wanted_name(name))
            .collect();
        next = records.len();
        if wanted.is_empty() {
            break;
        }
        let wanted: Vec<&str> = wanted.into_iter().collect();
        // A name without a record is a virtual package; a library that is missing for that reason
        // is reported by name when the image is built.
        let found = archive.show(&wanted)?;
        seen.extend(wanted.into_iter().map(ToOwned::to_owned));
        let unique: BTreeMap<String, PackageRecord> =
            found.into_iter().map(|record| (record.name.clone(), record)).collect();
        records.extend(unique.into_values());
    }
    Ok(records)
}

/// Returns the packages installed on the host, and the names that they provide.
fn installed() -> Result<BTreeSet<String>, PackageError> {
    let format = "-f=${db:Status-Abbrev}\t${Package}\t${Provides}\n";
    let text = output_of(tool("dpkg-query", ["-W", format]), Duration::from_secs(60))?;
    let mut names = BTreeSet::new();
    for line in text.lines() {
        let mut fields = line.split('\t');
        if !fields.next().is_some_and(|status| status.starts_with("ii")) {
            continue;
        }
        names.extend(fields.next().map(ToOwned::to_owned));
        let provided = fields.next().unwrap_or_default().split(", ");
        let bare = provided.filter_map(|name| name.split(' ').next());
        names.extend(bare.filter(|name| !name.is_empty()).map(ToOwned::to_owned));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use crate::cache::CacheError;

    use super::*;

    #[test]
    fn a_list_that_a_power_cut_emptied_is_not_believed() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path()).unwrap();
        for name in ["tool_1", "libtool_1"] {
            cache.make(EntryKind::Package, name, |_| Ok::<_, CacheError>(())).unwrap();
        }
        let own = cache.path(EntryKind::Package, "tool_1");
        let known = |list: &str| {
            fs::write(own.join(LIST_NAME), list).unwrap();
            recall(&cache, "tool").map(|known| known.dependencies)
        };
        assert_eq!(
            known("tool_1\nlibtool_1"),
            Some(vec![cache.path(EntryKind::Package, "libtool_1")])
        );
        assert_eq!(known(""), None);
        assert_eq!(known("tool_1\nlibgone_1"), None);
    }
}
