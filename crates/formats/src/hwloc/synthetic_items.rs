//! The levels of a synthetic description.

use numalab_topology::{CacheKind, MAX_ID};

use super::synthetic::FORMAT;
use crate::error::ReadError;

/// The kind of a level's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Package,
    Node,
    Core,
    Pu,
    Cache(u8, CacheKind),
    /// Dies, groups and other objects that only divide the machine.
    Group,
}

/// A level, or memory attached to the level before it.
#[derive(Debug)]
pub(super) struct Item {
    name: String,
    pub(super) kind: ItemKind,
    /// Objects in each object of the level above.
    pub(super) count: usize,
    /// True for memory in brackets, which is not a level.
    pub(super) is_attached: bool,
    pub(super) attributes: Attributes,
}

#[derive(Debug, Default)]
pub(super) struct Attributes {
    pub(super) memory_bytes: Option<u64>,
    pub(super) size_bytes: Option<u64>,
    /// The numbers of the objects if they are not in order of the tree.
    pub(super) indexes: Option<String>,
}

/// Parses the levels of a description.
pub(super) fn items(text: &str) -> Result<Vec<Item>, ReadError> {
    let mut items = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = end_of_item(rest).ok_or_else(|| wrong(rest, "a closing bracket"))?;
        let (item, after) = rest.split_at(end);
        // Attributes of the machine itself come before the first level.
        if !(items.is_empty() && item.starts_with('(')) {
            let is_complete = items.last().is_some_and(|last: &Item| last.kind == ItemKind::Pu);
            if is_complete {
                return Err(wrong(item, "the end of the description after its level `pu`"));
            }
            items.push(Item::parse(item)?);
        }
        rest = after.trim_start();
    }
    Ok(items)
}

/// Returns the length of the first item, which ends at a space outside brackets.
fn end_of_item(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (place, character) in text.char_indices() {
        match character {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.checked_sub(1)?,
            c if c.is_whitespace() && depth == 0 => return Some(place),
            _ => {}
        }
    }
    (depth == 0).then_some(text.len())
}

impl Item {
    fn parse(text: &str) -> Result<Self, ReadError> {
        let inner = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
        let (head, attributes) = match inner.unwrap_or(text).split_once('(') {
            Some((head, attributes)) => (head, attributes.strip_suffix(')')),
            None => (inner.unwrap_or(text), Some("")),
        };
        let attributes = attributes.ok_or_else(|| wrong(text, "`)` after the attributes"))?;
        let attributes = Attributes::parse(attributes)?;
        if inner.is_some() {
            let name = head.trim().to_owned();
            return match kind(&name) {
                Some(kind @ ItemKind::Node) => {
                    Ok(Self { name, kind, count: 1, is_attached: true, attributes })
                }
                _ => Err(wrong(text, "memory in brackets: [numa(memory=8GiB)]")),
            };
        }
        let expected = "a level such as pack:2, numa:4, l3:2, core:8 or pu:2";
        let (name, count) = head.split_once(':').ok_or_else(|| wrong(text, expected))?;
        let kind = kind(name).ok_or_else(|| wrong(text, expected))?;
        let count = count.parse().ok().filter(|count| (1..=MAX_ID as usize).contains(count));
        let count = count.ok_or_else(|| wrong(text, "a number of objects, 1 or more"))?;
        Ok(Self { name: name.to_owned(), kind, count, is_attached: false, attributes })
    }

    /// Returns true if a name denotes the item's type: any of the type's names, except that a die
    /// is not a group.
    pub(super) fn has_name(&self, name: &str) -> bool {
        kind(name) == Some(self.kind)
            && (self.kind != ItemKind::Group || self.name.eq_ignore_ascii_case(name))
    }
}

/// Returns the kind for a name of hwloc's, in upper or lower case.
pub(super) fn kind(name: &str) -> Option<ItemKind> {
    let name = name.to_ascii_lowercase();
    Some(match name.as_str() {
        "package" | "pack" | "socket" => ItemKind::Package,
        "numanode" | "numa" | "node" => ItemKind::Node,
        "core" => ItemKind::Core,
        "pu" => ItemKind::Pu,
        "machine" | "group" | "die" | "tile" | "module" | "cluster" | "book" | "drawer" => {
            ItemKind::Group
        }
        _ if name.starts_with("group") => ItemKind::Group,
        _ => {
            let digits = name.strip_prefix('l')?.trim_end_matches("cache");
            let kind = match digits.as_bytes().last()? {
                b'd' => CacheKind::Data,
                b'i' => CacheKind::Instruction,
                _ => CacheKind::Unified,
            };
            let level = digits.trim_end_matches(['d', 'i', 'u']).parse().ok();
            ItemKind::Cache(level.filter(|level| (1..=9).contains(level))?, kind)
        }
    })
}

impl Attributes {
    /// Parses `memory=8GiB indexes=0,2,1,3`.
    fn parse(text: &str) -> Result<Self, ReadError> {
        let mut attributes = Self::default();
        for attribute in text.split_whitespace() {
            let size = |text| bytes(text).ok_or_else(|| wrong(attribute, "bytes, or GiB or GB"));
            match attribute.split_once('=') {
                Some(("memory", text)) => attributes.memory_bytes = Some(size(text)?),
                Some(("size", text)) => attributes.size_bytes = Some(size(text)?),
                Some(("indexes", text)) => attributes.indexes = Some(text.to_owned()),
                Some(_) => {}
                None => return Err(wrong(attribute, "attributes such as memory=8GiB")),
            }
        }
        Ok(attributes)
    }
}

/// Parses a number of bytes, decimal or hexadecimal, with a unit as hwloc takes it.
fn bytes(text: &str) -> Option<u64> {
    let units = [
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
        ("kb", 1000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("tb", 1_000_000_000_000),
    ];
    let text = text.to_ascii_lowercase();
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    let unit = units.iter().find_map(|&(unit, size)| Some((text.strip_suffix(unit)?, size)));
    let (digits, size) = unit.unwrap_or((&text, 1));
    digits.parse::<u64>().ok()?.checked_mul(size)
}

pub(super) fn wrong(found: &str, expected: &str) -> ReadError {
    let message = format!("found `{found}`, expected {expected}");
    ReadError::Markup { format: FORMAT, message }
}
