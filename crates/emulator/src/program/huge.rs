//! Decides which pages the kernel may make huge: whole 2 MiB of one anonymous mapping, unless the
//! program says otherwise (madvise(2)). Pages that `khugepaged` would collapse later stay small.

use std::ops::Range;

use numalab_memory_model::space::{HUGE_PAGES, PAGE_BYTES};

const HUGE_BYTES: u64 = HUGE_PAGES * PAGE_BYTES;

/// The rule for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Huge {
    /// There is no room, the mapping is of a file, or the program forbids it.
    Never,
    /// Only where `transparent_hugepage/enabled` is `always`.
    Always,
    /// The program requests it by madvise(2).
    Advised,
}

impl Huge {
    /// Returns true if the kernel gives a huge page with `always` (true) or `madvise` (false).
    pub fn is_given(self, always: bool) -> bool {
        self == Self::Advised || (self == Self::Always && always)
    }
}

/// The program's advice by address range, latest last.
#[derive(Debug, Default)]
pub struct Advice(Vec<(Range<u64>, bool)>);

impl Advice {
    /// Adds advice for a range.
    pub fn say(&mut self, addresses: Range<u64>, huge: bool) {
        self.forget(&addresses);
        self.0.push((addresses, huge));
    }

    /// Drops the advice for an unmapped range.
    pub fn forget(&mut self, addresses: &Range<u64>) {
        let inside = |of: &Range<u64>| addresses.start <= of.start && of.end <= addresses.end;
        self.0.retain(|(of, _)| !inside(of));
    }

    /// Returns the rule for an address in an anonymous mapping.
    pub fn of(&self, address: u64, mapping: &Range<u64>) -> Huge {
        let block = address / HUGE_BYTES * HUGE_BYTES;
        let fits = |of: &Range<u64>| of.start <= block && block + HUGE_BYTES <= of.end;
        let meets = |of: &Range<u64>| of.start < block + HUGE_BYTES && block < of.end;
        match self.0.iter().rev().find(|(of, _)| meets(of)) {
            _ if !fits(mapping) => Huge::Never,
            None => Huge::Always,
            Some((of, true)) if fits(of) => Huge::Advised,
            Some((_, huge)) => {
                if *huge {
                    Huge::Always
                } else {
                    Huge::Never
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_page_is_within_one_mapping_and_follows_the_latest_advice() {
        let mut advice = Advice::default();
        let mapping = HUGE_BYTES / 2..4 * HUGE_BYTES;
        let of = |advice: &Advice, block: u64| advice.of(block * HUGE_BYTES + 5, &mapping);
        assert_eq!(
            [0, 1, 3, 4].map(|at| of(&advice, at)),
            [Huge::Never, Huge::Always, Huge::Always, Huge::Never]
        );
        advice.say(HUGE_BYTES..3 * HUGE_BYTES, true);
        advice.say(2 * HUGE_BYTES..2 * HUGE_BYTES + PAGE_BYTES, false);
        assert_eq!([1, 2, 3].map(|at| of(&advice, at)), [Huge::Advised, Huge::Never, Huge::Always]);
        advice.forget(&(0..5 * HUGE_BYTES));
        assert_eq!([1, 2].map(|at| of(&advice, at)), [Huge::Always; 2]);
    }

    #[test]
    fn with_madvise_only_advised_ranges_are_huge() {
        let given =
            |always| [Huge::Never, Huge::Always, Huge::Advised].map(|of| of.is_given(always));
        assert_eq!(given(false), [false, false, true]);
        assert_eq!(given(true), [false, true, true]);
    }
}
