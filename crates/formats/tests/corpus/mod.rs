//! Access to the corpus of real machines.

use std::path::PathBuf;

/// Returns the corpus; if it is absent, reports on stderr which test did not run.
pub fn corpus(test: &str) -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let path = std::env::var_os("NUMALAB_CORPUS").map_or_else(|| default.into(), PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("NOT RUN: {test}: there is no corpus at {} (set NUMALAB_CORPUS)", path.display());
    None
}

/// Returns the names and contents of the files in a folder with this ending.
pub fn texts(folder: &PathBuf, ending: &str) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<(String, String)> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().is_some_and(|path| path.ends_with(ending)))
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no *{ending} in {}", folder.display());
    files
}
