//! Standard error, whose reader may be gone: `command 2>&1 | head` must end quietly, and
//! `eprintln!` panics there.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes `numalab: TEXT` as a line to standard error.
pub fn note(text: impl Display) {
    print_error(format_args!("numalab: {text}\n"));
}

/// Writes `text` as it is to standard error. That nobody reads it is not an error: there
/// is nowhere left to report it.
pub fn print_error(text: impl Display) {
    let _ = io::stderr().lock().write_fmt(format_args!("{text}"));
}
