//! Contended lines, with the threads that store to their bytes.

use std::collections::HashMap;

use numalab_memory_model::counters::Kind;

use super::page_use::LINE_BYTES;

/// Lines with details kept.
const MOST_LINES: usize = 4096;
/// Maximum number of ranges of bytes that are distinguished for each user of a line; a line has
/// eight words.
const MOST_PIECES: usize = 16;
/// Inverse of the maximum share of uses that are left out, rarest first: on separate lines, at
/// least 99 % of the accesses and moves would not wait. An example is a thread that reads each
/// counter once at the end.
const RARE: u64 = 100;
/// Resolution of a use's share of the uses that are left out.
const SHARES: u64 = 1 << 10;

/// One thread's use of a contended line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Party {
    pub seat: usize,
    /// Loads and stores.
    pub accesses: [u64; 2],
    /// The bytes accessed.
    pieces: Vec<Piece>,
    /// Time waited for these accesses, in ps.
    pub waited_ps: u64,
    /// The first instruction that stored, or the first that loaded if none stored.
    pub instruction: u64,
    /// Return addresses of the calls active at that instruction.
    pub callers: Vec<u64>,
}

/// Accesses to the same bytes of a line by one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    kind: Kind,
    /// One bit for each byte.
    mask: u64,
    accesses: u64,
    /// Number of accesses for which the line moved.
    changes: u64,
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
    /// True if the line moved between caches.
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
        party.waited_ps += used.waited_ps;
        party.uses(used);
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

impl Party {
    fn uses(&mut self, Use { address, bytes, kind, changed, .. }: Use) {
        let mask = mask(address % LINE_BYTES, bytes);
        let alike = |of: &Piece| of.kind == kind && of.mask == mask;
        let known = self.pieces.iter().position(alike);
        let full = || self.pieces.iter().rposition(|of| of.kind == kind);
        let at = known.or_else(|| full().filter(|_| self.pieces.len() >= MOST_PIECES));
        let at = at.unwrap_or_else(|| {
            self.pieces.push(Piece { kind, mask, accesses: 0, changes: 0 });
            self.pieces.len() - 1
        });
        let piece = &mut self.pieces[at];
        piece.mask |= mask;
        piece.accesses += 1;
        piece.changes += u64::from(changed);
    }
}

impl Contended {
    /// Returns the bytes that each user loads and stores, one bit each, without the rarest uses.
    pub fn bytes(&self) -> Vec<[u64; 2]> {
        let mut pieces: Vec<(usize, &Piece)> = Vec::new();
        for (at, party) in self.parties.iter().enumerate() {
            pieces.extend(party.pieces.iter().map(|piece| (at, piece)));
        }
        let accesses: u64 = pieces.iter().map(|(_, of)| of.accesses).sum();
        let changes: u64 = pieces.iter().map(|(_, of)| of.changes).sum();
        // A thread that polls accesses the line often, and the one that it waits for seldom; a load
        // right after a store does not move the line. So both counts matter.
        let share = |of: &Piece| {
            let parts = [(of.accesses, accesses), (of.changes, changes)];
            parts.map(|(part, all)| part * RARE * SHARES / all.max(1)).into_iter().max()
        };
        pieces.sort_by_key(|(_, of)| share(of));
        let mut sum = 0;
        let is_rare = |(_, of): &&(usize, &Piece)| {
            sum += share(of).unwrap_or(0);
            sum <= SHARES
        };
        let usual = pieces.iter().skip(pieces.iter().take_while(is_rare).count());
        let mut bytes = vec![[0; 2]; self.parties.len()];
        usual.for_each(|(at, of)| bytes[*at][of.kind as usize] |= of.mask);
        bytes
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
        assert_eq!(line.bytes(), [[0, 0xff], [0xff << 56, 0xff << 48]]);
        assert_eq!(line.parties[1].callers, [3], "where it stores");
        assert_eq!(line.parties[1].waited_ps, 20);
    }

    /// Returns the bytes that the users of a line load and store, after these uses, each this number of
    /// times: seat, word, kind, and whether the line moves.
    fn bytes(uses: &[(usize, u64, Kind, bool)], times: &[u64]) -> Vec<[u64; 2]> {
        let mut lines = Contention::default();
        for (&(seat, word, kind, changed), times) in uses.iter().zip(times) {
            for _ in 0..*times {
                lines.add(Use { changed, ..used(seat, 8 * word, kind) }, 0, Vec::new);
            }
        }
        lines.worst(1)[0].1.bytes()
    }

    #[test]
    fn bytes_of_rare_uses_are_omitted_however_many_users_there_are() {
        use Kind::{Load, Store};
        let [first, second] = [0xff, 0xff00];
        let counters = [(0, 0, Store, true), (1, 1, Store, true), (2, 0, Load, true)];
        let of = |loads| bytes(&counters, &[500, 500, loads]);
        assert_eq!(of(2), [[0, first], [0, second], [0, 0]], "read at the end");
        assert_eq!(of(50), [[0, first], [0, second], [first, 0]]);
        let flag = [(0, 0, Load, false), (0, 0, Load, true), (1, 0, Store, true)];
        let polled = bytes(&flag, &[9000, 20, 20]);
        assert_eq!(polled, [[first, 0], [0, first]], "few stores, but half of the moves");
        let sums = [(0, 0, Store, true), (0, 1, Load, false), (1, 1, Store, true)];
        assert_eq!(bytes(&sums, &[500; 3]), [[second, first], [0, second]], "none moves the line");
        let lock: Vec<_> = (0..250).map(|seat| (seat, 0, Store, true)).collect();
        let users = bytes(&lock, &[2; 250]).iter().filter(|of| of[1] == first).count();
        assert!(users > 240, "{users} of 250");
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
