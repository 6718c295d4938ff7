//! The kernel's work to create a process and to start a program.

use std::io;

use numalab_host::SmallProgram;
use numalab_membench::{Clock, Stamp};
use numalab_record::Metric;

use crate::error::MeasureError;

/// Children of a program, and the pages of private memory that it has while it creates them.
const FORKS: u32 = 4;
const PAGES: u32 = 2048;
/// Rounds, of which each program's fastest counts: other work can delay one by more than its children take.
const ROUNDS: usize = 5;

/// Programs that differ by children and by pages.
pub(super) struct Processes {
    /// One that ends at once, and one with children.
    small: [SmallProgram; 2],
    /// The same two with pages.
    large: [SmallProgram; 2],
}

impl Processes {
    /// Writes the programs; returns `None` where a file in memory cannot be made.
    pub fn new() -> Option<Self> {
        let both = |pages| -> io::Result<_> {
            Ok([SmallProgram::new(pages, 0)?, SmallProgram::new(pages, FORKS)?])
        };
        Some(Self { small: both(0).ok()?, large: both(PAGES).ok()? })
    }

    /// Times them; returns nothing where they cannot be executed.
    pub fn take(&self, clock: &Clock) -> Result<Vec<(Metric, f64)>, MeasureError> {
        let Self { small: [ends, forks], large: [touches, touches_and_forks] } = self;
        // The first one finds the kernel's code outside the caches: untimed, or children would seem to take
        // nothing.
        if ends.run().is_err() {
            return Ok(Vec::new());
        }
        let mut all_ns = [f64::INFINITY; 4];
        for _ in 0..ROUNDS {
            for (program, least_ns) in
                [ends, forks, touches, touches_and_forks].iter().zip(&mut all_ns)
            {
                let start = Stamp::now();
                if program.run().is_err() {
                    return Ok(Vec::new());
                }
                *least_ns = least_ns.min(clock.ns(Stamp::now().since(start)?));
            }
        }
        // A time is more than nothing, however long a program took by chance.
        let each_ns = |with: usize| ((all_ns[with] - all_ns[with - 1]) / f64::from(FORKS)).max(1.0);
        let page_ns = ((each_ns(3) - each_ns(1)) / f64::from(PAGES)).max(0.1);
        Ok(vec![
            (Metric::Execute, all_ns[0]),
            (Metric::Fork, each_ns(1)),
            (Metric::ForkPage, page_ns),
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
        assert_eq!(metrics, [Metric::Execute, Metric::Fork, Metric::ForkPage]);
        assert!(values.iter().all(|(_, ns)| *ns > 0.0), "{values:?}");
    }
}
