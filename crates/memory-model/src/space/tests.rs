use super::*;
use crate::arguments::machine_of;
use crate::machine::{Core, Family};
use alloc::vec;
use proptest::prelude::*;

/// Returns three nodes of 64 KiB each; node 1 is nearer to node 2 than node 0 is.
fn space() -> Space {
    Space::new(
        &machine_of("cpus=0.1.2,memory=64K.64K.64K,distances=10.20.30/20.10.20/30.20.10"),
        Placement::Local,
    )
}

fn node(space: &mut Space, number: u64, home: usize, placement: &Placement) -> Option<usize> {
    space.touch(number, home, Some(placement), false).map(|page| page.node)
}

#[test]
fn a_page_stays_on_the_node_of_its_first_touch() {
    let mut space = space();
    assert_eq!(node(&mut space, 7, 2, &Placement::Local), Some(2));
    assert_eq!(node(&mut space, 7, 0, &Placement::Local), Some(2));
    space.discard(7..8);
    assert_eq!(node(&mut space, 7, 0, &Placement::Local), Some(0));
}

#[test]
fn pages_go_to_a_node_even_if_its_local_latency_is_not_the_smallest() {
    let machine = machine_of("cpus=0,memory=64K.64K,latency=115.255/255.255");
    let mut space = Space::new(&machine, Placement::Interleave(vec![0, 1]));
    let nodes: Vec<_> = (0..4).map(|number| space.touch(number, 0, None, false)).collect();
    let nodes: Vec<_> = nodes.into_iter().flatten().map(|page| page.node).collect();
    assert_eq!(nodes, [0, 1, 0, 1]);
}

#[test]
fn the_page_table_of_2_mib_is_on_the_node_of_their_first_toucher() {
    let mut space = space();
    space.set_placement(0..8, Some(Placement::Bind(vec![2])), false, 0);
    let mut table = |number, home| {
        let page = space.touch(number, home, None, false).expect("there is room");
        (page.node, page.table)
    };
    assert_eq!([table(3, 1), table(20, 0), table(HUGE_PAGES, 0)], [(2, 1), (0, 1), (0, 0)]);
    space.set_placement(20..21, Some(Placement::Bind(vec![2])), true, 0);
    let moved = space.touch(20, 0, None, false).expect("there is room");
    assert_eq!((moved.node, moved.table), (2, 1));
}

/// All even page numbers are node 0's turn, and so is the first page of each 2 MiB.
#[test]
fn huge_pages_in_place_of_interleaved_small_ones_take_turns() {
    let mut space = space();
    space.set_placement(0..2 * HUGE_PAGES, Some(Placement::Interleave(vec![0, 1])), false, 0);
    let huge = |space: &Space, block: u64, placement: Option<&Placement>| {
        space.node_of_huge(block * HUGE_PAGES + 3, placement)
    };
    assert_eq!(huge(&space, 1, None), None, "nothing is touched");
    for block in 0..4 {
        assert!(node(&mut space, block * HUGE_PAGES, 2, &Placement::Preferred(2)).is_some());
    }
    assert_eq!([0, 1, 2].map(|block| huge(&space, block, None)), [Some(0), Some(1), Some(2)]);
    let turns = Placement::Interleave(vec![1, 2]);
    assert_eq!([2, 3].map(|block| huge(&space, block, Some(&turns))), [Some(1), Some(2)]);
}

#[test]
fn a_range_has_a_placement_before_the_thread_has() {
    let mut space = space();
    space.set_placement(10..20, Some(Placement::Interleave(vec![0, 2])), false, 0);
    let nodes = |space: &mut Space, numbers: Range<u64>| -> Vec<_> {
        numbers.map(|number| node(space, number, 1, &Placement::Preferred(1))).collect()
    };
    assert_eq!(nodes(&mut space, 9..13), [Some(1), Some(0), Some(2), Some(0)]);
    space.set_placement(14..16, None, false, 0);
    assert_eq!(nodes(&mut space, 13..17), [Some(2), Some(1), Some(1), Some(0)]);
    space.unmap(0..64);
    assert_eq!(nodes(&mut space, 10..11), [Some(1)]);
}

#[test]
fn an_untouched_huge_page_is_wholly_on_the_node_of_its_first_touch() {
    let machine = "cpus=0.1,memory=8M.8M,distances=10.20/20.10";
    let mut space = Space::new(&machine_of(machine), Placement::Local);
    let first = space.touch(3 * HUGE_PAGES + 7, 1, None, true).expect("there is room");
    let last = space.touch(4 * HUGE_PAGES - 1, 0, None, false).expect("it is there");
    assert_eq!((first.node, last.node), (1, 1));
    assert_eq!(last.frame - first.frame, (HUGE_PAGES - 8) * PAGE_BYTES);
    assert_eq!((first.frame - 7 * PAGE_BYTES) % (HUGE_PAGES * PAGE_BYTES), 0);
    let alone = space.touch(0, 0, None, false).expect("there is room");
    let beside = space.touch(1, 1, None, true).expect("there is room");
    assert_eq!((alone.node, beside.node), (0, 1));
    space.discard(3 * HUGE_PAGES..4 * HUGE_PAGES);
    assert_eq!(space.bytes_by_node(), [PAGE_BYTES, PAGE_BYTES]);
}

