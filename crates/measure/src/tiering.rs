//! Measures whether the kernel promotes hot memory to the fast tier: accesses a working set with
//! known hot parts, and records its cost and the kernel's moves.

mod access;
mod heat;

use std::time::Duration;

use numalab_host::proc::PageMoves;
use numalab_host::{
    Mapping, Root, base_pages, monotonic_raw_ns, page_nodes, pin, set_process_policy,
};
use numalab_membench::{Line, Stamp, virtual_time};
use numalab_record::study::{Quantity, Reading};
use numalab_record::tiering::TierLook;
use numalab_topology::{CpuId, Machine, MemoryPolicy, NodeId, NodeSet};

pub use access::TierAccess;
pub use heat::Heat;

use access::{Part, Prepared};

use crate::context::MeasureContext;
use crate::error::MeasureError;

/// Largest number of times that the nodes of pages are queried.
const LOOKS: u32 = 32;
/// Least time of accesses between two queries, so that the pause of a query does not matter.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
const PAGE_BYTES: u64 = 4096;

/// The placement of memory before it is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TierPlace {
    /// On this tier, counted from 0, the fastest.
    Tier(usize),
    /// By first touch: on the fast tier while it has room.
    FirstTouch,
}

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
    /// The initial placement.
    pub place: TierPlace,
    /// Time for which it is accessed.
    pub time: Duration,
    /// The cpu that accesses it.
    pub cpu: CpuId,
    /// The nodes of the cpu's tier.
    pub fast: NodeSet,
    /// The nodes of slower tiers.
    pub slow: NodeSet,
    /// The nodes of each tier, fastest first.
    pub tiers: Vec<NodeSet>,
}

/// Returns the pages that the kernel promoted, demoted and failed to move, by its own counters
/// (`/proc/vmstat`).
fn moved_pages() -> [u64; 3] {
    let text = Root::live().document("proc/vmstat").unwrap_or_default();
    let PageMoves { promoted, demoted, failed, .. } = PageMoves::parse(&text);
    [promoted.unwrap_or_default(), demoted, failed]
}

/// Returns the fast and the slow nodes of a machine with tiers: those of the first tier with cpus,
/// and those of all slower ones. If the kernel has at most one tier (Linux before 6.10 ignores HMAT
/// for tiers), the slow nodes are those without cpus that have a higher latency in the firmware's
/// tables. `None` if all memory is in one tier.
pub fn fast_and_slow(machine: &Machine) -> Option<(NodeSet, NodeSet)> {
    if machine.tiers.len() <= 1 {
        return by_firmware(machine);
    }
    let tiers = machine.tiers_from_cpus();
    let (fast, slower) = tiers.split_first()?;
    let slow: NodeSet = slower.iter().flat_map(|tier| tier.nodes.iter()).collect();
    (!slow.is_empty()).then(|| (fast.nodes.clone(), slow))
}

/// Returns the nodes of each tier, fastest first: the kernel's, else the fast and the slow nodes.
pub fn each_tier(machine: &Machine) -> Vec<NodeSet> {
    if machine.tiers.len() > 1 {
        return machine.tiers_from_cpus().into_iter().map(|tier| tier.nodes.clone()).collect();
    }
    fast_and_slow(machine).map_or_else(Vec::new, |(fast, slow)| vec![fast, slow])
}

