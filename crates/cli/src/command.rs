//! One module for each command, and what measuring commands share.

pub(crate) mod acpi;
pub(crate) mod bandwidth;
pub(crate) mod bind;
pub(crate) mod bisect;
pub(crate) mod c2c;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod emulate;
pub(crate) mod explore;
pub(crate) mod fleet;
pub(crate) mod guest;
pub(crate) mod health;
pub(crate) mod knobs;
pub(crate) mod latency;
pub(crate) mod loaded;
pub(crate) mod machine;
pub(crate) mod man;
pub(crate) mod mark;
pub(crate) mod measure;
mod measuring;
pub(crate) mod probe;
mod ranks;
pub(crate) mod report;
pub(crate) mod scale;
pub(crate) mod study;
pub(crate) mod topology;
pub(crate) mod wrapper;
