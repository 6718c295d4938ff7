//! Values far from their peers, where many of the peers may be faulty and their noise is unknown.
//!
//! A fleet breaks the usual scores in two ways. A rack with one fault is a tenth of it, and a scale
//! that follows the tails takes the fault for noise. And noise has heavier tails than normal, so
//! that a score of 6 can be chance. The two questions are therefore answered separately:
//!
//! - **Centre and scale** come from the core. Extreme values are removed one by one, up to two
//!   fifths of all, and those up to the last one that stood out are left out (generalised extreme
//!   Studentised deviate test: Rosner, Technometrics 25, 1983; the next to be removed is the
//!   farthest from the median, so that a third of the values on one side does not pull it).
//! - **The tail** is that of Student's distribution with degrees of freedom learned from the side
//!   that is less spread (a fault makes hosts slower, noise acts on both sides). One population of
//!   a hundred carries little information about its tail, so all figures of the fleet are used
//!   together: the prior over degrees of freedom is their mixture (empirical Bayes: Robbins, Ann.
//!   Math. Stat. 35, 1964; an empirical null: Efron, J. Am. Stat. Assoc. 99, 2004), and a
//!   probability is the mean over what remains uncertain.

use statrs::function::{beta::beta_reg, gamma::ln_gamma};

use crate::{Error, Sample};

/// The largest share of values that may be left out of the core.
const MOST_OUTSIDE: f64 = 0.4;
/// A value stands out from the remaining ones if its probability among that number of values is
/// below this.
const OUTSIDE_CHANCE: f64 = 0.001;
/// Degrees of freedom of the candidate tails; the last is normal for any purpose here.
const FREEDOMS: [f64; 8] = [1.5, 2.0, 3.0, 4.5, 7.0, 12.0, 30.0, 1e6];
/// The prior share of heavy tails: a few values do not show the tails, so they count as normal
/// except for this share.
const HEAVY_BEFORE: f64 = 0.03;
/// The least number of populations that have heavy tails before their values count: few populations do
/// not show their tails, and with the share above, a healthy host was named in 11 to 24 % of fleets
/// with four figures.
const HEAVY_AMONG: f64 = 1.25;
/// The largest prior share, so that a value 20 deviations away stands out in a single population.
const MOST_HEAVY: f64 = 0.3;
/// The weight of the prior against the populations, as a share of them. One kind of noise acts on all
/// figures, so a smaller weight learns heavy tails sooner (with a tenth, and a share of 0.1, one host
/// is named in 3 % of fleets of 20 to 60 healthy hosts with heavy tails, not in 7 to 10 %), but then
/// faults of 8 deviations on 4 of 40 hosts are not found.
const WEIGHT_BEFORE: f64 = 1.0;
/// The factor on the degrees of freedom: they are learned from the bulk of the values, and a sum
/// over several sources has a heavier tail than those suggest.
const HEAVIER: f64 = 0.75;
/// A kind of tail with a smaller share adds nothing to a probability; of many values, most kinds have
/// less.
const LEAST_TAIL: f64 = 1e-20;
/// Rounds of expectation maximisation for a scale.
const SCALE_ROUNDS: usize = 12;
/// Rounds for the mixture, to which each population contributes little.
const MIXTURE_ROUNDS: usize = 200;

/// The values of one figure on all peers.
#[derive(Clone, Debug, PartialEq)]
pub struct Population {
    centre: f64,
    /// The standard deviation of the core.
    scale: f64,
    core: usize,
    tails: [Tail; FREEDOMS.len()],
}

/// One kind of tail: the scale with which it fits best, and the likelihood of that fit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tail {
    scale: f64,
    log_likelihood: f64,
}

/// The mixture of tails learned from all populations of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Tails {
    weights: [f64; FREEDOMS.len()],
}

