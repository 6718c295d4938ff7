//! Finds the shared libraries that programs need, by the rules of the dynamic linker (ld.so(8)),
//! without running anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::architecture::Architecture;
use super::elf::{self, ElfError};

/// Trees in which libraries are searched, in order: unpacked packages, the host's root.
#[derive(Clone, Debug)]
pub struct Roots(Vec<PathBuf>);

/// Reasons why the libraries of a program cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    /// A program or library is not a usable ELF file.
    #[error("{path}: {source}")]
    Elf { path: PathBuf, source: ElfError },
    #[error("{needed_by}: needs {library}, which is in none of {directories:?} of {roots:?}")]
    Missing {
        library: String,
        /// The program or library that needs the missing one.
        needed_by: PathBuf,
        directories: Vec<String>,
        roots: Vec<PathBuf>,
    },
}

impl Roots {
    /// Searches the unpacked trees first, then the host's own files.
    pub fn before_host(trees: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut roots: Vec<PathBuf> = trees.into_iter().collect();
        roots.push(PathBuf::from("/"));
        Self(roots)
    }

    /// Searches only the unpacked trees, because the host's own files are for another processor.
    pub fn alone(trees: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(trees.into_iter().collect())
    }

    /// Returns the file for a path, in the first tree that has it.
    pub fn find(&self, path: &str) -> Option<PathBuf> {
        let relative = path.trim_start_matches('/');
        let candidates = self.0.iter().map(|root| root.join(relative));
        candidates
            .into_iter()
            .find(|candidate| fs::metadata(candidate).is_ok_and(|file| file.is_file()))
    }
}

/// Returns the libraries and interpreters that the programs need, directly or indirectly, as paths
/// in the guest, each with its file on this host.
///
/// Each program is given with its path in the guest, which `$ORIGIN` refers to. Programs that are
/// not ELF files (scripts) need nothing.
///
/// # Errors
/// [`LibraryError`]: an unreadable file, a damaged one, a missing library.
pub fn closure(
    programs: &[(String, PathBuf)],
    roots: &Roots,
) -> Result<BTreeMap<String, PathBuf>, LibraryError> {
    let mut found = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut pending: Vec<(String, PathBuf)> = programs.to_vec();
    while let Some((guest_path, file)) = pending.pop() {
        if !seen.insert(guest_path.clone()) {
            continue;
        }
        for (path, library) in asked_by(&guest_path, &file, roots)? {
            found.insert(path.clone(), library.clone());
            pending.push((path, library));
        }
    }
    Ok(found)
}

/// Returns the library with this name in the default directories, as the path in the guest, with its
/// file on this host.
pub fn named(library: &str, roots: &Roots) -> Result<(String, PathBuf), LibraryError> {
    let directories = default_directories();
    let mut places = directories.iter().map(|directory| format!("{directory}/{library}"));
    let found = places.find_map(|place| roots.find(&place).map(|file| (place, file)));
    found.ok_or_else(|| LibraryError::Missing {
        library: library.to_owned(),
        needed_by: PathBuf::from("(loaded at run time)"),
        directories,
        roots: roots.0.clone(),
    })
}

/// Returns the direct requests of one file.
fn asked_by(
    guest_path: &str,
    file: &Path,
    roots: &Roots,
) -> Result<Vec<(String, PathBuf)>, LibraryError> {
    let path = || file.to_path_buf();
    let bytes = fs::read(file).map_err(|source| LibraryError::Read { path: path(), source })?;
    if !elf::is_elf(&bytes) {
        return Ok(Vec::new());
    }
    let dynamic =
        elf::dynamic(&bytes).map_err(|source| LibraryError::Elf { path: path(), source })?;
    let directories = search_directories(guest_path, &dynamic.search_path);
    let mut asked = Vec::new();
    let missing = |library: &str| LibraryError::Missing {
        library: library.to_owned(),
        needed_by: file.to_path_buf(),
        directories: directories.clone(),
        roots: roots.0.clone(),
    };
    if let Some(interpreter) = dynamic.interpreter {
        let found = roots.find(&interpreter).ok_or_else(|| missing(&interpreter))?;
        asked.push((interpreter, found));
    }
    for library in &dynamic.needed {
        let places = directories.iter().map(|dir| format!("{dir}/{library}"));
        let found =
            places.into_iter().find_map(|place| roots.find(&place).map(|file| (place, file)));
        asked.push(found.ok_or_else(|| missing(library))?);
    }
    Ok(asked)
}

/// Returns the search path of a file with `$ORIGIN` replaced, followed by the default directories.
fn search_directories(guest_path: &str, search_path: &[String]) -> Vec<String> {
    let origin = Path::new(guest_path).parent().unwrap_or(Path::new("/"));
    let origin = origin.to_string_lossy();
    let own = search_path.iter().map(|path| {
        let path = path.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
        without_dots(&path)
    });
    own.chain(default_directories()).collect()
}

/// Returns the directories that the dynamic linkers of Debian, Fedora, Arch and SUSE search by
/// default.
fn default_directories() -> Vec<String> {
    let of_debian = |architecture: Architecture| {
        ["/usr/lib", "/lib"].map(|place| format!("{place}/{}-linux-gnu", architecture.name()))
    };
    let of_all = ["/usr/lib64", "/lib64", "/usr/lib", "/lib"].map(ToOwned::to_owned);
    Architecture::ALL.into_iter().flat_map(of_debian).chain(of_all).collect()
}

/// Returns the path with `.` and `..` removed by name.
fn without_dots(path: &str) -> String {
    let mut clean = PathBuf::from("/");
    for component in Path::new(path).components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::Normal(name) => clean.push(name),
            _ => {}
        }
    }
    clean.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_gets_libc_and_its_interpreter() {
        let program = std::env::current_exe().unwrap();
        let programs = [("/usr/bin/this".to_owned(), program)];
        let found = closure(&programs, &Roots::before_host([])).unwrap();
        assert!(found.keys().any(|path| path.contains("ld-linux")));
        assert!(found.keys().any(|path| path.ends_with("/libc.so.6")));
    }

    #[test]
    fn a_missing_library_is_reported_with_the_file_that_needs_it() {
        let empty = tempfile::tempdir().unwrap();
        let program = std::env::current_exe().unwrap();
        let roots = Roots(vec![empty.path().to_path_buf()]);
        let error = closure(&[("/x".to_owned(), program.clone())], &roots).unwrap_err();
        let LibraryError::Missing { needed_by, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(needed_by, program);
    }

    #[test]
    fn origin_is_the_directory_in_the_guest() {
        let directories = search_directories("/opt/a/bin/tool", &["$ORIGIN/../lib".to_owned()]);
        assert_eq!(directories[0], "/opt/a/lib");
        assert_eq!(directories[1], "/usr/lib/x86_64-linux-gnu");
    }

    #[test]
    fn scripts_need_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        let found = closure(&[("/s".to_owned(), script)], &Roots::before_host([])).unwrap();
        assert!(found.is_empty());
    }
}
