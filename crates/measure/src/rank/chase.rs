//! A rank's pointer chase.

use std::collections::BTreeMap;

use numalab_host::{ThreadSnapshot, monotonic_raw_ns};
use numalab_membench::{Chase, Clock, Cycle, LineSize, Walk, WordChain};
use numalab_record::{AccessPattern, WindowTime};

use super::buffer::RankBuffer;
use crate::error::MeasureError;
use crate::run::chase::membench_pattern;

/// Windows that the loads are divided into, for a median beside the mean.
const WINDOWS: u64 = 20;

/// Building leaves a buffer outside of the caches, so that a walk comes to its steady state
/// after once round; beyond so many loads (64 MiB of lines) no cache is warmed any more.
const MOST_WARM_UP_LOADS: u64 = 1 << 20;

/// What the chase goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// Lines, each once, in this order.
    Lines(AccessPattern),
    /// Words, eight in each line, in random order: the benchmark suite's chain.
    FisherYates,
}

/// How a rank chases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChaseRules {
    /// What it goes through.
    pub chain: Chain,
    /// Loads that are measured for each size; at least 1.
    pub iterations: u64,
    /// Loads before these, at least; once round the buffer, or a million loads, are made
    /// in any case.
    pub warmup: u64,
    /// The seed of this rank's order.
    pub seed: u64,
}

/// A chase built in a rank's buffer.
#[derive(Debug)]
pub struct RankChase<'b> {
    built: Built<'b>,
    rules: ChaseRules,
}

#[derive(Debug)]
enum Built<'b> {
    Lines(Chase<'b>),
    Words(WordChain<'b>),
}

impl<'b> RankChase<'b> {
    /// Builds the chase over the first `size_bytes` of the buffer.
    ///
    /// # Errors
    /// [`MeasureError::Cycle`] if it cannot be built.
    pub fn build(
        buffer: &'b mut RankBuffer,
        size_bytes: u64,
        rules: ChaseRules,
    ) -> Result<Self, MeasureError> {
        let pages = buffer.pages();
        let lines = buffer.lines(size_bytes)?;
        let built = match rules.chain {
            Chain::FisherYates => Built::Words(WordChain::shuffle(lines, rules.seed)?),
            Chain::Lines(pattern) => {
                let pattern = membench_pattern(pattern, pages);
                let size = size_of_val(&*lines);
                let cycle = Cycle::new(pattern, size, LineSize::Bytes64, rules.seed)?;
                Built::Lines(Chase::build(cycle, lines)?)
            }
        };
        Ok(Self { built, rules })
    }

    /// A walk from its start.
    #[must_use]
    pub fn walk(&self) -> RankWalk<'_> {
        let (walk, nodes) = match &self.built {
            Built::Lines(chase) => (chase.walk(), chase.cycle().nodes()),
            Built::Words(chain) => (chain.walk(), chain.nodes()),
        };
        let warmup = self.rules.warmup.max((nodes as u64).min(MOST_WARM_UP_LOADS));
        RankWalk { walk, warmup, iterations: self.rules.iterations }
    }
}

/// A rank underway.
#[derive(Debug)]
pub struct RankWalk<'c> {
    walk: Walk<'c>,
    warmup: u64,
    iterations: u64,
}

/// What a rank found.
#[derive(Clone, Debug, PartialEq)]
pub struct RankWindows {
    /// Mean time of a load over all windows.
    pub mean_ns: f64,
    /// Mean time of a load in each window.
    pub windows_ns: Vec<f64>,
    /// When each window was.
    pub times: Vec<WindowTime>,
    /// The windows that something disturbed, by their places.
    pub disturbed: BTreeMap<usize, String>,
}

impl RankWalk<'_> {
    /// Warms up and takes the windows.
    ///
    /// # Errors
    /// [`MeasureError::Clock`] if the clock steps back.
    pub fn measure(&mut self, clock: &Clock) -> Result<RankWindows, MeasureError> {
        self.walk.loads(self.warmup);
        let (mut windows_ns, mut times, mut disturbed) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (mut total_ns, mut total_loads) = (0.0, 0.0);
        for (index, loads) in windows(self.iterations).enumerate() {
            let before = ThreadSnapshot::take();
            let start_ns = monotonic_raw_ns();
            let window = self.walk.window(loads)?;
            if let Some(reason) = ThreadSnapshot::take().disturbance_since(&before) {
                disturbed.insert(index, reason.to_string());
            }
            let duration_ns = monotonic_raw_ns().saturating_sub(start_ns);
            times.push(WindowTime { start_ns, duration_ns, work: loads });
            windows_ns.push(window.ns_per_load(clock));
            total_ns += clock.ns(window.ticks);
            total_loads += loads as f64;
        }
        let mean_ns = total_ns / f64::max(total_loads, 1.0);
        Ok(RankWindows { mean_ns, windows_ns, times, disturbed })
    }

    /// Goes on for a little, unmeasured, while other ranks measure.
    pub fn go_on(&mut self) {
        self.walk.loads(1_000);
    }
}

/// The loads of each window: as equal as can be, none without any.
fn windows(iterations: u64) -> impl Iterator<Item = u64> {
    let (each, more) = (iterations / WINDOWS, iterations % WINDOWS);
    (0..WINDOWS).map(move |index| each + u64::from(index < more)).filter(|&loads| loads > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_goes_once_round_before_it_is_measured_whatever_was_asked() {
        let node = numalab_host::allowed_now().unwrap().memory_nodes.first().unwrap_or_default();
        let source = super::super::MemorySource::Node(node);
        let size = 1 << 20;
        let mut buffer =
            RankBuffer::take(size, numalab_record::Pages::Base, source).expect("a buffer");
        for (chain, warmup, expected) in [
            (Chain::Lines(AccessPattern::Random), 1_000, 16_384),
            (Chain::Lines(AccessPattern::Random), 20_000, 20_000),
            (Chain::FisherYates, 1_000, 131_072),
        ] {
            let rules = ChaseRules { chain, iterations: 40, warmup, seed: 3 };
            let chase = RankChase::build(&mut buffer, size, rules).expect("built");
            assert_eq!(chase.walk().warmup, expected);
        }
        let proof = buffer.prove().expect("proven");
        assert_eq!(proof.pages_per_node.keys().collect::<Vec<_>>(), [&node]);
    }

    #[test]
    fn windows_have_all_loads_and_are_never_empty() {
        for iterations in [1, 19, 20, 21, 100_000] {
            assert_eq!(windows(iterations).sum::<u64>(), iterations);
            assert!(windows(iterations).all(|loads| loads > 0));
        }
        assert_eq!(windows(100_000).count(), 20);
    }
}
