//! Reads the results of a scaling run, or of the NUMA benchmark suite, from their directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use numalab_formats::architecture;
use numalab_host::bounded::read_file;
use numalab_host::{Classed, ErrorClass};
use numalab_record::file;
use numalab_record::scaling::{Scaling, ScalingError, ScalingFile, read};

/// Depth of the search: directories of runs may share a parent.
const DEPTH: usize = 2;
/// Maximum length of a file of such a run, in bytes, with a wide margin.
const LONGEST: u64 = 256 << 20;

/// Returns true for a CSV, and for a directory with a CSV other than our own `samples.csv`.
pub fn is_scaling(path: &Path) -> bool {
    if path.is_file() {
        return path.to_str().is_some_and(is_table);
    }
    let mut files = Vec::new();
    !path.join(file::RUN).exists()
        && list(path, DEPTH, &mut files).is_ok()
        && files.iter().any(|file| is_table(file) && !file.ends_with(file::SAMPLES))
}

fn is_table(name: &str) -> bool {
    name.ends_with(".csv") || name.ends_with(".csv.part")
}

/// Reads every file of a run, or one, and the machine of its architecture file.
///
/// # Errors
/// [`ResultsError`] if a file cannot be read, or there is no table or a damaged one.
pub fn read_scaling(path: &Path) -> Result<Scaling, ResultsError> {
    let mut names = Vec::new();
    let root = match path.is_file() {
        true => {
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
            path.parent().unwrap_or(path)
        }
        false => {
            list(path, DEPTH, &mut names).map_err(|error| unreadable(path, error))?;
            path
        }
    };
    let mut files = Vec::new();
    for name in names {
        let file = root.join(&name);
        let length = fs::metadata(&file).map_or(0, |data| data.len());
        if length <= LONGEST {
            let bytes = read_file(&file, LONGEST).map_err(|error| unreadable(&file, error))?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            files.push(ScalingFile { path: name, text });
        }
    }
    let (mut scaling, text) = read(&path.display().to_string(), &files)?;
    match text.map(|text| architecture::read(&text)) {
        Some(Ok(reading)) => scaling.machine = Some(reading.value.machine),
        Some(Err(error)) => {
            scaling.findings.push(format!("the architecture in scale.json is not used: {error}"));
        }
        None => {}
    }
    Ok(scaling)
}

/// Adds the paths, relative to `root`, of all files of a scaling run, and sorts them.
fn list(root: &Path, depth: usize, names: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_run = entry.file_type()?.is_dir();
        if is_run && depth > 1 {
            let mut below = Vec::new();
            list(&entry.path(), depth - 1, &mut below)?;
            names.extend(below.into_iter().map(|file| format!("{name}/{file}")));
        } else if !is_run
            && [".csv", ".csv.part", ".json", ".log"].iter().any(|end| name.ends_with(end))
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(())
}

fn unreadable(path: &Path, error: io::Error) -> ResultsError {
    ResultsError::Unreadable { path: path.to_owned(), error }
}

/// The reason why there are no results of a scaling run.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// A file or the directory cannot be read.
    #[error("{}: {error}", .path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    /// A table is damaged, or there is none.
    #[error(transparent)]
    Table(#[from] ScalingError),
}

impl Classed for ResultsError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Unreadable { .. } => ErrorClass::Failed,
            Self::Table(_) => ErrorClass::BadInput,
        }
    }
}
