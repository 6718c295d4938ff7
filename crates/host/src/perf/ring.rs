//! The ring buffer between the kernel, which writes at the head, and this process, which reads at
//! the tail (`linux/perf_event.h`, `struct perf_event_mmap_page`).

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::system_page::base_page_bytes;

/// Smallest size of a ring.
pub(super) const LEAST_BYTES: usize = 64 << 10;
/// Size of a record's header: kind, flags, and the record's size including the header.
const HEADER_BYTES: usize = 8;

#[derive(Debug)]
pub(super) struct Ring {
    start: NonNull<u8>,
    page_bytes: usize,
    /// Always a power of two.
    data_bytes: usize,
    /// A record copied out of the ring.
    copied: Vec<u8>,
}

// SAFETY: 1. The mapping belongs to the process, and this `Ring` alone unmaps it. 2. `drain` takes it
// `&mut`: one thread reads at the tail and moves it, whichever that is.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of an event with at most `most_bytes`, or less if the kernel lets this user
    /// lock no more memory.
    pub(super) fn of(event: &OwnedFd, most_bytes: usize) -> Result<Self, Errno> {
        let page_bytes = usize::try_from(base_page_bytes()).unwrap_or(4096);
        let mut data_bytes = most_bytes.next_power_of_two().max(LEAST_BYTES);
        loop {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            let length = page_bytes + data_bytes;
            // SAFETY: a new mapping at a place of the kernel's choice, which overlaps nothing.
            let mapped =
                unsafe { mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, event, 0) };
            match mapped {
                Ok(start) => {
                    let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
                    return Ok(Self { start, page_bytes, data_bytes, copied: Vec::new() });
                }
                // EPERM beyond `perf_event_mlock_kb` and RLIMIT_MEMLOCK, ENOMEM where the kernel
                // lacks memory.
                Err(Errno::PERM | Errno::NOMEM) if data_bytes > LEAST_BYTES => data_bytes /= 2,
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Returns the size of the record area in bytes.
    pub(super) fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    fn control(&self) -> *mut perf_event_mmap_page {
        self.start.as_ptr().cast()
    }

    fn head(&self) -> &AtomicU64 {
        // SAFETY: 1. the control page is mapped as long as `self`. 2. The field is an aligned
        // 64-bit number, which the kernel writes with a release store.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.control()).data_head) }
    }

    fn tail(&self) -> &AtomicU64 {
        // SAFETY: 1. The control page is mapped as long as `self`. 2. The field is an aligned 64-bit
        // number which `drain` alone writes and the kernel reads.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.control()).data_tail) }
    }

    /// Passes every available record, including its header, to `take`, and frees its space.
    pub(super) fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        // Pairs with the kernel's store of the head: the records before it are complete.
        let head = self.head().load(Ordering::Acquire);
        // Only this process writes the tail.
        let tail = self.tail().load(Ordering::Relaxed);
        let length = usize::try_from(head.wrapping_sub(tail)).unwrap_or(0).min(self.data_bytes);
        let data = self.start.as_ptr().wrapping_add(self.page_bytes);
        self.copied.clear();
        for (at, part) in parts(tail, length, self.data_bytes) {
            // SAFETY: 1. `parts` stay within the ring's data, whatever the head says, and that is mapped.
            // 2. The event has no `write_backward` and its ring is writable to us, so that the kernel
            // does not write between tail and head (`linux/perf_event.h`).
            self.copied
                .extend_from_slice(unsafe { std::slice::from_raw_parts(data.add(at), part) });
        }
        // Pairs with the kernel's load of the tail: the records read may be overwritten.
        self.tail().store(head, Ordering::Release);
        records(&self.copied).for_each(&mut take);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the whole mapping of `of`, with its original length; `drain` returned copies.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.page_bytes + self.data_bytes) };
    }
}

/// Returns the ranges of `length` bytes from `tail` on in a ring of this size: one, or two if they
/// wrap around its end.
fn parts(tail: u64, length: usize, ring_bytes: usize) -> [(usize, usize); 2] {
    let at = usize::try_from(tail % ring_bytes as u64).unwrap_or(0);
    let first = length.min(ring_bytes - at);
    [(at, first), (0, length - first)]
}

/// Splits consecutive records.
fn records(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let size = usize::from(u16::from_ne_bytes(*bytes.get(6..)?.first_chunk()?));
        let (record, rest) = bytes.split_at_checked(size.max(HEADER_BYTES))?;
        bytes = rest;
        Some(record)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_that_wrap_around_the_ring_are_read_in_order(
            tail in 0_u64..100_000,
            length in 0_usize..=64,
        ) {
            let ring: Vec<u64> = (0..64).map(|at| (tail / 64 * 64 + at) + if at < tail % 64 { 64 } else { 0 }).collect();
            let read: Vec<u64> =
                parts(tail, length, 64).iter().flat_map(|(at, part)| &ring[*at..at + part]).copied().collect();
            let expected: Vec<u64> = (tail..tail + length as u64).collect();
            prop_assert_eq!(read, expected);
        }

        #[test]
        fn any_bytes_are_cut_into_records_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let found: usize = records(&bytes).map(<[u8]>::len).sum();
            prop_assert!(found <= bytes.len());
        }
    }

    #[test]
    fn records_are_as_long_as_their_headers_say() {
        let record = |size: u16, fill: u8| {
            let mut record = vec![fill; usize::from(size)];
            record[6..8].copy_from_slice(&size.to_ne_bytes());
            record
        };
        let bytes = [record(16, 1), record(8, 2), record(40, 3)].concat();
        let found: Vec<_> = records(&bytes).map(|record| (record.len(), record[0])).collect();
        assert_eq!(found, [(16, 1), (8, 2), (40, 3)]);
        assert_eq!(records(&bytes[..20]).count(), 1, "the second one is cut");
    }
}
