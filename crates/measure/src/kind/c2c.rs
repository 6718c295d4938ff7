//! Core-to-core cells: pairs of cpus send the cache lines of a fresh page back and forth, one line
//! after the other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use numalab_host::{Pinned, base_pages, page_size_bytes};
use numalab_membench::{Barrier, C2cError, Line, Ping, Pong, RoundTrips};
use numalab_record::{C2cCell, Cell, Effort, Experiment, Metric, Outcome, Placement, Sample};
use numalab_stats::Sample as Values;
use numalab_topology::{CpuId, Machine, NodeId};

use super::{Measurement, Together};
use crate::buffer::{Buffer, MemoryClaim, MemorySource, pinned};
use crate::context::MeasureContext;
use crate::error::MeasureError;
use crate::measured::{Give, Measured};
use crate::sampling::{Samples, WindowValues, sample_here};
use crate::scope::Scope;
use crate::survey::Survey;
use crate::team::{give_up_on_error, join_all};

/// Returns the pairs of cpus to measure, at most about `at_most`: all pairs if they fit, else the
/// pairs of the first cpus of every core, of every L3 group, or of every node.
pub fn c2c_pairs(machine: &Machine, scope: &Scope, at_most: usize) -> Vec<(CpuId, CpuId)> {
    let fits = |cpus: &[CpuId]| cpus.len() * cpus.len().saturating_sub(1) / 2 <= at_most;
    let mut cpus = scope.cpus.clone();
    if !fits(&cpus) {
        cpus = scope.one_cpu_per_core(machine);
    }
    if !fits(&cpus) {
        cpus = scope.two_cpus_per_l3_group(machine);
    }
    if !fits(&cpus) {
        cpus = scope.one_cpu_per_node(machine);
    }
    let upper = |(index, &from): (usize, &CpuId)| {
        cpus[index + 1..].iter().map(move |&to| (from, to)).collect::<Vec<_>>()
    };
    cpus.iter().enumerate().flat_map(upper).take(at_most.max(1)).collect()
}

/// Returns a cell for each pair and each side's node as the line's home.
pub fn c2c_cells(machine: &Machine, scope: &Scope, pairs: &[(CpuId, CpuId)]) -> Vec<Cell> {
    let homes = |from: CpuId, to: CpuId| -> Vec<NodeId> {
        let mut homes = vec![scope.nearest_node(machine, from), scope.nearest_node(machine, to)];
        // Pairs within a node have only one home.
        homes.dedup();
        homes
    };
    pairs
        .iter()
        .flat_map(|&(from, to)| {
            homes(from, to)
                .into_iter()
                .map(move |home| Cell::of(Experiment::C2c(C2cCell { from, to, home })))
        })
        .collect()
}

/// Lines of a pair. The address decides which slice of the processor keeps a line, and so its
/// latency; a single line would show its slice rather than the pair.
const LINES: usize = 8;
/// Round trips of each line in a window, which takes about 200 microseconds within a package.
const LINE_ROUNDS: u64 = 250;

/// The state shared by the two sides.
struct Exchange<'a> {
    context: &'a MeasureContext,
    experiment: &'a C2cCell,
    claim: MemoryClaim,
    start: Barrier,
    abort: AtomicBool,
    over: AtomicBool,
}

/// Plans the part of `numalab measure`: the number of pairs that the time allows.
pub(super) fn beyond_caches(survey: &Survey<'_>, _: u64) -> Vec<Cell> {
    let at_most = match survey.effort {
        Effort::Quick => 8,
        Effort::Normal => 64,
        Effort::Thorough => 2_016,
    };
    let pairs = c2c_pairs(survey.machine, &survey.scope, at_most);
    c2c_cells(survey.machine, &survey.scope, &pairs)
}

impl Measurement for C2cCell {
    fn run(&self, together: Together<'_>, give: Give<'_>) -> Result<(), MeasureError> {
        let Together { context, cells, share } = together;
        cells.iter().try_for_each(|cell| give(cell, run(context, cell, self, share.limit(0))?))
    }
}

