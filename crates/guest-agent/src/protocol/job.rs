//! What a guest is to do, and how it ended.

use serde::{Deserialize, Serialize};

/// What a guest is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The program and its arguments, as a guest's path or name.
    pub command: Vec<String>,
    /// Variables set for it, beside `PATH`, `HOME` and `TERM`.
    pub environment: Vec<(String, String)>,
    /// The directory it starts in; `/root` if there is none.
    pub directory: Option<String>,
    /// Files and directories of the guest that are sent back at the end.
    pub collect: Vec<String>,
    /// Whether the program reads what the host sends, instead of nothing.
    pub input: bool,
    /// Whether the program gets the terminal `/dev/hvc0` instead of pipes.
    pub terminal: bool,
    /// Whether a memory emulator is told to charge while the program runs.
    pub charged: bool,
}

impl Job {
    /// A job that runs this command.
    #[must_use]
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { command: command.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

/// How the command in the guest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// By itself, with this code.
    Code(u8),
    /// By this signal.
    Signal(u8),
}

impl Exit {
    /// The code a shell would give: 128 and the signal's number for a signal.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => signal.saturating_add(128),
        }
    }

    /// Whether the command succeeded.
    #[must_use]
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_gives_the_code_of_a_shell() {
        assert_eq!(Exit::Signal(9).code(), 137);
        assert_eq!(Exit::Code(3).code(), 3);
        assert!(!Exit::Signal(0).success());
    }
}
