//! Memory modules as the firmware lists them: SMBIOS type 17, "Memory Device".
//!
//! DMTF DSP0134, System Management BIOS Reference Specification 3.7, 7.18. Linux shows the
//! structures in `/sys/firmware/dmi/tables/DMI`.

mod channels;

use crate::error::ReadError;
pub use channels::{Channel, Channels};

const FORMAT: &str = "SMBIOS";
const MEMORY_DEVICE: u8 = 17;
const END_OF_TABLE: u8 = 127;
const MIB: u64 = 1 << 20;
/// A limit above the number of slots of any machine.
const MOST_SLOTS: usize = 4096;

/// A slot for a memory module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryDevice {
    /// The label printed next to the slot, such as `DIMM_A1`.
    pub slot: String,
    /// The bank, such as `P0 CHANNEL A`.
    pub bank: String,
    /// The size of the slot's module in bytes; 0 for an empty slot.
    pub size_bytes: u64,
    /// Width of the data bus in bits, without error correction.
    pub data_bits: Option<u16>,
    /// Rated speed in 10^6 transfers per second.
    pub rated_mt_s: Option<u32>,
    /// Configured speed in 10^6 transfers per second.
    pub configured_mt_s: Option<u32>,
}

/// Reads the slots for memory modules from SMBIOS structures.
///
/// # Errors
/// [`ReadError::Markup`] with the offset of a structure that ends too early; [`ReadError::TooMany`]
/// for more slots than any machine has.
pub fn read(bytes: &[u8]) -> Result<Vec<MemoryDevice>, ReadError> {
    let mut devices = Vec::new();
    let mut rest = bytes;
    while let Some(&kind) = rest.first() {
        let at = bytes.len() - rest.len();
        let length = rest.get(1).copied().unwrap_or_default();
        let cut = || ReadError::Markup {
            format: FORMAT,
            message: format!("the structure of type {kind} at byte {at} is not terminated"),
        };
        let (head, strings) = rest.split_at_checked(length.into()).ok_or_else(cut)?;
        if head.len() < 4 {
            return Err(cut());
        }
        let end = strings.windows(2).position(|pair| pair == [0, 0]).ok_or_else(cut)?;
        if kind == MEMORY_DEVICE {
            devices.push(device(head, &strings[..end]));
        }
        if devices.len() > MOST_SLOTS {
            let (what, found) = ("slots for memory modules", devices.len());
            return Err(ReadError::TooMany { format: FORMAT, what, found, most: MOST_SLOTS });
        }
        if kind == END_OF_TABLE {
            break;
        }
        rest = &strings[end + 2..];
    }
    Ok(devices)
}

