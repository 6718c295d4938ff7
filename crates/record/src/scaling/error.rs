//! Errors in the files of a scaling run.

/// An error in the files of a scaling run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScalingError {
    /// An invalid line of a CSV.
    #[error("{file}:{line}: `{found}`, expected {expected}")]
    Line { file: String, line: usize, found: String, expected: &'static str },
    #[error(
        "{directory}: no results of numalab scale: expected files such as sequential_domain0_8ranks_16MB.csv"
    )]
    Empty { directory: String },
}
