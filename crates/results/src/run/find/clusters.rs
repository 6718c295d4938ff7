//! Groups of cpus that exchange cache lines faster with each other than with the rest.

use std::collections::BTreeSet;

use numalab_record::{C2cCell, CellId, Experiment, Metric};
use numalab_stats::median;
use numalab_topology::{CpuId, CpuSet};

use super::oddity::{Oddity, RunFinding};
use super::{CellSummary, Summary};
use crate::Finding;

/// Minimum number of cpus per group. Two are likely SMT siblings that the guest cannot see as such.
const LEAST_CPUS: usize = 3;
/// Maximum number of groups reported.
const MOST_GROUPS: usize = 8;
/// Maximum number of cpus examined: each merging step compares all of them with all groups.
const MOST_CPUS: usize = 256;
/// Minimum ratio of the median time between groups to the median time within them.
const APART: f64 = 1.25;
/// Minimum ratio of the time at which the remaining groups would merge to the time of the last
/// merge.
const STEP: f64 = 1.10;
/// Minimum share of pairs (one time within a group, one between groups) in the expected order.
const ORDERED_SHARE: f64 = 0.92;

/// Reports a one-node guest that really spans several host nodes or last-level caches: its cpus
/// fall into groups that the guest's topology does not show.
pub(super) fn finding(summary: &Summary<'_>) -> Option<RunFinding> {
    let machine = &summary.run.machine;
    let is_guest = summary.run.environment.facts.contains_key("hypervisor");
    if !is_guest || machine.nodes.len() > 1 {
        return None;
    }
    let times = Times::of(&summary.cells, |a, b| {
        let core = |cpu: CpuId| machine.cpu(cpu).and_then(|cpu| cpu.core);
        core(a).is_some() && core(a) == core(b)
    })?;
    let groups = times.groups()?;
    let sets: Vec<CpuSet> = groups.iter().map(|group| times.set(group)).collect();
    // An L3 group that the guest can see explains the group as well, unless it covers a package:
    // packages have separate memory.
    let is_of_one = |set: &CpuSet| machine.l3_groups().iter().any(|l3| set.is_subset(&l3.cpus));
    let package = |set: &CpuSet| set.iter().next().and_then(|cpu| machine.cpu(cpu)?.package);
    let packages: BTreeSet<u32> = sets.iter().filter_map(package).collect();
    let are_caches = sets.iter().all(is_of_one) && machine.l3_groups().len() == sets.len();
    if are_caches && packages.len() < sets.len() {
        return None;
    }
    let (within, across) = times.split(&groups);
    let cpus: Vec<String> = sets.iter().map(ToString::to_string).collect();
    let what = Oddity::HiddenNodes {
        groups: sets.len(),
        cpus: cpus.join(" | "),
        within_ns: median(&within)?.exp(),
        across_ns: median(&across)?.exp(),
    };
    Some(Finding::new(what).over(APART).shown_by(times.cells))
}

/// Logarithms of the times between every pair of cpus.
struct Times {
    cpus: Vec<CpuId>,
    ln_ns: Vec<Vec<f64>>,
    cells: Vec<CellId>,
}

impl Times {
    /// Takes the times of the first cpu of each core; `None` if a pair is missing.
    fn of(cells: &[CellSummary<'_>], is_one_core: impl Fn(CpuId, CpuId) -> bool) -> Option<Self> {
        let pair = |summary: &CellSummary<'_>| {
            let Experiment::C2c(C2cCell { from, to, .. }) = summary.cell.experiment else {
                return None;
            };
            let figure = summary.figure(Metric::RoundTrip)?;
            Some((from, to, figure.median, summary.cell.id.clone()))
        };
        let pairs: Vec<(CpuId, CpuId, f64, CellId)> = cells.iter().filter_map(pair).collect();
        let all: CpuSet = pairs.iter().flat_map(|pair| [pair.0, pair.1]).collect();
        let mut cpus: Vec<CpuId> = Vec::new();
        for cpu in all.iter() {
            if !cpus.iter().any(|&other| is_one_core(other, cpu)) {
                cpus.push(cpu);
            }
        }
        let count = cpus.len();
        if !(2 * LEAST_CPUS..=MOST_CPUS).contains(&count) {
            return None;
        }
        let mut ln_ns = vec![vec![f64::NAN; count]; count];
        let mut shown_by = Vec::new();
        for (from, to, ns, cell) in pairs {
            let place = |cpu| cpus.binary_search(&cpu).ok();
            if let (Some(from), Some(to)) = (place(from), place(to)) {
                (ln_ns[from][to], ln_ns[to][from]) = (ns.ln(), ns.ln());
                shown_by.push(cell);
            }
        }
        let is_whole = (0..count).all(|a| (0..count).all(|b| a == b || ln_ns[a][b].is_finite()));
        is_whole.then_some(Self { cpus, ln_ns, cells: shown_by })
    }

