//! The range of sums that walks narrow until few are left.

use super::{MARGIN, Staircase};

/// Guesses were right if the range that they leave is at most this number of margins wide.
const HIT: f64 = 4.0;

/// A range of sums that includes both ends, which are sums themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub low: f64,
    pub high: f64,
    /// The number of sums below `low`.
    pub below: usize,
    /// The number of sums that are at most `high`.
    pub up_to: usize,
}

impl Range {
    /// Narrows the range that holds the k-th sum until it has at most `few` sums, or finds that one.
    pub fn narrowed(
        mut self,
        k: usize,
        few: usize,
        mut margin: f64,
        walk: impl Fn(f64) -> Staircase,
    ) -> Result<f64, Self> {
        while self.low < self.high {
            let begun = self;
            if begun.left() <= few {
                return Err(self);
            }
            let share = (k - begun.below) as f64 / begun.left() as f64;
            for share in [share - margin, share + margin] {
                let limit = begun.low + share * (begun.high - begun.low);
                self.try_limit(k, limit, &walk);
            }
            // A range that is not halved is bisected: where interpolation fails, that is the bound.
            if self.left() > begun.left() / 2 && self.low < self.high {
                let limit = float(ordered(self.low).midpoint(ordered(self.high)));
                self.look(k, walk(limit));
            }
            // The smaller the range, the more even are its sums.
            let is_hit = self.left() as f64 <= HIT * margin * begun.left() as f64;
            margin = if is_hit { margin * margin } else { MARGIN };
        }
        Ok(self.high + 0.0)
    }

    /// Walks along a limit within the range, and narrows it.
    pub fn try_limit(&mut self, k: usize, limit: f64, walk: impl Fn(f64) -> Staircase) {
        if (self.low..self.high).contains(&limit) {
            self.look(k, walk(limit));
        }
    }

    /// Moves the end of the range that is on the same side of the k-th sum as the limit.
    fn look(&mut self, k: usize, seen: Staircase) {
        if seen.count >= k {
            (self.high, self.up_to) = (seen.below, seen.count);
        } else {
            (self.low, self.below) = (seen.above, seen.count);
        }
    }

    /// Returns the number of sums in the range.
    pub fn left(&self) -> usize {
        self.up_to - self.below
    }
}

/// Maps a float to an integer with the same order.
pub(crate) fn ordered(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Returns the float of an [`ordered`] integer.
fn float(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered ^ (1 << 63) } else { !ordered })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_survive_the_round_trip_through_ordered_bits() {
        let line = [-1e300, -1.0, -1e-310, -0.0, 0.0, 5e-324, 2.5, 1e300];
        assert!(line.windows(2).all(|pair| ordered(pair[0]) < ordered(pair[1])));
        assert!(line.iter().all(|x| float(ordered(*x)).to_bits() == x.to_bits()));
    }
}