impl Population {
    /// Finds core and tails; the scale is never below `least_scale`.
    ///
    /// # Errors
    /// [`Error::Empty`] and [`Error::NotFinite`] as [`Sample::new`].
    pub fn new(values: &[f64], least_scale: f64) -> Result<Self, Error> {
        let sample = Sample::new(values)?;
        let core = core(sample.sorted());
        let count = core.len() as f64;
        let centre = core.iter().sum::<f64>() / count;
        let squares: f64 = core.iter().map(|value| (value - centre).powi(2)).sum();
        let scale = (squares / (count - 1.0).max(1.0)).sqrt().max(least_scale);
        let distances = |side: f64| -> Vec<f64> {
            let of = sample.sorted().iter().map(|value| side * (value - centre) / scale);
            of.filter(|distance| *distance >= 0.0).collect()
        };
        let (below, above) = (distances(-1.0), distances(1.0));
        let spread = |side: &[f64]| side.iter().map(|z| z.powi(2).ln_1p()).sum::<f64>();
        let calm = if spread(&below) < spread(&above) { below } else { above };
        let mut inner: Vec<f64> =
            core.iter().map(|value| ((value - centre) / scale).abs()).collect();
        let reach = inner.iter().copied().fold(0.0, f64::max);
        inner.extend(calm.iter().filter(|distance| **distance > reach));
        let tails = FREEDOMS.map(|freedom| Tail::fitted(freedom, &inner, &calm));
        Ok(Self { centre, scale, core: core.len(), tails })
    }

    /// Returns the distance of a value from the centre in standard deviations of the core.
    pub fn score(&self, value: f64) -> f64 {
        (value - self.centre) / self.scale
    }

    /// Returns the centre, which is the mean of the core.
    pub fn centre(&self) -> f64 {
        self.centre
    }

    /// Returns the standard deviation of the core.
    pub fn scale(&self) -> f64 {
        self.scale
    }
}

impl Tail {
    /// Fits the scale by expectation maximisation over the inner distances, and the likelihood over
    /// those of the calm side.
    fn fitted(freedom: f64, inner: &[f64], calm: &[f64]) -> Self {
        let mut variance = 1.0_f64;
        for _ in 0..SCALE_ROUNDS {
            let weighted: f64 =
                inner.iter().map(|z| z * z * (freedom + 1.0) / (freedom + z * z / variance)).sum();
            variance = (weighted / inner.len() as f64).max(1e-6);
        }
        let scale = variance.sqrt();
        let constant = ln_gamma((freedom + 1.0) / 2.0)
            - ln_gamma(freedom / 2.0)
            - 0.5 * freedom.ln()
            - scale.ln();
        let density =
            |z: &f64| constant - (freedom + 1.0) / 2.0 * (z * z / (variance * freedom)).ln_1p();
        Self { scale, log_likelihood: calm.iter().map(density).sum() }
    }
}

impl Default for Tails {
    /// Returns the prior for many populations.
    fn default() -> Self {
        Self::before(HEAVY_BEFORE)
    }
}

impl Tails {
    /// Returns the prior with this share of heavy tails.
    fn before(heavy: f64) -> Self {
        let mut weights = [heavy / FREEDOMS.len() as f64; FREEDOMS.len()];
        weights[FREEDOMS.len() - 1] += 1.0 - heavy;
        Self { weights }
    }

