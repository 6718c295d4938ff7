//! Reads a document of any kind, and makes its page again.

use numalab_record::bisect::BisectDocument;
use numalab_record::explore::View;
use numalab_record::profile::Profile;
use numalab_record::scaling::Scaling;
use numalab_record::self_test::SelfTest;
use numalab_record::study::{PlannedStudy, SettingList, ShownStudy, StudyDocument, StudyList};
use numalab_record::system::{AcpiShown, BalancingProbed, Described, KnobList};
use numalab_record::tiering::TieringProbed;
use numalab_record::{Document, Kind, KindError, MemoryReport, MemoryReportError};
use serde::Deserialize;

use crate::advice::Advice;
use crate::compare::document::RunComparison;
use crate::explore::Explored;
use crate::fleet::Analysis;
use crate::fleet::page::FleetReport;
use crate::health::Health;
use crate::machine::document::ComparedMachine;
use crate::report::Report;
use crate::run::Summary;
use crate::samples::document::SamplesPart;
use crate::scaling::ScalingSummary;
use crate::study::StudySummary;
use crate::study::document::StudyComparison;

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
    let kind = match Kind::of(json) {
        Ok(kind) => kind,
        Err(KindError::Unknown { schema }) if schema.starts_with("numalab-emulator/") => {
            return Ok(show(&MemoryReport::read(json)?));
        }
        Err(error) => return Err(error.into()),
    };
    fn read<T: for<'de> Deserialize<'de>>(kind: Kind, json: &str) -> Result<T, KindError> {
        kind.read(json)
    }
    let needs = |command| Err(DocumentError::NotAlone { kind, command });
    Ok(match kind {
        Kind::Run => show(&Summary::of(&read::<Document>(kind, json)?)),
        Kind::Study => show(&StudySummary::of(&read::<StudyDocument>(kind, json)?)),
        Kind::StudyPlan => show(&read::<PlannedStudy>(kind, json)?),
        Kind::StudyDefinition => show(&read::<ShownStudy>(kind, json)?),
        Kind::StudyList => show(&read::<StudyList>(kind, json)?),
        Kind::StudySettings => show(&read::<SettingList>(kind, json)?),
        Kind::Comparison => show(&read::<RunComparison>(kind, json)?),
        Kind::StudyComparison => show(&read::<StudyComparison>(kind, json)?),
        Kind::SampleComparison => match read::<SamplesPart>(kind, json)?.compared() {
            Some(compared) => show(&compared),
            None => return needs("numalab compare A B"),
        },
        Kind::MachineComparison => show(&read::<ComparedMachine>(kind, json)?),
        Kind::Ranks | Kind::Scale => return needs("numalab report DIR"),
        Kind::Scaling => show(&ScalingSummary::of(&read::<ScalingPart>(kind, json)?.scaling)),
        Kind::Explore => show(&Explored::of(view(json)?)),
        Kind::Fleet => {
            let analysis = read::<Analysis>(kind, json)?;
            show(&FleetReport { name: name.to_owned(), analysis })
        }
        Kind::Health => show(&read::<Health>(kind, json)?),
        Kind::Knobs => show(&read::<KnobList>(kind, json)?),
        Kind::Probe => show(&read::<BalancingProbed>(kind, json)?),
        Kind::Tiering => show(&read::<TieringProbed>(kind, json)?),
        Kind::Bisect => show(&read::<BisectDocument>(kind, json)?),
        Kind::Topology => show(&read::<Described>(kind, json)?),
        Kind::Acpi => show(&read::<AcpiShown>(kind, json)?),
        Kind::Advice => show(&read::<Advice>(kind, json)?),
        Kind::Profile => show(&read::<Profile>(kind, json)?),
        Kind::SelfTest => show(&read::<SelfTest>(kind, json)?),
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

/// The members of a scaling report from which the others follow.
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
    /// The page needs more than the document.
    #[error("holds {kind}; its page is made from the results themselves: use `{command}`")]
    NotAlone {
        kind: Kind,
        /// The command that makes the page.
        command: &'static str,
    },
}