    fn set(&self, group: &[usize]) -> CpuSet {
        group.iter().map(|&index| self.cpus[index]).collect()
    }

    /// Returns the fewest groups, at least two, that are clearly apart. Clusters bottom-up: merges
    /// the two groups with the smallest mean time until the next merge would join groups that are
    /// apart.
    fn groups(&self) -> Option<Vec<Vec<usize>>> {
        let mut groups: Vec<Vec<usize>> = (0..self.cpus.len()).map(|index| vec![index]).collect();
        let mut last_ln = f64::NEG_INFINITY;
        let mut found = None;
        while let Some((ln, a, b)) = self.nearest(&groups) {
            let is_step = ln - last_ln >= STEP.ln() && groups.len() <= MOST_GROUPS;
            if is_step && self.are_apart(&groups) {
                found = Some(groups.clone());
            }
            last_ln = last_ln.max(ln);
            let joined = groups.swap_remove(b);
            groups[a].extend(joined);
        }
        let mut found = found?;
        found.iter_mut().for_each(|group| group.sort_unstable());
        found.sort();
        Some(found)
    }

    /// Returns the smallest mean time between two groups, and their indices in ascending order.
    fn nearest(&self, groups: &[Vec<usize>]) -> Option<(f64, usize, usize)> {
        let mean = |a: &[usize], b: &[usize]| {
            let sum: f64 = a.iter().flat_map(|&a| b.iter().map(move |&b| self.ln_ns[a][b])).sum();
            #[expect(clippy::cast_precision_loss, reason = "a few thousand pairs")]
            let pairs = (a.len() * b.len()) as f64;
            sum / pairs
        };
        let pairs = (0..groups.len()).flat_map(|a| (a + 1..groups.len()).map(move |b| (a, b)));
        pairs
            .map(|(a, b)| (mean(&groups[a], &groups[b]), a, b))
            .min_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// Returns the sorted times within groups and those between groups.
    fn split(&self, groups: &[Vec<usize>]) -> (Vec<f64>, Vec<f64>) {
        let (mut within, mut across) = (Vec::new(), Vec::new());
        for (number, group) in groups.iter().enumerate() {
            for &a in group {
                within.extend(group.iter().filter(|&&b| b > a).map(|&b| self.ln_ns[a][b]));
                let others = groups[number + 1..].iter().flatten();
                across.extend(others.map(|&b| self.ln_ns[a][b]));
            }
        }
        within.sort_by(f64::total_cmp);
        across.sort_by(f64::total_cmp);
        (within, across)
    }

    fn are_apart(&self, groups: &[Vec<usize>]) -> bool {
        if groups.iter().any(|group| group.len() < LEAST_CPUS) {
            return false;
        }
        let (within, across) = self.split(groups);
        match median(&across).zip(median(&within)) {
            Some((across, within)) if across - within >= APART.ln() => {}
            _ => return false,
        }
        let longer = |ln: &f64| across.len() - across.partition_point(|other| other <= ln);
        let ordered: usize = within.iter().map(longer).sum();
        #[expect(clippy::cast_precision_loss, reason = "pairs of a few thousand times")]
        let share = ordered as f64 / (within.len() * across.len()) as f64;
        share >= ORDERED_SHARE
    }
}

#[cfg(test)]
mod tests;
