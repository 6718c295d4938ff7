//! A finished command, as seen by its runner.

use core::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The command exited with this code.
    Exited(i32),
    /// The command was killed by this signal.
    Signalled(i32),
    /// The command was stopped because it took longer than this number of seconds.
    TimedOut(u64),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signalled(signal) => write!(f, "ended by signal {signal}"),
            Self::TimedOut(seconds) => write!(f, "not finished after {seconds} s"),
        }
    }
}

/// A finished command with its complete output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finished<'a> {
    pub ending: Ending,
    pub stdout: &'a str,
    pub stderr: &'a str,
    /// Time from its start to its end, in seconds.
    pub elapsed_s: f64,
}

impl<'a> Finished<'a> {
    /// Returns the last line that is not empty, of standard error or otherwise of standard output.
    pub fn last_words(&self) -> &'a str {
        let last = |text: &'a str| {
            let mut lines = text.split(['\n', '\r']).map(str::trim);
            lines.rfind(|line| !line.is_empty())
        };
        last(self.stderr).or_else(|| last(self.stdout)).unwrap_or("it printed nothing")
    }
}
