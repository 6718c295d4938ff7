//! The distribution of accesses over the parts of a working set.

use numalab_formats::size::format_rounded;

use crate::error::MeasureError;

/// Accesses in a round, which visits every part in proportion to its heat.
pub(super) const ROUND_LOADS: u64 = 40_000;
/// Smallest part of a Zipf distribution: a page.
const PAGE_BYTES: u64 = 4096;

/// The hot part is the working set divided by this, unless its size is given.
const USUAL_PART: u64 = 8;

/// The distribution of accesses over the working set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Heat {
    /// A hot set of this size gets this share of the accesses, and the rest of memory gets the
    /// others.
    Hot {
        /// Bytes of the hot set.
        bytes: u64,
        /// Percentage of all accesses that go to the hot set.
        percent: u32,
    },
    /// A page of rank n is accessed in proportion to 1/n, in steps: ranks 2^k to 2^(k+1) share the
    /// accesses of a step, and all steps get the same number.
    Zipf,
    /// Accesses every page equally often.
    Uniform,
}

impl Heat {
    /// Returns a hot set, by default an eighth of the working set, with this share of the accesses.
    ///
    /// # Errors
    /// [`MeasureError::HotSet`] if it is smaller than a page or larger than the rest.
    pub fn hot(bytes: Option<u64>, percent: u32, size_bytes: u64) -> Result<Self, MeasureError> {
        let bytes = bytes.unwrap_or(size_bytes / USUAL_PART);
        if (PAGE_BYTES..=size_bytes / 2).contains(&bytes) {
            return Ok(Self::Hot { bytes, percent });
        }
        let [hot, half] = [bytes, size_bytes / 2].map(format_rounded);
        Err(MeasureError::HotSet { hot, half })
    }

    /// Returns the parts of a working set in bytes, coldest first, so that the hottest part is
    /// touched last and finds the fast tier full. Their sum is at most `size_bytes`, in whole
    /// pages.
    pub(super) fn parts(self, size_bytes: u64) -> Vec<u64> {
        let size = size_bytes / PAGE_BYTES * PAGE_BYTES;
        match self {
            Self::Uniform => vec![size],
            Self::Hot { bytes, .. } => {
                let hot = bytes / PAGE_BYTES * PAGE_BYTES;
                vec![hot; usize::try_from(size / hot.max(PAGE_BYTES)).unwrap_or(usize::MAX)]
            }
            Self::Zipf => {
                let mut parts = Vec::new();
                let (mut left, mut step) = (size, PAGE_BYTES);
                while left > 0 {
                    // A rest smaller than a step belongs to the last part.
                    let part = if left < 3 * step { left } else { step };
                    parts.push(part);
                    (left, step) = (left - part, step * 2);
                }
                parts.reverse();
                parts
            }
        }
    }

    /// Returns each part's accesses in a round after the hot set has moved on by `moved` parts.
    pub(super) fn loads(self, parts: usize, moved: usize) -> Vec<u64> {
        let each = ROUND_LOADS / (parts.max(1) as u64);
        let Self::Hot { percent, .. } = self else { return vec![each; parts] };
        let hot_loads = ROUND_LOADS * u64::from(percent) / 100;
        let cold_loads = (ROUND_LOADS - hot_loads) / (parts.max(2) as u64 - 1);
        let hot = self.hottest(parts, moved);
        (0..parts).map(|part| if part == hot { hot_loads } else { cold_loads }).collect()
    }

    pub(super) fn hottest(self, parts: usize, moved: usize) -> usize {
        let moved = if matches!(self, Self::Hot { .. }) { moved } else { 0 };
        (2 * parts - 1 - moved % parts.max(1)) % parts.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_hot_set_gets_its_share_and_moves_on_by_its_own_size() {
        let heat = Heat::Hot { bytes: MIB, percent: 90 };
        assert_eq!(heat.parts(4 * MIB), [MIB; 4]);
        assert_eq!(heat.loads(4, 0), [1333, 1333, 1333, 36_000]);
        assert_eq!(heat.loads(4, 1), [1333, 1333, 36_000, 1333]);
        assert_eq!(heat.loads(4, 4), heat.loads(4, 0));
    }

    #[test]
    fn zipf_has_the_hottest_page_last_and_steps_that_double() {
        let parts = Heat::Zipf.parts(64 << 10);
        assert_eq!(parts.iter().sum::<u64>(), 64 << 10);
        assert_eq!(parts.last(), Some(&4096));
        assert!(parts.windows(2).all(|pair| pair[0] >= pair[1]), "{parts:?}");
        assert_eq!(Heat::Zipf.loads(parts.len(), 3), vec![10_000; 4]);
    }

    #[test]
    fn uniform_is_one_part_and_has_all_accesses() {
        assert_eq!(Heat::Uniform.parts(MIB + 5), [MIB]);
        assert_eq!(Heat::Uniform.loads(1, 7), [ROUND_LOADS]);
        assert_eq!(Heat::Uniform.hottest(1, 7), 0);
    }
}
