//! Plateaus of a latency curve over sizes: the effective levels of the memory hierarchy.
//!
//! The logarithms of the latencies are smoothed by the median of three neighbours, which removes
//! one disturbed window, and by isotonic regression, because latency does not fall with size. A
//! plateau is a stretch of three quarters of an octave or more in which this curve rises by less
//! than 8 % an octave and 12 % in total; stretches are taken longest first, and neighbours within
//! 15 % of each other are joined. A shorter stretch is a plateau too if it is a shelf: flat as
//! measured, reached by a rise and left by a doubling within an octave. A cache of which a machine
//! leaves only a small share looks like that; noise on a slope does not.

use crate::{Error, Sample, isotonic, median};

/// The largest rise of a plateau per octave, as a share.
const RISE_PER_OCTAVE: f64 = 0.08;
/// The largest rise of a plateau from end to end, as a share.
const RISE_IN_ALL: f64 = 0.12;
/// Levels within this share of each other are one level.
const SAME_LEVEL: f64 = 0.15;
/// A plateau is disturbed where the curve is above it by this share.
const DISTURBED: f64 = 0.10;
/// A plateau ends where the curve has risen by this share of the step to the next one, which is the
/// share of lines that miss. Random replacement reaches it at 1.28 times the size, conflicting
/// pages at 0.75.
const END: f64 = 0.4;
/// The shortest plateau, in octaves: three quarters leave room for slopes on both sides.
const SHORTEST_OCTAVES: f64 = 0.75;

/// An octave, with room for sizes rounded to pages.
const OCTAVE: f64 = 1.05;
/// The minimum rise over the octave before a shelf, as a share.
const SHELF_REACHED_BY: f64 = 0.5;
/// The shortest shelf, in octaves: at four points an octave, a shorter one is an accident of page
/// placement.
const SHORTEST_SHELF_OCTAVES: f64 = 0.55;
/// The minimum rise over the octave after a shelf, as a share.
const SHELF_LEFT_BY: f64 = 1.0;

/// The rise over an octave, as a share, above which the octave shows no level. The slope from one
/// level to the next is steeper.
const FLATTEST_RISE: f64 = 0.45;

/// A point of a latency curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizePoint {
    /// Size of the buffer, in bytes.
    pub size_bytes: u64,
    /// Latency of a load in ns.
    pub latency_ns: f64,
}

/// A plateau of a latency curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The median latency on the plateau in ns.
    pub latency_ns: f64,
    /// The smallest size on it.
    pub from_bytes: u64,
    /// The largest size on it.
    pub to_bytes: u64,
    /// The effective capacity: the size at which two fifths of the step to the next plateau are
    /// reached, interpolated between sizes. By simulation over replacement policies this is the
    /// cache's size within half an octave; the first misses come earlier, by up to an octave if the
    /// replacement is not LRU or pages conflict. `None` if the curve does not leave the plateau for
    /// good, as in memory.
    pub capacity_bytes: Option<f64>,
    /// The size up to which the plateau is undisturbed, that is where the curve is 10 % above it,
    /// interpolated. `None` as for [`capacity_bytes`](Self::capacity_bytes).
    pub undisturbed_bytes: Option<f64>,
}

/// Finds the plateaus of a latency curve, smallest sizes first.
///
/// Points may come in any order; of several at one size the median counts. A single size is one
/// level; a curve without a long enough flat stretch has no level. Two points an octave are enough;
/// four find short plateaus better.
///
/// # Errors
/// [`Error::Empty`] without points, [`Error::NotPositive`] or [`Error::NotFinite`] for a latency
/// that is not a positive number, [`Error::OutOfRange`] for size 0.
pub fn plateaus(points: &[SizePoint]) -> Result<Vec<Level>, Error> {
    Ok(LatencyCurve::new(points)?.plateaus())
}

/// A latency curve by size: sizes, latencies as measured, and smoothed latencies, by index.
#[derive(Clone, Debug)]
pub struct LatencyCurve {
    sizes_bytes: Vec<u64>,
    /// Logarithms of sizes, base 2.
    octaves: Vec<f64>,
    /// Natural logarithms of latencies.
    measured: Vec<f64>,
    /// Natural logarithms of latencies, smoothed so that they never fall.
    smooth: Vec<f64>,
}

