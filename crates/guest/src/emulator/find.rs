//! Finds the plugin.

use std::env;
use std::path::{Path, PathBuf};

/// The plugin's file name.
pub const PLUGIN_FILE: &str = "libnumalab_emulator.so";
/// The variable that names the plugin, wherever it is.
pub const PLUGIN_VARIABLE: &str = "NUMALAB_EMULATOR";

/// Why there is no plugin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    /// The variable names no file.
    #[error("{PLUGIN_VARIABLE}={path}: no such file, expected {PLUGIN_FILE}")]
    Named {
        /// What it names.
        path: PathBuf,
    },
    /// There is none where it belongs.
    #[error("the memory emulator {PLUGIN_FILE} is not in {}", listed(.searched))]
    Absent {
        /// Where it was looked for.
        searched: Vec<PathBuf>,
    },
}

impl PluginError {
    /// What would mend this machine.
    #[must_use]
    pub fn remedy(&self) -> String {
        format!(
            "build it with `cargo build --release -p numalab-emulator`, and put it beside numalab \
             or name it in {PLUGIN_VARIABLE}"
        )
    }
}

/// The plugin: `$NUMALAB_EMULATOR`, or the one beside this program or in `lib/numalab`
/// next to its directory.
///
/// # Errors
/// [`PluginError`].
pub fn find_plugin() -> Result<PathBuf, PluginError> {
    let named = env::var_os(PLUGIN_VARIABLE).filter(|value| !value.is_empty());
    let program = env::current_exe().unwrap_or_default();
    find(named.map(PathBuf::from), &program)
}

fn find(named: Option<PathBuf>, program: &Path) -> Result<PathBuf, PluginError> {
    if let Some(path) = named {
        return if path.is_file() { Ok(path) } else { Err(PluginError::Named { path }) };
    }
    let beside = program.parent().unwrap_or(Path::new("/"));
    let mut searched = vec![beside.to_path_buf()];
    searched.extend(beside.parent().map(|above| above.join("lib/numalab")));
    let found = searched.iter().map(|directory| directory.join(PLUGIN_FILE));
    found.into_iter().find(|file| file.is_file()).ok_or(PluginError::Absent { searched })
}

fn listed(directories: &[PathBuf]) -> String {
    let names: Vec<String> = directories.iter().map(|path| path.display().to_string()).collect();
    names.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_plugin_is_named_beside_the_program_or_in_its_library_directory() {
        let prefix = tempfile::tempdir().unwrap();
        let program = prefix.path().join("bin/numalab");
        let error = find(None, &program).unwrap_err();
        assert!(error.to_string().contains("/bin or "), "{error}");
        assert!(error.remedy().contains("cargo build"));
        for directory in ["lib/numalab", "bin"] {
            let file = prefix.path().join(directory).join(PLUGIN_FILE);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
            assert_eq!(find(None, &program), Ok(file.clone()));
            assert_eq!(find(Some(file.clone()), Path::new("/")), Ok(file));
        }
        let missing = find(Some(PathBuf::from("/no/such.so")), &program).unwrap_err();
        assert!(missing.to_string().starts_with("NUMALAB_EMULATOR=/no/such.so"), "{missing}");
    }
}
