//! Commands and options of earlier versions that have another name now.

use std::env;

use clap::error::{ContextKind, ContextValue, ErrorKind};

const COMMANDS: [(&str, &str); 7] = [
    ("acpi", "machine acpi"),
    ("bisect", "study bisect"),
    ("health", "fleet health"),
    ("probe", "study probe"),
    ("selftest", "machine selftest"),
    ("study plan", "study run --dry-run"),
    ("study report", "report"),
];

const OPTIONS: [(&str, &str); 2] = [("--chain", "--pattern"), ("--node-cpus", "--map")];

/// Returns the current name of the command or option in this usage error, if it was renamed.
pub(crate) fn moved(usage: &clap::Error) -> Option<String> {
    let named = |kind| match usage.get(kind) {
        Some(ContextValue::String(word)) => Some(word.clone()),
        _ => None,
    };
    match usage.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = named(ContextKind::InvalidSubcommand)?;
            let is_given = |part: &str| env::args().skip(1).any(|word| word == part);
            let is_this = |old: &str| old.ends_with(&word) && old.split(' ').all(is_given);
            let (old, new) = COMMANDS.iter().find(|(old, _)| is_this(old))?;
            Some(format!("`numalab {old}` is now `numalab {new}`"))
        }
        ErrorKind::UnknownArgument => {
            let word = named(ContextKind::InvalidArg)?;
            let (old, new) = OPTIONS.iter().find(|(old, _)| *old == word)?;
            Some(format!("`{old}` is now `{new}`"))
        }
        _ => None,
    }
}