impl LatencyCurve {
    /// Sorts and smooths the points.
    ///
    /// # Errors
    /// As for [`plateaus`].
    pub fn new(points: &[SizePoint]) -> Result<Self, Error> {
        let latencies: Vec<f64> = points.iter().map(|point| point.latency_ns).collect();
        let logs = Sample::new(latencies)?.logs()?;
        let mut by_size: Vec<(u64, f64)> =
            points.iter().zip(logs.values()).map(|(point, log)| (point.size_bytes, *log)).collect();
        by_size.sort_unstable_by_key(|(size_bytes, _)| *size_bytes);
        if by_size[0].0 == 0 {
            let expected = "at least one byte";
            return Err(Error::OutOfRange { what: "size_bytes", value: 0.0, expected });
        }
        let groups = by_size.chunk_by(|a, b| a.0 == b.0);
        let (mut sizes_bytes, mut measured) = (Vec::new(), Vec::new());
        for group in groups {
            let logs: Vec<f64> = group.iter().map(|(_, log)| *log).collect();
            sizes_bytes.push(group[0].0);
            measured.push(Sample::new(logs)?.median());
        }
        let octaves = sizes_bytes.iter().map(|size| (*size as f64).log2()).collect();
        let smooth = isotonic::rising(&medians_of_three(&measured));
        Ok(Self { sizes_bytes, octaves, measured, smooth })
    }

    /// Finds the plateaus, smallest sizes first, as [`plateaus`] does.
    pub fn plateaus(&self) -> Vec<Level> {
        if self.octaves.len() == 1 {
            return vec![self.level((0, 0), None)];
        }
        let mut stretches = Vec::new();
        self.find_stretches(0, self.octaves.len() - 1, &mut stretches);
        let stretches = self.merged(&stretches);
        let next = |at: usize| stretches.get(at + 1).copied();
        let level = |(at, stretch): (usize, &(usize, usize))| self.level(*stretch, next(at));
        stretches.iter().enumerate().map(level).collect()
    }

    /// Returns the size at which the curve passes a limit for good, seen from a level that begins at
    /// `from_bytes`; `None` if it does not, or has passed it there already.
    pub fn passes_at(&self, from_bytes: u64, level_ns: f64, limit_ns: f64) -> Option<f64> {
        let from = self.sizes_bytes.iter().position(|size| *size >= from_bytes)?;
        self.passes(from, level_ns.ln(), limit_ns.ln())
    }

    /// Returns the flattest octave strictly between two sizes that is slower than `above_ns` and
    /// faster than `below_ns`, with its slower end as the latency; `None` if none rises less than 45 %.
    ///
    /// A cache between two others may show no plateau, because most of it is taken by others: the
    /// curve is then least steep over the part that is left.
    pub fn flattest_octave(
        &self,
        between: [u64; 2],
        [above_ns, below_ns]: [f64; 2],
    ) -> Option<Level> {
        let inside =
            |at: &usize| self.sizes_bytes[*at] > between[0] && self.sizes_bytes[*at] < between[1];
        let octave = |from: usize| {
            let to = (from..self.octaves.len()).find(|to| self.span((from, *to)) > 1.0 / OCTAVE)?;
            (inside(&from) && inside(&to)).then_some((from, to))
        };
        let found = (0..self.octaves.len()).filter_map(octave);
        let in_reach = |(from, to): &(usize, usize)| {
            self.smooth[*from] >= above_ns.ln()
                && self.smooth[*to] < below_ns.ln()
                && self.rise((*from, *to)) / self.span((*from, *to)) < FLATTEST_RISE.ln_1p()
        };
        let flattest =
            found.filter(in_reach).min_by(|a, b| self.rise(*a).total_cmp(&self.rise(*b)))?;
        Some(Level {
            latency_ns: self.smooth[flattest.1].exp(),
            from_bytes: self.sizes_bytes[flattest.0],
            to_bytes: self.sizes_bytes[flattest.1],
            capacity_bytes: None,
            undisturbed_bytes: None,
        })
    }

