//! A command that has ended, as its runner saw it.

use core::fmt;

use serde::{Deserialize, Serialize};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It was ended because it took longer than this many seconds.
    TimedOut(u64),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signalled(signal) => write!(f, "ended by signal {signal}"),
            Self::TimedOut(seconds) => write!(f, "not done after {seconds} s"),
        }
    }
}

/// A command that has ended, with all that it said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finished<'a> {
    /// How it ended.
    pub ending: Ending,
    /// What it wrote to standard output.
    pub stdout: &'a str,
    /// What it wrote to standard error.
    pub stderr: &'a str,
    /// From its start to its end, in seconds.
    pub elapsed_s: f64,
}

impl<'a> Finished<'a> {
    /// The last line that says anything, of standard error before standard output.
    #[must_use]
    pub fn last_words(&self) -> &'a str {
        let last = |text: &'a str| {
            let mut lines = text.split(['\n', '\r']).map(str::trim);
            lines.rfind(|line| !line.is_empty())
        };
        last(self.stderr).or_else(|| last(self.stdout)).unwrap_or("it said nothing")
    }
}
