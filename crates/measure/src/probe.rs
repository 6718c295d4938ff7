//! Measures whether the kernel moves memory to the node that uses it.

use std::time::Duration;

use numalab_formats::size::format_bytes;
use numalab_host::{Mapping, ProofError, Span, base_pages, monotonic_raw_ns, pin, prove_span};
use numalab_membench::{Chase, Cycle, Line, LineSize, Pattern};
use numalab_record::study::Quantity;
use numalab_record::system::{BalancingProbed, ProbedPlace};
use numalab_stats::Sample;
use numalab_topology::{CpuId, Machine, NodeId};

use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::scope::ScopeError;

const WINDOW_LOADS: u64 = 20_000;
/// Divisor for the first and the last part of the windows, which are compared.
const SHARE: usize = 10;
/// Number of times that the nodes of pages are queried.
const LOOKS: u32 = 8;
/// Fewest windows in either part.
const LEAST_WINDOWS: usize = 3;

/// Memory on one node, and a thread that then uses it from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalancingProbe {
    /// Bytes of memory, on base pages, placed by first touch.
    pub size_bytes: u64,
    /// Time for which the thread chases on its second cpu.
    pub time: Duration,
    /// The cpu that touches the memory first.
    pub from: CpuId,
    /// The cpu that the thread then moves to.
    pub to: CpuId,
}

impl BalancingProbe {
    /// Returns the cpus for a probe: the first one, and the first of the node farthest from it. On
    /// a machine with one node both are on the same node, and nothing can move.
    pub fn cpus(machine: &Machine) -> Option<(CpuId, CpuId)> {
        let mut online = machine.cpus.iter().filter(|cpu| cpu.online);
        let first = online.next()?;
        let distance = |node: Option<NodeId>| machine.distance(first.node?, node?);
        // Without distances, any other node counts as farthest.
        let far = |node: Option<NodeId>| (distance(node), node != first.node);
        // `max_by_key` takes the last maximum, so that the reversed order gives the first such cpu.
        let to = online.rev().max_by_key(|cpu| far(cpu.node)).unwrap_or(first);
        Some((first.id, to.id))
    }

    /// Describes what [`run`](Self::run) would do.
    pub fn foreseen(&self) -> String {
        let (size, seconds) = (format_bytes(self.size_bytes), self.time.as_secs_f64());
        format!("{size} placed by cpu {}, read from cpu {} for {seconds} s\n", self.from, self.to)
    }

    /// Fills the memory on the first cpu, moves the thread to the second, and chases there.
    ///
    /// # Errors
    /// [`MeasureError`] if a cpu, the memory or the clock is refused, or if the pages were not on
    /// the first node at the beginning.
    pub fn run(&self, context: &MeasureContext) -> Result<BalancingProbed, MeasureError> {
        let size = usize::try_from(self.size_bytes).unwrap_or(usize::MAX);
        let cycle = Cycle::new(Pattern::Random, size, LineSize::Bytes64, context.settings.seed)?;
        let mut mapping = Mapping::new(size, base_pages())?;
        let span = mapping.span();
        let first = pin(self.from).map_err(numalab_host::Error::from)?;
        let from = first.node();
        let chase = Chase::build(cycle, Line::slice_from_bytes(mapping.as_bytes_mut())?)?;
        // If first touch did not place the pages there, a later move would prove nothing.
        prove_span(span, from).map_err(numalab_host::Error::from)?;
        // Dropped before the second pin, which it would undo by restoring the former affinity.
        drop(first);
        let second = pin(self.to).map_err(numalab_host::Error::from)?;
        let to = second.node();
        let windows = self.windows(context, &chase)?;
        let local_percent = percent_on(span, to, &chase)?;
        let latencies: Vec<f64> = windows.iter().map(|(_, latency)| *latency).collect();
        // The median of the first and of the last tenth of the windows after the move.
        let count = (latencies.len() / SHARE).max(LEAST_WINDOWS).min(latencies.len());
        let begin_ns = Sample::new(&latencies[..count])?.median();
        let end_ns = Sample::new(&latencies[latencies.len() - count..])?.median();
        Ok(BalancingProbed {
            from: ProbedPlace { cpu: self.from, node: from },
            to: ProbedPlace { cpu: self.to, node: to },
            size_bytes: self.size_bytes,
            readings: vec![
                Quantity::lower("latency-end", "ns").at(end_ns),
                Quantity::lower("latency-begin", "ns").at(begin_ns),
                Quantity::higher("local", "%").at(local_percent),
            ],
            windows_ns: windows,
        })
    }

    fn windows(
        &self,
        context: &MeasureContext,
        chase: &Chase<'_>,
    ) -> Result<Vec<(u64, f64)>, MeasureError> {
        let mut walk = chase.walk();
        let begun_ns = monotonic_raw_ns();
        let mut windows = Vec::new();
        loop {
            context.check_interrupt()?;
            let window = walk.window(WINDOW_LOADS)?;
            let elapsed_ns = monotonic_raw_ns().saturating_sub(begun_ns);
            windows.push((elapsed_ns, window.ns_per_load(&context.clock)));
            // Each part needs its windows, however short the time is.
            let enough = windows.len() >= 2 * LEAST_WINDOWS;
            if enough && u128::from(elapsed_ns) >= self.time.as_nanos() {
                return Ok(windows);
            }
        }
    }
}

/// Returns the share of a span's pages on a node, in percent.
fn percent_on(span: Span, node: NodeId, chase: &Chase<'_>) -> Result<f64, MeasureError> {
    let mut tries = LOOKS;
    let pages = loop {
        // move_pages(2) reports pages that NUMA balancing has just marked as absent until they are
        // used again.
        chase.walk().loads(chase.cycle().nodes() as u64);
        match prove_span(span, node) {
            Ok(proof) => break proof.pages_per_node,
            Err(ProofError::WrongNode { pages_per_node, .. }) => break pages_per_node,
            Err(ProofError::NotTouched { .. }) if tries > 0 => tries -= 1,
            Err(error) => return Err(numalab_host::Error::from(error).into()),
        }
    };
    let all: u64 = pages.values().sum();
    let there = pages.get(&node).copied().unwrap_or(0);
    Ok(there as f64 * 100.0 / all.max(1) as f64)
}

impl BalancingProbe {
    /// Creates the probe on the machine of a context; [`Self::cpus`] chooses `from` and `to` if
    /// they are not given.
    ///
    /// # Errors
    /// [`ScopeError`] for a cpu that does not exist or is offline.
    pub fn on(
        context: &MeasureContext,
        size_bytes: u64,
        time: Duration,
        from: Option<CpuId>,
        to: Option<CpuId>,
    ) -> Result<Self, MeasureError> {
        let usual = Self::cpus(&context.machine);
        let choose = |given: Option<CpuId>, usual: Option<CpuId>| {
            let cpu = given.or(usual).unwrap_or(CpuId(0));
            let online = context.machine.online_cpus();
            if online.contains(cpu) { Ok(cpu) } else { Err(ScopeError::UnknownCpu { cpu, online }) }
        };
        let from = choose(from, usual.map(|(from, _)| from))?;
        let to = choose(to, usual.map(|(_, to)| to))?;
        Ok(Self { size_bytes, time, from, to })
    }
}

#[cfg(test)]
mod tests;
