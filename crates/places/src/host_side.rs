//! The part of a treatment that this machine applies for its guests: the pages behind their memory,
//! and its own knobs.

use std::collections::BTreeMap;

use numalab_guest::HostPages;
use numalab_record::study::Setting;
use numalab_study::{BackendError, StudyPlace};

use crate::common_settings::settings;

/// The prefix of the names of host knobs.
pub(super) const HOST: &str = "host:";
/// The pages behind a guest's memory: `normal`, `2m` or `1g`.
pub(super) const BACKING: &str = "guest-memory";
settings! {
    pub(super) GUEST_MEMORY = BACKING, OneOf(&["normal", "2m", "1g"]), "normal",
        "the host's pages that back its memory (QEMU only)";
}

/// Returns the pages that these settings require behind a guest's memory.
pub(super) fn pages(settings: &BTreeMap<String, Setting>) -> Result<HostPages, BackendError> {
    let huge = |page_bytes| Ok(HostPages::Huge { page_bytes });
    match settings.get(BACKING).map(ToString::to_string).as_deref() {
        None | Some("normal") => Ok(HostPages::Normal),
        Some("2m") => huge(2 << 20),
        Some("1g") => huge(1 << 30),
        Some(other) => Err(BackendError::bad_input(
            StudyPlace::Factor(BACKING.to_owned()),
            other,
            "normal, 2m or 1g",
        )),
    }
}

pub(super) fn knobs(settings: &BTreeMap<String, Setting>) -> BTreeMap<String, Setting> {
    let knobs = settings.iter().filter(|(name, _)| name.starts_with(HOST));
    knobs.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(of: &[(&str, &str)]) -> BTreeMap<String, Setting> {
        let setting =
            |(name, value): &(&str, &str)| ((*name).to_owned(), Setting::Text((*value).to_owned()));
        of.iter().map(setting).collect()
    }

    #[test]
    fn memory_has_normal_pages_by_default() {
        assert_eq!(pages(&settings(&[])), Ok(HostPages::Normal));
        let huge = HostPages::Huge { page_bytes: 2 << 20 };
        assert_eq!(pages(&settings(&[(BACKING, "2m")])), Ok(huge));
        let error = pages(&settings(&[(BACKING, "4k")])).unwrap_err().to_string();
        assert_eq!(error, "factor guest-memory: 4k: expected normal, 2m or 1g");
    }

    #[test]
    fn knobs_of_the_host_are_distinguished_from_other_settings() {
        let all = settings(&[("host:thp_enabled", "never"), ("thp_enabled", "always")]);
        assert_eq!(knobs(&all).into_keys().collect::<Vec<_>>(), ["host:thp_enabled"]);
    }
}
