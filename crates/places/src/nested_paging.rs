//! The host's pages behind a guest with emulated memory: a level that is passed to the emulator
//! from inside the guest, so that one guest serves all levels.

use std::collections::BTreeMap;

use numalab_guest_agent::nested_paging;
use numalab_record::study::{Evidence, Setting, counter};
use numalab_topology::Machine;

use numalab_study::BackendError;
use numalab_study::StudyPlace;

use crate::common_settings::settings;

const SIZES: [(&str, u64); 3] = [("4k", 4 << 10), ("2m", 2 << 20), ("1g", 1 << 30)];

settings! {
    pub(crate) EMULATED_HOST_PAGES = "emulate-host-pages", OneOf(&["4k", "2m", "1g"]), "4k",
        "size of the host's pages that the emulator assumes for its memory (with emulate-stages = \
         \"nested\")";
}

/// Passes a treatment's host page size, if it has one, to the emulator and reads it back.
pub(super) fn apply(
    settings: &BTreeMap<String, Setting>,
    machine: &Machine,
) -> Result<Option<Evidence>, BackendError> {
    let Some(wanted) = settings.get(EMULATED_HOST_PAGES.name).map(ToString::to_string) else {
        return Ok(None);
    };
    let (size, bytes) = size(&wanted)?;
    nested_paging::set_host_pages(size);
    let walks = nested_paging::walks(&machine.usable_cpus());
    let found = walks.map_or(0, |walks| walks.host_page_bytes);
    if found != bytes {
        return Err(BackendError::lacking(
            format!(
                "{}: the emulator does not model the host's page tables",
                EMULATED_HOST_PAGES.name
            ),
            "give the backend emulate-stages = \"nested\" and emulate-latency",
        ));
    }
    Ok(Some(Evidence::of(EMULATED_HOST_PAGES.name, wanted, name(found))))
}

/// Returns the index in the emulator's list of sizes, and the bytes.
fn size(wanted: &str) -> Result<(u8, u64), BackendError> {
    let found = (0_u8..).zip(SIZES).find(|(_, (name, _))| *name == wanted);
    found.map(|(at, (_, bytes))| (at, bytes)).ok_or_else(|| {
        BackendError::bad_input(
            StudyPlace::Factor(EMULATED_HOST_PAGES.name.to_owned()),
            wanted,
            "4k, 2m or 1g",
        )
    })
}

fn name(bytes: u64) -> &'static str {
    SIZES.iter().find(|(_, size)| *size == bytes).map_or("none", |(name, _)| name)
}

/// Returns the emulator's counts, by the names that `counters` accepts in addition to those of
/// `/proc/vmstat`.
pub(super) fn counted(machine: &Machine) -> BTreeMap<String, u64> {
    let Some(walks) = nested_paging::walks(&machine.usable_cpus()) else { return BTreeMap::new() };
    let of = [
        (counter::WALKS, walks.walks),
        (counter::REFERENCES, walks.references),
        (counter::LONGEST, walks.longest),
        (counter::TRANSLATION_NS, walks.translation_ns),
        (counter::TIME_NS, walks.time_ns),
        (counter::ACCESSES, walks.accesses),
    ];
    of.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_emulators_numbers_and_others_are_refused() {
        assert_eq!(["4k", "2m", "1g"].map(|text| size(text).unwrap().0), [0, 1, 2]);
        assert_eq!([4096, 2 << 20, 1 << 30, 0].map(name), ["4k", "2m", "1g", "none"]);
        let error = size("16k").unwrap_err().to_string();
        assert_eq!(error, "factor emulate-host-pages: 16k: expected 4k, 2m or 1g");
    }

    #[test]
    fn a_machine_without_the_emulator_cannot_take_the_level() {
        let machine = numalab_topology::UniformMachine::of_packages(1, 1, 1 << 30);
        let machine = machine.build().unwrap();
        assert_eq!(apply(&BTreeMap::new(), &machine).unwrap(), None);
        let level = Setting::Text("2m".to_owned());
        let settings = BTreeMap::from([(EMULATED_HOST_PAGES.name.to_owned(), level)]);
        let error = apply(&settings, &machine).unwrap_err().to_string();
        assert!(error.contains("the emulator does not model the host's page tables"), "{error}");
    }
}
