//! A rank's stream through its memory.

use numalab_host::monotonic_raw_ns;
use numalab_membench::{Arrays, Stream};
use numalab_record::{AccessPattern, IsaName, StreamKernel};

use super::buffer::RankBuffer;
use crate::error::MeasureError;
use crate::run::bandwidth::{isa_named, membench_access, membench_kernel};

/// Lines between two notes of time and bytes: 256 KiB of each array.
const LINES_PER_NOTE: usize = 4_096;

/// How a rank streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRules {
    /// What it does with its arrays.
    pub kernel: StreamKernel,
    /// In which order.
    pub pattern: AccessPattern,
    /// By which instructions.
    pub isa: IsaName,
    /// How long a round takes, in nanoseconds.
    pub round_ns: u64,
    /// The seed of a random order.
    pub seed: u64,
}

/// A stretch of time by the clock that all processes of a host share
/// (`CLOCK_MONOTONIC_RAW`), in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its begin.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
}

/// A stream over a rank's buffer.
#[derive(Debug)]
pub struct RankStream<'b> {
    stream: Stream<'b>,
    round_ns: u64,
    /// Time and bytes since the round's begin.
    notes: Vec<(u64, u64)>,
}

impl<'b> RankStream<'b> {
    /// A stream over the first `size_bytes` of the buffer, divided among its arrays.
    ///
    /// # Errors
    /// [`MeasureError`] for instructions that are not there or a pattern that is none.
    pub fn over(
        buffer: &'b mut RankBuffer,
        size_bytes: u64,
        rules: &StreamRules,
    ) -> Result<Self, MeasureError> {
        let kernel = membench_kernel(rules.kernel);
        let access = membench_access(rules.pattern, rules.seed)?;
        let isa = isa_named(&rules.isa.0)?;
        let arrays = Arrays::split(kernel, buffer.lines(size_bytes)?)?;
        let stream = Stream::new(kernel, access, isa, arrays)?;
        Ok(Self { stream, round_ns: rules.round_ns, notes: Vec::new() })
    }

    /// Streams for a round, and gives when it did.
    pub fn round(&mut self) -> Span {
        self.notes.clear();
        let from_ns = monotonic_raw_ns();
        let (mut now, mut bytes) = (from_ns, 0);
        self.notes.push((now, 0));
        while now - from_ns < self.round_ns {
            bytes += self.stream.advance(LINES_PER_NOTE);
            now = monotonic_raw_ns();
            self.notes.push((now, bytes));
        }
        Span { from_ns, to_ns: now }
    }

    /// Goes on for a little, unmeasured, while other ranks measure.
    pub fn go_on(&mut self) {
        self.stream.advance(LINES_PER_NOTE);
    }

    /// Gigabytes a second (bytes a nanosecond) of the last round within `span`, which all
    /// ranks of the host share; `None` if there is no such time.
    #[must_use]
    pub fn rate_within(&self, span: Span) -> Option<f64> {
        let bytes = bytes_at(&self.notes, span.to_ns) - bytes_at(&self.notes, span.from_ns);
        (span.to_ns > span.from_ns).then(|| bytes / (span.to_ns - span.from_ns) as f64)
    }
}

/// Bytes by `time`, between two notes in proportion.
fn bytes_at(notes: &[(u64, u64)], time_ns: u64) -> f64 {
    let after = notes.partition_point(|&(at, _)| at < time_ns);
    match (notes.get(after.wrapping_sub(1)), notes.get(after)) {
        (Some(&(t0, b0)), Some(&(t1, b1))) if t1 > t0 => {
            b0 as f64 + (b1 - b0) as f64 * (time_ns - t0) as f64 / (t1 - t0) as f64
        }
        (Some(&(_, bytes)), None) | (_, Some(&(_, bytes))) => bytes as f64,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_between_notes_are_in_proportion() {
        let notes = [(100, 0), (200, 1000), (300, 3000)];
        for (time, bytes) in [(50, 0.0), (100, 0.0), (150, 500.0), (250, 2000.0), (900, 3000.0)] {
            assert_eq!(bytes_at(&notes, time), bytes, "{time}");
        }
    }
}
