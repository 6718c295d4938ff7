//! Files that are installed with numalab: its plugin for QEMU, its own kernel.

use std::env;
use std::path::{Path, PathBuf};

use numalab_host::Classed;

/// A file that is installed with this program.
#[derive(Debug, PartialEq, Eq)]
pub struct Companion {
    /// Name in messages.
    pub what: &'static str,
    pub file: &'static str,
    /// The environment variable that gives the file's path.
    pub variable: &'static str,
    /// An alternative path in cargo's output, relative to the parent of the program's directory.
    pub built: Option<&'static str>,
    pub build: &'static str,
}

/// Reasons why the file cannot be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompanionError {
    #[error("{}={path}: no such file, expected {}", .companion.variable, .companion.file)]
    Named {
        companion: &'static Companion,
        /// The value of the variable.
        path: PathBuf,
    },
    #[error("{} is not installed: none of {} exists", .companion.what, listed(.searched))]
    Absent {
        companion: &'static Companion,
        /// The places that were searched.
        searched: Vec<PathBuf>,
    },
}

impl Classed for CompanionError {
    fn remedy(&self) -> Option<String> {
        let (Self::Named { companion, .. } | Self::Absent { companion, .. }) = self;
        let Companion { file, variable, build, .. } = companion;
        Some(format!(
            "build it with {build}, then put it next to numalab as {file} or set {variable} to \
             its path"
        ))
    }
}

impl Companion {
    /// Returns the file given by the variable, or the one next to this program, in `lib/numalab`
    /// next to its directory, or where cargo built it.
    pub fn find(&'static self) -> Result<PathBuf, CompanionError> {
        let named = env::var_os(self.variable).filter(|value| !value.is_empty());
        let program = env::current_exe().unwrap_or_default();
        self.find_for(named.map(PathBuf::from), &program)
    }

    fn find_for(
        &'static self,
        named: Option<PathBuf>,
        program: &Path,
    ) -> Result<PathBuf, CompanionError> {
        if let Some(path) = named {
            let named = path.is_file().then(|| path.clone());
            return named.ok_or(CompanionError::Named { companion: self, path });
        }
        let directory = program.parent().unwrap_or(Path::new("/"));
        let mut searched = vec![directory.join(self.file)];
        if let Some(above) = directory.parent() {
            searched.push(above.join("lib/numalab").join(self.file));
            searched.extend(self.built.map(|built| above.join(built)));
        }
        let found = searched.iter().find(|file| file.is_file()).cloned();
        found.ok_or(CompanionError::Absent { companion: self, searched })
    }
}

fn listed(searched: &[PathBuf]) -> String {
    let names: Vec<String> = searched.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    static KERNEL: Companion = Companion {
        what: "the kernel",
        file: "kernel.elf",
        variable: "NUMALAB_KERNEL",
        built: Some("none/kernel"),
        build: "`make build`",
    };

    #[test]
    fn a_companion_is_searched_next_to_the_program_then_in_its_library_then_where_cargo_built_it() {
        let prefix = tempfile::tempdir().unwrap();
        let program = prefix.path().join("bin/numalab");
        let error = KERNEL.find_for(None, &program).unwrap_err();
        assert!(error.to_string().contains("/bin/kernel.elf, "), "{error}");
        assert!(error.explained().contains("build it with `make build`"), "{}", error.explained());
        for file in ["none/kernel", "lib/numalab/kernel.elf", "bin/kernel.elf"] {
            let file = prefix.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
            assert_eq!(KERNEL.find_for(None, &program), Ok(file.clone()));
            assert_eq!(KERNEL.find_for(Some(file.clone()), Path::new("/")), Ok(file));
        }
    }

    #[test]
    fn a_companion_given_by_the_variable_must_exist() {
        let path = PathBuf::from("/no/such/kernel");
        let error = KERNEL.find_for(Some(path), Path::new("/bin/numalab")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "NUMALAB_KERNEL=/no/such/kernel: no such file, expected kernel.elf"
        );
    }
}
