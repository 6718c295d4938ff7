//! Studies: does this change really help?
//!
//! A [`Study`] asks a question; [`parse`] reads one, and [`bundled`] lists those of numalab. A
//! [`Plan`] turns factors into treatments and randomised complete blocks. A [`Backend`] applies
//! treatments, runs workloads and takes samples. The caller provides the [`Backends`]:
//! `numalab-places` has those of numalab, and tests have their own. A [`Session`] runs the plan and
//! keeps all results in a [`Journal`]. Nothing is rendered here.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]
#![expect(clippy::missing_errors_doc, reason = "error types that list what can fail")]

mod backend;
pub mod bisect;
mod bundled;
mod definition;
mod elapsed;
mod estimate;
mod foreseen;
mod journal;
mod nearest;
mod parse;
mod plan;
mod position;
mod ready;
mod session;
mod study_place;

pub use backend::{
    Backend, BackendError, BackendKind, Backends, Inspection, OpenBackend, Preparation,
    PrepareError, Prepared, SampleRequest, Scope, SettingKind, SettingSpec,
};
pub use bundled::{bundled, bundled_text, bundled_words, start};
pub use definition::{BackendSpec, Factor, Level, NamedLevel, Study};
pub use estimate::{decisions, fewest_blocks, stated_time, too_few};
pub use journal::{Journal, JournalError, is_study, read};
pub use parse::{ParseError, parse};
pub use plan::{Plan, Started};
pub use ready::{ReadyError, ReadyStudy, StudyChanges};
pub use session::{Observer, Session, SessionError};
pub use study_place::StudyPlace;
