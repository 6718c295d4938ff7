//! The words of the command line, and the one that is needed before there is a heap.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, Ordering};

use numalab_kernel::command::Command;
use ostd::boot::EarlyCmdline;
use ostd::log::LevelFilter;
use spin::Once;

use crate::Failure;
use crate::work::Work;

/// The allocator of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// numalab's, nearest memory first.
    Numa,
    /// numalab's, nodes by number.
    Blind,
    /// `osdk-frame-allocator`, OSTD's default.
    Osdk,
}

static CHOSEN: AtomicU8 = AtomicU8::new(Allocator::Numa as u8);

/// The longest command line, in bytes.
const LONGEST: usize = 1024;
/// The command line, and its length.
static LINE: Once<([u8; LONGEST], usize)> = Once::new();

impl Allocator {
    const ALL: [(&'static str, Self); 3] =
        [("numa", Self::Numa), ("blind", Self::Blind), ("osdk", Self::Osdk)];

    /// Returns the allocator of this boot.
    pub fn chosen() -> Self {
        let number = CHOSEN.load(Ordering::Relaxed);
        Self::ALL.into_iter().find(|(_, one)| *one as u8 == number).map_or(Self::Numa, |one| one.1)
    }

    /// Returns its word on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, one)| *one == self).map_or("", |one| one.0)
    }
}

/// Records the command line and the requested allocator. `#[ostd::early_cmdline_parser]` takes only
/// `const` functions, which cannot record anything; it defines this symbol, and nothing else gives
/// access to the command line before the first frame is requested.
// SAFETY: OSTD declares this symbol weakly for the kernel to define, with this signature.
#[expect(unsafe_code, reason = "the attribute that OSTD has for it takes `const` functions only")]
#[unsafe(no_mangle)]
fn __early_cmdline_parser(line: &str) -> EarlyCmdline {
    LINE.call_once(|| {
        let mut bytes = [0; LONGEST];
        let len = line.len().min(LONGEST);
        bytes[..len].copy_from_slice(&line.as_bytes()[..len]);
        (bytes, len)
    });
    for word in line.split_ascii_whitespace().filter_map(|word| word.strip_prefix("alloc=")) {
        if let Some((_, one)) = Allocator::ALL.into_iter().find(|(name, _)| *name == word) {
            CHOSEN.store(one as u8, Ordering::Relaxed);
        }
    }
    EarlyCmdline { log_level: LevelFilter::Error, has_early_console: true }
}

/// The work of this boot.
pub struct Words {
    /// The workloads, in order.
    pub work: Vec<Work>,
    /// The words that numalab's own kernel has as well.
    pub command: Command,
}

impl Words {
    /// Parses the words of the command line.
    pub fn of_boot() -> Result<Self, Failure> {
        let (bytes, len) = LINE.get().ok_or("the command line is not known yet")?;
        if *len == LONGEST {
            return Err(alloc::format!("the command line: expected less than {LONGEST} bytes"));
        }
        Self::parse(core::str::from_utf8(&bytes[..*len]).map_err(|error| error.to_string())?)
    }

    fn parse(line: &str) -> Result<Self, Failure> {
        let mut work = Vec::new();
        let mut rest = String::new();
        for word in line.split_ascii_whitespace() {
            match word.split_once('=') {
                Some(("alloc", name)) if Allocator::ALL.iter().any(|one| one.0 == name) => {}
                Some(("alloc", _)) => {
                    return Err(alloc::format!("`{word}`: expected numa, blind or osdk"));
                }
                Some(("work", names)) => {
                    for name in names.split(',').filter(|name| *name != "none") {
                        work.push(Work::of_name(name).ok_or_else(|| {
                            alloc::format!("`{name}`: expected {}", Work::expected())
                        })?);
                    }
                }
                _ => {
                    rest.push_str(word);
                    rest.push(' ');
                }
            }
        }
        let command = Command::parse(&rest).map_err(|error| error.to_string())?;
        Ok(Self { work, command })
    }
}
