//! Measures whether the kernel promotes hot memory to the fast tier: accesses a working set with
//! known hot parts, and records its cost and the kernel's moves.

mod access;
mod heat;
mod tiers;

use std::time::Duration;

use numalab_formats::size::format_rounded;
use numalab_host::proc::PageMoves;
use numalab_host::{
    Mapping, Root, base_pages, monotonic_raw_ns, page_nodes, pin, set_process_policy,
};
use numalab_marks::virtual_time;
use numalab_membench::{Line, Stamp};
use numalab_record::study::{Quantity, Reading};
use numalab_record::tiering::{TierLook, TieringProbed};
use numalab_topology::{MemoryPolicy, NodeId, NodeSet};

pub use access::TierAccess;
pub use heat::Heat;
pub use tiers::{TierPlace, Tiers};

use access::{PartAccess, Prepared};

use crate::context::MeasureContext;
use crate::error::MeasureError;

/// Largest number of times that the nodes of pages are queried.
const LOOKS: u32 = 32;
/// Minimum time of accesses between two queries, so that the pause of a query does not matter.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
const PAGE_BYTES: u64 = 4096;

/// A working set and its accesses.
#[derive(Clone, Debug, PartialEq)]
pub struct TieringProbe {
    pub size_bytes: u64,
    /// The distribution of accesses.
    pub heat: Heat,
    /// True if an access waits for the previous one.
    pub access: TierAccess,
    /// Time after which another part becomes hot; `None` for never.
    pub moves_every: Option<Duration>,
    pub place: TierPlace,
    pub time: Duration,
    /// The tiers, and the cpu that accesses it.
    pub tiers: Tiers,
}

/// Returns the pages that the kernel promoted, demoted and failed to move, by its own counters
/// (`/proc/vmstat`).
fn moved_pages() -> [u64; 3] {
    let text = Root::live().document("proc/vmstat").unwrap_or_default();
    let PageMoves { promoted, demoted, failed, .. } = PageMoves::parse(&text);
    [promoted.unwrap_or_default(), demoted, failed]
}

/// The time and the distribution of one stretch of accesses.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    loads: u64,
    ns: f64,
    predicted_ns: f64,
    fast: u64,
    counted: u64,
}

impl Stretch {
    fn mean_ns(self) -> f64 {
        self.ns / self.loads.max(1) as f64
    }

    fn add(&mut self, other: Self) {
        self.loads += other.loads;
        self.ns += other.ns;
        self.predicted_ns += other.predicted_ns;
        self.fast += other.fast;
        self.counted += other.counted;
    }
}

impl TieringProbe {
    /// Describes the distribution of its accesses.
    pub fn accesses(&self) -> String {
        let mut text = match self.heat {
            Heat::Hot { bytes, percent } => {
                format!("{percent} % of the accesses to {}", format_rounded(bytes))
            }
            Heat::Zipf => "the page of rank n with weight 1/n".to_owned(),
            Heat::Uniform => "all pages equally".to_owned(),
        };
        if self.access == TierAccess::Independent {
            text.push_str(", many at a time");
        }
        if let Some(every) = self.moves_every {
            text.push_str(&format!(", elsewhere every {} s", every.as_secs_f64()));
        }
        text
    }

    /// Describes its initial placement.
    pub fn placed(&self) -> String {
        match self.place {
            TierPlace::Tier(tier) => {
                format!("placed on tier {} of {}", tier + 1, self.tiers.each.len())
            }
            TierPlace::FirstTouch => {
                "placed by the kernel, the hottest part touched last".to_owned()
            }
        }
    }

