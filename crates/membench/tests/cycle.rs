//! Cycles are single cycles for every size, pattern, line size, seed and division into parts.

use numalab_membench::{Chase, Cycle, CycleError, CyclePart, Line, LineSize, Pattern};
use proptest::prelude::*;
use std::num::NonZeroUsize;

/// Lines aligned to 128 bytes, as those of a mapping are.
#[repr(C, align(128))]
#[derive(Clone, Copy)]
struct Pair([Line; 2]);

fn memory(lines: usize) -> Vec<Pair> {
    vec![Pair([Line::ZERO; 2]); lines.div_ceil(2)]
}

fn lines(memory: &mut [Pair]) -> &mut [Line] {
    let size_bytes = size_of_val(memory);
    // SAFETY: pairs of lines are lines, borrowed exclusively for as long.
    unsafe { Line::slice_from_raw(memory.as_mut_ptr().cast(), size_bytes) }.unwrap()
}

fn patterns() -> [Pattern; 7] {
    [
        Pattern::Random,
        Pattern::PageLocal { block_bytes: 128 },
        Pattern::PageLocal { block_bytes: 4096 },
        Pattern::OneLinePerPage { page_bytes: 1024 },
        Pattern::Stride { stride_bytes: 384 },
        Pattern::Stride { stride_bytes: 1 << 20 },
        Pattern::Sequential,
    ]
}

fn plan(pattern: Pattern, size_bytes: usize, line_size: LineSize, seed: u64) -> Option<Cycle> {
    match Cycle::new(pattern, size_bytes, line_size, seed) {
        Ok(cycle) => Some(cycle),
        Err(CycleError::TooSmall { needed_bytes, .. }) => {
            assert!(size_bytes < needed_bytes);
            None
        }
        Err(other) => panic!("{other}"),
    }
}

/// Returns the offsets, in units of the line size, that a walk visits from the first node.
fn walked(chase: &Chase<'_>) -> Vec<usize> {
    let mut walk = chase.walk();
    (0..chase.cycle().nodes())
        .map(|_| {
            let node = walk.offset_bytes() / chase.cycle().line_size().bytes();
            walk.loads(1);
            node
        })
        .collect()
}

#[test]
fn every_small_size_is_one_cycle_in_every_pattern_and_line_size() {
    for count in 1..=300 {
        let mut memory = memory(count);
        for line_size in [LineSize::Bytes64, LineSize::Bytes128] {
            for pattern in patterns() {
                let Some(cycle) = plan(pattern, count * 64, line_size, 7) else {
                    continue;
                };
                Chase::build(cycle, lines(&mut memory)).unwrap().verify().unwrap();
            }
        }
    }
}

