//! Reasons why a change of a knob cannot have an effect.

use serde::{Deserialize, Serialize};

/// The reason why a change of a knob cannot have an effect on a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoEffect {
    /// The machine lacks the feature that the knob sets.
    NothingToSet,
    /// The kernel does not support the knob.
    NotInKernel,
    /// The knob cannot be read, for the given reason.
    Denied(String),
    /// The knob can only be written, so its old value could not be restored.
    WriteOnly,
    /// The knob can only be read.
    ReadOnly,
    /// All memory is on one node.
    OneNode,
    /// All memory is in one tier.
    OneTier,
    /// There is no swap.
    NoSwap,
    /// The machine has no SMT siblings.
    NoSiblings,
    /// The kernel's value is fixed.
    Fixed(String),
    /// DAMON in this release of Linux cannot migrate pages.
    DamonTooOld(String),
    /// DAMON is in use with the given settings.
    DamonInUse(String),
    /// The kernel does not report which memory belongs to a slow tier.
    TiersUnreported,
    /// A sentence, as in journals up to 0.1.0.
    #[serde(untagged)]
    Sentence(String),
}
