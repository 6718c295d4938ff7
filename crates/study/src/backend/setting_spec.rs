//! The settings of a backend, defined once for the parser, the messages, `study settings` and
//! `study new`.

use numalab_record::study::{BackendSettings, ListedSetting, Setting};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::contract::BackendError;
use crate::definition::{BackendSpec, Study};
use crate::nearest::nearest;
use crate::study_place::StudyPlace;

#[derive(Clone, Copy, Debug)]
pub struct SettingSpec {
    /// Name in TOML and for `--set`.
    pub name: &'static str,
    /// The values that the setting accepts.
    pub kind: SettingKind,
    /// Default in TOML; empty if there is none.
    pub default: &'static str,
    /// A description in one line.
    pub about: &'static str,
}

/// The kind of values that a setting accepts.
#[derive(Clone, Copy, Debug)]
pub enum SettingKind {
    /// `true` or `false`.
    Flag,
    /// A whole number of at least 1 and at most this.
    Count(u64),
    OneOf(&'static [&'static str]),
    Text(&'static str),
    /// A list of strings of this form.
    List(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub struct BackendKind {
    /// Name in TOML: `[backend.NAME]`.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The settings of its table in a study.
    pub settings: &'static [SettingSpec],
    /// Metrics that the backend can add to those of every workload.
    pub own_metrics: &'static [&'static str],
    /// The settings of factors' levels, in addition to those that workloads' commands use.
    pub levels: &'static [SettingSpec],
    /// Flags of the backend's table that fix a factor when they are set: flag and factor.
    pub decides: &'static [(&'static str, &'static str)],
    /// The setting of its table that takes the file built for a commit. Without one, the level or
    /// the placeholder `{kernel}` takes it.
    pub built_file: Option<&'static str>,
    /// Returns the time to make the place of one treatment, relative to other settings of it.
    pub place_work: fn(&Study) -> f64,
    /// Returns true if time is virtual with these settings, so that samples repeat exactly.
    pub is_virtual: fn(&BackendSpec) -> bool,
}

/// Settings with earlier names, and their present ones.
const RENAMED: [(&str, &str); 4] = [
    ("emulate-memory", "emulate-latency"),
    ("local-ns", "emulate-latency"),
    ("caches", "emulate-cache"),
    ("latency", "emulate-latency"),
];

impl SettingSpec {
    fn listed(&self) -> ListedSetting {
        ListedSetting {
            name: self.name.to_owned(),
            about: self.about.to_owned(),
            expected: self.kind.expected(),
            default: Some(self.default.to_owned()).filter(|default| !default.is_empty()),
        }
    }
}

impl SettingKind {
    /// Describes the accepted values.
    pub fn expected(&self) -> String {
        match self {
            Self::Flag => "true or false".to_owned(),
            Self::Count(most) => format!("1 to {most}"),
            Self::OneOf(words) => match words {
                [first @ .., last] if !first.is_empty() => {
                    format!("{} or {last}", first.join(", "))
                }
                words => words.concat(),
            },
            Self::Text(form) => (*form).to_owned(),
            Self::List(form) => format!("a list of {form}"),
        }
    }

    fn admits(&self, value: &Value) -> bool {
        match self {
            Self::Flag => value.is_boolean(),
            Self::Count(most) => value.as_u64().is_some_and(|count| (1..=*most).contains(&count)),
            Self::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::Text(_) => value.is_string(),
            Self::List(_) => {
                value.as_array().is_some_and(|values| values.iter().all(Value::is_string))
            }
        }
    }

    /// Returns the value of a word of the command line, if it is valid.
    pub fn value_of(&self, word: &str) -> Option<Value> {
        let value = match self {
            Self::Flag => word.parse().map(Value::Bool).ok()?,
            Self::Count(_) => word.parse().map(|count: u64| Value::from(count)).ok()?,
            Self::OneOf(_) | Self::Text(_) => Value::from(word),
            Self::List(_) => word.split(',').map(Value::from).collect(),
        };
        self.admits(&value).then_some(value)
    }
}

impl BackendKind {
    /// Returns the backend's settings as a list for readers.
    pub fn listed(&self) -> BackendSettings {
        BackendSettings {
            backend: self.name.to_owned(),
            about: self.about.to_owned(),
            settings: self.settings.iter().map(SettingSpec::listed).collect(),
            levels: self.levels.iter().map(SettingSpec::listed).collect(),
        }
    }

    /// A backend without settings, in real time, with places that all take the same time.
    pub const PLAIN: Self = Self {
        name: "",
        about: "",
        settings: &[],
        own_metrics: &[],
        levels: &[],
        decides: &[],
        built_file: None,
        place_work: |_| 1.0,
        is_virtual: |_| false,
    };

    /// Returns the setting of this name in the backend's table.
    pub fn setting(&self, name: &str) -> Option<&'static SettingSpec> {
        self.settings.iter().find(|spec| spec.name == name)
    }

    /// Returns the study's settings as `T`, with defaults for those that it does not name.
    ///
    /// # Errors
    /// [`BackendError::BadInput`] for an unknown setting or an invalid value.
    pub fn read<T: DeserializeOwned>(&self, spec: &BackendSpec) -> Result<T, BackendError> {
        self.check(&spec.settings)?;
        let defaults = self.settings.iter().filter_map(|setting| {
            let value =
                (!setting.default.is_empty()).then(|| setting.kind.value_of(setting.default));
            Some((setting.name.to_owned(), value??))
        });
        let mut settings: Map<String, Value> = defaults.collect();
        // The study's own values replace the defaults.
        settings.extend(spec.settings.clone());
        serde_json::from_value(Value::Object(settings)).map_err(|error| {
            BackendError::bad_input(
                StudyPlace::keys(["backend", self.name]),
                error,
                "the settings that `numalab study settings` lists",
            )
        })
    }

    /// Rejects unknown settings and invalid values in the backend's table.
    fn check(&self, settings: &Map<String, Value>) -> Result<(), BackendError> {
        for (name, value) in settings {
            let place = StudyPlace::backend(self.name, name);
            let Some(spec) = self.setting(name) else {
                return Err(no_such_setting(place, name, &names(self.settings)));
            };
            if !spec.kind.admits(value) {
                let (found, expected) = (value.to_string(), spec.kind.expected());
                return Err(BackendError::bad_input(place, found, expected));
            }
        }
        Ok(())
    }

    /// Returns true if levels may set this, in addition to knobs and settings used by commands.
    pub fn has_level(&self, name: &str) -> bool {
        self.levels.iter().any(|spec| spec.name == name)
    }

    /// Returns the error for a level with a setting that is neither the backend's, nor one of these
    /// knobs, nor used by a command.
    pub fn no_such_level(&self, name: &str, knobs: &[&str]) -> BackendError {
        let names = names(self.levels);
        let meant = self.nearest_level(name, knobs);
        let meant = meant.map(|meant| format!("; did you mean `{meant}`?"));
        let expected = format!(
            "one of {}, a knob of `numalab knobs list`, or {{{name}}} in a workload{}",
            names.join(", "),
            meant.unwrap_or_default()
        );
        let place = StudyPlace::Setting(name.to_owned());
        BackendError::bad_input(place, "no such setting", expected)
    }

    /// Returns the setting of levels or the knob that was probably meant by this name.
    pub fn nearest_level<'a>(&self, name: &str, knobs: &[&'a str]) -> Option<&'a str> {
        nearest_setting(name, &names(self.levels)).or_else(|| nearest(name, knobs))
    }

    /// Rejects an unknown setting or an invalid value of a level.
    ///
    /// # Errors
    /// [`BackendError::BadInput`] with the allowed settings or values.
    pub fn check_level(&self, name: &str, setting: &Setting) -> Result<(), BackendError> {
        let place = StudyPlace::Setting(name.to_owned());
        let Some(spec) = self.levels.iter().find(|spec| spec.name == name) else {
            return Err(no_such_setting(place, name, &names(self.levels)));
        };
        // A number may also be written as text, as in a list with `on` and `fake=4`.
        let fits = spec.kind.value_of(&setting.to_string()).is_some();
        let (found, expected) = (setting.to_string(), spec.kind.expected());
        if fits { Ok(()) } else { Err(BackendError::bad_input(place, found, expected)) }
    }
}

