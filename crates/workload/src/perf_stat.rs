//! `perf stat -x,`: counters of a command and all its children, one per line.

use std::collections::BTreeMap;

use crate::error::OutputError;
use crate::number;

/// Returns the counters by event; `None` for those that this machine cannot count.
///
/// # Errors
/// [`OutputError::NoNumber`] if a count is neither a number nor `<not ...>`,
/// [`OutputError::Missing`] if there is no counter at all.
pub fn counters(text: &str) -> Result<BTreeMap<String, Option<f64>>, OutputError> {
    let mut counters = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let mut columns = line.split(',');
        let (Some(value), Some(_unit), Some(event)) =
            (columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        let count = match value {
            "<not supported>" | "<not counted>" => None,
            value => Some(number::whole(event, value)?),
        };
        counters.insert(event.to_owned(), count);
    }
    if counters.is_empty() {
        return Err(OutputError::missing("counter", "1,,context-switches,...", text));
    }
    Ok(counters)
}
