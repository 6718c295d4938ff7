//! Runs a command on a terminal: a separate process starts a session, opens the terminal (which
//! then becomes its controlling terminal, tty(4)), and then executes the command.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::termios::{Winsize, tcsetwinsize};

/// The name under which this program is started for this purpose.
pub(super) const HELPER_NAME: &str = "numalab-guest-tty";
/// The virtio console that is connected to the user's terminal.
const DEVICE: &str = "/dev/hvc0";

/// Executes the command in the arguments; never returns.
pub(super) fn become_command() -> ! {
    let error = match take_terminal() {
        Ok(()) => {
            let mut words = std::env::args_os().skip(1);
            Command::new(words.next().unwrap_or_default()).args(words).exec()
        }
        Err(error) => error,
    };
    let _ = writeln!(io::stderr(), "numalab guest: {error}");
    std::process::exit(126)
}

fn take_terminal() -> io::Result<()> {
    rustix::process::setsid()?;
    let terminal = OpenOptions::new().read(true).write(true).open(DEVICE)?;
    let variable = |name| std::env::var(name).ok()?.parse().ok();
    if let (Some(ws_row), Some(ws_col)) = (variable("LINES"), variable("COLUMNS")) {
        let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size)?;
    }
    rustix::stdio::dup2_stdin(&terminal)?;
    rustix::stdio::dup2_stdout(&terminal)?;
    rustix::stdio::dup2_stderr(&terminal)?;
    Ok(())
}
