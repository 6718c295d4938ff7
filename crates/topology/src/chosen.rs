//! CPUs or nodes as a user chooses them.

use alloc::borrow::ToOwned;
use core::str::FromStr;

use crate::id::Id;
use crate::id_set::{IdListError, IdSet};

/// CPUs or nodes as numactl(8) takes them: `all`, `0-3,8`, or `!0` for all but these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen<I: Id> {
    /// All that may be used.
    All,
    /// These.
    These(IdSet<I>),
    /// All but these.
    Except(IdSet<I>),
}

impl<I: Id> Chosen<I> {
    /// The chosen ones where there are `all`; none if there is no choice.
    #[must_use]
    pub fn among(&self, all: &IdSet<I>) -> Option<IdSet<I>> {
        match self {
            Self::All => None,
            Self::These(set) => Some(set.clone()),
            Self::Except(set) => Some(all.difference(set)),
        }
    }

    /// The chosen ones where there are `all`.
    #[must_use]
    pub fn of(&self, all: &IdSet<I>) -> IdSet<I> {
        self.among(all).unwrap_or_else(|| all.clone())
    }
}

impl<I: Id> FromStr for Chosen<I> {
    type Err = IdListError;

    fn from_str(text: &str) -> Result<Self, IdListError> {
        match text.strip_prefix('!') {
            _ if text == "all" => Ok(Self::All),
            // `!` alone would be all but none.
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
