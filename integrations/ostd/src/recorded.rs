//! The memory that OSTD has reported as free, in a list that needs no heap.

use numalab_kernel::memory_map::Span;
use ostd::mm::Paddr;
use spin::Mutex;

/// More spans of usable memory than the memory map of any PC has.
const MOST: usize = 64;

/// Spans of free memory.
pub struct Recorded {
    spans: [Span; MOST],
    len: usize,
}

static RECORDED: Mutex<Recorded> =
    Mutex::new(Recorded { spans: [Span { start: 0, end: 0 }; MOST], len: 0 });

/// Records a span. Spans for which the list has no room stay unused.
pub fn add(addr: Paddr, size: usize) {
    let mut recorded = RECORDED.lock();
    let at = recorded.len;
    if let Some(slot) = recorded.spans.get_mut(at) {
        *slot = Span::of(addr as u64, size as u64);
        recorded.len += 1;
    }
}

/// Cuts `bytes` off the front of the first span above 1 MiB that is longer than that.
pub fn cut(bytes: u64) -> Option<Span> {
    let mut recorded = RECORDED.lock();
    let len = recorded.len;
    let fits = |span: &&mut Span| span.start >= 1 << 20 && span.bytes() > bytes;
    let span = recorded.spans[..len].iter_mut().find(fits)?;
    let taken = Span::of(span.start, bytes);
    span.start = taken.end;
    Some(taken)
}

/// Returns all spans that are left.
pub fn spans() -> alloc::vec::Vec<Span> {
    // The lock must not be held while the heap allocates.
    let mut all = alloc::vec::Vec::with_capacity(MOST);
    let recorded = RECORDED.lock();
    all.extend_from_slice(&recorded.spans[..recorded.len]);
    all
}
