//! A study with settings of the command line (`--set KEY=VALUE`).

use numalab_record::study::Setting;
use serde_json::Value;

use super::contract::BackendError;
use super::setting_spec::BackendKind;
use crate::definition::{Level, Study};
use crate::study_place::StudyPlace;

/// The key that chooses among a study's workloads.
const WORKLOADS: &str = "workloads";
/// The setting that makes the machine's own Xen the place, and the factor that it decides.
const ON_THIS_DOM0: (&str, &str) = ("on-this-dom0", "numa");

impl BackendKind {
    /// Changes a study that runs in this backend: a setting of the backend, the levels of a
    /// factor (`4,8`), or which `workloads` are run. A single value for a factor that the
    /// backend has a setting for takes the factor's place.
    ///
    /// # Errors
    /// [`BackendError::BadInput`] names what may be set.
    pub fn set(&self, study: &mut Study, key: &str, value: &str) -> Result<(), BackendError> {
        if key == WORKLOADS {
            return keep_workloads(study, value);
        }
        let setting = self.setting(key);
        let factor = study.factors.iter_mut().find(|factor| factor.name == key);
        if let Some(factor) = factor.filter(|_| setting.is_none() || value.contains(',')) {
            factor.levels = self.levels_of(key, value)?;
            return Ok(());
        }
        let Some(setting) = setting else { return Err(self.no_such_key(study, key)) };
        let value = setting.kind.value_of(value).ok_or_else(|| BackendError::BadInput {
            place: StudyPlace::CommandLine(key.to_owned()),
            found: value.to_owned(),
            expected: setting.kind.expected(),
        })?;
        let decides = key == ON_THIS_DOM0.0 && value == Value::Bool(true);
        study.backend.settings.insert(key.to_owned(), value);
        // Whether this Xen knows of nodes was decided when it was booted.
        let decided = |name: &str| name == key || decides && name == ON_THIS_DOM0.1;
        study.factors.retain(|factor| !decided(&factor.name));
        Ok(())
    }

    /// The levels that a list means; numbers in their order.
    fn levels_of(&self, key: &str, list: &str) -> Result<Vec<Level>, BackendError> {
        let mut settings: Vec<Setting> = list.split(',').map(setting_of).collect();
        if settings.iter().all(|setting| matches!(setting, Setting::Integer(_))) {
            settings.sort_by_key(|setting| match setting {
                Setting::Integer(number) => *number,
                _ => 0,
            });
            settings.dedup();
        }
        for setting in &settings {
            if self.has_level(key) {
                self.check_level(key, setting)?;
            }
        }
        Ok(settings.into_iter().map(Level::Value).collect())
    }

    fn no_such_key(&self, study: &Study, key: &str) -> BackendError {
        let settings = self.settings.iter().map(|spec| spec.name);
        let factors = study.factors.iter().map(|factor| factor.name.as_str());
        let factors = factors.filter(|name| self.setting(name).is_none());
        let names: Vec<&str> = settings.chain(factors).chain([WORKLOADS]).collect();
        super::setting_spec::no_such_setting(StudyPlace::CommandLine(key.to_owned()), key, &names)
    }
}

fn setting_of(word: &str) -> Setting {
    match (word.parse(), word.parse(), word.parse()) {
        (Ok(number), _, _) => Setting::Integer(number),
        (_, Ok(flag), _) => Setting::Bool(flag),
        (_, _, Ok(number)) => Setting::Number(number),
        _ => Setting::Text(word.to_owned()),
    }
}

fn keep_workloads(study: &mut Study, list: &str) -> Result<(), BackendError> {
    let wanted: Vec<&str> = list.split(',').collect();
    let known: Vec<&str> = study.workloads.iter().map(|workload| workload.name()).collect();
    if let Some(name) = wanted.iter().find(|name| !known.contains(name)) {
        return Err(BackendError::BadInput {
            place: StudyPlace::CommandLine(WORKLOADS.to_owned()),
            found: (*name).to_owned(),
            expected: format!("one of {}", known.join(", ")),
        });
    }
    study.workloads.retain(|workload| wanted.contains(&workload.name()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::backend_kind;
    use crate::{bundled_text, parse};

    fn changed(key: &str, value: &str) -> Result<Study, String> {
        let mut study = parse(bundled_text("guest-scaling").unwrap(), "guest-scaling").unwrap();
        let kind = backend_kind("guests").unwrap();
        kind.set(&mut study, key, value).map_err(|error| error.to_string())?;
        Ok(study)
    }

    fn factors(study: &Study) -> Vec<&str> {
        study.factors.iter().map(|factor| factor.name.as_str()).collect()
    }

    #[test]
    fn several_values_are_levels_and_one_is_a_setting_in_place_of_the_factor() {
        let several = changed("guests", "6,2,6").unwrap();
        let levels: Vec<String> = several.factors[1].levels.iter().map(Level::name).collect();
        assert_eq!(levels, ["2", "6"]);
        let one = changed("guests", "6").unwrap();
        assert_eq!(
            (factors(&one), &one.backend.settings["guests"]),
            (vec!["numa"], &Value::from(6))
        );
    }

    #[test]
    fn this_dom0_was_booted_with_or_without_nodes() {
        assert_eq!(factors(&changed("on-this-dom0", "true").unwrap()), ["guests"]);
        assert_eq!(factors(&changed("on-this-dom0", "false").unwrap()), ["numa", "guests"]);
    }

    #[test]
    fn what_cannot_be_set_is_refused_with_what_can() {
        for (key, value, words) in [
            ("guests", "65", "--set guests: 65: expected 1 to 64"),
            ("guests", "4,65", "setting guests: 65: expected 1 to 64"),
            ("hypervisor", "kvm", "--set hypervisor: kvm: expected xen or qemu"),
            ("workloads", "sdet", "expected one of dbench, mix, latency, bandwidth"),
            ("emulate_latency", "100", "did you mean `emulate-latency`?"),
            ("color", "red", "no such setting: expected one of hypervisor, "),
        ] {
            let message = changed(key, value).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }
}
