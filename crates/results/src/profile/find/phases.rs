//! Phases of a program: spans of time with the same use of regions.

use std::collections::BTreeMap;

use numalab_record::Stretch;

use super::Distance;

/// Minimum similarity, the cosine between accesses per region, at which neighbouring spans are one
/// phase.
const ALIKE: f64 = 0.85;
/// Minimum share of the run that makes a phase.
const LEAST_SHARE: f64 = 0.04;

/// A span of time with the same use of regions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phase {
    /// Start, in ns since the program started.
    pub begin_ns: u64,
    /// End, in ns since the program started.
    pub end_ns: u64,
    /// Run time of all threads within it, in ns.
    pub busy_ns: u64,
    /// Waiting time of all threads within it, in ns, if known.
    pub waited_ns: Option<u64>,
    /// Accesses within it by distance.
    pub distance: Distance,
    /// Accesses by region; the key is the region's index in the program.
    pub regions: BTreeMap<usize, u64>,
}

impl Phase {
    /// Returns its regions, most used first.
    pub fn most_used(&self) -> Vec<(usize, u64)> {
        let mut regions: Vec<(usize, u64)> =
            self.regions.iter().map(|(region, count)| (*region, *count)).collect();
        regions.sort_by_key(|(region, count)| (std::cmp::Reverse(*count), *region));
        regions
    }

    fn of(begin_ns: u64, stretch: &Stretch) -> Self {
        let mut phase = Self {
            begin_ns,
            end_ns: stretch.end_ns,
            busy_ns: stretch.busy_ns,
            waited_ns: stretch.waited_ns,
            ..Self::default()
        };
        for of in &stretch.regions {
            phase.distance.local += of.local;
            phase.distance.remote += of.remote;
            phase.distance.unplaced += of.unplaced;
            phase.regions.insert(of.region, of.accesses());
        }
        phase
    }

    fn join(&mut self, next: &Self) {
        self.end_ns = next.end_ns;
        self.busy_ns += next.busy_ns;
        self.waited_ns = self.waited_ns.zip(next.waited_ns).map(|(one, other)| one + other);
        self.distance.local += next.distance.local;
        self.distance.remote += next.distance.remote;
        self.distance.unplaced += next.distance.unplaced;
        for (region, count) in &next.regions {
            *self.regions.entry(*region).or_default() += count;
        }
    }

    fn length_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }

    /// Returns the similarity to another phase, 0 to 1: 1 for the same use of regions, and if
    /// either uses none.
    fn likeness(&self, other: &Self) -> f64 {
        let square =
            |of: &Self| of.regions.values().map(|count| (*count as f64).powi(2)).sum::<f64>();
        let product = self
            .regions
            .iter()
            .filter_map(|(region, count)| Some(*count as f64 * *other.regions.get(region)? as f64));
        let lengths = (square(self) * square(other)).sqrt();
        if lengths > 0.0 { product.sum::<f64>() / lengths } else { 1.0 }
    }
}

/// Returns the phases of a timeline in order; spans that are too short join the more similar
/// neighbour.
pub fn phases(timeline: &[Stretch]) -> Vec<Phase> {
    let mut begin_ns = 0;
    let mut phases: Vec<Phase> = Vec::new();
    for stretch in timeline {
        let next = Phase::of(begin_ns, stretch);
        begin_ns = stretch.end_ns;
        match phases.last_mut() {
            Some(last) if last.likeness(&next) >= ALIKE => last.join(&next),
            _ => phases.push(next),
        }
    }
    let all_ns = phases.last().map_or(0, |last| last.end_ns);
    let is_short = |phase: &Phase| (phase.length_ns() as f64) < LEAST_SHARE * all_ns as f64;
    while phases.len() > 1 {
        let shortest = (0..phases.len()).min_by_key(|at| phases[*at].length_ns());
        let Some(at) = shortest.filter(|at| is_short(&phases[*at])) else { break };
        join_with_neighbour(&mut phases, at);
    }
    // With short spans gone, phases that they separated may be alike.
    let mut joined: Vec<Phase> = Vec::new();
    for phase in phases {
        match joined.last_mut() {
            Some(last) if last.likeness(&phase) >= ALIKE => last.join(&phase),
            _ => joined.push(phase),
        }
    }
    joined
}

fn join_with_neighbour(phases: &mut Vec<Phase>, at: usize) {
    let likeness = |other: Option<usize>| {
        other.and_then(|other| phases.get(other)).map_or(-1.0, |of| of.likeness(&phases[at]))
    };
    let before = at.checked_sub(1);
    let first = match before {
        Some(before) if likeness(Some(before)) >= likeness(Some(at + 1)) => before,
        _ => at.min(phases.len() - 2),
    };
    let next = phases.remove(first + 1);
    phases[first].join(&next);
}

#[cfg(test)]
mod tests {
    use numalab_record::StretchAccesses;

    use super::*;

    fn stretch(end_ns: u64, regions: &[(usize, u64, u64)]) -> Stretch {
        let regions = regions.iter().map(|&(region, local, remote)| StretchAccesses {
            region,
            local,
            remote,
            unplaced: 0,
        });
        Stretch { end_ns, busy_ns: 5, waited_ns: Some(1), misses: None, regions: regions.collect() }
    }

    #[test]
    fn a_program_that_fills_a_table_and_then_reads_it_has_two_phases() {
        let fills = (1..=10).map(|at| stretch(at * 10, &[(0, 100, 0), (1, 3, 0)]));
        let reads = (11..=30).map(|at| stretch(at * 10, &[(0, 2, 0), (1, 40, 60)]));
        let found = phases(&fills.chain(reads).collect::<Vec<_>>());
        let [fill, read] = &found[..] else { panic!("{found:?}") };
        assert_eq!((fill.begin_ns, fill.end_ns, fill.busy_ns), (0, 100, 50));
        assert_eq!((read.begin_ns, read.end_ns, read.waited_ns), (100, 300, Some(20)));
        assert_eq!(fill.most_used(), [(0, 1000), (1, 30)]);
        assert_eq!((read.distance.local, read.distance.remote), (20 * 42, 20 * 60));
    }

    #[test]
    fn pauses_and_short_bursts_are_not_phases() {
        let mut timeline: Vec<Stretch> =
            (1..=60).map(|at| stretch(at * 10, &[(0, 100, 0)])).collect();
        timeline[20].regions.clear();
        timeline[40] = stretch(410, &[(7, 500, 0)]);
        let found = phases(&timeline);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].regions[&7], 500);
        assert!(phases(&[]).is_empty());
    }
}
