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

/// Returns touched memory that requested transparent huge pages, but whose first `without` bytes
/// get none, as in fragmented memory.
fn short_of_huge_pages(size: usize, without: usize) -> Mapping {
    let mut mapping = Mapping::new(size, Pages::Transparent).expect("mapped");
    let part = &mut mapping.as_bytes_mut()[..without];
    // SAFETY: the range is borrowed for writing, and not touched yet.
    let refused =
        unsafe { libc::madvise(part.as_mut_ptr().cast(), part.len(), libc::MADV_NOHUGEPAGE) };
    assert_eq!(refused, 0);
    mapping.populate().expect("populated");
    mapping
}

#[test]
fn memory_that_is_partly_on_transparent_huge_pages_is_proven_with_their_share() {
    let size = 8 << 20;
    let mapping = short_of_huge_pages(size, size / 2);
    let Ok(sizes) = prove_page_size(mapping.span(), 2 << 20) else {
        eprintln!("NOT RUN: this kernel gives no transparent huge pages");
        return;
    };
    assert_eq!(sizes.values().sum::<u64>(), size as u64);
    assert!(sizes.get(&(2 << 20)).is_none_or(|&huge| huge <= size as u64 / 2), "{sizes:?}");
    let half = Span { pages: Pages::HUGE_2M, ..mapping.span() };
    let reserved = prove_page_size(half, 2 << 20).unwrap_err();
    assert!(matches!(reserved, ProofError::WrongPageSize { .. }), "{reserved}");
}

#[test]
fn memory_without_any_transparent_huge_page_is_proven_page_by_page() {
    let size = 4 << 20;
    let mapping = short_of_huge_pages(size, size);
    match prove_within(mapping.span(), &NodeSet::new()) {
        Ok(proof) => {
            let base = base_page_bytes();
            assert_eq!(proof.bytes_per_page_size, BTreeMap::from([(base, size as u64)]));
            assert_eq!(proof.pages_checked, size as u64 / base);
            let error = proof.has_pages(Pages::Transparent).unwrap_err();
            let start = "thp requested, but only 0 of 4194304 bytes are in pages of";
            assert!(error.to_string().starts_with(start), "{error}");
        }
        Err(error) => assert_eq!(error.class(), ErrorClass::Lacking, "{error}"),
    }
}

#[test]
fn no_huge_page_is_required_where_the_kernel_allows_them_and_one_where_it_does_not() {
    let kernel = |mode: Option<&str>| {
        let top = tempfile::tempdir().unwrap();
        if let Some(mode) = mode {
            let directory = top.path().join("sys/kernel/mm/transparent_hugepage");
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("enabled"), mode).unwrap();
        }
        least_backed(Pages::Transparent, 4 << 20, &Root::at(top.path()))
    };
    assert_eq!(kernel(Some("always [madvise] never\n")), 0);
    assert_eq!(kernel(Some("always madvise [never]\n")), 1);
    assert_eq!(kernel(None), 1);
    assert_eq!(least_backed(Pages::HUGE_2M, 4 << 20, &Root::live()), 4 << 20);
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
