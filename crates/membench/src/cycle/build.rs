//! Building of a cycle in memory, in parts that threads can share.

use super::permutation::BATCH;
use super::{Cycle, CycleError};
use crate::line::Line;
use core::marker::PhantomData;
use core::num::NonZeroUsize;
use core::ptr::NonNull;

/// The parts of a cycle, in address order.
#[derive(Debug)]
pub struct Parts<'a> {
    cycle: Cycle,
    memory: NonNull<Line>,
    count: usize,
    next: usize,
    lines: PhantomData<&'a mut [Line]>,
}

/// A stretch of a cycle's memory that one thread builds.
#[derive(Debug)]
pub struct CyclePart<'a> {
    cycle: Cycle,
    /// The first line of the whole memory, with access to all of it.
    memory: NonNull<Line>,
    first: usize,
    end: usize,
    lines: PhantomData<&'a mut [Line]>,
}

// SAFETY: a part accesses only the lines of its own nodes, which no other part has and which it has
// borrowed exclusively: it may do so from any thread, like `&mut [Line]`.
unsafe impl Send for CyclePart<'_> {}

/// A part in which every line contains the address of its successor.
#[derive(Debug)]
pub struct BuiltPart<'a>(CyclePart<'a>);

impl Cycle {
    /// Divides the building into `count` parts of equal size. Each part touches only its own
    /// stretch of memory, so a thread on the right node makes the first touch there. `lines` may be
    /// longer than the cycle.
    ///
    /// # Errors
    /// [`CycleError::MemoryTooSmall`] if `lines` are fewer than the cycle's, and
    /// [`CycleError::Misaligned`] if they do not start at a line of the cycle's size.
    pub fn parts<'a>(
        self,
        lines: &'a mut [Line],
        count: NonZeroUsize,
    ) -> Result<Parts<'a>, CycleError> {
        let memory_bytes = size_of_val(lines);
        let line_bytes = self.line_size.bytes();
        let memory = NonNull::from(lines).cast::<Line>();
        if memory_bytes < self.size_bytes / Line::SIZE_BYTES * Line::SIZE_BYTES {
            return Err(CycleError::MemoryTooSmall { memory_bytes, cycle_bytes: self.size_bytes });
        }
        if !memory.addr().get().is_multiple_of(line_bytes) {
            return Err(CycleError::Misaligned { address: memory.addr().get(), line_bytes });
        }
        Ok(Parts { cycle: self, memory, count: count.get(), next: 0, lines: PhantomData })
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = CyclePart<'a>;

    fn next(&mut self) -> Option<CyclePart<'a>> {
        if self.next == self.count {
            return None;
        }
        let first = self.start_of(self.next);
        self.next += 1;
        Some(CyclePart {
            cycle: self.cycle,
            memory: self.memory,
            first,
            end: self.start_of(self.next),
            lines: PhantomData,
        })
    }
}

impl Parts<'_> {
    /// Returns the first node of part `index`, or the number of nodes if there is no such part.
    fn start_of(&self, index: usize) -> usize {
        let (nodes, count) = (self.cycle.nodes(), self.count);
        nodes / count * index + (nodes % count).min(index)
    }
}

impl<'a> CyclePart<'a> {
    /// Writes the address of each node's successor into its line, in address order. The previous
    /// content of those lines is lost.
    pub fn build(self) -> BuiltPart<'a> {
        self.write();
        BuiltPart(self)
    }

    fn write(&self) {
        let mut nodes = [0; BATCH];
        let mut node = self.first;
        while node < self.end {
            let count = self.cycle.order.successors(node as u64, &mut nodes);
            let count = count.min(self.end - node);
            for &next in &nodes[..count] {
                // SAFETY: `node` is one of this part's nodes: `first <= node < end`.
                unsafe { self.write_node(node, next) };
                node += 1;
            }
        }
        write_out();
    }

    /// # Safety
    /// `node` must be one of this part's nodes.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a node's number came from a usize")]
    unsafe fn write_node(&self, node: usize, next: u64) {
        let address = self.memory.addr().get() + self.cycle.offset_bytes(next as usize);
        // SAFETY: 1. Every node is inside the cycle's size, and `Cycle::parts` has checked that the
        // memory has that size. 2. Its offset is a multiple of 64. 3. `memory` may access all of
        // it, and this node's line belongs only to this part.
        unsafe {
            let line = self.memory.byte_add(self.cycle.offset_bytes(node));
            write_whole_line(line, address as u64);
        }
    }
}