/// Runs one pair on a fresh page.
fn run(
    context: &MeasureContext,
    cell: &Cell,
    experiment: &C2cCell,
    limit: Duration,
) -> Result<Measured, MeasureError> {
    let page_bytes = page_size_bytes(base_pages());
    let source = MemorySource::Node(experiment.home);
    let mut buffer = Buffer::untouched(page_bytes, base_pages(), source)?;
    let claim = buffer.claim();
    let lines = buffer.lines(page_bytes)?;
    // Not a power of two apart: such a distance could map all lines to the same slice.
    let step = lines.len() / LINES + 1;
    let lines: Vec<&AtomicU64> = lines.iter_mut().step_by(step).map(Line::as_atomic).collect();
    let lines = &lines[..];
    let exchange = Exchange {
        context,
        experiment,
        claim,
        start: Barrier::new(2),
        abort: AtomicBool::new(false),
        over: AtomicBool::new(false),
    };
    let both = std::thread::scope(|scope| {
        let exchange = &exchange;
        let sender = scope.spawn(move || exchange.side(|| send(exchange, cell, lines, limit)));
        let answerer = scope.spawn(move || exchange.side(|| answer(exchange, lines)));
        join_all([sender, answerer])
    })?;
    let (mut placements, mut ended) = (Vec::new(), None);
    for side in both {
        placements.push(side.placement);
        ended = ended.or(side.ended);
    }
    let (outcome, samples) = ended.unwrap_or((Outcome::BudgetSpent, Vec::new()));
    Ok(Measured::new(cell, outcome, placements, samples))
}

/// The result of one side: its placement, and the samples if it took them.
struct SideResult {
    placement: Placement,
    ended: Option<(Outcome, Vec<Sample>)>,
}

impl Exchange<'_> {
    /// Waits for the other side before a window. A side that a cpuset has moved ends the exchange
    /// here.
    fn meet(&self, pinned: &Pinned) -> Result<(), MeasureError> {
        pinned.verify()?;
        Ok(self.start.wait()?)
    }

    fn side(
        &self,
        work: impl FnOnce() -> Result<SideResult, MeasureError>,
    ) -> Result<SideResult, MeasureError> {
        // The other side may be waiting at the barrier or for the line, so both are aborted.
        let give_up = || {
            self.start.abort();
            self.abort.store(true, Ordering::Relaxed);
        };
        give_up_on_error(give_up, work)
    }
}

fn send(
    exchange: &Exchange<'_>,
    cell: &Cell,
    lines: &[&AtomicU64],
    limit: Duration,
) -> Result<SideResult, MeasureError> {
    let pinned = pinned(exchange.experiment.from)?;
    let clock = &exchange.context.clock;
    let mut samples = Samples::new(exchange.context, &cell.id, limit);
    lines.iter().for_each(|line| first_touch(line));
    let mut pings: Vec<Ping<'_>> =
        lines.iter().map(|line| Ping::new(line, &exchange.abort)).collect();
    let mut round = || -> Result<Vec<RoundTrips>, MeasureError> {
        exchange.meet(&pinned)?;
        let trips = pings.iter_mut().map(|ping| {
            stay(&pinned)?;
            ping.rounds(LINE_ROUNDS).map_err(broken_off)
        });
        trips.collect()
    };
    // A warm-up round, which is not sampled.
    round()?;
    let outcome = sample_here(&mut samples, |_| {
        let trips = round()?;
        let ns: f64 = trips.iter().map(|trips| clock.ns(trips.ticks)).sum();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a duration")]
        let duration_ns = ns as u64;
        let of_lines = trips.iter().map(|trips| trips.round_trip_ns(clock)).collect();
        let work = trips.iter().map(|trips| trips.rounds).sum();
        Ok(WindowValues { values: over_lines(of_lines)?, duration_ns, work })
    })?;
    // Release: the answerer, which the next barrier releases, must see it.
    exchange.over.store(true, Ordering::Release);
    exchange.start.wait()?;
    let placement = exchange.claim.prove(exchange.context, &pinned)?;
    Ok(SideResult { placement, ended: Some((outcome, samples.into_taken())) })
}

