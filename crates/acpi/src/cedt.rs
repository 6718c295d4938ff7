//! CXL Early Discovery Table (CXL 3.1 §9.18.1): host bridges and fixed memory windows.

mod entries;

pub use entries::{Entry, FixedMemoryWindow, HostBridge, WindowRestrictions, interleave_ways};

pub(crate) use entries::expected_size;

use crate::entry::EntryHead;
use crate::header::Signature;
use crate::table::{Format, Located, Table};

/// A CXL Early Discovery Table.
pub type Cedt<'a> = Table<'a, Layout>;

/// The CEDT's layout, for [`Builder`](crate::Builder).
#[derive(Clone, Copy, Debug)]
pub struct Layout;

impl Format for Layout {
    const SIGNATURE: Signature = Signature::CEDT;
    const HEAD: EntryHead = EntryHead::Word;
    const REVISIONS: (u8, u8) = (1, 2);
    type Fixed = ();
    type Entry<'a> = Entry<'a>;
}

impl<'a> Table<'a, Layout> {
    /// Returns all host bridges.
    pub fn host_bridges(&self) -> impl Iterator<Item = Located<HostBridge>> + use<'a> {
        self.entries().filter_map(|Located { offset, entry }| match entry {
            Entry::HostBridge(entry) => Some(Located { offset, entry }),
            _ => None,
        })
    }

    /// Returns all fixed memory windows.
    pub fn windows(&self) -> impl Iterator<Item = Located<FixedMemoryWindow<'a>>> + use<'a> {
        self.entries().filter_map(|Located { offset, entry }| match entry {
            Entry::Window(entry) => Some(Located { offset, entry }),
            _ => None,
        })
    }
}
