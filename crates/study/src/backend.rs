//! The places where samples are taken, as the engine sees them: their contract, and the list of
//! backends that the caller supplies.

mod contract;
mod list;
mod set;
mod setting_spec;

pub use contract::{
    Backend, BackendError, Inspection, Preparation, PrepareError, Prepared, SampleRequest, Scope,
};
pub use list::{Backends, OpenBackend};
pub use setting_spec::{BackendKind, SettingKind, SettingSpec};
