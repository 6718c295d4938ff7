//! Why files are no results of a scaling run.

/// Why files are no results of a scaling run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScalingError {
    /// A line of a CSV.
    #[error("{file}:{line}: `{found}`, expected {expected}")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is there.
        found: String,
        /// What should be there.
        expected: &'static str,
    },
    /// No file has results.
    #[error(
        "{directory}: no results of numalab scale in it: expected files such as sequential_domain0_8ranks_16MB.csv"
    )]
    Empty {
        /// The directory.
        directory: String,
    },
}
