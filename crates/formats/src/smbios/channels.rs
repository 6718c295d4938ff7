//! The memory channels of a machine, with their modules and peak bandwidth.

use std::collections::BTreeMap;

use super::MemoryDevice;

/// A memory channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Channel {
    /// The name, from the labels of the channel's slots, or that of the slot if they do not
    /// identify channels.
    pub name: String,
    /// Memory modules in the channel's slots.
    pub modules: Vec<MemoryDevice>,
}

/// The channels of a machine's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// The channels by name.
    pub channels: Vec<Channel>,
    /// True if the labels of the slots identify their channels. If not, every slot counts as a
    /// channel, and the peak is an upper bound.
    pub are_named: bool,
}

impl Channel {
    /// Returns the peak bandwidth of the channel in 10^6 bytes per second: its slowest module sets
    /// the speed.
    fn peak_mb_s(&self) -> Option<u64> {
        let of = |module: &MemoryDevice| {
            let mt_s = module.configured_mt_s.or(module.rated_mt_s)?;
            Some(u64::from(mt_s) * u64::from(module.data_bits?) / 8)
        };
        self.modules.iter().map(of).try_fold(u64::MAX, |least, mb_s| Some(least.min(mb_s?)))
    }
}

impl Channels {
    /// Groups these slots into channels.
    pub fn of(slots: &[MemoryDevice]) -> Self {
        let named: Option<Vec<String>> = slots.iter().map(channel_name).collect();
        let are_named = named.is_some();
        let names = named.unwrap_or_else(|| {
            slots.iter().enumerate().map(|(at, slot)| format!("{} {at}", slot.slot)).collect()
        });
        let mut channels: BTreeMap<String, Vec<MemoryDevice>> = BTreeMap::new();
        for (name, slot) in names.into_iter().zip(slots) {
            let modules = channels.entry(name).or_default();
            modules.extend((slot.size_bytes > 0).then(|| slot.clone()));
        }
        let channel = |(name, modules)| Channel { name, modules };
        Self { channels: channels.into_iter().map(channel).collect(), are_named }
    }

    /// Returns the peak bandwidth of all channels with modules in 10^6 bytes per second; `None` if
    /// the firmware does not give speed and width of each module, as in most guests.
    pub fn peak_mb_s(&self) -> Option<u64> {
        let sum = self.filled().try_fold(0_u64, |sum, one| sum.checked_add(one.peak_mb_s()?))?;
        (sum > 0).then_some(sum)
    }

    /// Returns the channels without a module, if the channels are named: they are missing
    /// bandwidth.
    pub fn empty(&self) -> Vec<&str> {
        let empty = self.channels.iter().filter(|channel| channel.modules.is_empty());
        if self.are_named { empty.map(|channel| channel.name.as_str()).collect() } else { vec![] }
    }

    /// Returns modules that run slower than their rated speed or than the fastest module, with
    /// their speed and the possible speed.
    pub fn slow(&self) -> Vec<(&str, u32, u32)> {
        let modules = || self.filled().flat_map(|channel| &channel.modules);
        let fastest = modules().filter_map(|module| module.rated_mt_s.max(module.configured_mt_s));
        let fastest = fastest.max().unwrap_or(0);
        modules()
            .filter_map(|module| {
                let run = module.configured_mt_s.or(module.rated_mt_s)?;
                (run < fastest).then_some((module.slot.as_str(), run, fastest))
            })
            .collect()
    }

    fn filled(&self) -> impl Iterator<Item = &Channel> {
        self.channels.iter().filter(|channel| !channel.modules.is_empty())
    }
}

/// Returns the channel of a slot: `P0 CHANNEL A` and `P0_Node0_Channel2_Dimm0` contain it, and so
/// does the letter of `CPU1_DIMM_A2` and `P1-DIMMA2`.
fn channel_name(slot: &MemoryDevice) -> Option<String> {
    let texts = [&slot.slot, &slot.bank];
    let channel = texts.into_iter().find_map(|text| {
        let end = word_end(text, "CHANNEL")?;
        let number = text[end..].trim_start_matches([' ', '_', '-']);
        let length = number.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(number.len());
        (length > 0).then(|| text[..text.len() - number.len() + length].to_owned())
    });
    channel.or_else(|| {
        let end = word_end(&slot.slot, "DIMM")?;
        let place = slot.slot[end..].trim_start_matches([' ', '_', '-']);
        let number = place.strip_prefix(|c: char| c.is_ascii_uppercase())?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| slot.slot[..slot.slot.len() - number.len()].to_owned())
    })
}

/// Returns the position after a word in a string, ignoring case.
fn word_end(text: &str, word: &str) -> Option<usize> {
    text.to_ascii_uppercase().find(word).map(|at| at + word.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(slot: &str, bank: &str, gib: u64, mt_s: u32) -> MemoryDevice {
        MemoryDevice {
            slot: slot.into(),
            bank: bank.into(),
            size_bytes: gib << 30,
            data_bits: Some(64),
            rated_mt_s: (gib > 0).then_some(4800),
            configured_mt_s: (gib > 0).then_some(mt_s),
        }
    }

    #[test]
    fn labels_of_slots_identify_channels_in_the_forms_of_several_vendors() {
        for (slot, bank, channel) in [
            ("DIMM 0", "P0 CHANNEL A", Some("P0 CHANNEL A")),
            ("P0_Node0_Channel2_Dimm1", "P0_Node0_Channel2_Dimm1", Some("P0_Node0_Channel2")),
            ("ChannelA-DIMM0", "BANK 0", Some("ChannelA")),
            ("CPU1_DIMM_A2", "", Some("CPU1_DIMM_A")),
            ("P1-DIMMB1", "NODE 1", Some("P1-DIMMB")),
            ("DIMM 0", "", None),
            ("A1", "", None),
            ("", "", None),
        ] {
            let found = channel_name(&module(slot, bank, 1, 4800));
            assert_eq!(found.as_deref(), channel, "{slot}, {bank}");
        }
    }

    #[test]
    fn two_modules_of_a_channel_share_its_speed_and_an_empty_channel_is_reported() {
        let slots = [
            module("DIMM_A1", "", 32, 4800),
            module("DIMM_A2", "", 32, 4800),
            module("DIMM_B1", "", 32, 4000),
            module("DIMM_C1", "", 0, 0),
        ];
        let channels = Channels::of(&slots);
        assert_eq!(channels.peak_mb_s(), Some(8 * (4800 + 4000)));
        assert_eq!(channels.empty(), ["DIMM_C"]);
        assert_eq!(channels.slow(), [("DIMM_B1", 4000, 4800)]);
    }

    #[test]
    fn slots_without_channels_count_separately_and_a_guest_without_speeds_has_no_peak() {
        let channels =
            Channels::of(&[module("DIMM 0", "", 8, 3200), module("DIMM 0", "", 8, 3200)]);
        assert!(!channels.are_named);
        assert_eq!(channels.peak_mb_s(), Some(2 * 8 * 3200));
        let guest = MemoryDevice { size_bytes: 1 << 30, ..MemoryDevice::default() };
        assert_eq!(Channels::of(&[guest]).peak_mb_s(), None);
        assert_eq!(Channels::of(&[]).peak_mb_s(), None);
    }
}
