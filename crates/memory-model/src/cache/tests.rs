use std::collections::{HashMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::machine::Scope;

fn level(sets: u64, ways: u32) -> CacheLevel {
    let size_bytes = 64 * sets * u64::from(ways);
    CacheLevel {
        level: 1,
        size_bytes,
        ways,
        line_bytes: 64,
        scope: Scope::Cpu,
        latency_ns: 0.0,
        life_ns: 0.0,
    }
}

/// A reference implementation with queues of line numbers.
struct Oracle {
    sets: HashMap<u64, VecDeque<u64>>,
    count: u64,
    ways: usize,
}

impl Oracle {
    fn access(&mut self, address: u64) -> bool {
        let line = address / 64;
        let set = self.sets.entry(line % self.count).or_default();
        let hit = set.contains(&line);
        set.retain(|held| *held != line);
        set.push_front(line);
        set.truncate(self.ways);
        hit
    }
}

proptest! {
    #[test]
    fn hits_are_those_of_a_naive_cache(
        sets in 1_u64..20,
        ways in 1_u32..9,
        addresses in prop::collection::vec(0_u64..16_384, 1..600),
        quickly in any::<bool>(),
    ) {
        let cache = Cache::new(&level(sets, ways));
        let mut oracle = Oracle { sets: HashMap::new(), count: sets, ways: ways as usize };
        for address in addresses {
            let hit = oracle.access(address);
            prop_assert_eq!(cache.holds(address), hit);
            let held = quickly && cache.access_held(address);
            prop_assert_eq!(held, hit && quickly);
            prop_assert_eq!(held || cache.access(address), hit);
        }
    }
}

#[test]
fn an_invalidated_line_leaves_the_order_of_the_others() {
    let cache = Cache::new(&level(1, 3));
    assert!([0, 64, 128].iter().all(|&address| !cache.access(address)));
    cache.lose(64);
    cache.lose(4096);
    assert_eq!([0, 64, 128].map(|address| cache.holds(address)), [true, false, true]);
    cache.access(192);
    cache.access(256);
    assert!(!cache.holds(0) && cache.holds(128), "the oldest goes first");
}

#[test]
fn a_line_that_was_stored_to_is_reported_once_when_it_is_evicted() {
    let cache = Cache::new(&level(1, 2));
    let evicted = |address, stores| cache.request(address, stores, 0).evicted;
    assert_eq!([evicted(0, true), evicted(64, false), evicted(128, false)], [None, None, Some(0)]);
    assert_eq!([evicted(0, false), evicted(192, false)], [None, None], "it has gone back");
    // A load of a modified line leaves it modified, on the fast path too.
    cache.request(256, true, 0);
    assert!(cache.has_stored(256) && !cache.has_stored(192));
    assert!(!cache.access(0) && cache.access_held(256) && cache.access(256));
    assert_eq!([evicted(64, false), evicted(128, false)], [None, Some(256)]);
    cache.lose(128);
    assert_eq!([evicted(64, true), evicted(320, true)], [None, None]);
    assert_eq!([evicted(0, false), evicted(128, false)], [Some(64), Some(320)]);
}

#[test]
fn a_working_set_of_the_caches_size_always_hits_and_one_line_more_never_does() {
    let cache = Cache::new(&level(1, 8));
    for round in 0..3 {
        let hits = (0..8).filter(|line| cache.access(line * 64)).count();
        assert_eq!(hits, if round == 0 { 0 } else { 8 });
    }
    cache.clear();
    for _ in 0..3 {
        assert_eq!((0..9).filter(|line| cache.access(line * 64)).count(), 0);
    }
}

#[test]
fn a_shared_cache_holds_a_contiguous_buffer_of_its_size_and_lines_at_one_offset_in_their_share_of_sets()
 {
    // 1 MiB, 1.5 MiB and 32 MiB, with 16 ways.
    for (sets, ways) in [(1024, 16), (1536, 16), (1 << 15, 16)] {
        let hits = |scope, apart: u64, lines: u64| {
            let cache = Cache::new(&CacheLevel { scope, ..level(sets, ways) });
            (0..lines).for_each(|line| _ = cache.access(line * apart * 64));
            (0..lines).filter(|line| cache.holds(line * apart * 64)).count() as f64
        };
        // Lines at one offset in many pages have one in 64 sets; those of every fourth line one in four.
        let share = (sets / 64 * u64::from(ways)).min(512);
        assert!(hits(Scope::Group, sets, 512) / share as f64 > 0.85, "{sets}");
        let fourth = hits(Scope::Group, 4, sets * u64::from(ways) / 2);
        assert!(fourth / (sets * u64::from(ways) / 4) as f64 <= 1.0, "{sets}: {fourth}");
        let in_few_sets = hits(Scope::Cpu, sets, 512);
        assert!(in_few_sets < 20.0, "{in_few_sets}");
        let all = sets * u64::from(ways);
        assert!(hits(Scope::Group, 1, all) / all as f64 > 0.85, "{sets}");
    }
}

#[test]
fn scattered_frames_spread_a_buffer_but_not_lines_at_one_offset_of_many_pages() {
    // 512 KiB with 8 ways and 1.25 MiB with 10: lines at one offset have 16 and 32 sets.
    for (sets, ways, of_offset) in [(1024_u64, 8_u32, 16.0), (2048, 10, 32.0)] {
        let held = |apart: u64, lines: u64| {
            let cache = Cache::scattered(&level(sets, ways), 4096);
            (0..lines).for_each(|line| _ = cache.access(line * apart));
            (0..lines).filter(|line| cache.holds(line * apart)).count() as f64
        };
        let half = sets * u64::from(ways) / 2;
        assert!(held(64, half) / half as f64 > 0.9, "{sets}");
        for apart in [4096, 16_384, 64 << 10] {
            let most = of_offset * f64::from(ways);
            let found = held(apart, 1024);
            assert!(found <= most && found > 0.7 * most, "{found} of {most}, {apart} apart");
        }
        assert!(held(64 * sets, u64::from(ways) * 2) > f64::from(ways), "not in one set");
    }
}

#[test]
fn consecutive_frames_fall_into_places_as_if_at_random() {
    // 32 places for eight frames each; of 256 frames at random, 36 find no room.
    let kept = |first: u64| {
        let cache = Cache::scattered(&level(2048, 8), 4096);
        let lines = || (first..first + 256).map(|frame| frame * 4096);
        lines().for_each(|line| _ = cache.access(line));
        lines().filter(|line| cache.holds(*line)).count()
    };
    let kept: Vec<usize> = (0..64).map(|part| kept(part << 9)).collect();
    let mean = kept.iter().sum::<usize>() / kept.len();
    assert!((217..224).contains(&mean), "{mean} of 256: {kept:?}");
}

#[test]
fn a_cache_that_evicts_at_random_keeps_some_lines_of_a_set_that_is_too_small() {
    let hits = |ways: u32, lines: u64| {
        let cache = Cache::new(&level(1, ways)).at_random();
        let line = |at: u64| cache.access(at % lines * 64);
        (0..100 * lines).for_each(|at| _ = line(at));
        (0..100 * lines).filter(|at| line(*at)).count() as f64 / (100 * lines) as f64
    };
    assert!(hits(8, 8) == 1.0);
    // If the oldest line were evicted, none would be there.
    let [nine, sixteen] = [9, 16].map(|lines| hits(8, lines));
    assert!((0.6..0.8).contains(&nine) && (0.1..0.2).contains(&sixteen), "{nine} {sixteen}");
    assert_eq!([1, 2].map(|ways| hits(ways, 3)), [0.0; 2], "nothing to choose from");
    let cache = Cache::new(&level(1, 4)).at_random();
    let evicts = |at: u64| cache.request(at * 64, true, 0).evicted;
    assert_eq!([0, 1, 2, 3].map(evicts), [None; 4]);
    assert!((4..50).all(|at| evicts(at).is_some_and(|of| of < (at - 1) * 64)), "not the last one");
}
