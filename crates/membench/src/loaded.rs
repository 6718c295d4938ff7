//! A throttled load on the memory system, during which a chase is measured.

use crate::line::Line;
use crate::stream::Stream;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The intensity of a load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Throttle {
    /// The amount of work between pauses, in bytes of one array; rounded up to whole lines.
    pub chunk_bytes: usize,
    /// The number of pauses of the cpu after each chunk; 0 for full speed.
    pub delay_spins: u32,
}

/// Runs `stream` chunk by chunk until `stop` is set. It waits for stores that bypass the caches
/// only at the end: a fence after each chunk would turn them into bursts.
///
/// `counted_bytes` grows after every chunk, from call to call, and never decreases: its difference
/// between two moments, divided by the time between them, is the bandwidth, even if this thread has
/// not run yet at the first of them. Only this function may write to it. It should be on a line
/// that has no other writer.
pub fn generate(
    stream: &mut Stream<'_>,
    throttle: Throttle,
    stop: &AtomicBool,
    counted_bytes: &AtomicU64,
) {
    let chunk_lines = throttle.chunk_bytes.div_ceil(Line::SIZE_BYTES).max(1);
    // Relaxed: neither the flag nor the count publishes any other memory.
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