    /// Places the working set and accesses it for the time. Returns the figures of the whole time
    /// and of its last eighth, and the nodes of pages at several times.
    ///
    /// # Errors
    /// [`MeasureError`] if the cpu, the memory or the clock is refused.
    pub fn run(&self, context: &MeasureContext) -> Result<TieringProbed, MeasureError> {
        let parts = self.heat.parts(self.size_bytes);
        let size = parts.iter().sum::<u64>();
        let mut mapping = Mapping::new(usize::try_from(size).unwrap_or(usize::MAX), base_pages())?;
        let start = mapping.address();
        let _pinned = pin(self.tiers.cpu).map_err(numalab_host::Error::from)?;
        let policy = |policy| set_process_policy(&policy).map_err(numalab_host::Error::from);
        if let Some(node) = self.placed_on() {
            policy(MemoryPolicy::Preferred(NodeSet::from_iter([node])))?;
        }
        let lines = Line::slice_from_bytes(mapping.as_bytes_mut())?;
        let mut prepared = self.access.prepare(&parts, lines, context.settings.seed)?;
        // Only the first touch needs the policy; the kernel must be free to move pages later.
        policy(MemoryPolicy::Local)?;
        let before = moved_pages();
        let mut begun: Vec<PartAccess<'_, '_>> = prepared.iter_mut().map(Prepared::begin).collect();
        let (all, end, looks) = self.measure(context, &mut begun, start, size)?;
        let after = moved_pages();
        let moved = [0, 1, 2].map(|at| after[at].saturating_sub(before[at]) as f64);
        let hottest = self.heat.hottest(parts.len(), self.moves(self.time));
        // The kernel reports no node for pages that NUMA balancing has marked until they are used.
        prepared[hottest].pass();
        let offset: u64 = parts[..hottest].iter().sum();
        let look = self.look(start + offset, parts[hottest])?;
        let known = look.fast_pages + look.slow_pages;
        let hot_fast = (known > 0).then(|| look.fast_pages as f64 * 100.0 / known as f64);
        let Tiers { fast, slow, each, .. } = self.tiers.clone();
        Ok(TieringProbed {
            fast,
            slow,
            tiers: each,
            size_bytes: self.size_bytes,
            heat: self.accesses(),
            placed: self.placed(),
            readings: self.readings(all, end, hot_fast, moved),
            looks,
        })
    }

    /// Returns the figures. Only an emulator counts accesses; from these and the firmware's
    /// latencies or bandwidths the time is predicted.
    fn readings(
        &self,
        all: Stretch,
        end: Stretch,
        hot_fast_percent: Option<f64>,
        [promoted, demoted, failed]: [f64; 3],
    ) -> Vec<Reading> {
        let counted = |value: f64| (all.counted > 0).then_some(value);
        let is_independent = self.access == TierAccess::Independent;
        let gb_per_s = is_independent.then(|| Line::SIZE_BYTES as f64 / all.mean_ns());
        let predicted_ns = all.predicted_ns / all.loads.max(1) as f64;
        let fast_percent = end.fast as f64 * 100.0 / end.counted.max(1) as f64;
        let figures = [
            (Quantity::lower("latency-end", "ns"), Some(end.mean_ns())),
            (Quantity::lower("latency", "ns"), Some(all.mean_ns())),
            (Quantity::higher("bandwidth", "GB/s"), gb_per_s),
            (Quantity::lower("predicted", "ns"), counted(predicted_ns)),
            (Quantity::higher("fast-accesses", "%"), counted(fast_percent)),
            (Quantity::higher("hot-fast", "%"), hot_fast_percent),
            (Quantity::higher("promoted", "pages"), Some(promoted)),
            (Quantity::lower("demoted", "pages"), Some(demoted)),
            (Quantity::lower("failed", "pages"), Some(failed)),
        ];
        figures.into_iter().filter_map(|(quantity, value)| Some(quantity.at(value?))).collect()
    }

    /// Returns the node that the memory is placed on; `None` if the kernel chooses.
    fn placed_on(&self) -> Option<NodeId> {
        match self.place {
            TierPlace::Tier(tier) => self.tiers.each.get(tier)?.first(),
            TierPlace::FirstTouch => None,
        }
    }

    /// Returns the number of moves of the hot set after this time.
    fn moves(&self, passed: Duration) -> usize {
        let every = self.moves_every.map_or(0, |every| every.as_nanos());
        passed
            .as_nanos()
            .checked_div(every)
            .and_then(|moves| usize::try_from(moves).ok())
            .unwrap_or(0)
    }

