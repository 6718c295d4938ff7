//! Changes a study by settings of the command line (`--set KEY=VALUE`).

use numalab_record::study::Setting;
use numalab_workload::WorkloadSpec;
use serde_json::Value;

use super::contract::BackendError;
use super::setting_spec::{BackendKind, nearest_setting};
use crate::definition::{Factor, Level, NamedLevel, Study};
use crate::plan::treatments;
use crate::study_place::StudyPlace;

/// The key that chooses among a study's workloads.
const WORKLOADS: &str = "workloads";
/// Making the places of a block takes as long as this number of workloads.
const PLACES_IN_WORKLOADS: f64 = 4.0;
const VIRTUAL: f64 = 2.0;

impl BackendKind {
    /// Changes a study that runs in this backend by `KEY=VALUE` settings, and scales the author's
    /// estimate of its time.
    ///
    /// # Errors
    /// [`BackendError::BadInput`] names what may be set.
    pub fn set_all(
        &self,
        study: &mut Study,
        settings: &[(String, String)],
    ) -> Result<(), BackendError> {
        // The author's estimate is for the bundled settings.
        let before = self.work_of_a_block(study);
        settings.iter().try_for_each(|(key, value)| self.set(study, key, value))?;
        let share = self.work_of_a_block(study) / before;
        study.rules.about_block_s = study.rules.about_block_s.map(|about_s| about_s * share);
        Ok(())
    }

    /// Returns a value to which the time of a block is about proportional.
    fn work_of_a_block(&self, study: &Study) -> f64 {
        let treatments: usize = study.factors.iter().map(|factor| factor.levels.len()).product();
        let slowdown = if (self.is_virtual)(&study.backend) { VIRTUAL } else { 1.0 };
        let each = (self.place_work)(study) * slowdown;
        treatments as f64 * each * (PLACES_IN_WORKLOADS + study.workloads.len() as f64)
    }

    /// Changes a study that runs in this backend: a setting of the backend, the levels of
    /// a factor (`4,8`; by name if they have names), or the `workloads` to run. A single value
    /// replaces the factor, which then has it in all treatments.
    ///
    /// # Errors
    /// [`BackendError::BadInput`] names what may be set.
    pub fn set(&self, study: &mut Study, key: &str, value: &str) -> Result<(), BackendError> {
        self.change(study, key, value)?;
        keep_published(study);
        Ok(())
    }

    fn change(&self, study: &mut Study, key: &str, value: &str) -> Result<(), BackendError> {
        if key == WORKLOADS {
            return keep_workloads(study, value);
        }
        let setting = self.setting(key);
        let factor = study.factors.iter().position(|factor| factor.name == key);
        if let Some(at) = factor.filter(|_| setting.is_none() || value.contains(',')) {
            // Such levels set several settings, so a list can only choose among them.
            let is_named = |level: &Level| matches!(level, Level::Named(_));
            if study.factors[at].levels.iter().any(is_named) {
                return keep_levels(study, at, value);
            }
            let levels = self.levels_of(key, value)?;
            match (&levels[..], study.factors.len()) {
                ([held], 2..) => hold(study, at, held),
                ([_], _) => {
                    return Err(BackendError::bad_input(
                        StudyPlace::CommandLine(key.to_owned()),
                        value,
                        "two levels or more, because no other factor varies",
                    ));
                }
                _ => study.factors[at].levels = levels,
            }
            return Ok(());
        }
        let Some(setting) = setting else { return Err(self.no_such_key(study, key)) };
        let value = setting.kind.value_of(value).ok_or_else(|| {
            BackendError::bad_input(
                StudyPlace::CommandLine(key.to_owned()),
                value,
                setting.kind.expected(),
            )
        })?;
        let is_on = value == Value::Bool(true);
        study.backend.settings.insert(key.to_owned(), value);
        // A factor whose setting is fixed now has nothing to vary.
        let decided = |name: &str| name == key || is_on && self.decides.contains(&(key, name));
        study.factors.retain(|factor| !decided(&factor.name));
        Ok(())
    }

