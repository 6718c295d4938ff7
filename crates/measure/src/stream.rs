//! A worker's stream, and its progress over time.

use numalab_host::ThreadSnapshot;
use numalab_membench::{Access, Arrays, Clock, Isa, Kernel, Line, Stamp, Stream};
use numalab_record::{AccessPattern, BandwidthCell, IsaName, StreamKernel};

use crate::context::MeasureContext;
use crate::error::MeasureError;

/// Lines between two entries of a worker's log: 256 KiB of each array.
const LINES_PER_NOTE: usize = 4_096;

/// Operation, order and instructions of the workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRules {
    pub kernel: StreamKernel,
    pub pattern: AccessPattern,
    pub isa: IsaName,
}

impl StreamRules {
    pub(crate) fn of(cell: &BandwidthCell) -> Self {
        Self { kernel: cell.kernel, pattern: cell.pattern, isa: cell.isa.clone() }
    }

    /// Returns the name of the stream's instruction set if a trial chose it.
    pub fn chosen(&self, stream: &Stream<'_>) -> Option<IsaName> {
        (self.isa == IsaName::fastest()).then(|| isa_name(stream.isa()))
    }

    /// Returns the instructions, `None` for the fastest, and the order, if the machine and streams
    /// have them.
    pub(crate) fn checked(&self, seed: u64) -> Result<(Option<Isa>, Access), MeasureError> {
        let access = match self.pattern {
            AccessPattern::Sequential => Access::Sequential,
            AccessPattern::Random => Access::Random { seed },
            AccessPattern::Stride(bytes) => {
                Access::Strided { stride_bytes: usize::try_from(bytes).unwrap_or(usize::MAX) }
            }
            pattern @ (AccessPattern::PageLocal
            | AccessPattern::OneLinePer(_)
            | AccessPattern::FisherYates) => {
                return Err(MeasureError::NotAStream { pattern });
            }
        };
        let isa = match &self.isa {
            isa if *isa == IsaName::fastest() => None,
            named => Some(isa_named(&named.0)?),
        };
        Ok((isa, access))
    }
}

/// An interval of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: Stamp,
    pub to: Stamp,
}

impl Span {
    /// Returns the intersection of these intervals, if there is one.
    pub fn common(spans: impl IntoIterator<Item = Self>) -> Option<Self> {
        // An empty intersection: at no moment were all of them running.
        let both = |a: Self, b: Self| Self { from: a.from.max(b.from), to: a.to.min(b.to) };
        spans.into_iter().reduce(both).filter(|span| span.from < span.to)
    }

    /// Returns its length in nanoseconds.
    ///
    /// # Errors
    /// [`MeasureError::Clock`] if it ends before it begins.
    pub fn ns(self, clock: &Clock) -> Result<f64, MeasureError> {
        Ok(clock.ns(self.to.since(self.from)?))
    }
}

/// One worker's progress in one round: counted bytes over time.
#[derive(Debug, Default)]
pub struct RoundLog {
    notes: Vec<(Stamp, u64)>,
    /// The disturbance of the worker, if there was one.
    pub disturbed: Option<String>,
}

impl RoundLog {
    /// Streams for `round_ns` nanoseconds, logging time and bytes.
    ///
    /// # Errors
    /// [`MeasureError::Clock`] if the clock steps back.
    pub fn round(
        &mut self,
        stream: &mut Stream<'_>,
        clock: &Clock,
        round_ns: f64,
    ) -> Result<(), MeasureError> {
        let before = ThreadSnapshot::take();
        self.notes.clear();
        let (start, mut bytes) = (Stamp::now(), 0);
        self.notes.push((start, 0));
        loop {
            bytes += stream.advance(LINES_PER_NOTE);
            let now = Stamp::now();
            self.notes.push((now, bytes));
            if clock.ns(now.since(start)?) >= round_ns {
                break;
            }
        }
        let disturbance = ThreadSnapshot::take().disturbance_since(&before);
        self.disturbed = disturbance.map(|reason| reason.to_string());
        Ok(())
    }

    /// Returns the interval in which the worker streamed.
    pub fn span(&self) -> Option<Span> {
        Some(Span { from: self.notes.first()?.0, to: self.notes.last()?.0 })
    }

