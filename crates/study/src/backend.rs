//! The places where samples are taken, as the engine sees them: the contract, and the list of
//! backends, which the caller supplies.

mod contract;
mod list;
mod set;
mod setting_spec;

pub use contract::{
    Backend, BackendError, Inspection, Preparation, PrepareError, Prepared, SampleRequest, Scope,
};
pub use list::{Backends, OpenBackend};
pub use setting_spec::{BackendKind, SettingKind, SettingSpec};
