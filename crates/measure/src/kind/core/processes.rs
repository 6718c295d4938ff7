//! The kernel's work to create a process and to start a program.

use std::io;

use numalab_host::{SmallProgram, SmallSize};
use numalab_membench::{Clock, Stamp};
use numalab_record::Metric;

use crate::error::MeasureError;

/// Children of a program, and its pages of private memory, in one mapping or in one each, while it creates
/// them.
const FORKS: u32 = 4;
const PAGES: u16 = 2048;
const MAPPINGS: u16 = 100;
/// Rounds, of which each program's fastest counts: other work can delay one by more than its children take.
const ROUNDS: usize = 5;

/// Programs that differ by children, pages and mappings: each kind without children and with them.
pub(super) struct Processes([SmallProgram; 6]);

impl Processes {
    /// Writes the programs; returns `None` where a file in memory cannot be made.
    pub fn new() -> Option<Self> {
        let both = |pages, are_apart| -> io::Result<_> {
            let small = |forks| SmallProgram::new(SmallSize { pages, are_apart, forks });
            Ok([small(0)?, small(FORKS)?])
        };
        let [ends, forks] = both(0, false).ok()?;
        let [touches, touches_and_forks] = both(PAGES, false).ok()?;
        let [maps, maps_and_forks] = both(MAPPINGS, true).ok()?;
        Some(Self([ends, forks, touches, touches_and_forks, maps, maps_and_forks]))
    }

    /// Times them; returns nothing where they cannot be executed.
    pub fn take(&self, clock: &Clock) -> Result<Vec<(Metric, f64)>, MeasureError> {
        let Self(programs) = self;
        // The first one finds the kernel's code outside the caches: untimed, or children would seem to take
        // nothing.
        if programs[0].run().is_err() {
            return Ok(Vec::new());
        }
        let mut all_ns = [f64::INFINITY; 6];
        for _ in 0..ROUNDS {
            for (program, least_ns) in programs.iter().zip(&mut all_ns) {
                let start = Stamp::now();
                if program.run().is_err() {
                    return Ok(Vec::new());
                }
                *least_ns = least_ns.min(clock.ns(Stamp::now().since(start)?));
            }
        }
        // A time is more than nothing, however long a program took by chance.
        let each_ns = |with: usize| ((all_ns[with] - all_ns[with - 1]) / f64::from(FORKS)).max(1.0);
        let more_ns = |with: usize, of: u16| (each_ns(with) - each_ns(1)) / f64::from(of);
        let page_ns = more_ns(3, PAGES).max(0.1);
        Ok(vec![
            (Metric::Execute, all_ns[0]),
            (Metric::Fork, each_ns(1)),
            (Metric::ForkPage, page_ns),
            (Metric::ForkMapping, (more_ns(5, MAPPINGS) - page_ns).max(0.1)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use numalab_host::monotonic_raw_ns;

    use super::*;

    #[test]
    fn programs_and_children_take_time() {
        let clock = Clock::calibrate(monotonic_raw_ns, 1_000_000).unwrap();
        let values = Processes::new().unwrap().take(&clock).unwrap();
        let metrics: Vec<Metric> = values.iter().map(|(metric, _)| *metric).collect();
        let fork = [Metric::Fork, Metric::ForkPage, Metric::ForkMapping];
        assert_eq!(metrics, [&[Metric::Execute][..], &fork].concat());
        assert!(values.iter().all(|(_, ns)| *ns > 0.0), "{values:?}");
    }
}
