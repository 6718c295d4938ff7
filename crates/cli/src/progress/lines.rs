//! Progress in lines for logs of CI and batch jobs, where a bar cannot be drawn.

use std::fmt::Display;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use numalab_host::print_error;

use crate::output;

/// Time between two lines.
const INTERVAL: Duration = Duration::from_secs(30);

/// Prints a line on standard error at each interval; prints nothing on a terminal, which has a bar,
/// or if quiet.
pub(crate) struct ProgressLines {
    latest: Option<Instant>,
}

impl ProgressLines {
    pub(crate) fn new() -> Self {
        Self { latest: (!output::quiet() && !stderr().is_terminal()).then(Instant::now) }
    }

    /// Prints the progress if a line is due.
    pub(crate) fn reached<T: Display>(&mut self, words: impl FnOnce() -> T) {
        if self.is_due(Instant::now()) {
            print_error(format_args!("{}\n", words()));
        }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let due = self.latest.is_some_and(|latest| now.duration_since(latest) >= INTERVAL);
        if due {
            self.latest = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_once_an_interval_and_never_without_progress() {
        let start = Instant::now();
        let mut lines = ProgressLines { latest: Some(start) };
        let due =
            [0, 29, 30, 31, 59, 60, 200].map(|s| lines.is_due(start + Duration::from_secs(s)));
        assert_eq!(due, [false, false, true, false, false, true, true]);
        assert!(!ProgressLines { latest: None }.is_due(start + 10 * INTERVAL));
    }
}
