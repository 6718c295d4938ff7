//! numalab's own kernel, which is a file beside the program: found, and put on an image.

pub mod iso;

use std::env;
use std::path::{Path, PathBuf};

/// The kernel's file name.
pub const KERNEL_FILE: &str = "numalab-kernel.elf";
/// The variable that names the kernel, wherever it is.
pub const KERNEL_VARIABLE: &str = "NUMALAB_KERNEL";
/// Where cargo leaves it, from the directory of a program that cargo built.
const BUILT: &str = "x86_64-unknown-none/kernel/numalab-kernel";

/// Why there is no kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnKernelError {
    /// The variable names no file.
    #[error("{KERNEL_VARIABLE}={path}: no such file, expected {KERNEL_FILE}")]
    Named {
        /// What it names.
        path: PathBuf,
    },
    /// There is none where it belongs.
    #[error("numalab's kernel is none of {}", listed(.searched))]
    Absent {
        /// Where it was looked for.
        searched: Vec<PathBuf>,
    },
}

impl OwnKernelError {
    /// What would mend this machine.
    #[must_use]
    pub fn remedy(&self) -> String {
        format!(
            "build it with `rustup target add x86_64-unknown-none` and `make build`, and put it \
             beside numalab as {KERNEL_FILE} or name it in {KERNEL_VARIABLE}"
        )
    }
}

/// The kernel: `$NUMALAB_KERNEL`, or the one beside this program, in `lib/numalab` next to its
/// directory, or where cargo built it.
///
/// # Errors
/// [`OwnKernelError`].
pub fn find() -> Result<PathBuf, OwnKernelError> {
    let named = env::var_os(KERNEL_VARIABLE).filter(|value| !value.is_empty());
    let program = env::current_exe().unwrap_or_default();
    find_for(named.map(PathBuf::from), &program)
}

fn find_for(named: Option<PathBuf>, program: &Path) -> Result<PathBuf, OwnKernelError> {
    if let Some(path) = named {
        return if path.is_file() { Ok(path) } else { Err(OwnKernelError::Named { path }) };
    }
    let beside = program.parent().unwrap_or(Path::new("/"));
    let mut searched = vec![beside.join(KERNEL_FILE)];
    if let Some(above) = beside.parent() {
        searched.extend([above.join("lib/numalab").join(KERNEL_FILE), above.join(BUILT)]);
    }
    let found = searched.iter().find(|file| file.is_file()).cloned();
    found.ok_or(OwnKernelError::Absent { searched })
}

fn listed(searched: &[PathBuf]) -> String {
    let names: Vec<String> = searched.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_kernel_is_found_beside_the_program_before_where_cargo_built_it() {
        let root = tempfile::tempdir().unwrap();
        let program = root.path().join("target/release/numalab");
        let built = root.path().join("target").join(BUILT);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::create_dir_all(built.parent().unwrap()).unwrap();
        let absent = find_for(None, &program).unwrap_err();
        assert!(absent.to_string().contains(KERNEL_FILE), "{absent}");
        assert!(absent.remedy().contains("rustup target add x86_64-unknown-none"));
        fs::write(&built, "").unwrap();
        assert_eq!(find_for(None, &program).unwrap(), built);
        let beside = program.with_file_name(KERNEL_FILE);
        fs::write(&beside, "").unwrap();
        assert_eq!(find_for(None, &program).unwrap(), beside);
    }

    #[test]
    fn a_named_kernel_must_be_there() {
        let path = PathBuf::from("/no/such/kernel");
        let error = find_for(Some(path), Path::new("/bin/numalab")).unwrap_err();
        assert!(error.to_string().contains("NUMALAB_KERNEL=/no/such/kernel"), "{error}");
    }
}
