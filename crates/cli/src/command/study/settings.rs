//! Lists the settings of backends.

use numalab_places::BACKENDS;
use numalab_record::study::{BackendSettings, ListedSetting, SettingList};
use numalab_study::{BackendKind, SettingSpec};

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

#[cfg(test)]
mod tests {
    use numalab_page::Style;
    use numalab_results::Report;

    use super::*;

    #[test]
    fn every_setting_is_listed_with_its_values_and_default() {
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