#[test]
fn walks_over_one_two_and_three_lines_return_after_that_number_of_loads() {
    for count in 1..=3 {
        let mut memory = memory(count);
        let cycle = plan(Pattern::Random, count * 64, LineSize::Bytes64, 1).unwrap();
        let chase = Chase::build(cycle, lines(&mut memory)).unwrap();
        let mut walk = chase.walk();
        for _ in 1..count {
            walk.loads(1);
            assert_ne!(walk.offset_bytes(), 0);
        }
        walk.loads(1);
        assert_eq!(walk.offset_bytes(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn any_size_is_one_cycle_and_parts_built_separately_give_the_same_one(
        count in 1_usize..20_000,
        pattern in prop::sample::select(patterns().to_vec()),
        seed: u64,
        parts in 1_usize..9,
        backwards: bool,
    ) {
        let Some(cycle) = plan(pattern, count * 64, LineSize::Bytes64, seed) else { return Ok(()) };
        let mut whole = memory(count);
        let mut divided = memory(count);
        let serial = Chase::build(cycle, lines(&mut whole)).unwrap();
        serial.verify().unwrap();

        let mut planned: Vec<CyclePart<'_>> =
            cycle.parts(lines(&mut divided), NonZeroUsize::new(parts).unwrap()).unwrap().collect();
        prop_assert_eq!(planned.len(), parts);
        if backwards {
            planned.reverse();
        }
        let mut built: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                planned.into_iter().map(|part| scope.spawn(|| part.build())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        if backwards {
            built.reverse();
        }
        let joined = Chase::join(built).unwrap();
        prop_assert_eq!(walked(&serial), walked(&joined));
    }
}

#[test]
fn the_same_seed_gives_the_same_cycle_and_another_seed_another_one() {
    let order = |seed| {
        let mut memory = memory(512);
        let cycle = plan(Pattern::Random, 512 * 64, LineSize::Bytes64, seed).unwrap();
        walked(&Chase::build(cycle, lines(&mut memory)).unwrap())
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}

#[test]
fn page_local_finishes_a_block_before_the_next_one_and_the_rest_last() {
    let (block, full_blocks, rest) = (64, 20, 17);
    let count = block * full_blocks + rest;
    let mut memory = memory(count);
    let pattern = Pattern::PageLocal { block_bytes: block * 64 };
    let cycle = plan(pattern, count * 64, LineSize::Bytes64, 3).unwrap();
    let order = walked(&Chase::build(cycle, lines(&mut memory)).unwrap());

    // The walk starts at line 0, somewhere inside its block: rotate to the beginning of a block.
    let start = (0..count).find(|&at| order[at] / block != order[(at + 1) % count] / block);
    let turned: Vec<usize> =
        order.iter().cycle().skip(start.unwrap() + 1).take(count).copied().collect();
    let mut visited: Vec<usize> = turned.iter().map(|line| line / block).collect();
    visited.dedup();
    assert_eq!(visited.len(), full_blocks + 1, "each block in one go");
    assert!(!visited.is_sorted(), "blocks in random order");
    let inside: Vec<usize> = turned.iter().filter(|&&line| line / block == 5).copied().collect();
    assert!(!inside.is_sorted(), "lines of a block in random order");
}

#[test]
fn one_line_per_page_visits_each_page_once_on_lines_that_spread_over_the_sets() {
    let (page, pages) = (4096, 2048);
    let mut memory = memory(page / 64 * pages);
    let pattern = Pattern::OneLinePerPage { page_bytes: page };
    let cycle = plan(pattern, page * pages, LineSize::Bytes64, 5).unwrap();
    assert_eq!(cycle.nodes(), pages);
    let order = walked(&Chase::build(cycle, lines(&mut memory)).unwrap());
    let mut visited: Vec<usize> = order.iter().map(|line| line / 64).collect();
    assert!(!visited.is_sorted());
    visited.sort_unstable();
    assert!(visited.into_iter().eq(0..pages));
    // For a first and a second cache level.
    for sets in [64, 1024, 2048] {
        let mut uses = vec![0; sets];
        order.iter().for_each(|line| uses[line % sets] += 1);
        assert_eq!(uses, vec![pages / sets; sets]);
    }
}

#[test]
fn stride_and_sequential_have_the_documented_order() {
    let mut memory = memory(10);
    let stride = plan(Pattern::Stride { stride_bytes: 256 }, 640, LineSize::Bytes64, 0).unwrap();
    let order = walked(&Chase::build(stride, lines(&mut memory)).unwrap());
    assert_eq!(order, [0, 4, 8, 1, 5, 9, 2, 6, 3, 7]);
    let sequential = plan(Pattern::Sequential, 640, LineSize::Bytes64, 0).unwrap();
    let order = walked(&Chase::build(sequential, lines(&mut memory)).unwrap());
    assert!(order.into_iter().eq(0..10));
}

/// Returns the chi-square of `counts` against equal shares, in standard deviations from its mean.
fn excess_of_chi_square(counts: &[u64]) -> f64 {
    let classes = counts.len() as f64;
    let share = counts.iter().sum::<u64>() as f64 / classes;
    let chi: f64 = counts.iter().map(|&count| (count as f64 - share).powi(2) / share).sum();
    (chi - (classes - 1.0)) / (2.0 * (classes - 1.0)).sqrt()
}

#[test]
fn a_prefetcher_finds_no_stride_to_follow() {
    // On both sides of the size from which a permutation uses fewer rounds.
    for count in [1 << 15, 30_011, 99 * 331, 1 << 16, 70_001] {
        let mut memory = memory(count);
        let cycle = plan(Pattern::Random, count * 64, LineSize::Bytes64, 11).unwrap();
        let order = walked(&Chase::build(cycle, lines(&mut memory)).unwrap());
        let step = |at: usize, by: usize| (order[(at + by) % count] + count - order[at]) % count;
        for by in [1, 2, 3] {
            let mut exact = vec![0_u64; count];
            let mut classes = [0_u64; 128];
            for at in 0..count {
                exact[step(at, by)] += 1;
                classes[step(at, by) * 128 / count] += 1;
            }
            let excess = excess_of_chi_square(&classes);
            assert!(excess < 5.0, "{count} lines, {by} on: classes of steps off by {excess}");
            // Counts of one step are Poisson with mean 1: 13 of them happen once in 10^10.
            let most = exact.iter().max().unwrap();
            assert!(*most < 13, "{count} lines, {by} on: one step {most} times");
        }
        let repeated = (0..count).filter(|&at| step(at, 1) == step((at + 1) % count, 1)).count();
        assert!(repeated < 13, "{count} lines: the same step twice in a row {repeated} times");
    }
}

#[test]
fn steps_inside_a_page_are_uniform_over_many_pages() {
    let (page, pages) = (64, 2048);
    let count = page * pages;
    let mut memory = memory(count);
    let pattern = Pattern::PageLocal { block_bytes: page * 64 };
    let cycle = plan(pattern, count * 64, LineSize::Bytes64, 13).unwrap();
    let order = walked(&Chase::build(cycle, lines(&mut memory)).unwrap());
    let mut steps = [0_u64; 63];
    for pair in order.windows(2).filter(|pair| pair[0] / page == pair[1] / page) {
        steps[(pair[1] + page - pair[0]) % page - 1] += 1;
    }
    let excess = excess_of_chi_square(&steps);
    assert!(excess < 5.0, "steps off by {excess} standard deviations: {steps:?}");
}

#[test]
fn impossible_plans_are_refused_with_the_request() {
    let new = |pattern, size| Cycle::new(pattern, size, LineSize::Bytes64, 0).map(|_| ());
    let pattern = Pattern::Random;
    assert_eq!(
        new(pattern, 63),
        Err(CycleError::TooSmall { pattern, size_bytes: 63, needed_bytes: 64 })
    );
    let pattern = Pattern::OneLinePerPage { page_bytes: 4096 };
    assert_eq!(
        new(pattern, 4095),
        Err(CycleError::TooSmall { pattern, size_bytes: 4095, needed_bytes: 4096 })
    );
    for pattern in [
        Pattern::PageLocal { block_bytes: 192 },
        Pattern::PageLocal { block_bytes: 32 },
        Pattern::OneLinePerPage { page_bytes: 0 },
        Pattern::Stride { stride_bytes: 0 },
        Pattern::Stride { stride_bytes: 100 },
    ] {
        assert_eq!(new(pattern, 1 << 20), Err(CycleError::BadDistance { pattern, line_bytes: 64 }));
    }
}

#[test]
fn memory_too_small_or_misaligned_is_refused() {
    let mut memory = memory(4);
    let cycle = plan(Pattern::Random, 320, LineSize::Bytes64, 0).unwrap();
    assert_eq!(
        Chase::build(cycle, lines(&mut memory)).err(),
        Some(CycleError::MemoryTooSmall { memory_bytes: 256, cycle_bytes: 320 })
    );
    let cycle = plan(Pattern::Random, 128, LineSize::Bytes128, 0).unwrap();
    let off = &mut lines(&mut memory)[1..];
    let address = off.as_ptr().addr();
    assert_eq!(
        Chase::build(cycle, off).err(),
        Some(CycleError::Misaligned { address, line_bytes: 128 })
    );
}

#[test]
fn missing_or_unordered_parts_do_not_join() {
    let cycle = plan(Pattern::Random, 640, LineSize::Bytes64, 0).unwrap();
    let built = |memory: &mut Vec<Pair>, wanted: &[usize]| {
        let two = NonZeroUsize::new(2).unwrap();
        let mut parts: Vec<_> =
            cycle.parts(lines(memory), two).unwrap().map(|part| Some(part.build())).collect();
        Chase::join(wanted.iter().filter_map(|&index| parts[index].take())).err()
    };
    let mut memory = memory(10);
    let refused = |joined_nodes, nodes| Some(CycleError::PartsDoNotJoin { joined_nodes, nodes });
    assert_eq!(built(&mut memory, &[0, 1]), None);
    assert_eq!(built(&mut memory, &[0]), refused(5, 10));
    assert_eq!(built(&mut memory, &[1, 0]), refused(0, 10));
    assert_eq!(built(&mut memory, &[]), refused(0, 0));
}

#[test]
fn parts_of_two_memories_do_not_join() {
    let cycle = plan(Pattern::Random, 640, LineSize::Bytes64, 0).unwrap();
    let two = NonZeroUsize::new(2).unwrap();
    let (mut one, mut other) = (memory(10), memory(10));
    let first = cycle.parts(lines(&mut one), two).unwrap().map(CyclePart::build).next();
    let second = cycle.parts(lines(&mut other), two).unwrap().map(CyclePart::build).nth(1);
    assert_eq!(
        Chase::join(first.into_iter().chain(second)).err(),
        Some(CycleError::PartsDoNotJoin { joined_nodes: 5, nodes: 10 })
    );
}

#[test]
fn memory_beyond_the_cycle_is_unchanged() {
    let mut memory = memory(8);
    lines(&mut memory).fill(Line::ZERO);
    lines(&mut memory)[5].words_mut()[0] = 99;
    let cycle = plan(Pattern::Random, 5 * 64, LineSize::Bytes64, 0).unwrap();
    Chase::build(cycle, lines(&mut memory)).unwrap().verify().unwrap();
    assert_eq!(lines(&mut memory)[5].words()[0], 99);
}