fn names(specs: &[SettingSpec]) -> Vec<&'static str> {
    specs.iter().map(|spec| spec.name).collect()
}

/// Returns the error for an unknown setting, which lists the known ones and suggests the nearest.
fn no_such_setting(place: StudyPlace, name: &str, names: &[&str]) -> BackendError {
    let expected = match nearest_setting(name, names) {
        Some(meant) => format!("one of {}; did you mean `{meant}`?", names.join(", ")),
        None if names.is_empty() => "none".to_owned(),
        None => format!("one of {}", names.join(", ")),
    };
    BackendError::bad_input(place, "no such setting", expected)
}

/// Returns the name that was probably meant: with its current spelling or name, or the nearest one.
pub(super) fn nearest_setting<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    // Settings have dashes, knobs underscores; users mix them.
    let spelled = name.to_lowercase().replace('_', "-");
    let renamed = RENAMED.iter().find(|(old, _)| *old == spelled);
    let wanted = renamed.map_or(spelled.as_str(), |(_, new)| new);
    nearest(wanted, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: BackendKind = BackendKind {
        name: "x",
        settings: &[
            SettingSpec {
                name: "emulate-latency",
                kind: SettingKind::Text("ns"),
                default: "",
                about: "",
            },
            SettingSpec { name: "cpus", kind: SettingKind::Count(8), default: "2", about: "" },
            SettingSpec {
                name: "accel",
                kind: SettingKind::OneOf(&["kvm", "tcg"]),
                default: "",
                about: "",
            },
        ],
        ..BackendKind::PLAIN
    };

    fn refused(name: &str, value: Value) -> String {
        let settings = Map::from_iter([(name.to_owned(), value)]);
        KIND.check(&settings).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_name_is_refused_with_all_names_and_the_nearest() {
        let all = "backend.x.NAME: no such setting: expected one of emulate-latency, cpus, accel";
        for (name, meant) in [
            ("cpu", "; did you mean `cpus`?"),
            ("emulate_latency", "; did you mean `emulate-latency`?"),
            ("local-ns", "; did you mean `emulate-latency`?"),
            ("memory", ""),
        ] {
            let message = refused(name, Value::from(1));
            assert_eq!(message, format!("{}{meant}", all.replace("NAME", name)));
        }
    }

    #[test]
    fn an_invalid_value_is_refused_with_the_allowed_ones() {
        assert_eq!(refused("cpus", Value::from(9)), "backend.x.cpus: 9: expected 1 to 8");
        assert_eq!(refused("cpus", Value::from("2")), "backend.x.cpus: \"2\": expected 1 to 8");
        assert_eq!(
            refused("accel", Value::from("fast")),
            "backend.x.accel: \"fast\": expected kvm or tcg"
        );
    }

    #[test]
    fn words_of_the_command_line_become_values_of_the_settings_kind() {
        assert_eq!(SettingKind::Flag.value_of("true"), Some(Value::Bool(true)));
        assert_eq!(SettingKind::Flag.value_of("yes"), None);
        assert_eq!(SettingKind::Count(8).value_of("3"), Some(Value::from(3)));
        assert_eq!(SettingKind::Count(8).value_of("9"), None);
        let list = SettingKind::List("names").value_of("a,b");
        assert_eq!(list, Some(Value::from(vec!["a", "b"])));
    }
}