/// Returns the figures of a window: the median of its lines, and their spread.
fn over_lines(of_lines: Vec<f64>) -> Result<Vec<(Metric, f64)>, MeasureError> {
    let lines = Values::new(of_lines)?;
    Ok(vec![(Metric::RoundTrip, lines.median()), (Metric::LineSpread, lines.max() - lines.min())])
}

/// Returns the reason why an exchange ended early: one side's own failure, or the other's.
fn broken_off(error: C2cError) -> MeasureError {
    match error {
        C2cError::Aborted { .. } => MeasureError::Abandoned,
        C2cError::Clock(error) => MeasureError::Clock(error),
    }
}

/// Checks between two lines that this side is still on its cpu: where both are on one, each hand-over
/// takes a time slice, and a window up to a minute.
fn stay(pinned: &Pinned) -> Result<(), MeasureError> {
    if pinned.is_here() { Ok(()) } else { Ok(pinned.verify()?) }
}

/// Writes the line from the pinned sender before the answerer reads it, so that the sender's cpu
/// owns it first.
fn first_touch(line: &AtomicU64) {
    // Release is redundant with the barrier behind which the answerer starts; it documents the
    // order.
    line.store(0, Ordering::Release);
}

fn answer(exchange: &Exchange<'_>, lines: &[&AtomicU64]) -> Result<SideResult, MeasureError> {
    let pinned = pinned(exchange.experiment.to)?;
    let mut pongs: Vec<Pong<'_>> =
        lines.iter().map(|line| Pong::new(line, &exchange.abort)).collect();
    loop {
        exchange.meet(&pinned)?;
        // Acquire: pairs with the sender's release before its last wait.
        if exchange.over.load(Ordering::Acquire) {
            break;
        }
        for pong in &mut pongs {
            stay(&pinned)?;
            pong.rounds(LINE_ROUNDS).map_err(broken_off)?;
        }
    }
    let placement = exchange.claim.prove(exchange.context, &pinned)?;
    Ok(SideResult { placement, ended: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_the_median_and_the_spread_of_its_lines() {
        let values = over_lines(vec![90.0, 100.0, 250.0, 110.0, 95.0]).expect("numbers");
        assert_eq!(values, [(Metric::RoundTrip, 100.0), (Metric::LineSpread, 160.0)]);
    }

    #[test]
    fn a_side_that_was_moved_ends_the_exchange_at_the_next_line() {
        let cpus = numalab_host::allowed_now().unwrap().cpus;
        let cpu = cpus.first().expect("a cpu");
        let pinned = pinned(cpu).expect("pinned");
        assert!(stay(&pinned).is_ok());
        let Some(other) = cpus.iter().nth(1) else { return };
        let moved = numalab_host::pin(other).expect("pinned elsewhere");
        assert!(matches!(stay(&pinned), Err(MeasureError::Host(_))));
        drop(moved);
        assert!(stay(&pinned).is_ok());
    }

    #[test]
    fn a_line_is_on_no_node_until_its_sender_writes_it() {
        let node = numalab_host::allowed_now().unwrap().memory_nodes.first().unwrap_or_default();
        let bytes = page_size_bytes(base_pages());
        let source = MemorySource::Node(node);
        let mut buffer = Buffer::untouched(bytes, base_pages(), source).expect("memory");
        let span = buffer.claim().span;
        assert!(numalab_host::prove_span(span, node).is_err(), "it was not touched");
        let lines = buffer.lines(bytes).expect("lines");
        first_touch(lines[0].as_atomic());
        let proof = numalab_host::prove_span(span, node).expect("touched");
        assert_eq!(proof.pages_per_node.keys().collect::<Vec<_>>(), [&node]);
    }
}
