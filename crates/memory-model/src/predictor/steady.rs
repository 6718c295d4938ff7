//! Branches of a long loop, which change nothing in the predictor any more.

/// Number of branches that are remembered.
const PLACES: usize = 8;

/// Branches that were taken as predicted, by counters at their limits, while all branches in the
/// history had been taken too. As long as each next branch is one of these, neither counters nor
/// history change.
#[derive(Clone, Debug, Default)]
pub(super) struct Steady {
    /// Addresses of the branches, plus one; 0 for a free place.
    addresses: [u64; PLACES],
    has_any: bool,
}

impl Steady {
    /// Returns true if the branch at an address is one of these: taking it is as predicted, and
    /// changes nothing.
    #[inline]
    pub fn has(&self, address: u64) -> bool {
        self.addresses[place(address)] == address.wrapping_add(1)
    }

    /// Adds the branch at an address.
    #[inline]
    pub fn add(&mut self, address: u64) {
        self.addresses[place(address)] = address.wrapping_add(1);
        self.has_any = true;
    }

    /// Removes all branches, because another branch changes counters or history.
    #[inline]
    pub fn ends(&mut self) {
        if self.has_any {
            *self = Self::default();
        }
    }
}

#[inline]
fn place(address: u64) -> usize {
    // There are eight slots, and branches are rarely closer than two bytes.
    (address >> 1) as usize % PLACES
}
