//! Random processes with known truth.
#![allow(dead_code, clippy::allow_attributes, reason = "each test uses a part of this")]

use numalab_stats::Rng;

/// Returns a standard normal number (Box & Muller, Ann. Math. Stat. 29, 1958).
pub fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.uniform()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.uniform()).cos()
}

/// The distribution of samples, as log ratios with a standard deviation near 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    Normal,
    /// Student's t with three degrees of freedom.
    HeavyTailed,
    /// Nine in ten are fast and the others slow, as with boots.
    TwoKindsOfBoot,
    /// Occasionally far too slow, never too fast.
    Skewed,
}

impl Noise {
    pub const ALL: [Self; 4] =
        [Self::Normal, Self::HeavyTailed, Self::TwoKindsOfBoot, Self::Skewed];

    pub fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Normal => normal(rng),
            Self::HeavyTailed => {
                let squares: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
                normal(rng) / (squares / 3.0).sqrt() / 3.0_f64.sqrt()
            }
            Self::TwoKindsOfBoot => {
                let usual = 0.1 * normal(rng);
                usual + if rng.uniform() < 0.1 { 3.0 } else { 0.0 }
            }
            Self::Skewed => -rng.uniform().max(1e-300).ln() - 1.0,
        }
    }
}

/// Returns `n` values of a Gaussian AR(1) process with mean 0, variance 1 and lag-1 correlation
/// `phi`.
pub fn autoregressive(n: usize, phi: f64, rng: &mut Rng) -> Vec<f64> {
    let innovation = (1.0 - phi * phi).sqrt();
    let mut value = normal(rng);
    std::iter::repeat_with(|| {
        let this = value;
        value = phi * value + innovation * normal(rng);
        this
    })
    .take(n)
    .collect()
}

/// Returns the number of repeats of a simulation: ten times more with `NUMALAB_LONG=1`.
pub fn repeats(short: u32) -> u32 {
    if std::env::var_os("NUMALAB_LONG").is_some_and(|long| long == "1") {
        10 * short
    } else {
        short
    }
}

/// Returns the share of `repeats` in which `happens` is true, each with a separate generator.
pub fn share(repeats: u32, mut happens: impl FnMut(&mut Rng) -> bool) -> f64 {
    let hits = (0..repeats).filter(|seed| happens(&mut Rng::new(u64::from(*seed) + 1))).count();
    hits as f64 / f64::from(repeats)
}

/// Returns four standard errors of a share of about 95 % (or 5 %) in this number of repeats.
pub fn slack(repeats: u32) -> f64 {
    4.0 * (0.95 * 0.05 / f64::from(repeats)).sqrt()
}
