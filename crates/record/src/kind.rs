//! The kinds of documents that numalab writes, and their file names.

use std::fmt;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

/// The schema of all documents before each kind had its own.
const BEFORE: &str = "numalab/1";

/// The names of the files in a result directory.
pub mod file {
    /// Everything known before the first sample of a run, a launch or a study.
    pub const RUN: &str = "run.json";
    /// A run's finished cells, one per line.
    pub const CELLS: &str = "cells.jsonl";
    /// Samples, one per line.
    pub const SAMPLES: &str = "samples.csv";
    /// A study's definition as its author wrote it.
    pub const STUDY: &str = "study.toml";
    /// The events of a study's run, one per line.
    pub const JOURNAL: &str = "journal.jsonl";
    /// The plan of a scaling run.
    pub const SCALE: &str = "scale.json";
    /// The result of a bisection.
    pub const BISECT: &str = "bisect.json";
    /// Name of a result's page in Markdown.
    pub const REPORT_MARKDOWN: &str = "report.md";
    /// The report as an HTML page.
    pub const REPORT_HTML: &str = "report.html";
}

/// Declares the kinds of documents, a row each: description, name, schema, name with its article,
/// and the command that reads a directory of that kind, if there is one.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $schema:literal, $words:literal $(, $reader:literal)?;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            pub const ALL: [Self; [$($schema),*].len()] = [$(Self::$kind),*];

            /// Returns the value of the document's `schema` member: `numalab/run-2`.
            pub const fn schema(self) -> &'static str {
                match self {
                    $(Self::$kind => $schema,)*
                }
            }

            /// Returns the kind's name with its article: `a run`.
            const fn words(self) -> &'static str {
                match self {
                    $(Self::$kind => $words,)*
                }
            }

            /// Returns the command that reads a directory of this kind, if there is one.
            fn reader(self) -> Option<&'static str> {
                match self {
                    $(Self::$kind => None$(.or(Some($reader)))?,)*
                }
            }
        }
    };
}

kinds! {
    /// A measuring run with every raw sample: [`Document`](crate::Document).
    Run = "numalab/run-2", "a run", "numalab report";
    /// A study with its journal: [`StudyDocument`](crate::study::StudyDocument).
    Study = "numalab/study-2", "a study", "numalab report";
    /// The plan of a study: [`PlannedStudy`](crate::study::PlannedStudy).
    StudyPlan = "numalab/study-plan-2", "the plan of a study";
    /// A study as its author wrote it: [`ShownStudy`](crate::study::ShownStudy).
    StudyDefinition = "numalab/study-definition-2", "the definition of a study";
    /// The bundled studies: [`StudyList`](crate::study::StudyList).
    StudyList = "numalab/study-list-2", "a list of studies";
    /// The settings of backends: [`SettingList`](crate::study::SettingList).
    StudySettings = "numalab/study-settings-2", "the settings of backends";
    Comparison = "numalab/comparison-2", "a comparison of two runs";
    /// A comparison of two runs of a study.
    StudyComparison = "numalab/study-comparison-2", "a comparison of two studies";
    /// A comparison of two files of numbers.
    SampleComparison = "numalab/sample-comparison-2", "a comparison of samples";
    /// A comparison of a machine file with a run.
    MachineComparison = "numalab/machine-comparison-2", "a comparison of a machine file and a run";
    /// The measurements of one launch's ranks, as written before runs of ranks existed.
    Ranks = "numalab/ranks-2", "the ranks of a launch", "numalab report";
    /// The plan of a scaling run.
    Scale = "numalab/scale-2", "a scaling run", "numalab report";
    Scaling = "numalab/scaling-2", "the report of a scaling run", "numalab report";
    /// The current location of memory.
    Explore = "numalab/explore-2", "a view of memory";
    /// The hosts of a fleet.
    Fleet = "numalab/fleet-2", "a fleet";
    /// The result of a health check.
    Health = "numalab/health-2", "a health check";
    /// The current values of the kernel's knobs.
    Knobs = "numalab/knobs-2", "a list of knobs";
    /// The bundled machine files.
    MachineList = "numalab/machine-list-1", "a list of machine files";
    /// The result of a probe of NUMA balancing.
    Probe = "numalab/probe-2", "a probe";
    /// The result of a probe of memory tiers.
    Tiering = "numalab/tiering-2", "a probe of memory tiers";
    /// A bisection: the search for the commit that made something slower.
    Bisect = "numalab/bisect-2", "a bisection", "numalab report";
    Topology = "numalab/topology-2", "a machine";
    Acpi = "numalab/acpi-2", "ACPI tables";
    /// Advice on the placement of a program.
    Advice = "numalab/advice-1", "advice for a program";
    /// A program's memory profile: [`Profile`](crate::profile::Profile).
    Profile = "numalab/profile-1", "a profile of a program's memory", "numalab report";
    /// The memory of an emulated program or guest: [`MemoryReport`](crate::MemoryReport).
    Emulation = "numalab/emulation-1", "the memory of an emulated program";
    /// A self-test of numalab on the nodes of a machine.
    SelfTest = "numalab/self-test-1", "a self-test";
}

/// The members of a document that identify its kind.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    schema: String,
    plan: Option<IgnoredAny>,
    treatments: Option<IgnoredAny>,
}

