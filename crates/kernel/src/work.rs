//! What the kernel can be asked to do, and the arithmetic of it.

/// A workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A pointer chase by every cpu on every node's memory.
    Chase,
    /// Threads that fill an arena each and read it at random.
    TestNuma,
    /// Frames allocated, touched and freed by every cpu at once.
    Storm,
    /// Streams of all cpus of a node on each node's memory.
    Bandwidth,
    /// Guests' memory on its node.
    Guests,
    /// The storm on 1, 2, 4, ... cpus.
    Scaling,
    /// All memory taken by one cpu, nearest first.
    Exhaust,
    /// A null pointer used by the last cpu, to see that it is told.
    Fault,
}

impl Work {
    /// Every workload.
    pub const ALL: [Self; 8] = [
        Self::Chase,
        Self::TestNuma,
        Self::Storm,
        Self::Bandwidth,
        Self::Guests,
        Self::Scaling,
        Self::Exhaust,
        Self::Fault,
    ];

    /// What a command line may name.
    pub const EXPECTED: &'static str = "none, or some of chase, test_numa, storm, bandwidth, \
                                        guests, scaling, exhaust, fault, with commas between";

    /// Its name on the command line and in results.
    #[must_use]
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
        }
    }

    /// The workload of a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|work| work.name() == name)
    }
}

/// Where random numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// Each thread's own.
    Inline,
    /// One for all threads, behind a lock, as the C library's `rand()`: it hides much of what
    /// is to be measured.
    Shared,
}

/// A thread's own random numbers: xorshift64* (Vigna, "An experimental exploration of
/// Marsaglia's xorshift generators, scrambled", 2016).
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed and a stream of it.
    #[must_use]
    pub const fn new(seed: u64, stream: u64) -> Self {
        // SplitMix64's finalizer: neighbouring seeds give unlike states, and never 0.
        let mut state = seed.wrapping_add((stream + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((state ^ (state >> 31)) | 1)
    }

    /// The next number.
    #[inline]
    pub const fn draw(&mut self) -> u64 {
        let mut state = self.0;
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.0 = state;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`, each as likely as any other to one part in 2^32 for limits
    /// below 2^32 (Lemire's multiplication, without his correction).
    #[inline]
    pub const fn below(&mut self, limit: u64) -> u64 {
        let wide = (self.draw() as u128) * (limit as u128);
        let [.., high] = [wide, wide >> 64];
        u64::from_le_bytes(low_half(high))
    }
}

const fn low_half(wide: u128) -> [u8; 8] {
    let bytes = wide.to_le_bytes();
    let mut low = [0; 8];
    let mut place = 0;
    while place < 8 {
        low[place] = bytes[place];
        place += 1;
    }
    low
}

/// The numbers of the GNU C library's `rand()` (its type 3: additive feedback over 31 words, a
/// number being the sum of the ones 3 and 31 before it).
#[derive(Clone, Debug)]
pub struct Additive {
    words: [u32; 31],
    place: usize,
}

impl Additive {
    /// The numbers after `srand(seed)`.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        let mut words = [0; 31];
        // Lehmer's generator, 16807 times the last one modulo 2^31 - 1; a seed of 0 counts as 1.
        let mut word = u64::from(seed.max(1));
        for slot in &mut words {
            let [a, b, c, d, ..] = word.to_le_bytes();
            *slot = u32::from_le_bytes([a, b, c, d]);
            word = word * 16_807 % 0x7fff_ffff;
        }
        let mut numbers = Self { words, place: 0 };
        for _ in 0..310 {
            numbers.draw();
        }
        numbers
    }

    /// The next number, below 2^31.
    pub fn draw(&mut self) -> u32 {
        let three_before = self.words[(self.place + 28) % 31];
        let word = self.words[self.place].wrapping_add(three_before);
        self.words[self.place] = word;
        self.place = (self.place + 1) % 31;
        word >> 1
    }
}

/// The places of `count` cpus out of nodes' cpus, dealt to the nodes in turn: the first of each
/// node, then the second of each, as far as there are any.
pub fn dealt(nodes_of_cpus: &[u16], count: usize) -> impl Iterator<Item = usize> {
    let rank = |place: usize| {
        let node = nodes_of_cpus[place];
        nodes_of_cpus[..place].iter().filter(|&&other| other == node).count()
    };
    let mut places: alloc::vec::Vec<usize> = (0..nodes_of_cpus.len()).collect();
    places.sort_by_key(|&place| (rank(place), nodes_of_cpus[place], place));
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

    #[test]
    fn random_numbers_are_below_their_limit_evenly_and_repeat_with_their_seed() {
        let mut random = Random::new(1, 0);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[usize::try_from(random.below(10)).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        let take = |seed, stream| {
            let mut random = Random::new(seed, stream);
            [random.draw(), random.draw()]
        };
        assert_eq!(take(1, 2), take(1, 2));
        assert_ne!(take(1, 2), take(1, 3));
        assert_ne!(take(1, 2), take(2, 2));
    }
}
