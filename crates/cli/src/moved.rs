//! Top-level commands of earlier versions that are now subcommands.

use clap::error::{ContextKind, ContextValue, ErrorKind};

const MOVED: [(&str, &str); 5] = [
    ("acpi", "machine acpi"),
    ("bisect", "study bisect"),
    ("health", "fleet health"),
    ("probe", "study probe"),
    ("selftest", "machine selftest"),
];

/// Returns the present place of the command in this usage error, if it was moved.
pub(crate) fn moved(usage: &clap::Error) -> Option<String> {
    let word = match usage.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) if usage.kind() == ErrorKind::InvalidSubcommand => word,
        _ => return None,
    };
    let (old, new) = MOVED.iter().find(|(old, _)| old == word)?;
    Some(format!("`numalab {old}` is now `numalab {new}`"))
}
