//! Results of numalab's records: findings, their wording and their pages, with a folder per
//! subject.
//!
//! `find` holds rules and figures as values without text; `page` puts them into words and a
//! [`numalab_page::Page`]; `document` adds what JSON needs beyond them. `find` uses neither of the
//! other two.
//!
//! [`with_report`] makes the page of a kept document of any kind.
//!
//! The crate is pure: it has no I/O and reads no clock, so the same record always gives the same
//! text.
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]

pub mod advice;
pub mod bisect;
pub mod capture;
pub mod compare;
mod document;
pub mod explore;
mod finding;
pub mod fleet;
pub mod gauges;
pub mod health;
mod judgement;
mod label;
pub mod machine;
mod over_time;
pub mod profile;
pub mod program;
mod report;
pub mod run;
pub mod samples;
pub mod scaling;
pub mod self_test;
mod settings;
pub mod shape;
pub mod study;
pub mod system;
mod taken;
pub mod tiering;
mod topology;
mod verdict;

use numalab_record::bisect::BisectDocument;
use numalab_record::explore::View;
use numalab_record::profile::Profile;
use numalab_record::scaling::Scaling;
use numalab_record::self_test::SelfTest;
use numalab_record::study::{PlannedStudy, SettingList, ShownStudy, StudyDocument, StudyList};
use numalab_record::system::{AcpiShown, BalancingProbed, Described, KnobList, MachineList};
use numalab_record::tiering::TieringProbed;
use numalab_record::{Document, Kind, KindError, MemoryReport, MemoryReportError, Taken};
use serde::Deserialize;

use crate::advice::Advice;
use crate::compare::document::RunComparison;
use crate::explore::Explored;
use crate::fleet::Analysis;
use crate::fleet::page::FleetReport;
use crate::health::Health;
use crate::machine::document::ComparedMachine;
use crate::run::Summary;
use crate::samples::document::SamplesPart;
use crate::scaling::ScalingSummary;
use crate::study::StudySummary;
use crate::study::document::StudyComparison;

pub use document::document;
pub use finding::Finding;
pub use judgement::Judgement;
pub use label::change_words;
pub use report::Report;
pub use taken::TakenReport;
pub use verdict::VerdictWord;

/// Reads a document of any kind, called `name` in errors, and passes its report to `show`.
///
/// # Errors
///
/// [`DocumentError`] if it is not a document, does not match its schema, or does not suffice to
/// make its page.
pub fn with_report<T>(
    name: &str,
    json: &str,
    show: impl FnOnce(&dyn Report) -> T,
) -> Result<T, DocumentError> {
    let taken = serde_json::from_str(json).ok().and_then(|of: TakenPart| of.taken);
    let show = |report: &dyn Report| match &taken {
        Some(taken) => show(&TakenReport { taken, report }),
        None => show(report),
    };
    let kind = match Kind::of(json) {
        Ok(kind) => kind,
        Err(KindError::Unknown { schema }) if schema.starts_with("numalab-emulator/") => {
            return Ok(show(&MemoryReport::read(json)?));
        }
        Err(error) => return Err(error.into()),
    };
    let needs = |command| Err(DocumentError::NotAlone { kind, command });
    Ok(match kind {
        Kind::Run => show(&Summary::of(&kind.read::<Document>(json)?)),
        Kind::Study => show(&StudySummary::of(&kind.read::<StudyDocument>(json)?)),
        Kind::StudyPlan => show(&kind.read::<PlannedStudy>(json)?),
        Kind::StudyDefinition => show(&kind.read::<ShownStudy>(json)?),
        Kind::StudyList => show(&kind.read::<StudyList>(json)?),
        Kind::StudySettings => show(&kind.read::<SettingList>(json)?),
        Kind::Comparison => show(&kind.read::<RunComparison>(json)?),
        Kind::StudyComparison => show(&kind.read::<StudyComparison>(json)?),
        Kind::SampleComparison => match kind.read::<SamplesPart>(json)?.compared() {
            Some(compared) => show(&compared),
            None => return needs("numalab compare A B"),
        },
        Kind::MachineComparison => show(&kind.read::<ComparedMachine>(json)?),
        Kind::Ranks | Kind::Scale => return needs("numalab report DIR"),
        Kind::Scaling => show(&ScalingSummary::of(&kind.read::<ScalingPart>(json)?.scaling)),
        Kind::Explore => show(&Explored::of(view(json)?)),
        Kind::Fleet => {
            let analysis = kind.read::<Analysis>(json)?;
            show(&FleetReport { name: name.to_owned(), analysis })
        }
        Kind::Health => show(&kind.read::<Health>(json)?),
        Kind::Knobs => show(&kind.read::<KnobList>(json)?),
        Kind::MachineList => show(&kind.read::<MachineList>(json)?),
        Kind::Probe => show(&kind.read::<BalancingProbed>(json)?),
        Kind::Tiering => show(&kind.read::<TieringProbed>(json)?),
        Kind::Bisect => show(&kind.read::<BisectDocument>(json)?),
        Kind::Topology => show(&kind.read::<Described>(json)?),
        Kind::Acpi => show(&kind.read::<AcpiShown>(json)?),
        Kind::Advice => show(&kind.read::<Advice>(json)?),
        Kind::Profile => show(&kind.read::<Profile>(json)?),
        Kind::Emulation => show(&kind.read::<MemoryReport>(json)?),
        Kind::SelfTest => show(&kind.read::<SelfTest>(json)?),
    })
}

/// Reads a view by its `explore` member. Reading it as a tagged enum would buffer it, and serde
/// does not read numeric keys of maps from a buffer.
fn view(json: &str) -> Result<View, KindError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Subject {
        Nodes,
        Process,
        Guests,
        Ranks,
        Heap,
    }
    #[derive(Deserialize)]
    struct Of {
        explore: Subject,
    }
    let kind = Kind::Explore;
    Ok(match kind.read::<Of>(json)?.explore {
        Subject::Nodes => View::Nodes(kind.read(json)?),
        Subject::Process => View::Process(kind.read(json)?),
        Subject::Guests => View::Guests(kind.read(json)?),
        Subject::Ranks => View::Ranks(kind.read(json)?),
        Subject::Heap => View::Heap(kind.read(json)?),
    })
}

/// The origin of a document that does not record it elsewhere.
#[derive(Deserialize)]
struct TakenPart {
    taken: Option<Taken>,
}

/// The members of a scaling report from which the others are computed.
#[derive(Deserialize)]
struct ScalingPart {
    scaling: Scaling,
}

/// A reason why JSON does not make a page.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The text is not JSON, or does not match its schema.
    #[error(transparent)]
    Kind(#[from] KindError),
    /// The document is a report of the memory emulator, but of another version or form.
    #[error(transparent)]
    Memory(#[from] MemoryReportError),
    #[error("holds {kind}; its page is made from the results themselves: use `{command}`")]
    NotAlone {
        kind: Kind,
        /// The command that makes the page.
        command: &'static str,
    },
}
