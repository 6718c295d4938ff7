//! Stores past the caches: buffers that combine them by line, and writes in flight. As Intel
//! describes them ("Intel 64 and IA-32 Architectures Optimization Reference Manual", 3.6.10 "Write
//! Combining" and 9.5.1 "The Non-temporal Store Instructions"), such stores are combined by line in
//! the buffers that other misses fill as well. A line is written as a whole when all its bytes are
//! there, when another line needs its buffer, or at a fence, and is never read. A line is in flight
//! to memory from its first byte on. If a line is evicted half full, the rest is another write.

use alloc::vec::Vec;

use super::flow::Accessor;
use crate::counters::Kind;

/// Parts of a line that are tracked separately: the bytes of a 64-byte line.
const PARTS: u64 = 64;

impl Accessor {
    /// Returns the bytes that an access of this kind stores past the caches; 0 for others.
    #[inline]
    pub fn past_caches(&self, kind: Kind) -> u8 {
        if kind == Kind::Store { self.non_temporal_bytes } else { 0 }
    }
}

/// A line that is being combined.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    line: u64,
    /// The parts stored so far.
    parts: u64,
    /// Number of the last instruction that stored to it: QEMU reports a wide store in pieces.
    instruction: u64,
}

/// A piece of a line that an instruction stores.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Number of the line.
    pub line: u64,
    /// A bit for each part that the piece covers, and for each part of the whole line.
    parts: u64,
    whole: u64,
    /// Number of the instruction.
    instruction: u64,
}

impl Piece {
    /// Returns the piece for bytes at an address, in lines of 2 to the power of `line_shift`.
    pub fn new(address: u64, bytes: u8, line_shift: u32, instruction: u64) -> Self {
        let line_bytes = 1 << line_shift;
        let part_bytes = (line_bytes / PARTS).max(1);
        // Such a store is aligned to its size, and reported in pieces.
        let bytes = u64::from(bytes).clamp(1, line_bytes);
        let first = address % line_bytes / bytes * bytes / part_bytes;
        let count = bytes.div_ceil(part_bytes);
        let (parts, whole) = (ones(count) << first, ones(line_bytes));
        Self { line: address >> line_shift, parts, whole, instruction }
    }
}

/// Returns a word with its lowest `count` bits set.
fn ones(count: u64) -> u64 {
    u64::MAX >> (PARTS - count.clamp(1, PARTS))
}

/// The buffers of a core, and its writes in flight.
#[derive(Clone, Debug)]
pub struct Combining {
    most: usize,
    /// Oldest first.
    buffers: Vec<Buffer>,
    /// Completion times of the writes past the caches.
    writes: Vec<u64>,
}

impl Combining {
    /// Creates buffers for at most this number of lines at a time.
    pub fn new(most: u32) -> Self {
        Self { most: most as usize, buffers: Vec::new(), writes: Vec::new() }
    }

    /// Adds a piece to a buffer; returns whether its line was already being combined there.
    pub fn joins(&mut self, piece: Piece) -> bool {
        let Piece { line, parts, whole, instruction } = piece;
        if let Some(buffer) = self.buffers.iter_mut().find(|buffer| buffer.line == line) {
            let joins = buffer.parts != whole || buffer.instruction == instruction;
            let before = if joins { buffer.parts } else { 0 };
            *buffer = Buffer { line, parts: before | parts, instruction };
            return joins;
        }
        if self.buffers.len() >= self.most {
            self.buffers.remove(0);
        }
        self.buffers.push(Buffer { line, parts, instruction });
        false
    }

    /// Sends all buffers to memory.
    pub fn close(&mut self) {
        self.buffers.clear();
    }

    /// Sends the buffer of a line that is read to memory.
    pub fn give_up(&mut self, line: u64) {
        self.buffers.retain(|buffer| buffer.line != line);
    }

    /// Adds a write in flight, complete at `done_ps`.
    pub fn write(&mut self, done_ps: u64) {
        self.writes.push(done_ps);
    }

    /// Returns the completion time of the last write in flight.
    pub fn written_ps(&self) -> u64 {
        self.writes.iter().copied().max().unwrap_or(0)
    }

    /// Removes writes that are complete before a time.
    pub fn forget_before(&mut self, now_ps: u64) {
        self.writes.retain(|done_ps| *done_ps > now_ps);
    }

    /// Returns the completion time of each write in flight.
    pub fn under_way(&self) -> impl Iterator<Item = u64> {
        self.writes.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(address: u64, bytes: u8, instruction: u64) -> Piece {
        Piece::new(address, bytes, 6, instruction)
    }

    #[test]
    fn pieces_of_a_line_join_until_it_is_whole() {
        let mut combining = Combining::new(4);
        let joined: Vec<bool> = (0..4).map(|at| combining.joins(piece(at * 16, 16, at))).collect();
        assert_eq!(joined, [false, true, true, true]);
        assert!(!combining.joins(piece(0, 16, 9)), "it went to memory");
    }

    #[test]
    fn a_wide_store_reported_in_pieces_is_one_store() {
        let mut combining = Combining::new(4);
        // Two of 32 bytes, each in two pieces.
        let stores = [(0, 1), (16, 1), (32, 2), (48, 2), (0, 3)];
        let joined = stores.map(|(address, number)| combining.joins(piece(address, 32, number)));
        assert_eq!(joined, [false, true, true, true, false]);
    }

    #[test]
    fn one_line_per_buffer_is_combined_at_a_time() {
        let mut combining = Combining::new(4);
        let round = |combining: &mut Combining, lines: u64, word: u64| {
            let store =
                |line: u64| combining.joins(piece(line * 64 + word * 8, 8, word * 9 + line));
            (0..lines).map(store).filter(|joins| *joins).count()
        };
        assert_eq!([0, 1, 2].map(|word| round(&mut combining, 4, word)), [0, 4, 4]);
        combining.close();
        assert_eq!([3, 4].map(|word| round(&mut combining, 4, word)), [0, 4], "after a fence");
        let mut combining = Combining::new(4);
        let five = [0, 1, 2].map(|word| round(&mut combining, 5, word));
        assert_eq!(five, [0, 0, 0], "the oldest goes first");
    }

    #[test]
    fn a_line_that_is_read_is_given_up() {
        let mut combining = Combining::new(4);
        combining.joins(piece(128, 8, 1));
        combining.give_up(2);
        assert!(!combining.joins(piece(136, 8, 2)));
    }

    #[test]
    fn long_lines_are_whole_when_all_their_bytes_are_there() {
        let mut combining = Combining::new(4);
        let joined =
            (0..17).map(|at| combining.joins(Piece::new(at * 16 % 256, 16, 8, at))).collect();
        let joined: Vec<bool> = joined;
        assert_eq!(joined.iter().filter(|joins| !**joins).count(), 2, "{joined:?}");
        assert!(!joined[0] && !joined[16]);
    }
}
