//! The job of a guest, and the way it ended.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The program, as a path or name in the guest, and its arguments.
    pub command: Vec<String>,
    /// Environment variables in addition to `PATH`, `HOME` and `TERM`.
    pub environment: Vec<(String, String)>,
    /// The working directory; `/root` by default.
    pub directory: Option<String>,
    /// Files and directories of the guest that are sent back at the end.
    pub collect: Vec<String>,
    /// True if the program's standard input comes from the host; otherwise it is empty.
    pub input: bool,
    /// True if the program gets the terminal `/dev/hvc0` instead of pipes.
    pub terminal: bool,
    /// True if a memory emulator should charge while the program runs.
    pub charged: bool,
}

impl Job {
    /// Creates a job that runs this command.
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { command: command.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

/// End of the command in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// The command exited with this code.
    Code(u8),
    /// The command was killed by this signal.
    Signal(u8),
}

impl Exit {
    /// Returns the exit code that a shell would return: 128 plus the signal's number for a signal.
    pub fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => signal.saturating_add(128),
        }
    }

    /// Returns true if the command succeeded.
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