/// Returns the nodes with cpus, and those without cpus that have a higher latency than all of them.
fn by_firmware(machine: &Machine) -> Option<(NodeSet, NodeSet)> {
    let fast = machine.cpu_nodes();
    let latency = |node: NodeId| machine.best_read(node).0;
    let slowest_fast = fast.iter().filter_map(latency).max()?;
    let without = machine.nodes.iter().map(|node| node.id).filter(|&node| !fast.contains(node));
    let slow: NodeSet =
        without.filter(|&node| latency(node).is_some_and(|ps| ps > slowest_fast)).collect();
    (!slow.is_empty()).then_some((fast, slow))
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
    /// Places the working set and accesses it for the time. Returns the figures of the whole time
    /// and of its last eighth, and the nodes of pages at several times.
    ///
    /// # Errors
    /// [`MeasureError`] if the cpu, the memory or the clock is refused.
    pub fn run(
        &self,
        context: &MeasureContext,
    ) -> Result<(Vec<Reading>, Vec<TierLook>), MeasureError> {
        let parts = self.heat.parts(self.size_bytes);
        let size = parts.iter().sum::<u64>();
        let mut mapping = Mapping::new(usize::try_from(size).unwrap_or(usize::MAX), base_pages())?;
        let start = mapping.address();
        let _pinned = pin(self.cpu).map_err(numalab_host::Error::from)?;
        let policy = |policy| set_process_policy(&policy).map_err(numalab_host::Error::from);
        if let Some(node) = self.placed_on() {
            policy(MemoryPolicy::Preferred(NodeSet::from_iter([node])))?;
        }
        let lines = Line::slice_from_bytes(mapping.as_bytes_mut())?;
        let mut prepared = self.access.prepare(&parts, lines, context.settings.seed)?;
        // Only the first touch needs the policy; the kernel must be free to move pages later.
        policy(MemoryPolicy::Local)?;
        let before = moved_pages();
        let mut begun: Vec<Part<'_, '_>> = prepared.iter_mut().map(Prepared::begin).collect();
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
        Ok((self.readings(all, end, hot_fast, moved), looks))
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
            TierPlace::Tier(tier) => self.tiers.get(tier)?.first(),
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
        parts: &mut [Part<'_, '_>],
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
        parts: &mut [Part<'_, '_>],
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
        let Some(cost_ns) = self.access.cost_ns(&context.machine, &self.tiers, counted) else {
            return Ok(stretch);
        };
        stretch.predicted_ns = cost_ns;
        let on = |nodes: &NodeSet| nodes.iter().map(counted).sum::<u64>();
        stretch.fast = on(&self.fast);
        stretch.counted = stretch.fast + on(&self.slow);
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
        let (fast_pages, slow_pages) = (on(&self.fast), on(&self.slow));
        // move_pages(2) reports no node for pages that NUMA balancing has marked.
        let marked_pages = found.iter().filter(|node| node.is_none()).count() as u64;
        let tier_pages = self.tiers.iter().map(on).collect();
        Ok(TierLook { fast_pages, slow_pages, tier_pages, marked_pages, ..TierLook::default() })
    }
}

#[cfg(test)]
mod tests {
    use numalab_topology::{EmulatedTier, TierSpec};

    use super::*;

    /// Returns a node with cpus and one without, with these latencies.
    fn machine(fast_ns: u64, slow_ns: u64) -> Machine {
        let tier = |ns: u64| EmulatedTier {
            memory_bytes: 1 << 30,
            latency_ps: ns * 1000,
            bandwidth_mb_per_s: None,
            side_cache_bytes: None,
        };
        TierSpec { tiers: vec![tier(fast_ns), tier(slow_ns)] }.machine(1).unwrap()
    }

    fn sets(fast: &str, slow: &str) -> Option<(NodeSet, NodeSet)> {
        Some((fast.parse().unwrap(), slow.parse().unwrap()))
    }

    #[test]
    fn fast_and_slow_are_the_kernels_tiers_or_those_of_the_firmware() {
        let mut machine = machine(100, 300);
        assert_eq!(fast_and_slow(&machine), sets("0", "1"));
        machine.tiers.truncate(1);
        machine.tiers[0].nodes = "0-1".parse().unwrap();
        assert_eq!(fast_and_slow(&machine), sets("0", "1"));
        machine.tiers.clear();
        assert_eq!(fast_and_slow(&machine), sets("0", "1"));
        machine.access.clear();
        assert_eq!(fast_and_slow(&machine), None);
    }

    #[test]
    fn three_tiers_are_kept_apart() {
        let mut machine = machine(100, 300);
        let sets = |machine: &Machine| {
            each_tier(machine).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(sets(&machine), ["0", "1"]);
        let mut third = machine.tiers[1].clone();
        third.id += 10;
        third.nodes = "2".parse().unwrap();
        machine.tiers.push(third);
        assert_eq!(sets(&machine), ["0", "1", "2"]);
        machine.tiers.clear();
        assert_eq!(sets(&machine), ["0", "1"], "by the firmware");
    }

    #[test]
    fn memory_without_cpus_that_is_not_slower_is_not_a_slow_tier() {
        let mut machine = machine(100, 300);
        machine.tiers.clear();
        for access in &mut machine.access {
            access.read_latency_ps = Some(100_000);
        }
        assert_eq!(fast_and_slow(&machine), None);
    }
}
