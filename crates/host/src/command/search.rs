//! Finds programs on the `PATH`. For root, others must not decide which program runs: an empty or
//! relative entry of `PATH` means the directory in which numalab is started, and any user can put
//! an `apt-get` into a world-writable directory.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Mode bit of a world-writable directory.
const OTHERS_WRITE: u32 = 0o002;
/// A directory that no system has, as in Debian's policy (9.2.3).
const NOWHERE: &str = "/nonexistent";

/// Returns the path of the program of this name on the `PATH`, or the name itself if it has a
/// slash. For root, relative and world-writable entries of `PATH` are ignored.
pub fn on_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(can_run);
    }
    find(name, &search_path()?)
}

/// Restricts the search for the command's program, and for its children's, as [`on_path`] does.
pub(super) fn seek_safely(command: &mut Command) {
    if let Some(path) = env::var_os("PATH").filter(|_| is_root()) {
        seek_in(command, for_root(&path));
    }
}

fn seek_in(command: &mut Command, path: Option<OsString>) {
    // An empty PATH would mean the working directory, and an unset one the default of execvp(3).
    command.env("PATH", path.unwrap_or_else(|| NOWHERE.into()));
}

fn search_path() -> Option<OsString> {
    let path = env::var_os("PATH")?;
    if is_root() { for_root(&path) } else { Some(path) }
}

/// Returns the entries of `path` that root may trust, if there are any.
fn for_root(path: &OsStr) -> Option<OsString> {
    let kept = env::split_paths(path).filter(|directory| is_for_root(directory));
    env::join_paths(kept).ok().filter(|path| !path.is_empty())
}

fn is_for_root(directory: &Path) -> bool {
    let is_kept = |data: fs::Metadata| data.mode() & OTHERS_WRITE == 0;
    directory.is_absolute() && fs::metadata(directory).map_or(true, is_kept)
}

fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    env::split_paths(path).map(|directory| directory.join(name)).find(can_run)
}

fn can_run(file: &PathBuf) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::command::{tool, users_program};

    const NAME: &str = "numalab-test-program";

    /// Creates directories with these modes, each with a program that prints the directory's name.
    fn directories(modes: &[(&str, u32)]) -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        for (name, mode) in modes {
            let directory = top.path().join(name);
            fs::create_dir(&directory).unwrap();
            let program = directory.join(NAME);
            fs::write(&program, format!("#!/bin/sh\necho {name}\n")).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            fs::set_permissions(&directory, fs::Permissions::from_mode(*mode)).unwrap();
        }
        top
    }

    fn path_of(top: &tempfile::TempDir, entries: &str) -> OsString {
        entries.replace('@', top.path().to_str().unwrap()).into()
    }

    #[test]
    fn root_runs_no_program_from_relative_or_world_writable_directories() {
        let top =
            directories(&[("here", 0o755), ("open", 0o777), ("tmp", 0o1777), ("good", 0o755)]);
        for entries in [":@/good", "@/good:", ".:@/good", "here:@/good", "@/open:@/tmp:@/good"] {
            let path = for_root(&path_of(&top, entries)).unwrap();
            assert_eq!(path, path_of(&top, "@/good"), "{entries}");
            assert_eq!(find(NAME, &path), Some(top.path().join("good").join(NAME)));
            let mut command = Command::new(NAME);
            command.current_dir(top.path().join("here"));
            seek_in(&mut command, Some(path));
            assert_eq!(command.output().unwrap().stdout, b"good\n", "{entries}");
        }
    }

    #[test]
    fn a_path_without_a_good_entry_does_not_become_the_working_directory() {
        let top = directories(&[("here", 0o755), ("open", 0o777)]);
        for entries in ["", ":", ".", "here", "@/open"] {
            let path = for_root(&path_of(&top, entries));
            assert_eq!(path, None, "{entries}");
            let mut command = Command::new(NAME);
            command.current_dir(top.path().join("here")).env("PATH", path_of(&top, entries));
            seek_in(&mut command, path);
            let error = command.output().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{entries}");
        }
    }

    #[test]
    fn children_of_root_get_the_restricted_path_and_others_keep_theirs() {
        for command in [tool("true", [""; 0]), users_program("true", [""; 0])] {
            let path = command.get_envs().find(|(name, _)| *name == "PATH");
            match (is_root(), search_path()) {
                (true, expected) => {
                    assert_eq!(path, Some((OsStr::new("PATH"), expected.as_deref())));
                }
                (false, expected) => assert_eq!((path, expected), (None, env::var_os("PATH"))),
            }
        }
        assert!(on_path("sh").is_some_and(|path| path.is_absolute()));
        assert_eq!(on_path("/bin/sh"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(on_path("/etc/passwd"), None);
    }
}
