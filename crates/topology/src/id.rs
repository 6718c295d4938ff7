//! Ids of nodes, cpus and proximity domains.

use core::fmt;

/// A number that identifies something and can be in an [`IdSet`](crate::IdSet).
pub trait Id: Copy + Ord + fmt::Debug {
    /// The kind of id in messages: "cpu", "node".
    const WHAT: &'static str;
    /// Returns the number.
    fn number(self) -> u32;
    /// Returns the id with this number.
    fn from_number(number: u32) -> Self;
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "serde", serde(transparent))]
        pub struct $name(pub u32);

        impl Id for $name {
            const WHAT: &'static str = $what;
            fn number(self) -> u32 {
                self.0
            }
            fn from_number(number: u32) -> Self {
                Self(number)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A node, as numbered by the operating system; numbers may have gaps.
    NodeId, "node"
}
id! {
    /// A logical cpu (hardware thread), as numbered by the operating system.
    CpuId, "cpu"
}
id! {
    /// A proximity domain of the firmware's tables (ACPI 6.5, section 5.2.16).
    ProximityDomain, "proximity domain"
}
