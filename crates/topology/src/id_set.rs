//! Sets of ids and their list format.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::string::String;
use core::fmt;
use core::marker::PhantomData;
use core::str::FromStr;

use crate::id::{CpuId, Id, NodeId};

/// The largest id a list may hold. Linux allows 8,192 cpus and 1,024 nodes;
/// the bound keeps a damaged list such as `0-4294967295` from filling memory.
pub const MAX_ID: u32 = 65_535;

/// A set of cpus.
pub type CpuSet = IdSet<CpuId>;
/// A set of nodes.
pub type NodeSet = IdSet<NodeId>;

/// An ordered set of ids, printed and read in the list format of `cpuset(7)`:
/// `0-3,8`. The empty set is the empty string.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdSet<I> {
    numbers: BTreeSet<u32>,
    kind: PhantomData<I>,
}

impl<I: Id> IdSet<I> {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { numbers: BTreeSet::new(), kind: PhantomData }
    }

    /// Adds `id`; true if it was not there yet.
    pub fn insert(&mut self, id: I) -> bool {
        self.numbers.insert(id.number())
    }

    /// Takes `id` out; true if it was there.
    pub fn remove(&mut self, id: I) -> bool {
        self.numbers.remove(&id.number())
    }

    /// Whether `id` is in the set.
    #[must_use]
    pub fn contains(&self, id: I) -> bool {
        self.numbers.contains(&id.number())
    }

    /// How many ids the set holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether the set holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The smallest id.
    #[must_use]
    pub fn first(&self) -> Option<I> {
        self.numbers.first().map(|&number| I::from_number(number))
    }

    /// The ids, smallest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = I> + '_ {
        self.numbers.iter().map(|&number| I::from_number(number))
    }

    /// The ids that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.iter().filter(|&id| other.contains(id)).collect()
    }

    /// The ids of this set that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.iter().filter(|&id| !other.contains(id)).collect()
    }

    /// Whether every id of this set is in `other`.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.numbers.is_subset(&other.numbers)
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
        self.numbers.extend(ids.into_iter().map(Id::number));
    }
}

impl<I: Id> fmt::Display for IdSet<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers = self.numbers.iter().copied().peekable();
        let mut separator = "";
        while let Some(first) = numbers.next() {
            let mut last = first;
            while let Some(next) = numbers.next_if_eq(&(last + 1)) {
                last = next;
            }
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

/// Why a text is no list of ids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdListError {
    /// An item is neither a number nor a range nor a range with a stride.
    #[error("`{item}` in the {what} list `{list}`: expected a number or a range such as 0-3")]
    Item {
        /// What the list names.
        what: &'static str,
        /// The whole list.
        list: String,
        /// The item that could not be read.
        item: String,
    },
    /// A range ends before it begins.
    #[error("range `{item}` in the {what} list `{list}` ends before it begins")]
    Reversed {
        /// What the list names.
        what: &'static str,
        /// The whole list.
        list: String,
        /// The reversed range.
        item: String,
    },
    /// An id is larger than [`MAX_ID`].
    #[error("{what} {number} in the list `{list}` is beyond {MAX_ID}")]
    TooLarge {
        /// What the list names.
        what: &'static str,
        /// The whole list.
        list: String,
        /// The id.
        number: u32,
    },
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
            let numbers = (first..=last).step_by(stride as usize);
            set.extend(numbers.map(I::from_number));
        }
        Ok(set)
    }
}

/// Reads `7`, `0-7` or `0-7:2` (every second) as first, last and stride.
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

#[cfg(feature = "serde")]
impl<'de, I: Id> serde::Deserialize<'de> for IdSet<I> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = String::deserialize(deserializer)?;
        list.parse().map_err(serde::de::Error::custom)
    }
}