impl<'a> BuiltPart<'a> {
    /// Joins parts to the whole memory of one cycle: its plan and its first line.
    ///
    /// # Errors
    /// [`CycleError::PartsDoNotJoin`] unless they are all parts of one division, in order.
    pub(crate) fn join(
        parts: impl IntoIterator<Item = BuiltPart<'a>>,
    ) -> Result<(Cycle, NonNull<Line>), CycleError> {
        let mut whole: Option<CyclePart<'a>> = None;
        for BuiltPart(part) in parts {
            let joined = whole.get_or_insert(CyclePart { end: 0, ..part });
            if !joined.is_continued_by(&part) {
                let (joined_nodes, nodes) = (joined.end, joined.cycle.nodes());
                return Err(CycleError::PartsDoNotJoin { joined_nodes, nodes });
            }
            joined.end = part.end;
        }
        match whole {
            Some(part) if part.end == part.cycle.nodes() => Ok((part.cycle, part.memory)),
            part => Err(CycleError::PartsDoNotJoin {
                joined_nodes: part.as_ref().map_or(0, |part| part.end),
                nodes: part.map_or(0, |part| part.cycle.nodes()),
            }),
        }
    }
}

impl CyclePart<'_> {
    /// Returns true if `next` starts where this one ends, in the same memory and of the same cycle.
    fn is_continued_by(&self, next: &CyclePart<'_>) -> bool {
        let plan = |cycle: &Cycle| (cycle.pattern, cycle.size_bytes, cycle.line_size, cycle.seed);
        self.end == next.first
            && self.memory == next.memory
            && plan(&self.cycle) == plan(&next.cycle)
    }
}

/// Writes `word` and seven zeros, bypassing the caches: a line that is overwritten as a whole need
/// not be read first, which halves the traffic.
///
/// # Safety
/// `line` must be valid for writing.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
#[inline(always)]
unsafe fn write_whole_line(line: NonNull<Line>, word: u64) {
    use core::arch::x86_64::{_mm_set_epi64x, _mm_setzero_si128, _mm_stream_si128};
    let quarters = line.cast().as_ptr();
    // SAFETY: the caller guarantees the line's 64 bytes, which are 64-byte aligned. `write_out`
    // ends the sequence of non-temporal stores before the lines are passed on.
    unsafe {
        _mm_stream_si128(quarters, _mm_set_epi64x(0, word.cast_signed()));
        _mm_stream_si128(quarters.add(1), _mm_setzero_si128());
        _mm_stream_si128(quarters.add(2), _mm_setzero_si128());
        _mm_stream_si128(quarters.add(3), _mm_setzero_si128());
    }
}

/// Makes all lines written so far visible in program order.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
fn write_out() {
    // SAFETY: SSE is part of the target, by the condition above.
    unsafe { core::arch::x86_64::_mm_sfence() };
}

/// Writes `word` and seven zeros: cpus without write-allocate for whole lines recognise it.
///
/// # Safety
/// `line` must be valid for writing.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
#[inline(always)]
unsafe fn write_whole_line(line: NonNull<Line>, word: u64) {
    // SAFETY: the caller guarantees the line.
    unsafe { line.cast::<[u64; 8]>().write([word, 0, 0, 0, 0, 0, 0, 0]) };
}

/// Does nothing: ordinary stores need no fence.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
fn write_out() {}
