//! Contended lines: who stores to which of their bytes.

use std::collections::HashMap;

use numalab_memory_model::counters::Kind;

use super::page_use::LINE_BYTES;

/// Lines with details kept.
const MOST_LINES: usize = 4096;

/// One thread's use of a contended line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Party {
    pub seat: usize,
    /// Loads and stores.
    pub accesses: [u64; 2],
    /// The bytes loaded and stored, one bit each.
    pub bytes: [u64; 2],
    /// Time waited for them, in ps.
    pub waited_ps: u64,
    /// The first instruction that stored, or that loaded if none stored.
    pub instruction: u64,
    /// Return addresses of the calls active at that instruction.
    pub callers: Vec<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contended {
    /// Number of the region.
    pub region: usize,
    /// Number of times that the line moved between caches.
    pub changes: u64,
    /// The users of the line.
    pub parties: Vec<Party>,
}

/// An access to a contended line.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    pub seat: usize,
    /// The first address.
    pub address: u64,
    pub bytes: u64,
    pub kind: Kind,
    /// If true, the line moved between caches.
    pub changed: bool,
    /// Time waited, in ps.
    pub waited_ps: u64,
    /// Address of the instruction.
    pub instruction: u64,
}

/// Contended lines by line number.
#[derive(Debug, Default)]
pub struct Contention {
    lines: HashMap<u64, Contended>,
}

impl Contention {
    /// Counts a use of a contended line.
    pub fn add(&mut self, used: Use, region: usize, callers: impl Fn() -> Vec<u64>) {
        let number = used.address / LINE_BYTES;
        if self.lines.len() >= MOST_LINES && !self.lines.contains_key(&number) {
            return;
        }
        let line = self.lines.entry(number).or_default();
        line.region = region;
        line.changes += u64::from(used.changed);
        let known = line.parties.iter().position(|party| party.seat == used.seat);
        let at = known.unwrap_or_else(|| {
            line.parties.push(Party { seat: used.seat, ..Party::default() });
            line.parties.len() - 1
        });
        let party = &mut line.parties[at];
        let first_store = used.kind == Kind::Store && party.accesses[1] == 0;
        if known.is_none() || first_store {
            (party.instruction, party.callers) = (used.instruction, callers());
        }
        party.accesses[used.kind as usize] += 1;
        party.bytes[used.kind as usize] |= mask(used.address % LINE_BYTES, used.bytes);
        party.waited_ps += used.waited_ps;
    }

    /// Returns up to `most` lines, by time waited for them, longest first.
    pub fn worst(&self, most: usize) -> Vec<(u64, &Contended)> {
        let waited =
            |line: &Contended| line.parties.iter().map(|party| party.waited_ps).sum::<u64>();
        let mut lines: Vec<_> = self.lines.iter().map(|(number, line)| (*number, line)).collect();
        lines.sort_by_key(|(number, line)| {
            (std::cmp::Reverse((waited(line), line.changes)), *number)
        });
        lines.truncate(most);
        lines
    }
}

/// Returns a mask of bytes from an address, cut at the end of the line.
fn mask(from: u64, bytes: u64) -> u64 {
    let bytes = bytes.clamp(1, LINE_BYTES);
    (u64::MAX >> (LINE_BYTES - bytes)) << from
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(seat: usize, address: u64, kind: Kind) -> Use {
        Use { seat, address, bytes: 8, kind, changed: true, waited_ps: 5, instruction: address }
    }

    #[test]
    fn a_line_records_which_bytes_each_thread_stores_to() {
        let mut lines = Contention::default();
        for _ in 0..3 {
            lines.add(used(0, 0x1000, Kind::Store), 2, || vec![1]);
            lines.add(used(1, 0x1038, Kind::Load), 2, || vec![2]);
        }
        lines.add(used(1, 0x1030, Kind::Store), 2, || vec![3]);
        lines.add(used(1, 0x5000, Kind::Store), 2, Vec::new);
        let [(number, line)] = lines.worst(1)[..] else { panic!() };
        assert_eq!((number, line.changes, line.region), (0x40, 7, 2));
        assert_eq!(line.parties[0].bytes, [0, 0xff]);
        assert_eq!(line.parties[1].bytes, [0xff << 56, 0xff << 48]);
        assert_eq!(line.parties[1].callers, [3], "where it stores");
        assert_eq!(line.parties[1].waited_ps, 20);
    }

    #[test]
    fn keeps_details_of_a_limited_number_of_lines() {
        let mut lines = Contention::default();
        for line in 0..2 * MOST_LINES as u64 {
            lines.add(used(0, line * 64, Kind::Store), 0, Vec::new);
        }
        assert_eq!(lines.lines.len(), MOST_LINES);
    }
}
