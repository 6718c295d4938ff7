//! Advice on the placement of a program: it is followed once under emulation, the effect of other
//! placements is predicted from its accesses, and the best of them are tried as a study.
//!
//! An [`Advisor`] is made from the request ([`Request`]) and the machine that the advice is for
//! ([`Target`]); it returns an [`Advice`](numalab_results::advice::Advice). A [`Watch`] receives
//! the progress. Nothing is printed or rendered here.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]

mod advisor;
mod attempt;
mod error;
mod extent;
mod here;
mod input;
mod judge;
mod level;
mod look;
mod metric;
mod model;
mod ranks;
mod request;
mod settings;
mod subject;
mod target;
#[cfg(test)]
mod test_study;
mod trials;
mod watch;

pub use advisor::Advisor;
pub use error::AdviseError;
pub use input::{is_piped, redirected};
pub use model::Target;
pub use ranks::RanksError;
pub use request::{Request, Tries};
pub use watch::{Remark, Watch};
