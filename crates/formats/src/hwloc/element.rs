//! Access to the numbers and sets of an XML element.

use numalab_topology::{Id, IdSet, MAX_ID};
use roxmltree::Node as Element;

use super::{FORMAT, bitmap};
use crate::error::ReadError;
use crate::pasted::line_of;

pub(super) fn place(element: Element<'_, '_>) -> String {
    format!("line {}", line_of(element))
}

pub(super) fn malformed(element: Element<'_, '_>, found: &str, expected: &str) -> ReadError {
    ReadError::syntax(FORMAT, line_of(element), found, expected)
}

pub(super) fn os_index(element: Element<'_, '_>) -> Result<u32, ReadError> {
    let text = element.attribute("os_index").unwrap_or_default();
    let index = text.parse().ok().filter(|&index| index <= MAX_ID);
    index.ok_or_else(|| malformed(element, text, "an os_index"))
}

pub(super) fn number(element: Element<'_, '_>, name: &str, text: &str) -> Result<u64, ReadError> {
    text.trim().parse().map_err(|_| malformed(element, text, &format!("a number for {name}")))
}

/// Reads a number for which hwloc writes 0 or -1 if it is unknown.
pub(super) fn positive<T: TryFrom<i64>>(
    element: Element<'_, '_>,
    name: &str,
) -> Result<Option<T>, ReadError> {
    let Some(text) = element.attribute(name) else {
        return Ok(None);
    };
    let value: i64 = text
        .trim()
        .parse()
        .map_err(|_| malformed(element, text, &format!("a number for {name}")))?;
    if value <= 0 {
        return Ok(None);
    }
    let value = T::try_from(value);
    value.map(Some).map_err(|_| malformed(element, text, &format!("a smaller {name}")))
}

pub(super) fn set<I: Id>(
    element: Element<'_, '_>,
    name: &str,
) -> Result<Option<IdSet<I>>, ReadError> {
    let Some(text) = element.attribute(name) else {
        return Ok(None);
    };
    let set = bitmap::read(text);
    set.map(Some).ok_or_else(|| malformed(element, text, &format!("a finite set for {name}")))
}

/// Returns true if the element has a set without end (`0xf...f`), as hwloc writes one that restricts
/// nothing.
pub(super) fn is_infinite(element: Element<'_, '_>, name: &str) -> bool {
    element.attribute(name).is_some_and(|text| text.trim().starts_with("0xf...f"))
}

pub(super) fn set_or_empty<I: Id>(
    element: Element<'_, '_>,
    name: &str,
) -> Result<IdSet<I>, ReadError> {
    Ok(set(element, name)?.unwrap_or_default())
}
