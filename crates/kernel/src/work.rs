//! The workloads of the kernel, and their arithmetic.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A pointer chase by every cpu on every node's memory.
    Chase,
    /// Threads that each fill an arena and read it at random.
    TestNuma,
    /// Frames allocated, touched and freed by every cpu at once.
    Storm,
    /// Streams of all cpus of a node on each node's memory.
    Bandwidth,
    /// Guests' memory on their nodes.
    Guests,
    /// The storm on 1, 2, 4, ... cpus.
    Scaling,
    /// One cpu allocates all memory, nearest first.
    Exhaust,
    /// The last cpu uses a null pointer, to test that this is reported.
    Fault,
    /// A job runs a job, to test that this is refused.
    Nested,
}

impl Work {
    pub const ALL: [Self; 9] = [
        Self::Chase,
        Self::TestNuma,
        Self::Storm,
        Self::Bandwidth,
        Self::Guests,
        Self::Scaling,
        Self::Exhaust,
        Self::Fault,
        Self::Nested,
    ];

    /// The expected form on a command line.
    pub const EXPECTED: &'static str = "none, or a comma-separated list of chase, test_numa, \
                                        storm, bandwidth, guests, scaling, exhaust, fault, nested";

    /// Returns its name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chase => "chase",
            Self::TestNuma => "test_numa",
            Self::Storm => "storm",
            Self::Bandwidth => "bandwidth",
            Self::Guests => "guests",
            Self::Scaling => "scaling",
            Self::Exhaust => "exhaust",
            Self::Fault => "fault",
            Self::Nested => "nested",
        }
    }

    /// Returns the workload with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|work| work.name() == name)
    }
}

/// The source of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// A separate generator for each thread.
    Inline,
    /// One generator for all threads, behind a lock, like the C library's `rand()`: it hides much
    /// of the effect that is measured.
    Shared,
}

/// The numbers of the GNU C library's `rand()` (its type 3: additive feedback over 31 words, a
/// number being the sum of those 3 and 31 before it).
#[derive(Clone, Debug)]
pub struct Additive {
    words: [u32; 31],
    place: usize,
}

impl Additive {
    /// Returns the numbers after `srand(seed)`.
    pub fn new(seed: u32) -> Self {
        let mut words = [0; 31];
        // Lehmer's generator, 16807 times the last number modulo 2^31 - 1; a seed of 0 counts as 1.
        let mut word = u64::from(seed.max(1));
        for slot in &mut words {
            let [a, b, c, d, ..] = word.to_le_bytes();
            *slot = u32::from_le_bytes([a, b, c, d]);
            word = word * 16_807 % 0x7fff_ffff;
        }
        let mut numbers = Self { words, place: 3 };
        for _ in 0..310 {
            numbers.draw();
        }
        numbers
    }

    /// Returns the next number, below 2^31.
    pub fn draw(&mut self) -> u32 {
        let three_before = self.words[(self.place + 28) % 31];
        let word = self.words[self.place].wrapping_add(three_before);
        self.words[self.place] = word;
        self.place = (self.place + 1) % 31;
        word >> 1
    }
}

/// Returns the indices of `count` of the cpus, taken from the nodes in turn: the first of each
/// node, then the second of each, while there are any.
pub fn dealt(nodes_of_cpus: &[u16], count: usize) -> impl Iterator<Item = usize> {
    let rank = |place: usize| {
        let node = nodes_of_cpus[place];
        nodes_of_cpus[..place].iter().filter(|&&other| other == node).count()
    };
    let mut places: alloc::vec::Vec<usize> = (0..nodes_of_cpus.len()).collect();
    numalab_topology::order::by_key(&mut places, |&place| {
        (rank(place), nodes_of_cpus[place], place)
    });
    places.into_iter().take(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn every_workload_is_found_by_its_name_and_named_in_the_help() {
        for work in Work::ALL {
            assert_eq!(Work::of_name(work.name()), Some(work));
            assert!(Work::EXPECTED.contains(work.name()));
        }
    }

    #[test]
    fn cpus_are_dealt_to_the_nodes_in_turn() {
        let nodes = [0, 0, 0, 2, 2, 1];
        let first: Vec<usize> = dealt(&nodes, 4).collect();
        assert_eq!(first, [0, 5, 3, 1]);
        assert_eq!(dealt(&nodes, 9).count(), 6);
    }

    #[test]
    fn additive_numbers_are_those_of_the_gnu_c_library() {
        let mut numbers = Additive::new(1);
        assert_eq!([(); 3].map(|()| numbers.draw()), [1_804_289_383, 846_930_886, 1_681_692_777]);
        let mut numbers = Additive::new(42);
        assert_eq!([(); 3].map(|()| numbers.draw()), [71_876_166, 708_592_740, 1_483_128_881]);
    }
}
