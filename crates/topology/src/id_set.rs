//! Sets of ids and their list format.
#![expect(missing_docs, reason = "fields of errors that their names explain")]

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::marker::PhantomData;
use core::str::FromStr;

use crate::id::{CpuId, Id, NodeId};

/// The largest id in a list. Linux supports 8,192 cpus and 1,024 nodes; the bound keeps a damaged
/// list such as `0-4294967295` from filling memory.
pub const MAX_ID: u32 = 65_535;

/// A set of cpus.
pub type CpuSet = IdSet<CpuId>;
/// A set of nodes.
pub type NodeSet = IdSet<NodeId>;

/// An ordered set of ids, printed and parsed in the list format of `cpuset(7)`: `0-3,8`. The empty
/// set is the empty string.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdSet<I> {
    /// First and last numbers, ascending, with gaps between them: a list of `0-65535` takes no
    /// more memory than its text.
    ranges: Vec<(u32, u32)>,
    kind: PhantomData<I>,
}

impl<I: Id> IdSet<I> {
    /// Creates an empty set.
    pub const fn new() -> Self {
        Self { ranges: Vec::new(), kind: PhantomData }
    }

    /// Adds `id`; returns true if it was not in the set yet.
    pub fn insert(&mut self, id: I) -> bool {
        let absent = !self.contains(id);
        if absent {
            self.insert_range(id.number(), id.number());
        }
        absent
    }

    /// Adds all numbers from `first` to `last`.
    fn insert_range(&mut self, first: u32, last: u32) {
        // Ranges that end more than one number before the new one, and those that begin more than
        // one number after it, stay separate.
        let before = self.ranges.partition_point(|range| range.1.saturating_add(1) < first);
        let until = self.ranges.partition_point(|range| range.0 <= last.saturating_add(1));
        let joined = &self.ranges[before..until];
        let first = joined.first().map_or(first, |range| range.0.min(first));
        let last = joined.last().map_or(last, |range| range.1.max(last));
        self.ranges.splice(before..until, [(first, last)]);
    }

    /// Removes `id`; returns true if it was in the set.
    pub fn remove(&mut self, id: I) -> bool {
        let number = id.number();
        let Some(place) = self.place(number) else { return false };
        let (first, last) = self.ranges[place];
        let left = (first < number).then(|| (first, number - 1));
        let right = (number < last).then(|| (number + 1, last));
        self.ranges.splice(place..=place, left.into_iter().chain(right));
        true
    }

    /// Returns the index of the range that contains `number`.
    fn place(&self, number: u32) -> Option<usize> {
        let place = self.ranges.partition_point(|range| range.1 < number);
        self.ranges.get(place).is_some_and(|range| range.0 <= number).then_some(place)
    }

    /// Returns true if `id` is in the set.
    pub fn contains(&self, id: I) -> bool {
        self.place(id.number()).is_some()
    }

    /// Returns the number of ids in the set.
    pub fn len(&self) -> usize {
        self.ranges.iter().map(|&(first, last)| (last - first) as usize + 1).sum()
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the smallest id.
    pub fn first(&self) -> Option<I> {
        self.ranges.first().map(|&(first, _)| I::from_number(first))
    }

    /// Returns the ids, smallest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = I> + '_ {
        self.ranges.iter().flat_map(|&(first, last)| first..=last).map(I::from_number)
    }

    /// Returns the set as a mask in words of 32 bits, with the lowest ids first; at least one word.
    pub fn mask_words(&self) -> Vec<u32> {
        let last = self.iter().next_back().map_or(0, |last| last.number());
        let mut words = alloc::vec![0; last as usize / 32 + 1];
        for id in self.iter() {
            words[id.number() as usize / 32] |= 1 << (id.number() % 32);
        }
        words
    }

    /// Returns the ids that are in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut ranges, mut others) = (Vec::new(), other.ranges.iter().peekable());
        for &(first, last) in &self.ranges {
            while others.next_if(|range| range.1 < first).is_some() {}
            let mut rest = others.clone();
            while let Some(range) = rest.next_if(|range| range.0 <= last) {
                ranges.push((first.max(range.0), last.min(range.1)));
            }
        }
        Self { ranges, kind: PhantomData }
    }

    /// Returns the ids of this set that are not in `other`.
    pub fn difference(&self, other: &Self) -> Self {
        let mut shared = self.intersection(other).ranges.into_iter().peekable();
        let mut left = Vec::new();
        for &(first, last) in &self.ranges {
            let mut next = Some(first);
            while let Some((from, to)) = shared.next_if(|range| range.0 <= last) {
                left.extend(next.filter(|&next| next < from).map(|next| (next, from - 1)));
                next = to.checked_add(1).filter(|&next| next <= last);
            }
            left.extend(next.map(|next| (next, last)));
        }
        Self { ranges: left, kind: PhantomData }
    }

    /// Adds all ids of `other`.
    pub fn extend_from(&mut self, other: &Self) {
        other.ranges.iter().for_each(|&(first, last)| self.insert_range(first, last));
    }

    /// Returns true if every id of this set is in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        let holds = |&(first, last): &(u32, u32)| {
            other.place(first).is_some_and(|at| other.ranges[at].1 >= last)
        };
        self.ranges.iter().all(holds)
    }
}

