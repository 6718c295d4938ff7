//! This program, started again.

use std::env;
use std::path::PathBuf;

use numalab_host::Interrupt;
use numalab_launch::local;

use crate::failure::{Code, Failure};

pub(crate) fn own_program() -> Result<PathBuf, Failure> {
    let own = env::current_exe();
    own.map_err(|error| Failure::new(Code::Failed, format!("this program's path: {error}")))
}

/// Returns the path of this program as a word of a command line.
pub(crate) fn own_word() -> Result<String, Failure> {
    Ok(own_program()?.to_string_lossy().into_owned())
}

/// Starts this command again as ranks, and returns the exit code of the first that failed.
pub(crate) fn start_ranks(ranks: usize) -> Result<u8, Failure> {
    let words: Vec<String> = [own_word()?].into_iter().chain(env::args().skip(1)).collect();
    let interrupt = Interrupt::install()?;
    Ok(local::run(ranks, &words, &interrupt)?)
}
