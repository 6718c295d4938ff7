//! What kind of failure an error is.

/// What kind of failure an error is, which decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// Something went wrong while running.
    Failed,
    /// The input names what is not there or makes no sense.
    BadInput,
    /// This machine or this process lacks what is needed.
    Lacking,
}

impl ErrorClass {
    /// The exit code of the command line for this class: 1, 2 or 3.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::BadInput => 2,
            Self::Lacking => 3,
        }
    }
}
