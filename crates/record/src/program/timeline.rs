//! A program's use of memory over time.

use serde::{Deserialize, Serialize};

/// A stretch of a program's time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Stretch {
    /// The end of the stretch, in ns since the start of the program; it begins at the end of the
    /// previous stretch.
    pub end_ns: u64,
    /// The run time of all threads in it, in ns.
    pub busy_ns: u64,
    /// The time that threads waited for memory and caches, in ns; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<u64>,
    /// Accesses that missed all caches; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses: Option<u64>,
    /// The regions accessed in it, in the order of the program's regions.
    pub regions: Vec<StretchAccesses>,
}

/// Accesses to a region in a stretch of time.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct StretchAccesses {
    /// The region, as an index into the program's regions.
    pub region: usize,
    /// Accesses from cpus of the memory's node.
    pub local: u64,
    /// Accesses from cpus of other nodes.
    pub remote: u64,
    /// Accesses for which the node of the cpu or of the memory is unknown.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unplaced: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl StretchAccesses {
    /// Returns the total number of accesses.
    pub const fn accesses(&self) -> u64 {
        self.local.saturating_add(self.remote).saturating_add(self.unplaced)
    }
}

impl Stretch {
    /// Adds accesses to a region, as [`StretchAccesses`] counts them.
    pub fn add(&mut self, accesses: StretchAccesses) {
        match self.regions.binary_search_by_key(&accesses.region, |of| of.region) {
            Ok(at) => {
                let of = &mut self.regions[at];
                of.local = of.local.saturating_add(accesses.local);
                of.remote = of.remote.saturating_add(accesses.remote);
                of.unplaced = of.unplaced.saturating_add(accesses.unplaced);
            }
            Err(at) => self.regions.insert(at, accesses),
        }
    }

    /// Extends the stretch by the next one.
    pub fn join(&mut self, next: &Self) {
        self.end_ns = next.end_ns;
        self.busy_ns = self.busy_ns.saturating_add(next.busy_ns);
        let sum = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
        self.waited_ns = sum(self.waited_ns, next.waited_ns);
        self.misses = sum(self.misses, next.misses);
        next.regions.iter().for_each(|of| self.add(*of));
    }

    /// Joins stretches in pairs, which halves their number.
    pub fn joined(stretches: &[Self]) -> Vec<Self> {
        let pair = |pair: &[Self]| {
            let mut first = pair[0].clone();
            pair[1..].iter().for_each(|next| first.join(next));
            first
        };
        stretches.chunks(2).map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(end_ns: u64, waited_ns: Option<u64>, regions: &[(usize, u64, u64)]) -> Stretch {
        let mut stretch =
            Stretch { end_ns, busy_ns: 10, waited_ns, misses: waited_ns, regions: Vec::new() };
        for &(region, local, remote) in regions {
            stretch.add(StretchAccesses { region, local, remote, unplaced: 1 });
        }
        stretch
    }

    #[test]
    fn joined_stretches_keep_all_accesses_and_the_order_of_regions() {
        let three = [
            stretch(100, Some(3), &[(2, 5, 1), (0, 1, 0)]),
            stretch(200, Some(4), &[(1, 0, 7), (2, 1, 1)]),
            stretch(300, None, &[]),
        ];
        let joined = Stretch::joined(&three);
        assert_eq!(joined.len(), 2);
        assert_eq!((joined[0].end_ns, joined[0].busy_ns, joined[0].waited_ns), (200, 20, Some(7)));
        assert_eq!(joined[0].misses, Some(7));
        let regions: Vec<_> =
            joined[0].regions.iter().map(|of| (of.region, of.local, of.remote)).collect();
        assert_eq!(regions, [(0, 1, 0), (1, 0, 7), (2, 6, 2)]);
        assert_eq!(joined[0].regions[2].accesses(), 6 + 2 + 2);
        assert_eq!(joined[1], three[2]);
        let one = &Stretch::joined(&joined)[0];
        assert_eq!((one.waited_ns, one.misses), (None, None), "a part of it is not known");
    }
}