    /// Returns the bytes moved within `span`.
    pub fn bytes_within(&self, span: Span, clock: &Clock) -> f64 {
        self.bytes_at(span.to, clock) - self.bytes_at(span.from, clock)
    }

    /// Returns the bytes moved by `time`, interpolated between two log entries.
    fn bytes_at(&self, time: Stamp, clock: &Clock) -> f64 {
        let after = self.notes.partition_point(|&(stamp, _)| stamp < time);
        let bytes = |index: usize| self.notes.get(index).map_or(0.0, |&(_, bytes)| bytes as f64);
        let (Some(&(earlier, _)), Some(&(later, _))) =
            (self.notes.get(after.wrapping_sub(1)), self.notes.get(after))
        else {
            // Before the first entry nothing has been moved, after the last everything has.
            return bytes(after.min(self.notes.len().saturating_sub(1)));
        };
        let ns = |from: Stamp, to: Stamp| to.since(from).map_or(0.0, |ticks| clock.ns(ticks));
        let share = ns(earlier, time) / ns(earlier, later).max(f64::MIN_POSITIVE);
        bytes(after - 1) + share * (bytes(after) - bytes(after - 1))
    }
}

/// Creates a stream through all of `lines`, divided among its arrays. One pass brings page tables and
/// caches into their steady state.
///
/// # Errors
/// [`MeasureError`] for an instruction set that the machine lacks, or a pattern that is not one of
/// streams.
pub fn stream_over<'m>(
    context: &MeasureContext,
    rules: &StreamRules,
    lines: &'m mut [Line],
) -> Result<Stream<'m>, MeasureError> {
    let kernel = membench_kernel(rules.kernel);
    let (isa, access) = rules.checked(context.settings.seed)?;
    let arrays = Arrays::split(kernel, lines)?;
    let mut stream = Stream::new(kernel, access, isa.unwrap_or_else(Isa::detect), arrays)?;
    stream.pass();
    if isa.is_none() {
        stream.choose_isa(&context.clock)?;
    }
    Ok(stream)
}

pub(crate) fn membench_kernel(kernel: StreamKernel) -> Kernel {
    match kernel {
        StreamKernel::Read => Kernel::Read,
        StreamKernel::Write => Kernel::Write,
        StreamKernel::WriteNt => Kernel::NtWrite,
        StreamKernel::Copy => Kernel::Copy,
        StreamKernel::CopyNt => Kernel::NtCopy,
        StreamKernel::Triad => Kernel::Triad,
    }
}

/// Returns the name of an instruction set in cells: `avx512`.
pub fn isa_name(isa: Isa) -> IsaName {
    IsaName(isa.to_string().to_lowercase().replace('-', ""))
}

fn isa_named(name: &str) -> Result<Isa, MeasureError> {
    let available = || Isa::ALL.into_iter().filter(|isa| isa.is_available());
    available().find(|isa| isa_name(*isa).0 == name).ok_or_else(|| {
        let names = available().map(|isa| isa_name(isa).0);
        let names: Vec<_> = std::iter::once(IsaName::fastest().0).chain(names).collect();
        MeasureError::UnknownIsa { name: name.to_owned(), available: names.join(", ") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_interpolated_between_log_entries() {
        let clock = MeasureContext::for_tests().clock;
        let stamp = Stamp::from_ticks;
        let notes = vec![(stamp(100), 0), (stamp(200), 1000), (stamp(300), 3000)];
        let log = RoundLog { notes, disturbed: None };
        for (time, bytes) in [(50, 0.0), (100, 0.0), (150, 500.0), (250, 2000.0), (900, 3000.0)] {
            assert!((log.bytes_at(stamp(time), &clock) - bytes).abs() < 1e-6, "{time}");
        }
    }

    #[test]
    fn spans_have_in_common_the_time_in_which_all_ran() {
        let span = |from, to| Span { from: Stamp::from_ticks(from), to: Stamp::from_ticks(to) };
        assert_eq!(Span::common([span(1, 5), span(3, 9)]), Some(span(3, 5)));
        assert_eq!(Span::common([span(1, 3), span(3, 9)]), None);
        assert_eq!(Span::common([]), None);
    }
}