    fn measure(
        &self,
        context: &MeasureContext,
        parts: &mut [PartAccess<'_, '_>],
        start: u64,
        size: u64,
    ) -> Result<(Stretch, Stretch, Vec<TierLook>), MeasureError> {
        let (mut all, mut end, mut since_look) =
            (Stretch::default(), Stretch::default(), Stretch::default());
        let mut looks = Vec::new();
        let begun_ns = monotonic_raw_ns();
        let time = self.time.max(Duration::from_nanos(1));
        let between = BETWEEN_LOOKS.max(time / LOOKS);
        let mut next_look = between;
        loop {
            context.check_interrupt()?;
            let passed_ns = monotonic_raw_ns().saturating_sub(begun_ns);
            let passed = Duration::from_nanos(passed_ns);
            let loads = self.heat.loads(parts.len(), self.moves(passed));
            let stretch = self.round(context, parts, &loads)?;
            all.add(stretch);
            since_look.add(stretch);
            if passed >= time * 7 / 8 {
                end.add(stretch);
            }
            if passed >= next_look {
                let look = self.look(start, size)?;
                looks.push(TierLook { at_ns: passed_ns, latency_ns: since_look.mean_ns(), ..look });
                since_look = Stretch::default();
                let looked = Duration::from_nanos(monotonic_raw_ns().saturating_sub(begun_ns));
                // A query takes time itself, so the next one waits for a while after its end.
                next_look = (next_look + between).max(looked + BETWEEN_LOOKS);
            }
            if passed >= time {
                break;
            }
        }
        Ok((all, end, looks))
    }

    /// Accesses all parts once, in proportion to their heat.
    fn round(
        &self,
        context: &MeasureContext,
        parts: &mut [PartAccess<'_, '_>],
        loads: &[u64],
    ) -> Result<Stretch, MeasureError> {
        let mut stretch = Stretch::default();
        let before = virtual_time::misses();
        let start = Stamp::now();
        for (part, &loads) in parts.iter_mut().zip(loads) {
            part.access(loads);
            stretch.loads += loads;
        }
        stretch.ns = context.clock.ns(Stamp::now().since(start)?);
        let (Some(before), Some(after)) = (before, virtual_time::misses()) else {
            return Ok(stretch);
        };
        let counted = |node: NodeId| {
            let at = node.0 as usize;
            after
                .get(at)
                .zip(before.get(at))
                .map_or(0, |(after, before)| after.saturating_sub(*before))
        };
        let Some(cost_ns) = self.access.cost_ns(&context.machine, &self.tiers.each, counted) else {
            return Ok(stretch);
        };
        stretch.predicted_ns = cost_ns;
        let on = |nodes: &NodeSet| nodes.iter().map(counted).sum::<u64>();
        stretch.fast = on(&self.tiers.fast);
        stretch.counted = stretch.fast + on(&self.tiers.slow);
        Ok(stretch)
    }

    /// Queries the nodes of the pages of a part of memory.
    fn look(&self, start: u64, bytes: u64) -> Result<TierLook, MeasureError> {
        let addresses: Vec<u64> =
            (0..bytes / PAGE_BYTES).map(|page| start + page * PAGE_BYTES).collect();
        let found =
            page_nodes(std::process::id(), &addresses).map_err(numalab_host::Error::from)?;
        let on = |nodes: &NodeSet| {
            let is = |node: &&Option<NodeId>| node.is_some_and(|node| nodes.contains(node));
            found.iter().filter(is).count() as u64
        };
        let (fast_pages, slow_pages) = (on(&self.tiers.fast), on(&self.tiers.slow));
        // move_pages(2) reports no node for pages that NUMA balancing has marked.
        let marked_pages = found.iter().filter(|node| node.is_none()).count() as u64;
        let tier_pages = self.tiers.each.iter().map(on).collect();
        Ok(TierLook { fast_pages, slow_pages, tier_pages, marked_pages, ..TierLook::default() })
    }
}

#[cfg(test)]
mod tests;
