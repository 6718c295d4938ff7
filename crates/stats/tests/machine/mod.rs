//! A small cache simulator: the cost of a walk over a buffer on a machine with known caches.

use std::num::NonZeroU64;

use numalab_stats::{Rng, SizePoint};

const LINE: u64 = 64;

/// The replacement policy of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    Lru,
    /// A tree of bits that point away from the line used last.
    TreePlru,
    /// Two bits of predicted re-reference distance (Jaleel et al., ISCA 2010).
    Srrip,
    Random,
}

impl Replacement {
    pub const ALL: [Self; 4] = [Self::Lru, Self::TreePlru, Self::Srrip, Self::Random];
}

/// A level: bytes, ways (a power of two for the tree), and the cost of a hit.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    pub bytes: u64,
    pub ways: usize,
    pub ns: f64,
}

/// The machine on which a curve is simulated.
#[derive(Clone, Debug)]
pub struct Machine {
    pub levels: Vec<Level>,
    pub memory_ns: f64,
    pub replacement: Replacement,
    /// Page size; pages are placed anywhere in physical memory.
    pub page_bytes: u64,
    /// True if a sibling thread walks at random over a sixteenth of each cache, with one load for
    /// each of ours.
    pub neighbour: bool,
}

struct Cache {
    sets: u64,
    ways: usize,
    replacement: Replacement,
    /// Tags by set; 0 is empty.
    tags: Vec<u64>,
    /// Ages or predictions; for a tree, the first entry of a set is the tree.
    state: Vec<u32>,
    clock: u32,
}

impl Cache {
    fn new(level: &Level, replacement: Replacement) -> Self {
        let lines = usize::try_from(level.bytes / LINE).unwrap();
        let sets = level.bytes / LINE / level.ways as u64;
        let (tags, state) = (vec![0; lines], vec![0; lines]);
        Self { sets, ways: level.ways, replacement, tags, state, clock: 0 }
    }

    /// Looks a line up and inserts it; returns true if it was there.
    fn access(&mut self, line: u64, rng: &mut Rng) -> bool {
        let from = usize::try_from(line % self.sets).unwrap() * self.ways;
        self.clock += 1;
        let of_set = &self.tags[from..from + self.ways];
        let hit = of_set.iter().position(|tag| *tag == line + 1);
        let free = of_set.iter().position(|tag| *tag == 0);
        let way = hit.or(free).unwrap_or_else(|| self.victim(from, rng));
        self.tags[from + way] = line + 1;
        self.touch(from, way, hit.is_some());
        hit.is_some()
    }

    fn victim(&mut self, from: usize, rng: &mut Rng) -> usize {
        let ways = self.ways;
        match self.replacement {
            Replacement::Random => {
                let ways = NonZeroU64::new(ways as u64).unwrap();
                usize::try_from(rng.below(ways)).unwrap()
            }
            Replacement::Lru => (0..ways).min_by_key(|way| self.state[from + way]).unwrap(),
            Replacement::TreePlru => {
                let (mut node, tree) = (1, self.state[from]);
                while node < ways {
                    node = 2 * node + usize::from(tree >> node & 1 == 1);
                }
                node - ways
            }
            Replacement::Srrip => loop {
                if let Some(way) = (0..ways).find(|way| self.state[from + way] >= 3) {
                    return way;
                }
                self.state[from..from + ways].iter_mut().for_each(|state| *state += 1);
            },
        }
    }

    fn touch(&mut self, from: usize, way: usize, hit: bool) {
        match self.replacement {
            Replacement::Lru => self.state[from + way] = self.clock,
            Replacement::Srrip => self.state[from + way] = if hit { 0 } else { 2 },
            Replacement::Random => {}
            Replacement::TreePlru => {
                let mut node = way + self.ways;
                while node > 1 {
                    let (parent, right) = (node / 2, node % 2 == 1);
                    let bit = 1 << parent;
                    // Points to the other side.
                    if right {
                        self.state[from] &= !bit;
                    } else {
                        self.state[from] |= bit;
                    }
                    node = parent;
                }
            }
        }
    }
}

/// Returns numbers 0 to n - 1 in random order.
fn shuffled(n: u64, rng: &mut Rng) -> Vec<u64> {
    let mut order: Vec<u64> = (0..n).collect();
    rng.shuffle(&mut order);
    order
}

impl Machine {
    /// Returns the curve from 4 KiB to `to_bytes`, four points an octave, with this noise.
    pub fn curve(&self, to_bytes: u64, noise: f64, seed: u64) -> Vec<SizePoint> {
        let mut rng = Rng::new(seed);
        let octaves = (to_bytes / 4096).ilog2();
        let sizes = (0..octaves).flat_map(|octave| (4..8).map(move |part| (1024 * part) << octave));
        let point = |size_bytes| {
            let gauss = (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0;
            let latency_ns = self.walk(size_bytes, &mut rng) * (1.0 + noise * gauss);
            SizePoint { size_bytes, latency_ns }
        };
        sizes.map(point).collect()
    }

    /// Returns the mean cost of a load on a walk around a buffer that was walked once before.
    fn walk(&self, size_bytes: u64, rng: &mut Rng) -> f64 {
        let mut caches: Vec<Cache> =
            self.levels.iter().map(|level| Cache::new(level, self.replacement)).collect();
        let page_lines = self.page_bytes / LINE;
        let frames = shuffled((size_bytes / self.page_bytes).max(1) + 4096, rng);
        let order = shuffled(size_bytes / LINE, rng);
        let (mut cost, mut loads) = (0.0, 0_u32);
        let rounds = if order.len() < 4096 { 6 } else { 2 };
        for round in 0..rounds {
            for line in &order {
                let page = usize::try_from(line / page_lines).unwrap();
                let physical = frames[page] * page_lines + line % page_lines;
                if self.neighbour {
                    self.disturb(&mut caches, rng);
                }
                let level = caches.iter_mut().position(|cache| cache.access(physical, rng));
                if round > 0 {
                    cost += level.map_or(self.memory_ns, |level| self.levels[level].ns);
                    loads += 1;
                }
            }
        }
        cost / f64::from(loads)
    }

    fn disturb(&self, caches: &mut [Cache], rng: &mut Rng) {
        for (cache, level) in caches.iter_mut().zip(&self.levels) {
            let lines = NonZeroU64::new(level.bytes / LINE / 16).unwrap();
            cache.access((1 << 40) + rng.below(lines), rng);
        }
    }
}
