//! A rough estimate of a scaling run's duration.

use std::time::Duration;

use super::step::LaunchStep;

/// Time to start and end the ranks of a step.
const LAUNCH: Duration = Duration::from_secs(2);
/// The time for one size, warm-up included, as loads times a pessimistic latency, in nanoseconds.
const LOADS_NS: u64 = 101_000 * 250;
/// Bytes that a rank touches, initialises and checks per nanosecond.
const BUILT_BYTES_PER_NS: u64 = 1;
/// Bytes per nanosecond that one machine's memory accepts from all ranks together.
const MACHINE_BYTES_PER_NS: u64 = 20;

/// Returns the total time of all steps, each over these sizes.
pub fn estimate(steps: &[LaunchStep], sizes_bytes: &[u64]) -> Duration {
    steps.iter().map(|step| LAUNCH + step_duration(step.ranks as u64, sizes_bytes)).sum()
}

fn step_duration(ranks: u64, sizes_bytes: &[u64]) -> Duration {
    let ns = sizes_bytes.iter().map(|&size| {
        let alone = size / BUILT_BYTES_PER_NS;
        let together = size.saturating_mul(ranks) / MACHINE_BYTES_PER_NS;
        alone.max(together).saturating_add(LOADS_NS)
    });
    Duration::from_nanos(ns.fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_ranks_and_larger_sizes_take_longer() {
        let step = |ranks: usize| LaunchStep {
            ranks,
            per_domain: ranks,
            cpus: Vec::new(),
            nodes: Vec::new(),
            stem: String::new(),
        };
        let one = estimate(&[step(1)], &[1 << 20]);
        assert!(one >= LAUNCH && one < LAUNCH * 2);
        assert!(estimate(&[step(1), step(2)], &[1 << 20]) >= LAUNCH * 2);
        assert!(estimate(&[step(64)], &[1 << 30]) > estimate(&[step(1)], &[1 << 30]));
    }
}
