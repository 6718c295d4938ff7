//! One size measured by all ranks, at once or in turn.

use numalab_marks::virtual_time;
use numalab_measure::{
    Buffer, BuiltChase, ChaseOrder, MeasureContext, MeasureError, RoundLog, Samples, Span,
    StreamRules, WindowValues, Windows, sample_here, stream_over,
};
use numalab_membench::Stamp;
use numalab_record::{CellId, IsaName, Metric, Sample};

use super::{ChaseRules, SessionError, SessionPlan, Work};
use crate::team::Team;

/// Number of windows that a chase's loads are divided into.
const WINDOWS: u64 = 20;
/// Number of loads per step while a rank continues for others that still measure.
const MORE_LOADS: u64 = 1_000;
/// Time for which ranks stream before they synchronise, in nanoseconds.
const ROUND_NS: f64 = 20_000_000.0;
/// Number of bandwidth rounds that are counted.
const ROUNDS: u32 = 10;
/// Maximum number of rounds, in case some have no interval in which all ranks ran.
const MOST_ROUNDS: u32 = 30;

pub(super) struct Worker<'a> {
    pub plan: &'a SessionPlan,
    pub context: &'a MeasureContext,
    pub host: &'a str,
}

impl Worker<'_> {
    /// Measures this rank's windows of one size; empty if it had no turn. Returns the instruction
    /// set that a trial chose, too.
    pub fn measure(
        &self,
        team: &mut Team,
        buffer: &mut Buffer,
        size_bytes: u64,
        cell: &CellId,
    ) -> Result<(Vec<Sample>, Option<IsaName>), SessionError> {
        match &self.plan.work {
            Work::Latency(rules) => {
                let samples = self.latency(team, buffer, size_bytes, (*rules, cell))?;
                Ok((samples, None))
            }
            Work::Bandwidth(rules) => self.bandwidth(team, buffer, size_bytes, (rules, cell)),
        }
    }

    fn latency(
        &self,
        team: &mut Team,
        buffer: &mut Buffer,
        size_bytes: u64,
        (rules, cell): (ChaseRules, &CellId),
    ) -> Result<Vec<Sample>, SessionError> {
        let order = ChaseOrder { pattern: rules.pattern, pages: self.plan.pages };
        let lines = buffer.lines(size_bytes);
        let built = lines.and_then(|lines| BuiltChase::build(self.context, order, lines, None));
        let chase = super::agree(team, built.map_err(SessionError::from))?;
        let mut walk = chase.walk();
        let mut found = None;
        for turn in self.turns(team) {
            team.barrier()?;
            if turn.is_none_or(|rank| rank == team.rank()) {
                let windows = Windows::warmed_by(&chase, &mut walk, rules.warmup);
                found = Some(self.chase(windows, rules.iterations, cell));
            }
            if turn.is_none() {
                team.work_until_all_are_done(|| walk.loads(MORE_LOADS))?;
            }
        }
        let found = found.transpose().map_err(SessionError::from);
        Ok(super::agree(team, found)?.unwrap_or_default())
    }

    fn chase(
        &self,
        mut windows: Windows<'_, '_>,
        iterations: u64,
        cell: &CellId,
    ) -> Result<Vec<Sample>, MeasureError> {
        let shares: Vec<u64> = shares(iterations).collect();
        let count = u32::try_from(shares.len()).unwrap_or(u32::MAX);
        let mut samples = Samples::of_windows(self.context, cell, count);
        let mut shares = shares.into_iter();
        sample_here(&mut samples, |_| {
            windows.take_loads(self.context, shares.next().unwrap_or(1))
        })?;
        Ok(samples.into_taken())
    }

    /// Returns the ranks whose turn it is, one after another; without turns, a single `None` for
    /// all.
    fn turns(&self, team: &Team) -> Vec<Option<usize>> {
        if self.plan.serial { (0..team.size()).map(Some).collect() } else { vec![None] }
    }

    fn bandwidth(
        &self,
        team: &mut Team,
        buffer: &mut Buffer,
        size_bytes: u64,
        (rules, cell): (&StreamRules, &CellId),
    ) -> Result<(Vec<Sample>, Option<IsaName>), SessionError> {
        let clock = self.context.clock();
        let made =
            buffer.lines(size_bytes).and_then(|lines| stream_over(self.context, rules, lines));
        let mut stream = super::agree(team, made.map_err(SessionError::from))?;
        let mut log = RoundLog::default();
        let mut samples = Samples::of_windows(self.context, cell, ROUNDS);
        for turn in self.turns(team) {
            let mine = turn.is_none_or(|rank| rank == team.rank());
            // The first round warms up; ranks that have finished continue for the others.
            for round in 0..=MOST_ROUNDS {
                team.barrier()?;
                // In an emulated machine the vcpus' clocks agree at the start of a round.
                if self.context.time_is_virtual() {
                    if team.rank() == 0 {
                        virtual_time::align();
                    }
                    team.barrier()?;
                }
                let streamed = match mine {
                    true => log.round(&mut stream, clock, ROUND_NS).map(|()| log.span()),
                    false => Ok(None),
                };
                let own = super::agree(team, streamed.map_err(SessionError::from))?;
                let all = self.common(team, own)?;
                let counted = if turn.is_some() { own } else { all };
                if let (Some(span), true, true) = (counted, mine, round > 0) {
                    let reading = reading(&log, span, self.context)?;
                    samples.push(&reading, log.disturbed.clone());
                }
                let enough = !mine || samples.ended()?.is_some();
                if round >= ROUNDS && all_say(team, enough)? {
                    break;
                }
            }
        }
        Ok((samples.into_taken(), rules.chosen(&stream)))
    }

    /// Returns the interval in which all ranks of this host streamed.
    fn common(&self, team: &mut Team, own: Option<Span>) -> Result<Option<Span>, SessionError> {
        let own = own.map(|span| (span.from.ticks(), span.to.ticks(), self.host.to_owned()));
        let spans: Vec<Option<(u64, u64, String)>> = super::gather(team, &own)?;
        let here = spans.into_iter().flatten().filter(|(_, _, host)| *host == self.host);
        Ok(Span::common(here.map(|(from, to, _)| Span {
            from: Stamp::from_ticks(from),
            to: Stamp::from_ticks(to),
        })))
    }
}

/// Returns a rank's rate over the interval that counts.
fn reading(
    log: &RoundLog,
    span: Span,
    context: &MeasureContext,
) -> Result<WindowValues, SessionError> {
    let clock = context.clock();
    let (bytes, ns) = (log.bytes_within(span, clock), span.ns(clock)?);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded down")]
    let (duration_ns, work) = (ns as u64, bytes as u64);
    Ok(WindowValues { values: vec![(Metric::Bandwidth, bytes / ns)], duration_ns, work })
}

fn all_say(team: &mut Team, yes: bool) -> Result<bool, SessionError> {
    Ok(team.all_gather(&[u8::from(yes)])?.iter().all(|answer| answer == &[1]))
}

/// Divides the loads into windows as equally as possible; empty without loads.
fn shares(iterations: u64) -> impl Iterator<Item = u64> {
    let (each, more) = (iterations / WINDOWS, iterations % WINDOWS);
    (0..WINDOWS).map(move |index| each + u64::from(index < more)).filter(|&loads| loads > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_all_loads_and_are_never_empty() {
        for iterations in [1, 19, 20, 21, 100_000] {
            assert_eq!(shares(iterations).sum::<u64>(), iterations);
            assert!(shares(iterations).all(|loads| loads > 0));
        }
        assert_eq!(shares(100_000).count(), 20);
    }
}
