//! Memory by its physical address: firmware's tables, and room for the allocator's metadata.

#![expect(unsafe_code, reason = "OSTD shows neither tables nor typed memory to an allocator")]

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use numalab_frames::Word;
use numalab_kernel::memory_map::Span;
use numalab_kernel::tables::Physical;
use ostd::mm::HasSize;
use ostd::mm::frame::Segment;
use ostd::mm::io::util::HasVmReaderWriter;

const _: () = assert!(size_of::<Word>() == size_of::<AtomicU64>());

/// The firmware leaves its data for the system below this address.
const READABLE_BYTES: u64 = 4 << 30;

/// Virtual address of physical address 0; 0 until it is known.
static LINEAR: AtomicUsize = AtomicUsize::new(0);

/// Takes free memory forever, as words; `None` if any frame of it is in use.
pub fn words(span: &Span) -> Option<&'static mut [Word]> {
    let bytes = usize::try_from(span.bytes()).ok()?;
    let start = usize::try_from(span.start).ok()?;
    let segment = Segment::<()>::from_unused(start..start + bytes, |_| ()).ok()?;
    let first = segment.writer().cursor();
    LINEAR.store(first.expose_provenance().wrapping_sub(start), Ordering::Relaxed);
    core::mem::forget(segment);
    // SAFETY: 1. The segment was the only owner of these frames, and was forgotten, so they are
    // never freed. 2. OSTD maps them contiguously and permanently, aligned to a page. 3. Any bytes
    // are valid words.
    Some(unsafe {
        core::slice::from_raw_parts_mut(first.cast::<Word>(), bytes / size_of::<Word>())
    })
}

/// The firmware's memory, through OSTD's mapping of all memory.
pub struct Firmware;

impl Physical for Firmware {
    fn read(&self, address: u64, bytes: usize) -> Option<&[u8]> {
        let linear = LINEAR.load(Ordering::Relaxed);
        let end = address.checked_add(bytes as u64)?;
        if linear == 0 || address == 0 || end > READABLE_BYTES {
            return None;
        }
        let start = core::ptr::with_exposed_provenance(linear + usize::try_from(address).ok()?);
        // SAFETY: 1. OSTD maps the first 4 GiB from the start. 2. Tables are in memory that the
        // firmware keeps and no one writes to; where a damaged table points to other memory, any
        // bytes may be read before other cpus run.
        Some(unsafe { core::slice::from_raw_parts(start, bytes) })
    }
}

/// Words in pieces of memory of equal size.
pub struct Words64<'s> {
    firsts: Vec<*const u64>,
    /// Logarithm of a piece's number of words, base 2.
    exponent: u32,
    pieces: PhantomData<&'s [Segment<()>]>,
}

impl<'s> Words64<'s> {
    /// Returns all words of these pieces, each of `bytes` bytes, a power of two of frames.
    pub fn of(pieces: &'s [Segment<()>], bytes: usize) -> Self {
        let whole = pieces.iter().filter(|piece| piece.size() >= bytes);
        let firsts = whole.map(|piece| piece.reader().cursor().cast()).collect();
        Self { firsts, exponent: (bytes / size_of::<u64>()).ilog2(), pieces: PhantomData }
    }

    /// Returns the number of words.
    pub fn len(&self) -> u64 {
        (self.firsts.len() as u64) << self.exponent
    }

    /// Returns one of the words; 0 beyond the last.
    #[inline]
    pub fn read(&self, place: u64) -> u64 {
        let within = place & ((1 << self.exponent) - 1);
        match self.firsts.get((place >> self.exponent) as usize) {
            // SAFETY: `of` has checked that the piece has this number of words, it is borrowed as
            // long as `self`, and untyped memory may be read at any time, as volatile words.
            Some(first) => unsafe { first.add(within as usize).read_volatile() },
            None => 0,
        }
    }
}
