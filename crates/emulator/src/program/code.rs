//! Instructions that access memory, and the files that they come from.

use std::collections::HashMap;
use std::fs;
use std::sync::Mutex;

use numalab_record::CodePlace;

use super::lock;

/// An instruction of a translated block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// Its place in its block, from 0.
    pub position: u32,
    /// Its address.
    pub address: u64,
    /// What it does to the calls that its thread is in.
    pub flow: Flow,
}

/// What an instruction does to the calls that its thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flow {
    /// Nothing.
    On,
    /// It is a call, which returns to this address.
    Call(u64),
    /// It returns from one.
    Return,
}

/// All of them; they live for good, since QEMU keeps pointers to them.
#[derive(Debug, Default)]
pub struct Instructions(Mutex<HashMap<Instruction, &'static Instruction>>);

impl Instructions {
    /// The one that is like this.
    pub fn keep(&self, instruction: Instruction) -> &'static Instruction {
        let mut known = lock(&self.0);
        known.entry(instruction).or_insert_with(|| Box::leak(Box::new(instruction)))
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
    /// Those of now (proc_pid_maps(5)).
    pub fn read() -> Self {
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Self(maps.lines().filter_map(mapped).collect())
    }

    /// The place of an instruction, or of a return address: the call is before it.
    pub fn place(&self, address: u64) -> Option<CodePlace> {
        let at = self.0.partition_point(|mapped| mapped.end <= address);
        let mapped = self.0.get(at).filter(|mapped| mapped.start <= address)?;
        let offset = address - mapped.start + mapped.offset;
        Some(CodePlace { object: mapped.path.clone(), offset, function: None, line: None })
    }

    /// An instruction's place, if there is one, and those of the calls that it was made in, by
    /// where they return; innermost first.
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
    fn code_is_found_in_the_file_that_it_was_mapped_from() {
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
    fn an_instruction_is_kept_once() {
        let instructions = Instructions::default();
        let like = |position| Instruction { position, address: 5, flow: Flow::On };
        let first = instructions.keep(like(0));
        assert!(std::ptr::eq(first, instructions.keep(like(0))));
        assert!(!std::ptr::eq(first, instructions.keep(like(1))));
    }
}
