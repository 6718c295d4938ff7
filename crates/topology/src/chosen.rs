//! Cpus or nodes selected by a user.

use alloc::borrow::ToOwned;
use core::str::FromStr;

use crate::id::Id;
use crate::id_set::{IdListError, IdSet};

/// A selection of cpus or nodes in the syntax of numactl(8): `all`, `0-3,8`, or `!0` for all but
/// these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen<I: Id> {
    /// All allowed ones.
    All,
    /// These.
    These(IdSet<I>),
    /// All but these.
    Except(IdSet<I>),
}

impl<I: Id> Chosen<I> {
    /// Returns the selected ones among `all`, or `None` if there is nothing to choose.
    pub fn among(&self, all: &IdSet<I>) -> Option<IdSet<I>> {
        match self {
            Self::All => None,
            Self::These(set) => Some(set.clone()),
            Self::Except(set) => Some(all.difference(set)),
        }
    }

    /// Returns the selected ones among `all`.
    pub fn select_from(&self, all: &IdSet<I>) -> IdSet<I> {
        self.among(all).unwrap_or_else(|| all.clone())
    }
}

impl<I: Id> FromStr for Chosen<I> {
    type Err = IdListError;

    fn from_str(text: &str) -> Result<Self, IdListError> {
        match text.strip_prefix('!') {
            _ if text == "all" => Ok(Self::All),
            // A lone `!` would mean all but none.
            Some("") => Err(IdListError::Item {
                what: I::WHAT,
                list: text.to_owned(),
                item: text.to_owned(),
            }),
            Some(list) => list.parse().map(Self::Except),
            None => text.parse().map(Self::These),
        }
    }
}
