//! Core-to-core cells: one cache line on a fresh page, sent back and forth.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use numalab_host::Span;
use numalab_membench::{Barrier, Line, Ping, Pong};
use numalab_record::{C2cCell, Cell, Metric, Outcome, Pages, Placement, Sample};

use super::Measured;
use super::team::{give_up_on_error, join_all};
use super::worker::{memory_on, pinned, prove_placement};
use crate::error::MeasureError;
use crate::lab::Lab;
use crate::sampling::{Reading, Samples, sample_here};

/// Round trips in a window: about 200 microseconds within a socket.
const WINDOW_ROUNDS: u64 = 2_000;

/// What the two sides share.
struct Exchange<'a> {
    lab: &'a Lab,
    experiment: &'a C2cCell,
    span: Span,
    start: Barrier,
    abort: AtomicBool,
    over: AtomicBool,
}

/// Runs one pair on a page of its own.
pub(super) fn run(
    lab: &Lab,
    cell: &Cell,
    experiment: &C2cCell,
    limit: Duration,
) -> Result<Measured, MeasureError> {
    let page_bytes = numalab_host::Pages::Base.page_bytes();
    let mut mapping = memory_on(lab, page_bytes, Pages::Base, experiment.home)?;
    let span = mapping.span();
    let lines = Line::slice_from_bytes(mapping.as_bytes_mut())?;
    let Some(line) = lines.first_mut() else {
        return Err(MeasureError::Abandoned);
    };
    let line = line.as_atomic();
    let exchange = Exchange {
        lab,
        experiment,
        span,
        start: Barrier::new(2),
        abort: AtomicBool::new(false),
        over: AtomicBool::new(false),
    };
    let both = std::thread::scope(|scope| {
        let exchange = &exchange;
        let sender = scope.spawn(move || {
            exchange.side(|| send(exchange, cell, Ping::new(line, &exchange.abort), limit))
        });
        let answerer = scope
            .spawn(move || exchange.side(|| answer(exchange, Pong::new(line, &exchange.abort))));
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

/// What one side gives: its placement, and the samples if it took them.
struct Side {
    placement: Placement,
    ended: Option<(Outcome, Vec<Sample>)>,
}

impl Exchange<'_> {
    fn side(
        &self,
        work: impl FnOnce() -> Result<Side, MeasureError>,
    ) -> Result<Side, MeasureError> {
        let give_up = || {
            self.start.abort();
            self.abort.store(true, Ordering::Relaxed);
        };
        give_up_on_error(give_up, work)
    }

    fn wait(&self) -> Result<(), MeasureError> {
        self.start.wait().map_err(|_| MeasureError::Abandoned)
    }
}

fn send(
    exchange: &Exchange<'_>,
    cell: &Cell,
    mut ping: Ping<'_>,
    limit: Duration,
) -> Result<Side, MeasureError> {
    let pinned = pinned(exchange.experiment.from)?;
    let clock = &exchange.lab.clock;
    let mut samples = Samples::new(exchange.lab, &cell.id, limit);
    exchange.wait()?;
    ping.rounds(WINDOW_ROUNDS)?;
    let outcome = sample_here(&mut samples, || {
        exchange.wait()?;
        let trips = ping.rounds(WINDOW_ROUNDS)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a duration")]
        let duration_ns = clock.ns(trips.ticks) as u64;
        let values = vec![(Metric::RoundTrip, trips.round_trip_ns(clock))];
        Ok(Reading { values, duration_ns, work: trips.rounds })
    })?;
    // Release: the answerer, freed by the barrier behind this, must see it.
    exchange.over.store(true, Ordering::Release);
    exchange.wait()?;
    let home = exchange.experiment.home;
    let placement = prove_placement(exchange.lab, &pinned, exchange.span, home)?;
    Ok(Side { placement, ended: Some((outcome, samples.into_taken())) })
}

fn answer(exchange: &Exchange<'_>, mut pong: Pong<'_>) -> Result<Side, MeasureError> {
    let pinned = pinned(exchange.experiment.to)?;
    loop {
        exchange.wait()?;
        // Acquire: pairs with the sender's release before its last wait.
        if exchange.over.load(Ordering::Acquire) {
            break;
        }
        pong.rounds(WINDOW_ROUNDS)?;
    }
    let home = exchange.experiment.home;
    let placement = prove_placement(exchange.lab, &pinned, exchange.span, home)?;
    Ok(Side { placement, ended: None })
}
