//! Why a change of a knob cannot have an effect.

use serde::{Deserialize, Serialize};

/// Why a change of a knob cannot have an effect on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NoEffect {
    /// The machine has nothing that the knob sets.
    NothingToSet,
    /// The kernel does not have it.
    NotInKernel,
    /// It may not be read, for this reason.
    Denied(String),
    /// It can only be written, so that nobody could put it back.
    WriteOnly,
    /// It can only be read.
    ReadOnly,
    /// All memory is on one node.
    OneNode,
    /// All memory is of one tier.
    OneTier,
    /// There is no swap.
    NoSwap,
    /// The machine has no sibling threads.
    NoSiblings,
    /// The kernel has this value in place of one that could be changed.
    Fixed(String),
    /// This release of Linux has a DAMON that does not migrate.
    DamonTooOld(String),
    /// DAMON is in use, with this.
    DamonInUse(String),
    /// The kernel does not tell which memory is of a slow tier.
    TiersUntold,
    /// A sentence, as journals up to 0.1.0 had it.
    #[serde(untagged)]
    Sentence(String),
}
