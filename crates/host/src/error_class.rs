//! Classes of errors.

/// The class of an error, which decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// Something failed while running.
    Failed,
    /// The input names something that does not exist, or is invalid.
    BadInput,
    /// This machine or process lacks something that is needed.
    Lacking,
}

impl ErrorClass {
    /// Returns the exit code of the command line for this class: 1, 2 or 3.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::BadInput => 2,
            Self::Lacking => 3,
        }
    }
}