    /// Learns the mixture of tails from all populations.
    pub fn learned<'a>(populations: impl IntoIterator<Item = &'a Population>) -> Self {
        let likelihoods: Vec<[f64; FREEDOMS.len()]> =
            populations.into_iter().map(Population::likelihoods).collect();
        let heavy = (HEAVY_AMONG / likelihoods.len().max(1) as f64).clamp(HEAVY_BEFORE, MOST_HEAVY);
        let before = Self::before(heavy).weights;
        let mut weights = before;
        for _ in 0..MIXTURE_ROUNDS {
            let weight = WEIGHT_BEFORE * likelihoods.len() as f64;
            let mut sums = before.map(|share| weight * share);
            for likelihood in &likelihoods {
                let posterior = posterior(&weights, likelihood);
                sums.iter_mut().zip(posterior).for_each(|(sum, share)| *sum += share);
            }
            let all: f64 = sums.iter().sum();
            if all > 0.0 {
                weights = sums.map(|sum| sum / all);
            }
        }
        Self { weights }
    }

    /// Returns the probability of a value this far from the centre or farther, if it belonged to
    /// its peers.
    pub fn chance(&self, population: &Population, value: f64) -> f64 {
        let distance = population.score(value);
        if !distance.is_finite() {
            return if distance.is_nan() { 1.0 } else { 0.0 };
        }
        let posterior = posterior(&self.weights, &population.likelihoods());
        let spare = (population.core.max(2) - 1) as f64;
        let tail = |(share, (tail, freedom)): (f64, (&Tail, &f64))| {
            let freedom = (1.0 / (1.0 / (HEAVIER * freedom) + 1.0 / spare)).max(1.0);
            let t = distance / tail.scale;
            share * beta_reg(freedom / 2.0, 0.5, freedom / (freedom + t * t))
        };
        let tails = posterior.into_iter().zip(population.tails.iter().zip(&FREEDOMS));
        let chance: f64 = tails.filter(|(share, _)| *share >= LEAST_TAIL).map(tail).sum();
        chance.min(1.0)
    }
}

impl Population {
    /// Returns the likelihood of each tail, with the best one as 1.
    fn likelihoods(&self) -> [f64; FREEDOMS.len()] {
        let best = self.tails.iter().map(|tail| tail.log_likelihood).fold(f64::MIN, f64::max);
        self.tails.map(|tail| (tail.log_likelihood - best).exp())
    }
}

fn posterior(
    weights: &[f64; FREEDOMS.len()],
    likelihood: &[f64; FREEDOMS.len()],
) -> [f64; FREEDOMS.len()] {
    let mut posterior = *weights;
    posterior.iter_mut().zip(likelihood).for_each(|(share, likelihood)| *share *= likelihood);
    let all: f64 = posterior.iter().sum();
    posterior.map(|share| share / all)
}

/// Returns the sorted values without those that stand out.
fn core(sorted: &[f64]) -> &[f64] {
    let most = crate::whole::floor(MOST_OUTSIDE * sorted.len() as f64);
    let shift = sorted[sorted.len() / 2];
    let (mut sum, mut squares) = (0.0, 0.0);
    for value in sorted {
        sum += value - shift;
        squares += (value - shift).powi(2);
    }
    let mut left = sorted;
    let mut core = sorted;
    for _ in 0..most {
        let count = left.len() as f64;
        let median = 0.5 * (left[(left.len() - 1) / 2] + left[left.len() / 2]);
        let (first, last) = (left[0], left[left.len() - 1]);
        let variance = ((squares - sum * sum / count) / (count - 1.0)).max(0.0);
        let (farthest, rest) = if last - median > median - first {
            (last, &left[..left.len() - 1])
        } else {
            (first, &left[1..])
        };
        left = rest;
        let distance = farthest - shift - sum / count;
        if chance_of_deviate(distance, variance, count) < OUTSIDE_CHANCE {
            core = left;
        }
        sum -= farthest - shift;
        squares -= (farthest - shift).powi(2);
    }
    core
}

/// Returns the probability that the farthest of `count` normal values is this far out (an upper
/// bound: Bonferroni).
fn chance_of_deviate(distance: f64, variance: f64, count: f64) -> f64 {
    if distance == 0.0 || count < 4.0 {
        return 1.0;
    }
    // The largest possible deviate among this number of values.
    let share = distance * distance * count / (variance * (count - 1.0).powi(2));
    if share >= 1.0 || share.is_nan() {
        return 0.0;
    }
    // t^2 / (freedom + t^2) is the share itself.
    count * beta_reg((count - 2.0) / 2.0, 0.5, 1.0 - share)
}
