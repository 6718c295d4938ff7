//! Runs a shell in a guest, attached to the user's terminal.

use std::io;

use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

use super::failure::GuestError;
use super::guest::Launch;
use super::run::Outcome;
use super::runtime::Runtime;
use super::session::Task;
use super::watch::StopCheck;

/// Restores the terminal, which QEMU sets to raw mode, however QEMU ends.
struct SavedTerminal(Termios);

impl SavedTerminal {
    fn save() -> io::Result<Self> {
        let input = rustix::stdio::stdin();
        if !isatty(input) || !isatty(rustix::stdio::stdout()) {
            let text = "standard input and output: expected a terminal";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(Self(tcgetattr(input)?))
    }
}

impl Drop for SavedTerminal {
    fn drop(&mut self) {
        // If the terminal is gone, there is nowhere to report it.
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.0);
    }
}

impl Launch {
    /// Boots the guest, attaches the user's terminal to the job's command, and ends the guest with
    /// that command.
    ///
    /// # Errors
    /// As for [`Launch::run`]; [`GuestError::Start`] without a terminal.
    pub fn shell(
        &self,
        runtime: &Runtime,
        task: &Task,
        asked: StopCheck,
    ) -> Result<Outcome, GuestError> {
        let _saved = SavedTerminal::save().map_err(GuestError::Start)?;
        let mut task = task.clone();
        task.job.terminal = true;
        // A virtio console does not carry the terminal's type and size.
        let variables = &mut task.job.environment;
        if let Ok(term) = std::env::var("TERM") {
            variables.push(("TERM".to_owned(), term));
        }
        if let Ok(size) = tcgetwinsize(rustix::stdio::stdin()) {
            variables.push(("LINES".to_owned(), size.ws_row.to_string()));
            variables.push(("COLUMNS".to_owned(), size.ws_col.to_string()));
        }
        self.run(runtime, &task, &mut |_, _: &[u8]| {}, asked)
    }
}
