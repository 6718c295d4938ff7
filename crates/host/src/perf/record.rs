//! Parses the records of a ring (perf_event_open(2)).

use std::collections::HashMap;

use perf_event_open_sys::bindings as sys;

use super::data_source::DataSource;
use super::layout::{SampleLayout, TRAILER_BYTES};

/// Entries of a call chain from this value on are markers of the code that follows, not addresses.
const CONTEXTS: u64 = (-4095_i64).cast_unsigned();
/// Marker of user code.
const USER_CONTEXT: u64 = (-512_i64).cast_unsigned();

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerfRecord {
    Sample(SampleRecord),
    /// Memory was mapped, or its protection changed.
    Map(MapRecord),
    /// A process called exec.
    Exec {
        /// Time, by `CLOCK_MONOTONIC`.
        time_ns: u64,
        process: u32,
        name: String,
    },
    /// A thread got a name.
    Named {
        time_ns: u64,
        process: u32,
        thread: u32,
        name: String,
    },
    /// A process or a thread was created.
    Forked {
        time_ns: u64,
        /// The process that created it.
        parent: u32,
        /// The process: the parent's for a thread.
        process: u32,
        thread: u32,
    },
    Ended {
        time_ns: u64,
        process: u32,
        thread: u32,
    },
    /// The ring was full.
    Lost {
        records: u64,
    },
    /// The kernel paused sampling, because it took too much time.
    Throttled,
}

/// A page fault, or a memory access that the processor sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleRecord {
    /// Time, by `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    pub process: u32,
    pub thread: u32,
    pub cpu: u32,
    /// The instruction and its callers in the program's code, innermost first; for work of the
    /// kernel, the system call. Empty if unknown.
    pub calls: Vec<u64>,
    /// The address accessed; 0 if the processor did not report it.
    pub address: u64,
    pub stack_pointer: Option<u64>,
    /// The processor's description of the access; `None` for a page fault.
    pub access: Option<DataSource>,
    /// Latency in cycles; 0 if the processor does not report it.
    pub latency_cycles: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapRecord {
    pub time_ns: u64,
    pub process: u32,
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// Offset of the mapping in its file, in bytes.
    pub offset: u64,
    /// The file, or the kernel's name: `//anon`, `[heap]`, `[stack]`.
    pub name: String,
}

impl PerfRecord {
    /// Returns the time of the event, if the record has one.
    pub fn time_ns(&self) -> Option<u64> {
        match self {
            Self::Sample(SampleRecord { time_ns, .. })
            | Self::Map(MapRecord { time_ns, .. })
            | Self::Exec { time_ns, .. }
            | Self::Named { time_ns, .. }
            | Self::Forked { time_ns, .. }
            | Self::Ended { time_ns, .. } => Some(*time_ns),
            Self::Lost { .. } | Self::Throttled => None,
        }
    }
}

/// Parses one record including its header; `None` for an unused kind or a truncated record. The
/// layout of a sample follows from its event's identifier.
pub(super) fn parse(bytes: &[u8], layouts: &HashMap<u64, SampleLayout>) -> Option<PerfRecord> {
    let mut fields = Fields { bytes };
    let (kind, misc, _size) = (fields.u32()?, fields.u16()?, fields.u16()?);
    if kind == sys::PERF_RECORD_SAMPLE {
        return sample(&mut fields, misc, layouts).map(PerfRecord::Sample);
    }
    match kind {
        sys::PERF_RECORD_LOST => {
            let (_id, records) = (fields.u64()?, fields.u64()?);
            return Some(PerfRecord::Lost { records });
        }
        // Unlike `PERF_RECORD_LOST`, without the event's identifier in front.
        sys::PERF_RECORD_LOST_SAMPLES => return Some(PerfRecord::Lost { records: fields.u64()? }),
        sys::PERF_RECORD_THROTTLE => return Some(PerfRecord::Throttled),
        _ => {}
    }
    // Each of these records ends with: process and thread, time, cpu, identifier.
    let (body, mut trailer) = fields.split_trailer()?;
    let (_thread, time_ns) = (trailer.u64()?, trailer.u64()?);
    let mut fields = body;
    let (process, other) = (fields.u32()?, fields.u32()?);
    match kind {
        sys::PERF_RECORD_MMAP2 => map(&mut fields, time_ns, process).map(PerfRecord::Map),
        sys::PERF_RECORD_COMM => {
            let (name, thread) = (fields.text(), other);
            Some(match u32::from(misc) & sys::PERF_RECORD_MISC_COMM_EXEC != 0 {
                true => PerfRecord::Exec { time_ns, process, name },
                false => PerfRecord::Named { time_ns, process, thread, name },
            })
        }
        sys::PERF_RECORD_FORK => {
            let (thread, _parent_thread) = (fields.u32()?, fields.u32()?);
            Some(PerfRecord::Forked { time_ns, parent: other, process, thread })
        }
        sys::PERF_RECORD_EXIT => {
            let thread = fields.u32()?;
            Some(PerfRecord::Ended { time_ns, process, thread })
        }
        _ => None,
    }
}

