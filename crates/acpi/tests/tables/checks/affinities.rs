//! Checks of a single SRAT.

use super::*;
use numalab_acpi::OverlapProblem;

#[test]
fn memory_of_two_domains_that_overlaps_is_found_even_behind_a_longer_range() {
    // The long range hides the second from the third, which overlaps both.
    let bytes = srat(&[memory(0, 0, 100), memory(1, 10, 20), memory(0, 25, 10)]);
    let found = table_findings(&bytes);
    assert_eq!(
        found.iter().map(Finding::code).collect::<Vec<_>>(),
        ["memory-overlaps-across-domains", "memory-overlaps-across-domains",]
    );
    let expected =
        OverlapProblem::AcrossDomains { base: 25, domain: 0, other_domain: 1, other: 88 };
    assert_eq!((found[1].problem, found[1].offset), (expected.into(), 128));
}

#[test]
fn memory_that_is_absent_at_boot_may_overlap_and_ram_may_not() {
    let of = |flags: MemoryFlags, domain, base, length_bytes| {
        let flags = MemoryFlags::ENABLED.with(flags);
        srat::Entry::Memory(MemoryAffinity {
            domain,
            base,
            length_bytes,
            flags,
            ..Default::default()
        })
    };
    let (hot, dimm) = (MemoryFlags::HOT_PLUGGABLE, MemoryFlags::NON_VOLATILE);
    let ram = memory(0, 0, GIB);
    let nvdimm = srat(&[ram, of(dimm, 0, 5 * GIB, GIB), of(hot, 1, 4 * GIB, 8 * GIB)]);
    assert_eq!(codes(&nvdimm), ["hot-plug-overlap"]);
    assert_eq!(codes(&srat(&[ram, of(hot, 1, 0, 8 * GIB)])), ["memory-overlaps-across-domains"]);
    // RAM of domain 0 under two hot-plug ranges, the longer of which is in the same domain.
    let hidden = srat(&[of(hot, 0, 0, 8 * GIB), memory(0, 1, GIB), of(hot, 1, 2, GIB)]);
    let expected = ["memory-overlaps-within-domain", "memory-overlaps-across-domains"];
    assert_eq!(codes(&hidden), expected);
}

#[test]
fn overlap_is_found_exactly_where_a_pairwise_comparison_finds_it() {
    let mut state = 1_u64;
    let mut random = |bound: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for _ in 0..2000 {
        let ranges: Vec<(u32, u64, u64)> = (0..random(7))
            .map(|_| (u32::try_from(random(3)).expect("small"), random(40), 1 + random(12)))
            .collect();
        let entries: Vec<_> = ranges.iter().map(|r| memory(r.0, r.1, r.2)).collect();
        let found = table_findings(&srat(&entries));
        let across = found.iter().filter(|f| f.code() == "memory-overlaps-across-domains").count();
        let overlapping = found.iter().filter(|f| f.code().starts_with("memory-overlaps")).count();
        // A range counts if it overlaps one that sorts before it.
        let mut sorted: Vec<_> = ranges.iter().enumerate().collect();
        sorted.sort_by_key(|(at, r)| (r.1, *at));
        let before = |n: usize, other_only: bool| {
            let r = sorted[n].1;
            sorted[..n].iter().any(|(_, o)| o.1 + o.2 > r.1 && (!other_only || o.0 != r.0))
        };
        let expected = (0..sorted.len()).filter(|n| before(*n, true)).count();
        assert_eq!(across, expected, "{ranges:?}");
        let expected = (0..sorted.len()).filter(|n| before(*n, false)).count();
        assert_eq!(overlapping, expected, "{ranges:?}");
    }
}

#[test]
fn odd_memory_ranges_are_found() {
    let hot = MemoryFlags::ENABLED.with(MemoryFlags::HOT_PLUGGABLE);
    let plug = MemoryAffinity { base: 5 * GIB, flags: hot, ..Default::default() };
    let good = memory(0, 0, GIB);
    assert_eq!(codes(&srat(&[good, srat::Entry::Memory(plug)])), ["hot-plug-empty"]);
    assert_eq!(codes(&srat(&[good, memory(0, GIB, 0)])), ["memory-empty"]);
    assert_eq!(codes(&srat(&[good, memory(0, u64::MAX, 2)])), ["range-wraps"]);
    assert_eq!(codes(&srat(&[good, memory(0, u64::MAX, 1)])), [""; 0]);
    assert_eq!(codes(&srat(&[cpu(0, 0)])), ["no-memory"]);
    assert_eq!(codes(&srat(&[good, memory(1024, GIB, GIB)])), ["domain-too-large"]);
}

#[test]
fn a_processor_given_twice_is_found_across_entry_types() {
    let good = memory(0, 0, GIB);
    assert_eq!(codes(&srat(&[good, cpu(3, 0), x2apic(3, 0)])), ["processor-repeated"]);
    let found = table_findings(&srat(&[good, cpu(3, 0), x2apic(3, 1)]));
    let expected = Problem::ProcessorInTwoDomains {
        processor: ProcessorId::Apic(3),
        domain: 1,
        other_domain: 0,
        other: 88,
    };
    assert_eq!(found[0].problem, expected);
    assert_eq!(codes(&srat(&[good, x2apic(3, 0), x2apic(4, 1)])), [""; 0]);
}

#[test]
fn reserved_fields_give_notes_and_undefined_flags_give_warnings() {
    let range = MemoryAffinity {
        length_bytes: GIB,
        reserved3: 1,
        flags: MemoryFlags(0x11),
        ..Default::default()
    };
    let found = table_findings(&srat(&[srat::Entry::Memory(range)]));
    let odd: Vec<_> = found.iter().map(|f| (f.code(), f.offset, f.severity())).collect();
    assert_eq!(
        odd,
        [
            ("flags-undefined", 48 + 28, Severity::Warning),
            ("reserved-not-zero", 48 + 32, Severity::Note),
        ]
    );
    let mut header = srat(&[memory(0, 0, GIB)]);
    (header[36], header[40]) = (2, 1);
    sum_again(&mut header);
    assert_eq!(codes(&header), ["table-revision-not-one", "reserved-not-zero"]);
}
