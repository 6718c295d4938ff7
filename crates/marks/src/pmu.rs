//! The virtual PMU: counts that numalab's emulator publishes in memory readable by a guest's
//! program. It writes the output of [`PmuHeader`] and [`PmuCounts`], and [`Pmu`] reads it.

use core::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, fence};

/// Number of nodes in a block of the virtual PMU.
pub const PMU_NODES: usize = 16;
/// Size in bytes of a virtual PMU with room for every machine.
pub const PMU_BYTES: usize = 64 * 1024;

const MAGIC: u64 = u64::from_le_bytes(*b"NUMAPMU1");
const VERSION: u32 = 2;
/// Size in bytes of the header before the first vCPU's block.
pub const HEADER: usize = 64;
/// Size in bytes of a vCPU's block, which consists of little-endian words of eight bytes.
pub const STRIDE: usize = STRIDE_FIELD as usize;
/// [`STRIDE`] as the header stores it.
const STRIDE_FIELD: u32 = 256;
/// Index of the block's word with the first node's misses.
const BY_NODE: usize = 16;
const _: () = assert!(STRIDE / 8 == BY_NODE + PMU_NODES);
/// The number of attempts to read a block, which is written within microseconds.
const ATTEMPTS: u32 = if cfg!(miri) { 4 } else { 1000 };

/// The time that the emulator charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PmuMode {
    /// No time: accesses are only counted.
    Count,
    /// Virtual time.
    Virtual,
    /// Host time.
    Sleep,
}

/// The header of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmuHeader {
    /// Number of vCPUs of the machine.
    pub vcpus: u32,
    /// Number of the machine's nodes.
    pub nodes: u32,
    /// The time that the emulator charges.
    pub mode: PmuMode,
    /// True if the emulator is counting and charging.
    pub is_on: bool,
}