impl Head {
    fn of(json: &str) -> Result<Self, KindError> {
        match serde_json::from_str(json) {
            // JSON of another form has no schema.
            Err(error) if error.is_data() => Ok(Self::default()),
            head => Ok(head?),
        }
    }

    fn kind(&self) -> Result<Kind, KindError> {
        match self.schema.as_str() {
            BEFORE if self.treatments.is_some() => Ok(Kind::Study),
            BEFORE if self.plan.is_some() => Ok(Kind::Run),
            "numalab-ranks/1" => Ok(Kind::Ranks),
            "numalab-scale/1" => Ok(Kind::Scale),
            schema => Kind::ALL
                .into_iter()
                .find(|kind| kind.schema() == schema)
                .ok_or_else(|| KindError::Unknown { schema: schema.to_owned() }),
        }
    }
}

impl Kind {
    /// Returns the kind of a JSON document.
    ///
    /// # Errors
    ///
    /// [`KindError`] if it is not JSON, or of an unknown kind.
    pub fn of(json: &str) -> Result<Self, KindError> {
        Head::of(json)?.kind()
    }

    /// Reads a document of this kind. Documents from before each kind had a separate schema are
    /// read as this kind.
    ///
    /// # Errors
    ///
    /// [`KindError`] if it is of another kind, or does not match its schema.
    pub fn read<T: DeserializeOwned>(self, json: &str) -> Result<T, KindError> {
        let head = Head::of(json)?;
        let found = head.kind()?;
        if found != self {
            return Err(KindError::Other { found, expected: self });
        }
        if head.schema == self.schema() {
            return Ok(serde_json::from_str(json)?);
        }
        // Not by way of a `Value`, because each type would be compiled for both.
        let [earlier, present] =
            [head.schema.as_str(), self.schema()].map(|schema| format!("\"{schema}\""));
        Ok(serde_json::from_str(&json.replacen(&earlier, &present, 1))?)
    }

    /// Returns the kind of results in a directory with the files that `has` accepts; `None` if
    /// there are none.
    pub fn of_directory(has: impl Fn(&str) -> bool) -> Option<Self> {
        match () {
            // A study that lost its journal is not a measuring run.
            () if has(file::JOURNAL) || has(file::RUN) && has(file::STUDY) => Some(Self::Study),
            () if has(file::RUN) => Some(Self::Run),
            () if has(file::SCALE) => Some(Self::Scale),
            () if has(file::BISECT) => Some(Self::Bisect),
            () => None,
        }
    }

    /// Checks that a directory with the files that `has` accepts does not hold results of another
    /// kind.
    ///
    /// # Errors
    ///
    /// [`KindError::Other`] if it does.
    pub fn check_directory(self, has: impl Fn(&str) -> bool) -> Result<(), KindError> {
        match Self::of_directory(has) {
            Some(found) if found != self => Err(KindError::Other { found, expected: self }),
            _ => Ok(()),
        }
    }
}

/// Writes the kind with its article: `a run`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

impl From<Kind> for String {
    fn from(kind: Kind) -> Self {
        kind.schema().to_owned()
    }
}

impl Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.schema())
    }
}

/// A document that is not of the expected kind.
#[derive(Debug, thiserror::Error)]
pub enum KindError {
    /// The text is not JSON, or does not match its schema.
    #[error("cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// The document is of another kind.
    #[error("holds {found}, expected {expected}{}", advice(*.found))]
    Other { found: Kind, expected: Kind },
    #[error("has schema `{schema}`, expected one such as `{}`", Kind::Run.schema())]
    Unknown {
        /// The schema found; empty if there is none.
        schema: String,
    },
}

fn advice(found: Kind) -> String {
    found.reader().map(|reader| format!("; `{reader} DIR` reads it")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_kind_has_its_schema_and_is_found_by_it() {
        for kind in Kind::ALL {
            let json = format!("{{\"schema\":\"{}\"}}", kind.schema());
            assert_eq!(Kind::of(&json).unwrap(), kind);
        }
    }

    #[test]
    fn documents_of_the_first_version_are_recognized_by_their_content() {
        let of = |json: &str| Kind::of(json).unwrap();
        assert_eq!(of(r#"{"schema":"numalab/1","plan":[]}"#), Kind::Run);
        assert_eq!(of(r#"{"schema":"numalab/1","plan":"ab","treatments":[]}"#), Kind::Study);
        assert_eq!(of(r#"{"schema":"numalab-ranks/1"}"#), Kind::Ranks);
    }

    #[test]
    fn a_document_of_another_kind_names_both_and_who_reads_it() {
        for found in Kind::ALL {
            for expected in Kind::ALL.into_iter().filter(|&kind| kind != found) {
                let json = format!("{{\"schema\":\"{}\"}}", found.schema());
                let error = expected.read::<Value>(&json).unwrap_err().to_string();
                assert!(error.starts_with(&format!("holds {found}, expected {expected}")));
                assert_eq!(error.contains("reads it"), found.reader().is_some(), "{error}");
            }
        }
        let error = Kind::Run.read::<Value>(r#"{"schema":"numalab/99"}"#).unwrap_err();
        assert!(error.to_string().contains("`numalab/99`"), "{error}");
    }
}