/// Decodes a structure; fields that an older version does not have are unknown.
fn device(head: &[u8], strings: &[u8]) -> MemoryDevice {
    let byte = |at: usize| head.get(at).copied().unwrap_or(0);
    let word = |at: usize| u16::from_le_bytes([byte(at), byte(at + 1)]);
    let double = |at: usize| u32::from(word(at)) | u32::from(word(at + 2)) << 16;
    // 0 is unknown; 65,535 means that the number is in a later field, in 31 bits.
    let speed = |at: usize, extended: usize| {
        let found = match word(at) {
            u16::MAX => double(extended) & (u32::MAX >> 1),
            speed => speed.into(),
        };
        (found > 0).then_some(found)
    };
    let text = |at: usize| {
        let number = usize::from(byte(at));
        let found = number.checked_sub(1).and_then(|at| strings.split(|&byte| byte == 0).nth(at));
        String::from_utf8_lossy(found.unwrap_or_default()).trim().to_owned()
    };
    MemoryDevice {
        slot: text(0x10),
        bank: text(0x11),
        size_bytes: match word(0x0c) {
            0 | u16::MAX => 0,
            0x7fff => u64::from(double(0x1c) & (u32::MAX >> 1)) * MIB,
            kib if kib & 0x8000 != 0 => u64::from(kib & 0x7fff) << 10,
            mib => u64::from(mib) * MIB,
        },
        data_bits: Some(word(0x0a)).filter(|&bits| bits != 0 && bits != u16::MAX),
        rated_mt_s: speed(0x15, 0x54),
        configured_mt_s: speed(0x20, 0x58),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a structure with the length of version 2.8, or of version 3.3 with `extended`.
    pub(super) fn structure(device: &MemoryDevice) -> Vec<u8> {
        let mut head = vec![0; 0x5c];
        (head[0], head[1]) = (MEMORY_DEVICE, 0x5c);
        head[0x0a..0x0c].copy_from_slice(&device.data_bits.unwrap_or(u16::MAX).to_le_bytes());
        let mib = device.size_bytes / MIB;
        let long = u32::try_from(mib).unwrap();
        let short = u16::try_from(mib.min(0x7fff)).unwrap();
        head[0x0c..0x0e].copy_from_slice(&short.to_le_bytes());
        head[0x1c..0x20].copy_from_slice(&long.to_le_bytes());
        (head[0x10], head[0x11]) = (1, 2);
        for (at, extended, speed) in
            [(0x15, 0x54, device.rated_mt_s), (0x20, 0x58, device.configured_mt_s)]
        {
            let speed = speed.unwrap_or(0);
            let short = u16::try_from(speed).unwrap_or(u16::MAX);
            head[at..at + 2].copy_from_slice(&short.to_le_bytes());
            head[extended..extended + 4].copy_from_slice(&speed.to_le_bytes());
        }
        let text = format!("{}\0{}\0\0", device.slot, device.bank);
        [head, text.into_bytes()].concat()
    }

    fn any_device() -> impl Strategy<Value = MemoryDevice> {
        let speed = || proptest::option::of(1_u32..200_000);
        ("[A-Z0-9_]{1,12}", "[A-Z0-9 ]{0,10}[A-Z]", 0_u64..1 << 22, speed(), speed(), 1_u16..1024)
            .prop_map(|(slot, bank, mib, rated_mt_s, configured_mt_s, bits)| MemoryDevice {
                slot,
                bank: bank.trim().to_owned(),
                size_bytes: mib * MIB,
                data_bits: Some(bits),
                rated_mt_s,
                configured_mt_s,
            })
    }

    proptest! {
        #[test]
        fn the_fields_of_a_structure_are_read(devices in proptest::collection::vec(any_device(), 0..5)) {
            // A speed of 65,535 refers to the extended field, which also holds that speed.
            let mut bytes: Vec<u8> = devices.iter().flat_map(structure).collect();
            bytes.extend([END_OF_TABLE, 4, 0, 0, 0, 0]);
            prop_assert_eq!(read(&bytes).unwrap(), devices);
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }
    }

    #[test]
    fn a_truncated_table_is_refused_with_the_place() {
        let device = MemoryDevice { slot: "A1".into(), bank: "B".into(), ..Default::default() };
        let bytes = [structure(&device), structure(&device)].concat();
        let half = bytes.len() / 2;
        for cut in 1..bytes.len() {
            match read(&bytes[..cut]) {
                Ok(devices) => assert!(cut == half, "{cut}: {devices:?}"),
                Err(error) => {
                    let at = if cut > half { half } else { 0 };
                    let expected = format!(
                        "the structure of type 17 at byte {at} is not \
                        terminated"
                    );
                    assert!(error.to_string().contains(&expected), "{cut}: {error}");
                }
            }
        }
    }

    #[test]
    fn an_old_structure_has_fewer_fields_and_a_small_module_is_in_kib() {
        // Version 2.1: 21 bytes, no speeds; 0x8200 is 512 KiB.
        let mut head = vec![0; 0x15];
        (head[0], head[1], head[0x0d]) = (MEMORY_DEVICE, 0x15, 0x82);
        let found = read(&[head, vec![0, 0]].concat()).unwrap();
        let expected = MemoryDevice { size_bytes: 512 << 10, ..MemoryDevice::default() };
        assert_eq!(found, [expected]);
    }
}
