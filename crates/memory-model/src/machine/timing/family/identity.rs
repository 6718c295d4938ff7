//! The family of a core, from the numbers by which CPUID identifies it.

use alloc::string::{String, ToString};

use serde::{Deserialize, Serialize};

use super::Family;

/// A core's identity, as far as known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity<'a> {
    /// The vendor's name in CPUID.
    pub vendor: &'a str,
    /// The family and the model, with their extensions.
    pub numbers: Option<(u32, u32)>,
    /// The size of the L2, which hypervisors show even if they hide the model.
    pub l2_bytes: u64,
    /// Support for code prefetches (PREFETCHIT0, new in Granite Rapids).
    pub prefetches_code: bool,
}

/// Source of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// By vendor, family and model.
    Model,
    /// By vendor and L2 size, because the record has no numbers.
    L2,
    /// There is no table for this core; the family is the nearest one.
    Nearest,
}

impl Identity<'_> {
    /// Returns the core's family, and the way it was found; `None` if there are tables only for other
    /// vendors.
    pub fn family(&self) -> Option<(Family, Found)> {
        if let Some(family) = self.numbers.and_then(|numbers| self.of_model(numbers)) {
            return Some((family, Found::Model));
        }
        let found = if self.numbers.is_some() { Found::Nearest } else { Found::L2 };
        Some((self.nearest()?, found))
    }

    /// Returns the family of a model: those of Linux's `arch/x86/include/asm/intel-family.h` and
    /// `arch/x86/kernel/cpu/amd.c`, and AMD's processor programming references. Hygon's Dhyana is a Zen 1.
    fn of_model(&self, numbers: (u32, u32)) -> Option<Family> {
        Some(match (self.vendor, numbers) {
            ("GenuineIntel", (6, 0x4e | 0x5e | 0x55 | 0x8e | 0x9e | 0xa5 | 0xa6)) => {
                Family::Skylake
            }
            ("GenuineIntel", (6, 0x6a | 0x6c | 0x7d | 0x7e | 0xa7)) => Family::SunnyCove,
            ("GenuineIntel", (6, 0x8f | 0x97 | 0x9a | 0xb7 | 0xba | 0xbf | 0xcf)) => {
                Family::GoldenCove
            }
            ("GenuineIntel", (6, 0xad | 0xae)) => Family::RedwoodCove,
            ("AuthenticAMD", (0x17, 0..=0x2f)) | ("HygonGenuine", (0x18, _)) => Family::Zen1,
            ("AuthenticAMD", (0x17, _)) => Family::Zen2,
            ("AuthenticAMD", (0x19, 0..=0x0f | 0x20..=0x5f)) => Family::Zen3,
            ("AuthenticAMD", (0x19, 0x10..=0x1f | 0x60..=0x7f | 0xa0..=0xaf)) => Family::Zen4,
            _ => return None,
        })
    }

    /// Returns the family that is most like the core: for AMD, by number if that is older or newer
    /// than all tables, else by the size of the L2.
    fn nearest(&self) -> Option<Family> {
        let kib = self.l2_bytes >> 10;
        match (self.vendor, self.numbers) {
            ("AuthenticAMD" | "HygonGenuine", Some((family, _))) if family < 0x19 => {
                Some(Family::Zen1)
            }
            ("AuthenticAMD", Some((family, _))) if family > 0x19 => Some(Family::Zen4),
            ("AuthenticAMD", _) if kib >= 1024 => Some(Family::Zen4),
            ("AuthenticAMD", Some(_)) => Some(Family::Zen3),
            ("AuthenticAMD", None) if kib == 512 => Some(Family::Zen3),
            ("GenuineIntel", _) if kib >= 2048 && self.prefetches_code => Some(Family::RedwoodCove),
            ("GenuineIntel", _) if kib >= 2048 => Some(Family::GoldenCove),
            ("GenuineIntel", _) if kib == 1280 || kib == 512 => Some(Family::SunnyCove),
            ("GenuineIntel", _) if kib == 1024 || kib == 256 => Some(Family::Skylake),
            ("GenuineIntel", Some(_)) => Some(Family::Skylake),
            _ => None,
        }
    }

    /// Returns the core's name in sentences: vendor, family and model in decimal, as in
    /// `/proc/cpuinfo`.
    pub fn name(&self) -> String {
        match (self.vendor, self.numbers) {
            ("", _) => "of an unknown vendor".to_string(),
            (vendor, Some((family, model))) => {
                alloc::format!("{vendor} family {family} model {model}")
            }
            (vendor, None) => vendor.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn family(vendor: &str, numbers: Option<(u32, u32)>, l2_bytes: u64) -> Option<(Family, Found)> {
        Identity { vendor, numbers, l2_bytes, prefetches_code: false }.family()
    }

    #[test]
    fn a_core_is_identified_by_family_and_model_whatever_its_l2() {
        let models = [
            ("AuthenticAMD", (23, 1), Family::Zen1),
            ("AuthenticAMD", (23, 8), Family::Zen1),
            ("AuthenticAMD", (23, 24), Family::Zen1),
            ("HygonGenuine", (24, 0), Family::Zen1),
            ("AuthenticAMD", (23, 49), Family::Zen2),
            ("AuthenticAMD", (23, 113), Family::Zen2),
            ("AuthenticAMD", (25, 1), Family::Zen3),
            ("AuthenticAMD", (25, 80), Family::Zen3),
            ("AuthenticAMD", (25, 17), Family::Zen4),
            ("AuthenticAMD", (25, 160), Family::Zen4),
            ("GenuineIntel", (6, 85), Family::Skylake),
            ("GenuineIntel", (6, 106), Family::SunnyCove),
            ("GenuineIntel", (6, 143), Family::GoldenCove),
            ("GenuineIntel", (6, 207), Family::GoldenCove),
            ("GenuineIntel", (6, 173), Family::RedwoodCove),
        ];
        for (vendor, numbers, expected) in models {
            for l2_bytes in [MIB / 2, 2 * MIB] {
                let found = family(vendor, Some(numbers), l2_bytes);
                assert_eq!(found, Some((expected, Found::Model)), "{vendor} {numbers:?}");
            }
        }
    }

    #[test]
    fn a_core_without_numbers_is_identified_by_vendor_and_l2() {
        let sizes = [
            ("GenuineIntel", MIB, Family::Skylake),
            ("GenuineIntel", 1280 << 10, Family::SunnyCove),
            ("GenuineIntel", 2 * MIB, Family::GoldenCove),
            ("AuthenticAMD", MIB / 2, Family::Zen3),
            ("AuthenticAMD", MIB, Family::Zen4),
        ];
        for (vendor, l2_bytes, expected) in sizes {
            assert_eq!(family(vendor, None, l2_bytes), Some((expected, Found::L2)));
        }
        let newest = Identity { vendor: "GenuineIntel", l2_bytes: 2 * MIB, ..Identity::default() };
        let newest = Identity { prefetches_code: true, ..newest };
        assert_eq!(newest.family(), Some((Family::RedwoodCove, Found::L2)));
        assert_eq!(family("Other", None, MIB), None);
        assert_eq!(family("GenuineIntel", None, 3 << 18), None);
    }

    #[test]
    fn a_core_that_no_table_is_of_gets_the_nearest_table() {
        let nearest = [
            ("AuthenticAMD", (21, 2), 2 * MIB, Family::Zen1),
            ("AuthenticAMD", (26, 2), MIB, Family::Zen4),
            ("AuthenticAMD", (25, 255), MIB / 2, Family::Zen3),
            ("GenuineIntel", (6, 79), MIB / 4, Family::Skylake),
            ("GenuineIntel", (6, 140), 1280 << 10, Family::SunnyCove),
            ("GenuineIntel", (19, 1), 2 * MIB, Family::GoldenCove),
        ];
        for (vendor, numbers, l2_bytes, expected) in nearest {
            let found = family(vendor, Some(numbers), l2_bytes);
            assert_eq!(found, Some((expected, Found::Nearest)), "{vendor} {numbers:?}");
        }
        assert_eq!(family("CentaurHauls", Some((6, 15)), MIB), None);
    }

    #[test]
    fn a_core_is_named_by_all_that_is_known() {
        let named = |vendor, numbers| Identity { vendor, numbers, ..Identity::default() }.name();
        assert_eq!(named("AuthenticAMD", Some((26, 2))), "AuthenticAMD family 26 model 2");
        assert_eq!(named("CentaurHauls", None), "CentaurHauls");
        assert_eq!(named("", None), "of an unknown vendor");
    }
}