impl PmuHeader {
    /// Returns the header in its published form.
    pub fn to_bytes(&self) -> [u8; HEADER] {
        let words = [
            VERSION,
            self.vcpus,
            self.nodes,
            STRIDE_FIELD,
            self.mode as u32,
            u32::from(self.is_on),
        ];
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        for (place, word) in bytes[8..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// A vCPU's counts since the first start of counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PmuCounts {
    /// The vCPU's own time in ns: its instructions and the cost of its accesses.
    pub time_ns: u64,
    /// Number of instructions.
    pub instructions: u64,
    /// Cost of memory accesses in ns.
    pub cost_ns: u64,
    /// Loads from its own node's memory, and from others'.
    pub loads: [u64; 2],
    /// Stores to its own node's memory, and to others'.
    pub stores: [u64; 2],
    /// Walks of page tables.
    pub walks: u64,
    /// Entries of page tables that walks read, those of a host's tables included.
    pub references: u64,
    /// Size in bytes of the host's pages behind the guest's memory, 0 without nested paging.
    pub host_page_bytes: u64,
    /// Cost of address translation in ns.
    pub translation_ns: u64,
    /// Largest number of entries that one walk has read since the size of the host's pages was set.
    pub longest_walk: u64,
    /// Index of the vCPU's node.
    pub node: u32,
    /// The phase at the time of publication.
    pub phase: u32,
    /// Accesses that reached memory, by index of the node.
    pub misses: [u64; PMU_NODES],
}

impl PmuCounts {
    /// Returns the block in its published form, without the sequence number at its start.
    pub fn to_bytes(&self) -> [u8; STRIDE - 8] {
        let mut words = [0; STRIDE / 8];
        words[1..4].copy_from_slice(&[self.time_ns, self.instructions, self.cost_ns]);
        words[4..6].copy_from_slice(&self.loads);
        words[6..8].copy_from_slice(&self.stores);
        words[8..10].copy_from_slice(&[self.translation_ns, self.longest_walk]);
        words[10] = u64::from(self.node) | u64::from(self.phase) << 32;
        words[11..14].copy_from_slice(&[self.walks, self.references, self.host_page_bytes]);
        words[BY_NODE..].copy_from_slice(&self.misses);
        let mut bytes = [0; STRIDE - 8];
        for (place, word) in bytes.chunks_exact_mut(8).zip(&words[1..]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// Memory in which the emulator publishes.
#[derive(Clone, Copy, Debug)]
pub struct Pmu<'a> {
    words: &'a [AtomicU64],
    vcpus: u32,
}

impl<'a> Pmu<'a> {
    /// Returns the virtual PMU in this memory, if there is one.
    pub fn over(words: &'a [AtomicU64]) -> Option<Self> {
        let pmu = Self { words, vcpus: 0 };
        let ours =
            pmu.long(0)? == MAGIC && pmu.word(8)? == VERSION && pmu.word(20)? == STRIDE_FIELD;
        let vcpus = pmu.word(12)?;
        let needed = HEADER as u64 + u64::from(vcpus) * STRIDE as u64;
        let fits = needed <= size_of_val(words) as u64;
        (ours && fits).then_some(Self { words, vcpus })
    }

    /// Returns the number of vCPUs of the machine.
    pub fn vcpus(&self) -> u32 {
        self.vcpus
    }

    /// Returns the time that the emulator charges; `None` if the mode is unknown.
    pub fn mode(&self) -> Option<PmuMode> {
        match self.word(24)? {
            0 => Some(PmuMode::Count),
            1 => Some(PmuMode::Virtual),
            2 => Some(PmuMode::Sleep),
            _ => None,
        }
    }

    /// Returns true if the emulator is counting and charging.
    pub fn is_on(&self) -> bool {
        self.word(28).is_some_and(|on| on != 0)
    }

    /// Returns the last published counts of a vCPU; `None` if there is no such vCPU, or it is being
    /// written all the time.
    pub fn counts(&self, vcpu: u32) -> Option<PmuCounts> {
        if vcpu >= self.vcpus {
            return None;
        }
        let block = HEADER + usize::try_from(vcpu).ok()? * STRIDE;
        for _ in 0..ATTEMPTS {
            let before = self.long(block)?;
            fence(Acquire);
            let counts = self.read(block)?;
            fence(Acquire);
            if before.is_multiple_of(2) && self.long(block)? == before {
                return Some(counts);
            }
        }
        None
    }

    /// Returns a vCPU's own time as last published. It reads less than [`Pmu::counts`], but is only
    /// for a caller on that vCPU that has just published.
    pub fn own_time_ns(&self, vcpu: u32) -> Option<u64> {
        let block = HEADER + usize::try_from(vcpu).ok()? * STRIDE;
        self.long(block + 8)
    }

    fn read(&self, block: usize) -> Option<PmuCounts> {
        let at = |place| self.long(block + place);
        let mut misses = [0; PMU_NODES];
        for (node, count) in misses.iter_mut().enumerate() {
            *count = at(8 * (BY_NODE + node))?;
        }
        Some(PmuCounts {
            time_ns: at(8)?,
            instructions: at(16)?,
            cost_ns: at(24)?,
            loads: [at(32)?, at(40)?],
            stores: [at(48)?, at(56)?],
            walks: at(88)?,
            references: at(96)?,
            host_page_bytes: at(104)?,
            translation_ns: at(64)?,
            longest_walk: at(72)?,
            node: self.word(block + 80)?,
            phase: self.word(block + 84)?,
            misses,
        })
    }

    /// Returns eight bytes at a multiple of eight.
    fn long(&self, place: usize) -> Option<u64> {
        Some(u64::from_le(self.words.get(place / 8)?.load(Relaxed)))
    }

    /// Returns four bytes at a multiple of four.
    fn word(&self, place: usize) -> Option<u32> {
        let half = self.long(place)? >> (place % 8 * 8);
        u32::try_from(half & u64::from(u32::MAX)).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;

    fn page(vcpus: u32) -> Vec<AtomicU64> {
        let header = PmuHeader { vcpus, nodes: 2, mode: PmuMode::Virtual, is_on: true };
        let mut page = vec![0; PMU_BYTES];
        page[..HEADER].copy_from_slice(&header.to_bytes());
        let words = page.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
        words.map(AtomicU64::new).collect()
    }

    #[test]
    fn a_page_without_the_magic_word_or_of_another_version_is_not_a_pmu() {
        let empty: Vec<_> = (0..PMU_BYTES / 8).map(|_| AtomicU64::new(0)).collect();
        assert!(Pmu::over(&empty).is_none());
        let newer = page(2);
        newer[1].fetch_add(1, Relaxed);
        assert!(Pmu::over(&newer).is_none());
        assert!(Pmu::over(&page(256)).is_none(), "more vCPUs than fit");
        let good = page(2);
        let pmu = Pmu::over(&good).unwrap();
        assert_eq!((pmu.vcpus(), pmu.mode(), pmu.is_on()), (2, Some(PmuMode::Virtual), true));
        for words in 0..HEADER / 8 + 2 * STRIDE / 8 {
            assert!(Pmu::over(&good[..words]).is_none(), "{words} words");
        }
    }

    #[test]
    fn counts_are_separate_for_each_vcpu() {
        let page = page(2);
        let block = (HEADER + STRIDE) / 8;
        let mut expected = PmuCounts {
            time_ns: 1,
            instructions: 2,
            cost_ns: 3,
            loads: [4, 5],
            stores: [6, 7],
            walks: 27,
            references: 28,
            host_page_bytes: 4096,
            translation_ns: 8,
            longest_walk: 9,
            node: 1,
            phase: 3,
            misses: [0; PMU_NODES],
        };
        expected.misses = core::array::from_fn(|node| 11 + node as u64);
        page[block].store(4_u64.to_le(), Relaxed);
        for (place, word) in page[block + 1..].iter().zip(expected.to_bytes().chunks_exact(8)) {
            place.store(u64::from_ne_bytes(word.try_into().unwrap()), Relaxed);
        }
        let pmu = Pmu::over(&page).unwrap();
        assert_eq!(pmu.counts(1), Some(expected));
        assert_eq!(pmu.counts(0), Some(PmuCounts::default()));
        assert_eq!(pmu.own_time_ns(1), Some(1));
        assert_eq!(pmu.counts(2), None);
        page[block].store(5_u64.to_le(), Relaxed);
        assert_eq!(pmu.counts(1), None, "half written");
    }
}
