//! Streams: all cpus of a node at once, on their own node's memory and on every other node's.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use numalab_frames::Policy;
use numalab_kernel::event::{self, Event};
use numalab_membench::{Access, Arrays, Barrier, Isa, Kernel, Stamp, Stream};

use super::{Failure, Lab, cpu_index, node_index};
use crate::bare::address::{number, numbers};
use crate::bare::memory::Run;
use crate::bare::meter::{self, Moment, Span};

const SIZE_BYTES: u64 = 8 << 20;
/// Duration of each stream, in milliseconds.
const WINDOW_MS: u64 = 10;
/// Number of lines between two reads of the clock.
const CHUNK_LINES: usize = 4096;
const KERNELS: [(Kernel, &str); 3] =
    [(Kernel::Read, "read"), (Kernel::NtWrite, "write-nt"), (Kernel::Copy, "copy")];

/// Runs every node's cpus on every node's memory, then all cpus on their own.
#[inline(never)]
pub fn run(lab: &mut Lab) -> Result<(), Failure> {
    let chosen = lab.chosen();
    let nodes = lab.plan.machine.nodes.len();
    for from in 0..nodes {
        let cpus: Vec<usize> =
            chosen.iter().copied().filter(|&place| lab.node_of(place) == from).collect();
        for to in 0..nodes {
            let bytes = lab.command.size_bytes.unwrap_or(SIZE_BYTES) * cpus.len() as u64;
            if cpus.is_empty() || lab.plan.machine.nodes[to].memory_bytes < 2 * bytes {
                continue;
            }
            team(lab, &cpus, Some(to))?;
        }
    }
    team(lab, &chosen, None)
}

/// Runs a team's kernels, on one node's memory or each on its own.
fn team(lab: &mut Lab, cpus: &[usize], to: Option<usize>) -> Result<(), Failure> {
    let size_bytes = lab.command.size_bytes.unwrap_or(SIZE_BYTES);
    for (kernel, name) in KERNELS {
        let barrier = Barrier::new(u32::try_from(cpus.len()).unwrap_or(u32::MAX));
        let found = {
            let lab: &Lab = lab;
            lab.cpus.collect(cpus, &|place| {
                let node = to.unwrap_or_else(|| lab.node_of(place));
                cpu(lab, place, node, kernel, &barrier)
            })
        };
        let found: Vec<(u64, Span)> = found.into_iter().collect::<Result<_, Failure>>()?;
        let node = |&cpu: &usize| number(to.unwrap_or_else(|| lab.node_of(cpu)));
        let (bytes, spans): (Vec<u64>, Vec<Span>) = found.into_iter().unzip();
        lab.report.send(&Event::Stream(event::Stream {
            kernel: name.into(),
            isa: Isa::detect().to_string(),
            size_bytes,
            cpus: numbers(cpus),
            nodes: cpus.iter().map(node).collect(),
            bytes,
            ticks: meter::ticks(&spans),
            own_ns: meter::own_ns(&spans),
        }));
    }
    Ok(())
}

/// Streams on one cpu; returns the bytes, and the time that they took.
fn cpu(
    lab: &Lab,
    place: usize,
    node: usize,
    kernel: Kernel,
    barrier: &Barrier,
) -> Result<(u64, Span), Failure> {
    let (all, cpu) = (lab.memory(), cpu_index(place));
    let frames = lab.command.size_bytes.unwrap_or(SIZE_BYTES).div_ceil(4096);
    let policy = Policy::Exact(node_index(node));
    let said = |error: &dyn core::fmt::Display| format!("cpu {place} on node {node}: {error}");
    let mut memory = Run::new(all, cpu, frames, policy).map_err(|error| said(&error));
    let streamed = match &mut memory {
        Ok(memory) => {
            memory.lines().iter_mut().for_each(|line| line.words_mut()[0] = 1);
            let arrays = Arrays::split(kernel, memory.lines()).map_err(|error| said(&error));
            arrays.and_then(|arrays| {
                Stream::new(kernel, Access::Sequential, Isa::detect(), arrays)
                    .map_err(|error| said(&error))
            })
        }
        Err(failure) => Err(failure.clone()),
    };
    // All cpus enter the barrier, including those that have nothing to stream.
    let _ = barrier.wait();
    let (mut bytes, mut span) = (0, Span::default());
    let done = streamed.map(|mut stream| {
        let window = WINDOW_MS * lab.rate.khz;
        let start = Moment::now(place);
        while Stamp::now().since(start.stamp()).is_ok_and(|ticks| ticks.0 < window) {
            bytes += stream.advance(CHUNK_LINES);
        }
        span = Moment::now(place).since(&start);
    });
    if let Ok(memory) = memory {
        memory.free(all, cpu).map_err(|error| said(&error))?;
    }
    done.map(|()| (bytes, span))
}