/// Compares ids in order, as lists of numbers are compared.
impl<I: Id> Ord for IdSet<I> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl<I: Id> PartialOrd for IdSet<I> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<I: Id> Default for IdSet<I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id> FromIterator<I> for IdSet<I> {
    fn from_iter<T: IntoIterator<Item = I>>(ids: T) -> Self {
        let mut set = Self::new();
        set.extend(ids);
        set
    }
}

impl<I: Id> Extend<I> for IdSet<I> {
    fn extend<T: IntoIterator<Item = I>>(&mut self, ids: T) {
        for number in ids.into_iter().map(Id::number) {
            match self.ranges.last_mut() {
                Some(last) if last.1.checked_add(1) == Some(number) => last.1 = number,
                _ => self.insert_range(number, number),
            }
        }
    }
}

impl<I: Id> fmt::Display for IdSet<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for &(first, last) in &self.ranges {
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                1 => write!(f, "{separator}{first},{last}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl<I: Id> fmt::Debug for IdSet<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// Reasons why a string is not a list of ids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdListError {
    /// An item is neither a number nor a range nor a range with a stride.
    #[error("`{item}` in the {what} list `{list}`: expected a number or a range such as 0-3")]
    Item { what: &'static str, list: String, item: String },
    /// A range ends before it begins.
    #[error("range `{item}` in the {what} list `{list}` ends before it begins")]
    Reversed { what: &'static str, list: String, item: String },
    /// An id is larger than [`MAX_ID`].
    #[error("{what} {number} in the list `{list}` is above {MAX_ID}")]
    TooLarge { what: &'static str, list: String, number: u32 },
}

impl<I: Id> FromStr for IdSet<I> {
    type Err = IdListError;

    fn from_str(list: &str) -> Result<Self, IdListError> {
        let mut set = Self::new();
        if list.trim().is_empty() {
            return Ok(set);
        }
        for item in list.trim().split(',') {
            let (first, last, stride) = parse_item::<I>(item.trim(), list)?;
            if stride == 1 {
                set.insert_range(first, last);
            } else {
                set.extend((first..=last).step_by(stride as usize).map(I::from_number));
            }
        }
        Ok(set)
    }
}

/// Parses `7`, `0-7` or `0-7:2` (every second number) as first, last and stride.
fn parse_item<I: Id>(item: &str, list: &str) -> Result<(u32, u32, u32), IdListError> {
    let malformed =
        || IdListError::Item { what: I::WHAT, list: list.to_owned(), item: item.to_owned() };
    let number = |text: &str| text.parse::<u32>().map_err(|_| malformed());
    let (range, stride) = match item.split_once(':') {
        Some((range, stride)) => (range, number(stride)?),
        None => (item, 1),
    };
    let (first, last) = match range.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(range)?, number(range)?),
    };
    if stride == 0 {
        return Err(malformed());
    }
    if last < first {
        let (list, item) = (list.to_owned(), item.to_owned());
        return Err(IdListError::Reversed { what: I::WHAT, list, item });
    }
    if last > MAX_ID {
        return Err(IdListError::TooLarge { what: I::WHAT, list: list.to_owned(), number: last });
    }
    Ok((first, last, stride))
}

#[cfg(feature = "serde")]
impl<I: Id> serde::Serialize for IdSet<I> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A list such as `0-3,8`.
#[cfg(feature = "schema")]
impl<I: Id> schemars::JsonSchema for IdSet<I> {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "IdSet".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Ids in ascending order: 0-3,8",
            "type": "string",
            "pattern": "^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$"
        })
    }
}

#[cfg(feature = "serde")]
impl<'de, I: Id> serde::Deserialize<'de> for IdSet<I> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = String::deserialize(deserializer)?;
        // A stride can express a large set in a short text, and is never written.
        if list.contains(':') {
            let expected = "expected numbers and ranges such as 0-3, without a stride";
            return Err(serde::de::Error::custom(format_args!("`{list}`: {expected}")));
        }
        list.parse().map_err(serde::de::Error::custom)
    }
}
