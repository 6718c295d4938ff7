//! Lists the settings of backends.

use numalab_places::BACKENDS;
use numalab_record::study::SettingList;
use numalab_study::BackendKind;

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
    SettingList { backends: kinds.into_iter().map(BackendKind::listed).collect() }
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
