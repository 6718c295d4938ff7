//! Places in a study that errors refer to.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The part of a study, or of its command line, that an error refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StudyPlace {
    /// The value below these keys, the outermost first.
    Keys(Vec<String>),
    Factor(String),
    /// The level that sets this setting.
    Setting(String),
    Workload(String),
    Sample {
        workload: String,
        treatment: String,
    },
    Treatment(String),
    /// An option of the command line: `--set KEY`.
    CommandLine(String),
}

impl StudyPlace {
    /// Returns the place below these keys, the outermost first.
    pub fn keys<'k>(keys: impl IntoIterator<Item = &'k str>) -> Self {
        Self::Keys(keys.into_iter().map(str::to_owned).collect())
    }

    /// Returns the place of a setting in the table of a kind of backend.
    pub fn backend(kind: &str, setting: &str) -> Self {
        Self::keys(["backend", kind, setting])
    }
}

impl fmt::Display for StudyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keys(keys) => {
                // As in TOML, where a bare dot separates keys.
                let quoted = |key: &String| match key.contains('.') {
                    true => format!("\"{key}\""),
                    false => key.clone(),
                };
                f.write_str(&keys.iter().map(quoted).collect::<Vec<_>>().join("."))
            }
            Self::Factor(name) => write!(f, "factor {name}"),
            Self::Setting(name) => write!(f, "setting {name}"),
            Self::Workload(name) => write!(f, "workload {name}"),
            Self::Sample { workload, treatment } => write!(f, "workload {workload}, {treatment}"),
            Self::Treatment(name) => write!(f, "treatment {name}"),
            Self::CommandLine(key) => write!(f, "--set {key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_shown_as_the_study_has_it() {
        let sample =
            StudyPlace::Sample { workload: "w".to_owned(), treatment: "aslr=0".to_owned() };
        let shown = [
            (StudyPlace::keys(["rules", "margins", "w.t"]), "rules.margins.\"w.t\""),
            (StudyPlace::backend("guests", "xen"), "backend.guests.xen"),
            (StudyPlace::Setting("aslr".to_owned()), "setting aslr"),
            (sample, "workload w, aslr=0"),
            (StudyPlace::CommandLine("guests".to_owned()), "--set guests"),
        ];
        for (place, text) in shown {
            assert_eq!(place.to_string(), text);
        }
    }
}