    /// Returns the levels that a list names; numbers in ascending order.
    fn levels_of(&self, key: &str, list: &str) -> Result<Vec<Level>, BackendError> {
        let mut settings: Vec<Setting> = list.split(',').map(setting_of).collect();
        if settings.iter().all(|setting| matches!(setting, Setting::Integer(_))) {
            // Scales need ascending numbers, whatever the order on the command line.
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

    /// Returns the error for an unknown key: the factors with their levels come before the
    /// settings, which are many.
    fn no_such_key(&self, study: &Study, key: &str) -> BackendError {
        let settings = self.settings.iter().map(|spec| spec.name);
        let factors = study.factors.iter().map(|factor| factor.name.as_str());
        let names: Vec<&str> = factors.chain(settings.clone()).chain([WORKLOADS]).collect();
        let levels = |factor: &Factor| {
            let levels: Vec<String> = factor.levels.iter().map(Level::name).collect();
            format!("{}={}", factor.name, levels.join(","))
        };
        let factors: Vec<String> = study.factors.iter().map(levels).collect();
        let others: Vec<&str> = settings.chain([WORKLOADS]).collect();
        let meant = nearest_setting(key, &names);
        let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
        BackendError::bad_input(
            StudyPlace::CommandLine(key.to_owned()),
            "no such factor or setting",
            format!(
                "a factor of this study ({}), or one of {}{meant}",
                factors.join("; "),
                others.join(", ")
            ),
        )
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

/// Keeps the levels of a factor with these names, in this order: the first is the baseline. A
/// single level becomes constant while the other factors vary.
fn keep_levels(study: &mut Study, at: usize, list: &str) -> Result<(), BackendError> {
    let factor = &study.factors[at];
    let names: Vec<String> = factor.levels.iter().map(Level::name).collect();
    let bad = |found: &str, expected: &str| {
        BackendError::bad_input(
            StudyPlace::CommandLine(factor.name.clone()),
            found,
            format!("{expected}{}", names.join(", ")),
        )
    };
    let level = |name: &str| {
        let level = factor.levels.iter().find(|level| level.name() == name);
        level.cloned().ok_or_else(|| bad(name, "one of "))
    };
    let kept: Vec<Level> = list.split(',').map(level).collect::<Result<_, _>>()?;
    let [held] = &kept[..] else {
        study.factors[at].levels = kept;
        return Ok(());
    };
    if study.factors.len() == 1 {
        return Err(bad(list, "two levels or more, because no other factor varies, of "));
    }
    hold(study, at, held);
    Ok(())
}

/// Keeps a factor at one level while the others vary: its settings are added to the levels of one
/// of them.
fn hold(study: &mut Study, at: usize, held: &Level) {
    let settings = held.settings(&study.factors[at].name);
    study.factors.remove(at);
    let Factor { name, levels, .. } = &mut study.factors[0];
    for level in levels {
        let mut set = level.settings(name);
        set.extend(settings.clone());
        *level = Level::Named(NamedLevel { name: level.name(), set });
    }
}

/// Keeps the published figures of treatments that the study still has.
fn keep_published(study: &mut Study) {
    let names: Vec<String> = treatments(study).into_iter().map(|of| of.name).collect();
    for published in &mut study.published {
        published.values.retain(|name, _| names.contains(name));
    }
    study.published.retain(|published| !published.values.is_empty());
}

/// Keeps these workloads, and the parts of rules and levels that concern them.
fn keep_workloads(study: &mut Study, list: &str) -> Result<(), BackendError> {
    let wanted: Vec<&str> = list.split(',').collect();
    let known: Vec<&str> = study.workloads.iter().map(|workload| workload.name()).collect();
    if let Some(name) = wanted.iter().find(|name| !known.contains(name)) {
        return Err(BackendError::bad_input(
            StudyPlace::CommandLine(WORKLOADS.to_owned()),
            *name,
            format!("one of {}", known.join(", ")),
        ));
    }
    let workloads = std::mem::take(&mut study.workloads);
    let (kept, dropped): (Vec<_>, Vec<_>) =
        workloads.into_iter().partition(|workload| wanted.contains(&workload.name()));
    let is_of = |metric: &str, workloads: &[WorkloadSpec]| {
        let rest = |workload: &WorkloadSpec| metric.strip_prefix(workload.name());
        workloads.iter().filter_map(rest).any(|rest| rest.starts_with('.'))
    };
    let rules = &mut study.rules;
    rules.primary = rules.primary.take().filter(|primary| is_of(primary, &kept));
    rules.facts.retain(|fact| is_of(fact, &kept));
    rules.margins.retain(|metric, _| is_of(metric, &kept));
    study.published.retain(|published| is_of(&published.metric, &kept));
    // A setting that only removed commands use would have no effect.
    let is_used = |name: &str, workloads: &[WorkloadSpec]| {
        let place = format!("{{{name}}}");
        let text = |workload| serde_json::to_string(workload).unwrap_or_default();
        workloads.iter().any(|workload| text(workload).contains(&place))
    };
    let levels = study.factors.iter_mut().flat_map(|factor| &mut factor.levels);
    for level in levels {
        if let Level::Named(NamedLevel { set, .. }) = level {
            set.retain(|name, _| !is_used(name, &dropped) || is_used(name, &kept));
        }
    }
    study.workloads = kept;
    Ok(())
}
