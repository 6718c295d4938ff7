//! Backends, where samples are taken, as the engine knows them: the contract, and the list of those that there
//! are, which the caller has.

mod contract;
mod list;
mod set;
mod setting_spec;

pub use contract::{
    Backend, BackendError, Inspection, Preparation, PrepareError, Prepared, SampleRequest, Scope,
};
pub use list::{Backends, OpenBackend};
pub use setting_spec::{BackendKind, SettingKind, SettingSpec};
