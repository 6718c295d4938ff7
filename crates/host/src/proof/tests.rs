use proptest::prelude::*;

use super::*;

const NUMA_MAPS: &str = "\
5581a2e0a000 default file=/bin/cat mapped=2 N0=2 kernelpagesize_kB=4
7f0000000000 bind:1 anon=1536 dirty=1536 active=0 N0=24 N1=1512 kernelpagesize_kB=4
7f0000600000 bind:1 anon=1 dirty=1 N1=1 kernelpagesize_kB=4
";

#[test]
fn pages_are_counted_by_node_within_the_range_and_over_a_split_mapping() {
    let pages = pages_per_node(NUMA_MAPS, 0x7f00_0000_0000, 6 << 20);
    assert_eq!(pages, BTreeMap::from([(NodeId(0), 24), (NodeId(1), 1512)]));
    let pages = pages_per_node(NUMA_MAPS, 0x7f00_0000_0000, 8 << 20);
    assert_eq!(pages.get(&NodeId(1)), Some(&1513));
}

#[test]
fn memory_that_is_partly_on_transparent_huge_pages_is_proven_with_their_share() {
    let size = 8 << 20;
    let mut mapping = Mapping::new(size, Pages::Transparent).expect("mapped");
    let half = &mut mapping.as_bytes_mut()[..size / 2];
    // SAFETY: the range is borrowed for writing, and not touched yet.
    let refused =
        unsafe { libc::madvise(half.as_mut_ptr().cast(), half.len(), libc::MADV_NOHUGEPAGE) };
    assert_eq!(refused, 0);
    mapping.populate().expect("populated");
    let Ok(sizes) = prove_page_size(mapping.span(), 2 << 20) else {
        eprintln!("NOT RUN: this kernel gives no transparent huge pages");
        return;
    };
    assert_eq!(sizes.values().sum::<u64>(), size as u64);
    assert!(sizes[&(2 << 20)] <= size as u64 / 2, "{sizes:?}");
    let half = Span { pages: Pages::HUGE_2M, ..mapping.span() };
    let reserved = prove_page_size(half, 2 << 20).unwrap_err();
    assert!(matches!(reserved, ProofError::WrongPageSize { .. }), "{reserved}");
}

proptest! {
    #[test]
    fn a_sample_has_one_page_of_each_equal_part(pages in 1_u64..1 << 40, parts in 1_u64..500) {
        let parts = parts.min(pages);
        let mut last = None;
        for index in 0..parts {
            let page = sampled_page(index, parts, pages);
            prop_assert!(page < pages);
            prop_assert!(last < Some(page));
            last = Some(page);
        }
    }
}

#[test]
fn a_full_sample_is_every_page() {
    let pages: Vec<u64> = (0..100).map(|index| sampled_page(index, 100, 100)).collect();
    assert_eq!(pages, (0..100).collect::<Vec<u64>>());
}

#[test]
fn memory_interleaved_in_step_with_the_parts_is_found_out() {
    let on_odd = (0..1000).filter(|&index| sampled_page(index, 1000, 8000) % 2 == 1).count();
    assert!((300..700).contains(&on_odd), "{on_odd} of 1000");
}

#[test]
fn pages_elsewhere_are_an_error_that_counts_them() {
    let found = PagesFound {
        method: ProofMethod::MovePages,
        checked: 12,
        absent: 0,
        per_node: BTreeMap::from([(NodeId(0), 9), (NodeId(3), 3)]),
    };
    assert_eq!(
        found.check(&NodeSet::from_iter([NodeId(0)])).unwrap_err().to_string(),
        "3 of 12 pages checked are not on node 0: 9 on node 0, 3 on node 3"
    );
}