    /// Finds the longest flat stretch between two indices, then those on either side of it.
    fn find_stretches(&self, first: usize, last: usize, found: &mut Vec<(usize, usize)>) {
        let all = (first..last).flat_map(|from| (from + 1..=last).map(move |to| (from, to)));
        let flat = all.filter(|(from, to)| self.is_flat(*from, *to) || self.is_shelf(*from, *to));
        let longest = flat.max_by(|a, b| {
            let (a, b) = ((self.span(*a), -self.rise(*a)), (self.span(*b), -self.rise(*b)));
            a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let Some((from, to)) = longest else { return };
        if from > first {
            self.find_stretches(first, from - 1, found);
        }
        found.push((from, to));
        if to < last {
            self.find_stretches(to + 1, last, found);
        }
    }

    fn is_flat(&self, from: usize, to: usize) -> bool {
        let span = self.span((from, to));
        let allowed = (span * RISE_PER_OCTAVE.ln_1p()).min(RISE_IN_ALL.ln_1p());
        span >= SHORTEST_OCTAVES && self.rise((from, to)) <= allowed
    }

    /// Returns true if a stretch shorter than a plateau is a shelf between two steps.
    fn is_shelf(&self, from: usize, to: usize) -> bool {
        let measured = &self.measured[from..=to];
        let highest = measured.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lowest = measured.iter().copied().fold(f64::INFINITY, f64::min);
        let within_an_octave =
            |at: usize, other: usize| self.span((at.min(other), at.max(other))) <= OCTAVE;
        let before = (0..from).find(|&index| within_an_octave(index, from));
        let after = (to + 1..self.octaves.len()).rev().find(|&index| within_an_octave(to, index));
        let (Some(before), Some(after)) = (before, after) else { return false };
        self.span((from, to)) >= SHORTEST_SHELF_OCTAVES
            && highest - lowest <= RISE_PER_OCTAVE.ln_1p()
            && lowest - self.measured[before] >= SHELF_REACHED_BY.ln_1p()
            && self.measured[after] - highest >= SHELF_LEFT_BY.ln_1p()
            && self.measured.get(after + 1).is_none_or(|next| *next > highest)
    }

    fn span(&self, (from, to): (usize, usize)) -> f64 {
        self.octaves[to] - self.octaves[from]
    }

    fn rise(&self, (from, to): (usize, usize)) -> f64 {
        self.smooth[to] - self.smooth[from]
    }

    /// Joins neighbours that are one level split by noise.
    fn merged(&self, stretches: &[(usize, usize)]) -> Vec<(usize, usize)> {
        let mut merged: Vec<(usize, usize)> = Vec::new();
        for (from, to) in stretches {
            let one_level = |(before, end): &mut (usize, usize)| {
                self.value(*from, *to) - self.value(*before, *end) < SAME_LEVEL.ln_1p()
            };
            let start = merged.pop_if(one_level).map_or(*from, |(before, _)| before);
            merged.push((start, *to));
        }
        merged
    }

    /// Returns the median log latency of a stretch.
    fn value(&self, from: usize, to: usize) -> f64 {
        median(&self.measured[from..=to]).unwrap_or(f64::NAN)
    }

    /// Returns the level of a stretch, with its end on the way to the next one.
    fn level(&self, (from, to): (usize, usize), next: Option<(usize, usize)>) -> Level {
        let value = self.value(from, to);
        let latency_ns = value.exp();
        let disturbed = value + DISTURBED.ln_1p();
        let end = next.map_or(disturbed, |(from, to)| {
            let step = self.value(from, to).exp() - latency_ns;
            (latency_ns + END * step).ln().max(disturbed)
        });
        Level {
            latency_ns,
            from_bytes: self.sizes_bytes[from],
            to_bytes: self.sizes_bytes[to],
            capacity_bytes: self.passes(from, value, end),
            undisturbed_bytes: self.passes(from, value, disturbed),
        }
    }

    /// Returns the size at which the smoothed curve passes a limit for good, with two or more
    /// points above it.
    fn passes(&self, from: usize, value: f64, limit: f64) -> Option<f64> {
        let above = (from..self.smooth.len()).find(|index| self.smooth[*index] > limit)?;
        if above == from || above + 1 == self.smooth.len() {
            return None;
        }
        let (low, high) = (self.smooth[above - 1].max(value), self.smooth[above]);
        let share = (limit - low) / (high - low);
        let octaves = self.octaves[above - 1] + share * self.span((above - 1, above));
        Some(octaves.exp2())
    }
}

/// Replaces each value by its median with its neighbours; the ends stay unchanged.
fn medians_of_three(values: &[f64]) -> Vec<f64> {
    let mut smoothed = values.to_vec();
    for (index, three) in values.windows(3).enumerate() {
        smoothed[index + 1] = median(three).unwrap_or(f64::NAN);
    }
    smoothed
}
