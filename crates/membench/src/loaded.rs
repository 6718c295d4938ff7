//! A throttled load on the memory system, against which a chase is measured.

use crate::line::Line;
use crate::stream::Stream;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How hard a load generator pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Throttle {
    /// What it does at a stretch, in bytes of one array; rounded up to whole lines.
    pub chunk_bytes: usize,
    /// How often it pauses the cpu after each chunk; 0 for full speed.
    pub delay_spins: u32,
}

/// Runs `stream` chunk by chunk until `stop` is set. Stores past the caches are waited for at the
/// end alone: a fence after each chunk would make bursts of them.
///
/// `counted_bytes` grows after every chunk, from call to call, and is never less than before:
/// its difference between two moments, divided by the time between them, is the bandwidth, even
/// if this thread has not run yet at the first of them. Only this function may write to it. It
/// is best on a line which nothing else writes to.
pub fn generate(
    stream: &mut Stream<'_>,
    throttle: Throttle,
    stop: &AtomicBool,
    counted_bytes: &AtomicU64,
) {
    let chunk_lines = throttle.chunk_bytes.div_ceil(Line::SIZE_BYTES).max(1);
    // Relaxed: neither the flag nor the count announces any other memory.
    let mut total = counted_bytes.load(Ordering::Relaxed);
    while !stop.load(Ordering::Relaxed) {
        total += stream.go_on(chunk_lines);
        counted_bytes.store(total, Ordering::Relaxed);
        for _ in 0..throttle.delay_spins {
            spin_loop();
        }
    }
    stream.finish();
}
