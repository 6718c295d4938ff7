//! The information from the boot loader: PVH's start info, or Multiboot2's tags.

use alloc::string::String;
use alloc::vec::Vec;

use crate::memory_map::{MOST_BYTES, Span};
use crate::tables::Physical;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loader {
    /// A hypervisor, by the PVH entry (Xen `public/arch-x86/hvm/start_info.h`).
    Pvh,
    /// A boot loader, by Multiboot2 (specification 2.0, section 3.6).
    Multiboot2,
}

impl Loader {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pvh => "pvh",
            Self::Multiboot2 => "multiboot2",
        }
    }
}

/// A part of the loader's memory map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// Physical addresses.
    pub span: Span,
    /// True if it is ordinary memory.
    pub usable: bool,
}

/// The information from the boot loader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootInfo {
    pub loader: Loader,
    /// The command line; empty if there is none.
    pub command_line: String,
    /// Address of the RSDP, if it is given.
    pub rsdp: Option<u64>,
    /// The memory map, unchanged.
    pub areas: Vec<Area>,
}

/// Reasons why the loader's information cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootInfoError {
    #[error("no {loader} information at {address:#x}: found {found:#x}, expected {expected:#x}")]
    Magic {
        loader: &'static str,
        address: u64,
        /// The word found at the address.
        found: u64,
        /// The magic word of the structure.
        expected: u64,
    },
    #[error("the loader gives no memory map: expected PVH start info version 1, or a map tag")]
    NoMap,
    #[error("the loader's information at {address:#x} cannot be read")]
    Unreadable { address: u64 },
}

const PVH_MAGIC: u32 = 0x336e_c578;
/// `XEN_HVM_MEMMAP_TYPE_RAM`, and Multiboot2's type of available memory, which are E820's.
const USABLE: u32 = 1;
/// The largest length of a command line; longer ones are truncated.
const LONGEST_LINE: usize = 4096;
/// The largest number of entries of a memory map.
const MOST_AREAS: u32 = 4096;

impl BootInfo {
    /// Reads PVH's start info.
    pub fn pvh(memory: &impl Physical, address: u64) -> Result<Self, BootInfoError> {
        let unreadable = || BootInfoError::Unreadable { address };
        let info = memory.read(address, 56).ok_or_else(unreadable)?;
        if u32_at(info, 0) != PVH_MAGIC {
            let (found, expected) = (u32_at(info, 0).into(), PVH_MAGIC.into());
            return Err(BootInfoError::Magic { loader: "PVH", address, found, expected });
        }
        let entries = u32_at(info, 48).min(MOST_AREAS);
        if u32_at(info, 4) < 1 || entries == 0 {
            return Err(BootInfoError::NoMap);
        }
        let map = memory.read(u64_at(info, 40), entries as usize * 24).ok_or_else(unreadable)?;
        let command_line = match u64_at(info, 24) {
            0 => String::new(),
            at => text(memory, at),
        };
        let rsdp = Some(u64_at(info, 32)).filter(|&at| at != 0);
        Ok(Self { loader: Loader::Pvh, command_line, rsdp, areas: areas(map, 24) })
    }

    /// Reads Multiboot2's tags.
    pub fn multiboot2(memory: &impl Physical, address: u64) -> Result<Self, BootInfoError> {
        let unreadable = || BootInfoError::Unreadable { address };
        let size = u32_at(memory.read(address, 8).ok_or_else(unreadable)?, 0);
        let bytes = memory.read(address, size as usize).ok_or_else(unreadable)?;
        let mut info = Self {
            loader: Loader::Multiboot2,
            command_line: String::new(),
            rsdp: None,
            areas: Vec::new(),
        };
        let mut at = 8;
        while let Some(head) = bytes.get(at..).and_then(|rest| rest.get(..8)) {
            let (kind, length) = (u32_at(head, 0), u32_at(head, 4) as usize);
            let Some(tag) = bytes.get(at..).and_then(|rest| rest.get(..length)) else { break };
            if kind == 0 || length < 8 {
                break;
            }
            info.take_tag(kind, &tag[8..], address + at as u64 + 8);
            at += length.next_multiple_of(8);
        }
        if info.areas.is_empty() {
            return Err(BootInfoError::NoMap);
        }
        Ok(info)
    }

    fn take_tag(&mut self, kind: u32, content: &[u8], address: u64) {
        match kind {
            1 => self.command_line = line(content),
            6 if content.len() > 8 && u32_at(content, 0) >= 24 => {
                self.areas = areas(&content[8..], u32_at(content, 0) as usize);
            }
            // Copies of the RSDP; the newer one takes precedence.
            15 => self.rsdp = Some(address),
            14 => self.rsdp = self.rsdp.or(Some(address)),
            _ => {}
        }
    }

    /// Returns the usable parts of the map, as far as the kernel maps memory ([`MOST_BYTES`]).
    pub fn usable(&self) -> Vec<Span> {
        below(MOST_BYTES, self.areas.iter().filter(|area| area.usable)).collect()
    }

    /// Returns the parts of the map below `mapped_bytes`, usable or not: firmware tables may be
    /// there.
    pub fn readable(&self, mapped_bytes: u64) -> impl Iterator<Item = Span> {
        below(mapped_bytes, self.areas.iter())
    }
}

/// Returns the parts of these areas below an address.
fn below<'a>(end: u64, areas: impl Iterator<Item = &'a Area>) -> impl Iterator<Item = Span> {
    let below = Span { start: 0, end };
    areas.map(move |area| area.span.common(&below)).filter(|span| span.bytes() > 0)
}

fn areas(map: &[u8], entry_bytes: usize) -> Vec<Area> {
    let area = |entry: &[u8]| Area {
        span: Span::of(u64_at(entry, 0), u64_at(entry, 8)),
        usable: u32_at(entry, 16) == USABLE,
    };
    map.chunks_exact(entry_bytes).map(area).collect()
}

/// Returns the text at an address, up to its NUL.
fn text(memory: &impl Physical, at: u64) -> String {
    let readable = (0..=LONGEST_LINE).rev().step_by(64).find_map(|bytes| memory.read(at, bytes));
    line(readable.unwrap_or_default())
}

/// Converts text up to its NUL; all words are ASCII.
fn line(bytes: &[u8]) -> String {
    let character = |&byte: &u8| match byte.is_ascii() {
        true => char::from(byte),
        false => char::REPLACEMENT_CHARACTER,
    };
    bytes.iter().take_while(|&&byte| byte != 0).map(character).collect()
}

/// Reads a little-endian word; 0 after the end.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    u32::from_le_bytes(word.unwrap_or_default())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
    u64::from_le_bytes(word.unwrap_or_default())
}
