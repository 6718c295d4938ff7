//! Facts about the memory modules, which only root may read from the firmware.

use numalab_formats::smbios::{self, Channels};
use numalab_host::Root;
use numalab_record::Fact;

const TABLE: &str = "sys/firmware/dmi/tables/DMI";

/// Returns facts about the modules; empty if the table cannot be read.
pub(crate) fn facts(root: &Root) -> Vec<(String, Fact)> {
    let slots = root.bytes(TABLE).ok().and_then(|bytes| smbios::read(&bytes).ok());
    let slots = slots.unwrap_or_default();
    let channels = Channels::of(&slots);
    let filled = slots.iter().filter(|slot| slot.size_bytes > 0).count();
    let mut facts = Vec::new();
    let mut add = |name: &str, value: String| {
        facts.extend((!value.is_empty()).then(|| (name.to_owned(), Fact::read(name, &value))));
    };
    if !slots.is_empty() {
        add("memory_modules", filled.to_string());
        add("memory_slots", slots.len().to_string());
    }
    if let Some(mb_s) = channels.peak_mb_s() {
        add("memory_peak_mb_s", mb_s.to_string());
        let bound = "each slot counts as a channel, because slots do not name their channels";
        add("memory_peak_bound", if channels.are_named { "" } else { bound }.to_owned());
    }
    add("memory_channels_empty", channels.empty().join(", "));
    let slow = channels
        .slow()
        .into_iter()
        .map(|(slot, run, fastest)| format!("{slot} at {run} of {fastest} MT/s"));
    add("memory_modules_slow", slow.collect::<Vec<_>>().join(", "));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a table with two modules, one slower than the other could be, and an empty channel.
    fn table() -> Vec<u8> {
        let slot = |name: &str, gib: u16, speed: u16| {
            let mut head = vec![0; 0x28];
            (head[0], head[1], head[0x0a], head[0x10]) = (17, 0x28, 64, 1);
            head[0x0c..0x0e].copy_from_slice(&(gib << 10).to_le_bytes());
            head[0x15..0x17].copy_from_slice(&3200_u16.to_le_bytes());
            head[0x20..0x22].copy_from_slice(&speed.to_le_bytes());
            [head, format!("{name}\0\0").into_bytes()].concat()
        };
        [slot("DIMM_A1", 16, 3200), slot("DIMM_B1", 16, 2933), slot("DIMM_C1", 0, 0)].concat()
    }

    #[test]
    fn a_missing_and_a_slow_module_are_named_with_the_peak_that_is_left() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join(TABLE);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, table()).unwrap();
        let found: std::collections::BTreeMap<_, _> =
            facts(&Root::at(top.path())).into_iter().collect();
        let number = |name: &str| found.get(name)?.number();
        assert_eq!(number("memory_modules"), Some(2.0));
        assert_eq!(number("memory_slots"), Some(3.0));
        assert_eq!(number("memory_peak_mb_s"), Some(49064.0));
        let of = |name: &str| found.get(name)?.text();
        assert_eq!(of("memory_peak_bound"), None);
        assert_eq!(of("memory_channels_empty"), Some("DIMM_C"));
        assert_eq!(of("memory_modules_slow"), Some("DIMM_B1 at 2933 of 3200 MT/s"));
        assert!(facts(&Root::at(top.path().join("nothing"))).is_empty());
    }
}