fn map(fields: &mut Fields<'_>, time_ns: u64, process: u32) -> Option<MapRecord> {
    let (start, length, offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
    // Device and inode numbers, protection and flags.
    fields.skip(32)?;
    let end = start.checked_add(length)?;
    Some(MapRecord { time_ns, process, start, end, offset, name: fields.text() })
}

fn sample(
    fields: &mut Fields<'_>,
    misc: u16,
    layouts: &HashMap<u64, SampleLayout>,
) -> Option<SampleRecord> {
    let layout = layouts.get(&fields.u64()?)?;
    let instruction = fields.u64()?;
    let (process, thread) = (fields.u32()?, fields.u32()?);
    let (time_ns, address) = (fields.u64()?, fields.u64()?);
    let (cpu, _reserved) = (fields.u32()?, fields.u32()?);
    let in_user =
        u32::from(misc) & sys::PERF_RECORD_MISC_CPUMODE_MASK == sys::PERF_RECORD_MISC_USER;
    let calls = calls(fields, in_user.then_some(instruction))?;
    let stack_pointer = match SampleLayout::has_registers() {
        // Kernel threads and samples without registers have abi 0 and no values.
        true => match fields.u64()? {
            0 => None,
            _ => Some(fields.u64()?),
        },
        false => None,
    };
    let (latency_cycles, access) = match layout.is_memory_sample {
        true => (fields.u64()?, Some(DataSource::of(fields.u64()?))),
        false => (0, None),
    };
    Some(SampleRecord {
        time_ns,
        process,
        thread,
        cpu,
        calls,
        address,
        stack_pointer,
        access,
        latency_cycles,
    })
}

/// Returns the user addresses of a call chain, innermost first.
fn calls(fields: &mut Fields<'_>, instruction: Option<u64>) -> Option<Vec<u64>> {
    let count = fields.u64()?;
    let mut calls: Vec<u64> = instruction.into_iter().collect();
    let mut is_user = true;
    for _ in 0..count {
        match fields.u64()? {
            context if context >= CONTEXTS => is_user = context == USER_CONTEXT,
            // The first entry repeats the instruction.
            address if is_user && calls.last() != Some(&address) => calls.push(address),
            _ => {}
        }
    }
    Some(calls)
}

/// The unread rest of a record.
struct Fields<'a> {
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*first)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.bytes = self.bytes.get(bytes..)?;
        Some(())
    }

    /// Reads a string up to its NUL.
    fn text(&self) -> String {
        let end = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(self.bytes.len());
        String::from_utf8_lossy(&self.bytes[..end]).into_owned()
    }

    /// Splits off the fields that end every record.
    fn split_trailer(self) -> Option<(Self, Self)> {
        let at = self.bytes.len().checked_sub(TRAILER_BYTES)?;
        let (body, trailer) = self.bytes.split_at(at);
        Some((Self { bytes: body }, Self { bytes: trailer }))
    }
}

#[cfg(test)]
mod tests;
