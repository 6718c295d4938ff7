//! Translated code: blocks, instructions that access memory, and the files that they come from.

use std::collections::HashSet;
use std::fs;
use std::hash::{Hash, Hasher};
use std::sync::Mutex;

use numalab_memory_model::counters::Kind;
use numalab_memory_model::engine::{By, Place};
use numalab_memory_model::pipeline::flow::Flow;
use numalab_record::CodePlace;

use super::lock;

/// A translated block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The number of instructions.
    pub instructions: u64,
    /// The data flow, if known. Flows are never freed, so that they can be compared by address.
    pub flow: Option<&'static Flow>,
    pub place: Place,
    /// True if it contains a spin-wait hint (`pause`, `yield`).
    pub pauses: bool,
    /// The number of CPUID instructions.
    pub cpuids: u64,
}

impl Hash for Block {
    /// Hashes only the place, since few blocks at one place differ in the rest.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place.hash(state);
    }
}

/// An instruction of a translated block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct Instruction {
    /// Position in the block, from 0.
    pub position: u32,
    /// The form in which the model takes the instruction.
    pub by: By,
    pub address: u64,
    /// The effect on the thread's call stack.
    pub calls: Calling,
}

const _: () = assert!(size_of::<Instruction>() == 64, "one of the host's lines");

impl Instruction {
    /// Returns true if the instruction's stores go past the caches.
    #[inline]
    pub fn passes_caches(&self, kind: Kind) -> bool {
        self.by.accessor.is_some_and(|accessor| accessor.past_caches(kind) > 0)
    }
}

impl Hash for Instruction {
    /// Hashes only the place, since few instructions at one place differ in the rest.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.address, self.position).hash(state);
    }
}

/// An instruction's effect on the thread's call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Calling {
    Nothing,
    /// A call that returns to this address.
    Call(u64),
    Return,
}

/// An access by a thread.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// The first address.
    pub address: u64,
    pub kind: Kind,
    pub by: &'static Instruction,
    pub bytes: u8,
}

/// Returns true for a spin-wait hint: PAUSE (Intel SDM, volume 2), or YIELD and WFE (Arm ARM,
/// C6.2).
pub fn is_pause(code: &[u8]) -> bool {
    matches!(code, [0xf3, 0x90] | [0x3f | 0x5f, 0x20, 0x03, 0xd5])
}

/// Returns true for CPUID, which a hypervisor executes (Intel SDM, volume 3, 26.1.2).
pub fn is_cpuid(code: &[u8]) -> bool {
    matches!(code, [0x0f, 0xa2])
}

/// Values that QEMU keeps pointers to, and that are never freed. Those of a block are side by side.
#[derive(Debug)]
pub struct Kept<T: 'static>(Mutex<HashSet<&'static [T]>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Copy + Eq + Hash> Kept<T> {
    /// Returns stored values equal to these, which are stored first if there are none.
    pub fn keep(&self, values: &[T]) -> &'static [T] {
        let mut known = lock(&self.0);
        if let Some(&kept) = known.get(values) {
            return kept;
        }
        let kept: Box<[T]> = values.into();
        let kept: &'static [T] = Box::leak(kept);
        known.insert(kept);
        kept
    }
}

/// The files that this process has mapped, by address.
#[derive(Debug)]
pub struct Objects(Vec<Mapped>);

#[derive(Debug)]
struct Mapped {
    start: u64,
    end: u64,
    offset: u64,
    path: String,
}

impl Objects {
    /// Reads the current mappings (proc_pid_maps(5)).
    pub fn read() -> Self {
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Self(maps.lines().filter_map(mapped).collect())
    }

    /// Returns the place of an instruction or of a return address (the call is before it).
    pub fn place(&self, address: u64) -> Option<CodePlace> {
        let at = self.0.partition_point(|mapped| mapped.end <= address);
        let mapped = self.0.get(at).filter(|mapped| mapped.start <= address)?;
        let offset = address - mapped.start + mapped.offset;
        Some(CodePlace { object: mapped.path.clone(), offset, function: None, line: None })
    }

    /// Returns the place of an instruction, if there is one, and of its callers by their return
    /// addresses, innermost first.
    pub fn places(&self, instruction: Option<u64>, callers: &[u64]) -> Vec<CodePlace> {
        let calls = callers.iter().map(|address| address - 1);
        instruction.into_iter().chain(calls).filter_map(|address| self.place(address)).collect()
    }
}

fn mapped(line: &str) -> Option<Mapped> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let offset = words.nth(1)?;
    let path = words.nth(2)?.trim().to_owned();
    let [start, end, offset] = [start, end, offset].map(|word| u64::from_str_radix(word, 16).ok());
    path.starts_with('/').then_some(Mapped { start: start?, end: end?, offset: offset?, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_code_in_the_file_that_it_was_mapped_from() {
        let objects = Objects::read();
        let here = mapped as *const () as u64;
        let place = objects.place(here).unwrap();
        assert!(place.object.contains("numalab_emulator"), "{place:?}");
        let bytes = fs::read(&place.object).unwrap();
        let at = usize::try_from(place.offset).unwrap();
        assert!(at < bytes.len(), "{place:?}");
        assert!(objects.place(1).is_none());
        assert_eq!(objects.places(Some(here), &[here + 5]).len(), 2);
    }

    #[test]
    fn blocks_of_equal_instructions_are_kept_once() {
        let kept = Kept::default();
        let by = By::default();
        let like = |position| Instruction { position, by, address: 5, calls: Calling::Nothing };
        let first = kept.keep(&[like(0), like(1)]);
        assert!(std::ptr::eq(first, kept.keep(&[like(0), like(1)])));
        assert_eq!(kept.keep(&[like(0)]), [like(0)]);
    }

    #[test]
    fn recognizes_spin_wait_hints() {
        let hints: [&[u8]; 3] = [&[0xf3, 0x90], &[0x3f, 0x20, 3, 0xd5], &[0x5f, 0x20, 3, 0xd5]];
        assert!(hints.into_iter().all(is_pause));
        assert!(![[0x90].as_slice(), &[0x1f, 0x20, 3, 0xd5]].into_iter().any(is_pause));
    }
}
