//! Records of a ring, as perf_event_open(2) lays them out.

use std::collections::HashMap;

use perf_event_open_sys::bindings as sys;

use super::data_source::DataSource;
use super::layout::{Layout, TRAILER_BYTES};

/// Entries of a call chain from here on are no addresses but say whose code follows.
const CONTEXTS: u64 = (-4095_i64).cast_unsigned();
/// What follows is the program's own code.
const USER_CONTEXT: u64 = (-512_i64).cast_unsigned();

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerfRecord {
    /// An event was sampled.
    Sample(SampleRecord),
    /// Memory was mapped, or its protection changed.
    Map(MapRecord),
    /// A process became another program.
    Exec {
        /// When, by `CLOCK_MONOTONIC`.
        time_ns: u64,
        /// The process.
        process: u32,
        /// Its name now.
        name: String,
    },
    /// A thread has a name.
    Named {
        /// When.
        time_ns: u64,
        /// The process.
        process: u32,
        /// The thread.
        thread: u32,
        /// The name.
        name: String,
    },
    /// A process or a thread was made.
    Forked {
        /// When.
        time_ns: u64,
        /// The process that made it.
        parent: u32,
        /// Its process: the parent's for a thread.
        process: u32,
        /// Its number.
        thread: u32,
    },
    /// A thread ended.
    Ended {
        /// When.
        time_ns: u64,
        /// Its process.
        process: u32,
        /// Its number.
        thread: u32,
    },
    /// The ring was full.
    Lost {
        /// So many records are missing.
        records: u64,
    },
    /// The kernel paused sampling, because it took too much time.
    Throttled,
}

/// A sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleRecord {
    /// When, by `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The cpu.
    pub cpu: u32,
    /// Where in the program's code, and the calls that this was in, the innermost first; where the
    /// kernel does it for the program, the system call. Empty where that is not known.
    pub calls: Vec<u64>,
    /// What is accessed; 0 where the processor did not tell.
    pub address: u64,
    /// The thread's stack pointer.
    pub stack_pointer: Option<u64>,
    /// What the processor tells of the access; `None` of a page fault.
    pub access: Option<DataSource>,
    /// How long it took, in cycles, where the processor tells; 0 otherwise.
    pub latency_cycles: u64,
}

/// A new mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapRecord {
    /// When.
    pub time_ns: u64,
    /// The process.
    pub process: u32,
    /// Its first address.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// Where it begins in its file, in bytes.
    pub offset: u64,
    /// The file, or the kernel's word: `//anon`, `[heap]`, `[stack]`.
    pub name: String,
}

impl PerfRecord {
    /// When it happened, where it says.
    #[must_use]
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

/// Reads one record, its header included; `None` of kinds that are of no use, and of what is cut.
/// Samples are laid out as their event's identifier says.
pub(super) fn parse(bytes: &[u8], layouts: &HashMap<u64, Layout>) -> Option<PerfRecord> {
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
        sys::PERF_RECORD_LOST_SAMPLES => return Some(PerfRecord::Lost { records: fields.u64()? }),
        sys::PERF_RECORD_THROTTLE => return Some(PerfRecord::Throttled),
        _ => {}
    }
    // Behind each of these: process and thread, time, cpu, identifier.
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
    // Device and file, by numbers, then protection and flags.
    fields.skip(32)?;
    let end = start.checked_add(length)?;
    Some(MapRecord { time_ns, process, start, end, offset, name: fields.text() })
}

fn sample(
    fields: &mut Fields<'_>,
    misc: u16,
    layouts: &HashMap<u64, Layout>,
) -> Option<SampleRecord> {
    let layout = layouts.get(&fields.u64()?)?;
    let instruction = fields.u64()?;
    let (process, thread) = (fields.u32()?, fields.u32()?);
    let (time_ns, address) = (fields.u64()?, fields.u64()?);
    let (cpu, _reserved) = (fields.u32()?, fields.u32()?);
    let in_user =
        u32::from(misc) & sys::PERF_RECORD_MISC_CPUMODE_MASK == sys::PERF_RECORD_MISC_USER;
    let calls = calls(fields, in_user.then_some(instruction))?;
    let stack_pointer = match Layout::has_registers() {
        // The kernel's threads and those without registers have none of the abi either.
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

/// The addresses of a call chain that are the program's own, the innermost first.
fn calls(fields: &mut Fields<'_>, instruction: Option<u64>) -> Option<Vec<u64>> {
    let count = fields.u64()?;
    let mut calls: Vec<u64> = instruction.into_iter().collect();
    let mut is_user = true;
    for _ in 0..count {
        match fields.u64()? {
            context if context >= CONTEXTS => is_user = context == USER_CONTEXT,
            // The first one is the instruction itself.
            address if is_user && calls.last() != Some(&address) => calls.push(address),
            _ => {}
        }
    }
    Some(calls)
}

/// What is left of a record.
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

    /// A text up to its NUL.
    fn text(&self) -> String {
        let end = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(self.bytes.len());
        String::from_utf8_lossy(&self.bytes[..end]).into_owned()
    }

    /// What comes before that which every record ends with, and that.
    fn split_trailer(self) -> Option<(Self, Self)> {
        let at = self.bytes.len().checked_sub(TRAILER_BYTES)?;
        let (body, trailer) = self.bytes.split_at(at);
        Some((Self { bytes: body }, Self { bytes: trailer }))
    }
}

#[cfg(test)]
mod tests;
