//! One size measured by all ranks, at once or in turns.

use std::collections::BTreeMap;

use numalab_host::{ThreadSnapshot, monotonic_raw_ns};
use numalab_measure::rank::{ChaseRules, RankBuffer, RankChase, RankStream, Span, StreamRules};
use numalab_membench::Clock;
use numalab_record::WindowTime;
use numalab_stats::Sample;

use super::{SessionError, SessionPlan, Work};
use crate::team::Team;

/// How long the clock is compared with the system's before the first window.
const CALIBRATION_NS: u64 = 20_000_000;
/// Rounds of bandwidth that are counted.
const ROUNDS: usize = 10;
/// Rounds at most, should some have no time in which all ranks ran.
const MOST_ROUNDS: usize = 30;

/// What a rank found for a size.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figures {
    pub mean: f64,
    pub windows: Vec<f64>,
    /// When each of them was.
    pub times: Vec<WindowTime>,
    /// The windows that something disturbed, by their places.
    pub disturbed: BTreeMap<usize, String>,
}

impl Figures {
    /// Of a rank that had no turn.
    fn none() -> Self {
        Self { mean: f64::NAN, windows: Vec::new(), times: Vec::new(), disturbed: BTreeMap::new() }
    }

    /// The median of the undisturbed windows; of all if none is; not a number without any.
    pub fn median(&self) -> f64 {
        let clean = |(index, _): &(usize, &f64)| !self.disturbed.contains_key(index);
        let clean: Vec<f64> =
            self.windows.iter().enumerate().filter(clean).map(|(_, value)| *value).collect();
        let taken = if clean.is_empty() { self.windows.clone() } else { clean };
        Sample::new(taken).map_or(f64::NAN, |sample| sample.median())
    }
}

/// When a stretch was, and the bytes streamed in it at a rate in bytes per nanosecond.
fn time(span: Span, rate: f64) -> WindowTime {
    let duration_ns = span.to_ns.saturating_sub(span.from_ns);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of a round")]
    let work = (rate * duration_ns as f64) as u64;
    WindowTime { start_ns: span.from_ns, duration_ns, work }
}

/// A rank at work.
pub(super) struct Worker<'a> {
    plan: &'a SessionPlan,
    clock: Clock,
    seed: u64,
    host: &'a str,
}

impl<'a> Worker<'a> {
    pub fn new(plan: &'a SessionPlan, rank: usize, host: &'a str) -> Result<Self, SessionError> {
        let clock = Clock::calibrate(monotonic_raw_ns, CALIBRATION_NS);
        let clock = clock.map_err(numalab_measure::MeasureError::from)?;
        // An order of its own for each rank; the loops spread the bits.
        let seed = plan.seed.wrapping_add(rank as u64);
        Ok(Self { plan, clock, seed, host })
    }

    pub fn measure(
        &self,
        team: &mut Team,
        buffer: &mut RankBuffer,
        size_bytes: u64,
    ) -> Result<Figures, SessionError> {
        match &self.plan.work {
            Work::Latency(rules) => self.latency(team, buffer, size_bytes, *rules),
            Work::Bandwidth(rules) => self.bandwidth(team, buffer, size_bytes, rules),
        }
    }

    fn latency(
        &self,
        team: &mut Team,
        buffer: &mut RankBuffer,
        size_bytes: u64,
        rules: ChaseRules,
    ) -> Result<Figures, SessionError> {
        let rules = ChaseRules { seed: self.seed, ..rules };
        let built = RankChase::build(buffer, size_bytes, rules);
        let chase = super::agree(team, built.map_err(SessionError::from))?;
        let mut walk = chase.walk();
        let mut found = None;
        for turn in self.turns(team) {
            team.barrier()?;
            if turn.is_none_or(|rank| rank == team.rank()) {
                found = Some(walk.measure(&self.clock));
            }
            if turn.is_none() {
                team.work_until_all_are_done(|| walk.go_on())?;
            }
        }
        let found = found.transpose().map_err(SessionError::from);
        let windows = super::agree(team, found)?;
        Ok(windows.map_or_else(Figures::none, |windows| Figures {
            mean: windows.mean_ns,
            windows: windows.windows_ns,
            times: windows.times,
            disturbed: windows.disturbed,
        }))
    }

    /// Whose turn it is, one after the other; without turns, once everyone's.
    fn turns(&self, team: &Team) -> Vec<Option<usize>> {
        if self.plan.serial { (0..team.size()).map(Some).collect() } else { vec![None] }
    }

    fn bandwidth(
        &self,
        team: &mut Team,
        buffer: &mut RankBuffer,
        size_bytes: u64,
        rules: &StreamRules,
    ) -> Result<Figures, SessionError> {
        let rules = StreamRules { seed: self.seed, ..rules.clone() };
        let made = RankStream::over(buffer, size_bytes, &rules);
        let mut stream = super::agree(team, made.map_err(SessionError::from))?;
        let (mut windows, mut times, mut disturbed) = (Vec::new(), Vec::new(), BTreeMap::new());
        for turn in self.turns(team) {
            let mine = turn.is_none_or(|rank| rank == team.rank());
            // The first round warms up; ranks that have enough go on for the others.
            for round in 0..=MOST_ROUNDS {
                team.barrier()?;
                let before = ThreadSnapshot::take();
                let own = mine.then(|| stream.round());
                let disturbance = ThreadSnapshot::take().disturbance_since(&before);
                let shared = self.common(team, own)?;
                let counted = |own| if turn.is_some() { own } else { shared.unwrap_or(own) };
                let rate = own.and_then(|own| stream.rate_within(counted(own)));
                if round > 0 && (turn.is_some() || shared.is_some()) {
                    if let (Some(_), Some(reason)) = (rate, disturbance) {
                        disturbed.insert(windows.len(), reason.to_string());
                    }
                    times.extend(own.zip(rate).map(|(own, rate)| time(counted(own), rate)));
                    windows.extend(rate);
                }
                if round >= ROUNDS && self.all_have_enough(team, mine, windows.len())? {
                    break;
                }
            }
        }
        let count = windows.len().max(1) as f64;
        Ok(Figures { mean: windows.iter().sum::<f64>() / count, windows, times, disturbed })
    }

    /// The time in which all ranks of this host streamed.
    fn common(&self, team: &mut Team, own: Option<Span>) -> Result<Option<Span>, SessionError> {
        let span = own.map_or((0, 0), |span| (span.from_ns, span.to_ns));
        let words = format!("{} {} {}", span.0, span.1, self.host);
        let mut shared: Option<Span> = None;
        for words in team.all_gather(words.as_bytes())? {
            let words = String::from_utf8_lossy(&words).into_owned();
            let mut parts = words.splitn(3, ' ');
            let mut number = || parts.next().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
            let (from_ns, to_ns) = (number(), number());
            if to_ns == 0 || parts.next() != Some(self.host) {
                continue;
            }
            shared = Some(match shared {
                None => Span { from_ns, to_ns },
                Some(span) => {
                    Span { from_ns: span.from_ns.max(from_ns), to_ns: span.to_ns.min(to_ns) }
                }
            });
        }
        Ok(shared.filter(|span| span.from_ns < span.to_ns))
    }

    fn all_have_enough(
        &self,
        team: &mut Team,
        mine: bool,
        windows: usize,
    ) -> Result<bool, SessionError> {
        let enough = !mine || windows >= ROUNDS;
        Ok(team.all_gather(&[u8::from(enough)])?.iter().all(|answer| answer == &[1]))
    }
}
