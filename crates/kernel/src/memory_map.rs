//! The memory that may be allocated: the loader's usable memory, except the parts that are in use.

use alloc::vec::Vec;

use numalab_frames::FRAME_BYTES;
use numalab_topology::order;

/// The kernel maps all memory below this address at its own address, and uses the range above for
/// the windows of its cpus: memory above it is neither used nor read.
pub const MOST_BYTES: u64 = 64 << 40;

/// Memory from an address up to another, exclusive; in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
}

impl Span {
    /// Creates a span of `bytes` bytes from `start`, limited to 64 bits of address.
    pub const fn of(start: u64, bytes: u64) -> Self {
        Self { start, end: start.saturating_add(bytes) }
    }

    pub const fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Returns the intersection, which may be empty.
    pub fn common(&self, other: &Self) -> Self {
        let start = self.start.max(other.start);
        Self { start, end: self.end.min(other.end).max(start) }
    }

    /// Returns the whole frames in it; empty if there are none.
    pub fn frames(&self) -> Self {
        let start = self.start.checked_next_multiple_of(FRAME_BYTES).unwrap_or(u64::MAX);
        Self { start, end: (self.end / FRAME_BYTES * FRAME_BYTES).max(start) }
    }

    /// Returns true if it contains all of another.
    pub const fn holds(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// Returns the whole frames of `usable` that do not overlap `taken`: ascending and disjoint,
/// whatever order and overlaps the loader's map has.
pub fn free_spans(usable: &[Span], taken: &[Span]) -> Vec<Span> {
    let mut sorted: Vec<Span> = usable.to_vec();
    order::by_key(&mut sorted, |&span| span);
    let mut joined: Vec<Span> = Vec::new();
    for span in sorted.into_iter().filter(|span| span.bytes() > 0) {
        match joined.last_mut().filter(|last| last.end >= span.start) {
            Some(last) => last.end = last.end.max(span.end),
            None => joined.push(span),
        }
    }
    let mut free: Vec<Span> = joined.iter().map(Span::frames).collect();
    for hole in taken.iter().filter(|hole| hole.bytes() > 0) {
        let start = hole.start / FRAME_BYTES * FRAME_BYTES;
        let end = hole.end.checked_next_multiple_of(FRAME_BYTES).unwrap_or(u64::MAX);
        let mut left = Vec::new();
        for span in &free {
            left.extend(without(span, &Span { start, end }));
        }
        free = left;
    }
    free.retain(|span| span.bytes() > 0);
    free
}

fn without(span: &Span, hole: &Span) -> [Span; 2] {
    let below = Span { start: span.start, end: span.end.min(hole.start).max(span.start) };
    let above = Span { start: span.start.max(hole.end).min(span.end), end: span.end };
    if hole.start >= span.end || hole.end <= span.start {
        return [*span, Span { start: span.end, end: span.end }];
    }
    [below, above]
}

/// Takes `bytes`, in whole blocks of 2 MiB, off the first span that has enough at such a boundary:
/// the cut adds at most one span.
pub fn carve(spans: &mut Vec<Span>, bytes: u64) -> Option<Span> {
    const BLOCK: u64 = 2 << 20;
    let bytes = bytes.checked_next_multiple_of(BLOCK)?;
    let start_of = |span: &Span| span.start.checked_next_multiple_of(BLOCK);
    let fits =
        |span: &Span| start_of(span).is_some_and(|start| span.end.saturating_sub(start) >= bytes);
    let place = spans.iter().position(fits)?;
    let start = start_of(&spans[place])?;
    let carved = Span::of(start, bytes);
    let [below, above] = without(&spans.remove(place), &carved);
    for left in [above, below] {
        if left.bytes() > 0 {
            spans.insert(place, left);
        }
    }
    Some(carved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    fn span(start: u64, end: u64) -> Span {
        Span { start, end }
    }

    #[test]
    fn overlapping_and_unordered_memory_is_joined_and_cut_to_frames() {
        let usable = [span(0x5000, 0x9000), span(0x100, 0x2100), span(0x8000, 0xa800)];
        assert_eq!(free_spans(&usable, &[]), [span(0x1000, 0x2000), span(0x5000, 0xa000)]);
    }

    #[test]
    fn a_frame_that_is_taken_in_part_is_not_free() {
        let usable = [span(0, 0x8000)];
        let taken = [span(0x2ffe, 0x3001), span(0x7fff, u64::MAX)];
        assert_eq!(free_spans(&usable, &taken), [span(0, 0x2000), span(0x4000, 0x7000)]);
    }

    #[test]
    fn carved_memory_is_whole_blocks_and_no_longer_free() {
        let mut spans = vec![span(0x1000, 0x10_0000), span(0x30_0000, 0x200_0000)];
        assert_eq!(carve(&mut spans, 1), Some(span(0x40_0000, 0x60_0000)));
        let left =
            [span(0x1000, 0x10_0000), span(0x30_0000, 0x40_0000), span(0x60_0000, 0x200_0000)];
        assert_eq!(spans, left);
        assert_eq!(carve(&mut spans, 1 << 40), None);
        assert_eq!(spans, left);
    }

    proptest! {
        #[test]
        fn free_memory_is_ascending_usable_and_not_taken(
            usable in prop::collection::vec((0_u64..0x40_0000, 0_u64..0x10_0000), 0..8),
            taken in prop::collection::vec((0_u64..0x40_0000, 0_u64..0x8000), 0..8),
        ) {
            let spans = |list: &[(u64, u64)]| -> Vec<Span> {
                list.iter().map(|&(start, bytes)| Span::of(start, bytes)).collect()
            };
            let (usable, taken) = (spans(&usable), spans(&taken));
            let free = free_spans(&usable, &taken);
            prop_assert!(free.windows(2).all(|pair| pair[0].end <= pair[1].start));
            let inside = |spans: &[Span], at: u64| spans.iter().any(|s| (s.start..s.end).contains(&at));
            for frame in (0..0x60_0000).step_by(4096) {
                let whole = (frame..frame + 4096).step_by(512).chain([frame + 4095]).all(|at| inside(&usable, at));
                let hit = taken.iter().any(|t| t.bytes() > 0 && t.start < frame + 4096 && t.end > frame);
                if inside(&free, frame) {
                    prop_assert!(whole && !hit, "{frame:#x}");
                }
            }
        }
    }
}
