//! Settings of backends: lists them, and changes them by `--set`.

use numalab_places::BACKENDS;
use numalab_record::study::{BackendSettings, ListedSetting, SettingList};
use numalab_study::{BackendKind, Level, SettingSpec, Study};
use serde_json::Value;

use crate::args::Format;
use crate::failure::Failure;
use crate::output;

/// Runs `numalab study settings`.
pub(super) fn list(backend: Option<&str>, format: Format) -> Result<(), Failure> {
    let settings = match backend {
        Some(name) => listed([BACKENDS.kind(name)?]),
        None => listed(BACKENDS.kinds()),
    };
    output::show(&settings, format)
}

/// Lists backends with their settings.
pub(super) fn listed(kinds: impl IntoIterator<Item = &'static BackendKind>) -> SettingList {
    let backend = |kind: &BackendKind| BackendSettings {
        backend: kind.name.to_owned(),
        about: kind.about.to_owned(),
        settings: kind.settings.iter().map(setting).collect(),
        levels: kind.levels.iter().map(setting).collect(),
    };
    SettingList { backends: kinds.into_iter().map(backend).collect() }
}

fn setting(spec: &SettingSpec) -> ListedSetting {
    ListedSetting {
        name: spec.name.to_owned(),
        about: spec.about.to_owned(),
        expected: spec.kind.expected(),
        default: Some(spec.default.to_owned()).filter(|default| !default.is_empty()),
    }
}

/// Changes the study as asked; returns true if it is now another study.
pub(super) fn apply(study: &mut Study, set: &[(String, String)]) -> Result<bool, Failure> {
    let work_before = work_of_a_block(study);
    let kind = BACKENDS.kind(&study.backend.kind)?;
    for (key, value) in set {
        kind.set(study, key, value)?;
    }
    let share = work_of_a_block(study) / work_before;
    study.rules.about_block_s = study.rules.about_block_s.map(|about_s| about_s * share);
    Ok(!set.is_empty())
}

/// Preparing a machine takes as long as this number of its guests, and preparing all of them as
/// long as this number of workloads; with emulated memory everything takes twice as long.
const MACHINE_IN_GUESTS: f64 = 3.0;
const MAKING_IN_WORKLOADS: f64 = 4.0;
const EMULATED: f64 = 2.0;

/// Returns a number roughly proportional to the time of a block.
fn work_of_a_block(study: &Study) -> f64 {
    let treatments: usize = study.factors.iter().map(|factor| factor.levels.len()).product();
    let factor = study.factors.iter().find(|factor| factor.name == "guests");
    let levels: Vec<f64> = factor.map_or_else(
        || study.backend.settings.get("guests").and_then(Value::as_f64).into_iter().collect(),
        |factor| factor.levels.iter().filter_map(Level::number).collect(),
    );
    let guests = levels.iter().sum::<f64>() / levels.len().max(1) as f64;
    let emulated = study.backend.settings.contains_key("emulate-latency");
    let each = (MACHINE_IN_GUESTS + guests) * if emulated { EMULATED } else { 1.0 };
    treatments as f64 * each * (MAKING_IN_WORKLOADS + study.workloads.len() as f64)
}

#[cfg(test)]
mod tests {
    use numalab_page::Style;
    use numalab_results::Report;

    use super::*;

    fn about_s(set: &[(&str, &str)]) -> f64 {
        let text = numalab_study::bundled_text("guest-scaling").unwrap();
        let mut study = numalab_study::parse(text, "guest-scaling", BACKENDS).unwrap();
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        apply(&mut study, &set.iter().map(owned).collect::<Vec<_>>()).unwrap();
        study.rules.about_block_s.unwrap()
    }

    #[test]
    fn fewer_guests_and_workloads_take_less_time_and_emulated_memory_more() {
        let whole = about_s(&[]);
        let dbench = ("workloads", "dbench");
        let one = about_s(&[dbench]);
        // Booting takes most of the time, whatever runs afterwards.
        assert!(whole / 4.0 < one && one < whole, "{one} of {whole}");
        let four = about_s(&[dbench, ("guests", "4")]);
        assert!(one / 16.0 < four && four < one / 4.0, "{four} of {one}");
        assert!(about_s(&[dbench, ("emulate-latency", "100")]) > one);
    }

    #[test]
    fn every_setting_is_listed_with_what_it_may_be_and_its_default() {
        let text = listed(BACKENDS.kinds()).page().terminal(Style::Plain);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for spec in BACKENDS.kinds().flat_map(|kind| kind.settings.iter().chain(kind.levels)) {
            let said = format!("{} {}: {}", spec.name, spec.about, spec.kind.expected());
            assert!(text.contains(&said), "{said}");
            assert!(text.contains(spec.default), "{said}");
            let spelled = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(spec.name.chars().all(spelled), "{}", spec.name);
        }
    }
}