#[test]
fn a_bound_page_stays_on_its_nodes_and_others_fall_back_to_the_nearest() {
    let mut space = space();
    let bound = Placement::Bind(vec![0, 1]);
    // 16 pages per node: the nearer of the two, then the other, then none.
    let nodes: Vec<_> = (0..33).map(|number| node(&mut space, number, 2, &bound)).collect();
    assert!(nodes[..16].iter().all(|node| *node == Some(1)), "{nodes:?}");
    assert!(nodes[16..32].iter().all(|node| *node == Some(0)), "{nodes:?}");
    assert_eq!(nodes[32], None);
    assert_eq!(node(&mut space, 40, 0, &Placement::Local), Some(2));
}

#[test]
fn a_page_is_bound_if_the_program_chose_its_node() {
    let mut space = space();
    let bound = |space: &mut Space, number, said: Option<&Placement>| {
        space.touch(number, 0, said, false).map(|page| page.bound)
    };
    assert_eq!(bound(&mut space, 1, None), Some(false));
    assert_eq!(bound(&mut space, 2, Some(&Placement::Local)), Some(true));
    space.set_placement(1..4, Some(Placement::Bind(vec![1])), true, 0);
    assert_eq!([1, 3].map(|number| bound(&mut space, number, None)), [Some(true); 2]);
}

#[test]
fn a_page_is_placed_by_its_first_store_not_by_reads_before() {
    let mut space = space();
    let zeros = space.read_zeros(5, 1);
    assert_eq!(zeros.map(|page| (page.node, page.table)), Some((0, 1)));
    assert_eq!(space.read_zeros(6, 2).map(|page| page.frame), zeros.map(|page| page.frame));
    assert_eq!((space.zeroed(0..9), space.node_of(5)), (vec![5, 6], None));
    assert_eq!(space.bytes_by_node(), [0; 3]);
    let written = space.touch(5, 2, None, false);
    assert_eq!(written.map(|page| (page.node, page.table)), Some((2, 1)), "the table was there");
    assert_eq!(space.zeroed(0..9), [6]);
}

#[test]
fn pages_that_were_only_read_move_and_go_with_their_mapping() {
    let mut space = space();
    assert!((5..8).all(|number| space.read_zeros(number, 0).is_some()));
    space.remap(5..7, 105);
    assert_eq!(space.zeroed(0..200), [7, 105, 106]);
    space.unmap(105..106);
    space.discard(7..8);
    assert_eq!(space.zeroed(0..200), [106]);
    space.forget_zeros(0..200);
    assert!(space.zeroed(0..200).is_empty());
}

#[test]
fn a_huge_page_replaces_pages_that_were_only_read() {
    let machine = "cpus=0.1,memory=8M.8M,distances=10.20/20.10";
    let mut space = Space::new(&machine_of(machine), Placement::Local);
    assert!(space.read_zeros(HUGE_PAGES + 3, 0).is_some());
    let written = space.touch(HUGE_PAGES + 9, 1, None, true);
    assert_eq!(written.map(|page| page.node), Some(1));
    assert_eq!((space.is_zeroed(HUGE_PAGES + 3), space.node_of(HUGE_PAGES + 3)), (false, Some(1)));
}

#[test]
fn pages_move_on_request() {
    let mut space = space();
    (0..4).for_each(|number| assert_eq!(node(&mut space, number, 0, &Placement::Local), Some(0)));
    space.set_placement(0..4, Some(Placement::Bind(vec![2])), false, 0);
    assert_eq!(space.bytes_by_node(), [4 * PAGE_BYTES, 0, 0]);
    space.set_placement(0..4, Some(Placement::Bind(vec![2])), true, 0);
    assert_eq!(space.bytes_by_node(), [0, 0, 4 * PAGE_BYTES]);
}

#[test]
fn a_moved_mapping_keeps_its_frames_and_its_placement() {
    let mut space = space();
    space.set_placement(0..2, Some(Placement::Preferred(2)), false, 0);
    let before = space.touch(0, 0, Some(&Placement::Local), false);
    space.remap(0..2, 100);
    assert_eq!(space.touch(100, 1, Some(&Placement::Local), false), before);
    assert_eq!(node(&mut space, 101, 0, &Placement::Local), Some(2));
    assert_eq!(node(&mut space, 0, 1, &Placement::Local), Some(1));
}

proptest! {
    #[test]
    fn no_frame_is_two_pages_at_a_time(steps in prop::collection::vec((0_u64..80, 0_usize..3, 0_u8..6), 1..200)) {
        let mut space = space();
        for (number, home, what) in steps {
            match what {
                0 => _ = space.discard(number..number + 3),
                1 => _ = space.unmap(number..number + 9),
                2 => space.set_placement(number..number + 5, Some(Placement::Bind(vec![home])), true, home),
                3 => space.remap(number..number + 4, 200 + number),
                _ => drop(space.touch(number, home, Some(&Placement::Local), false)),
            }
            let mut frames: Vec<u64> = space.pages.values().map(|page| page.frame).collect();
            let pages = frames.len();
            frames.sort_unstable();
            frames.dedup();
            prop_assert_eq!(frames.len(), pages);
            prop_assert!(pages <= 48);
        }
    }
}

#[test]
fn a_zen_finds_a_line_of_zeros_under_one_address_at_a_time() {
    let frames = |family: Family| {
        let mut machine = machine_of("cpus=0,memory=1G,distances=10");
        machine.core = Some(Core { timing: Some(family.timing(0.3)), ..Core::TYPICAL });
        let mut space = Space::new(&machine, Placement::Local);
        let frames = (0..100).map(|number| space.read_zeros(number, 0).unwrap().frame);
        frames.collect::<alloc::collections::BTreeSet<u64>>().len()
    };
    assert_eq!([Family::Zen4, Family::GoldenCove].map(frames), [16, 1]);
}
