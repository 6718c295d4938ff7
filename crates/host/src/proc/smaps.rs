//! `/proc/PID/smaps` and `smaps_rollup` (`proc_pid_smaps(5)`).

use std::collections::BTreeMap;

use numalab_record::explore::PageSizes;

use super::address_range;

/// One mapping of `smaps`; `smaps_rollup` is one mapping of everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmapsMapping {
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// True if stores to it are not shared with other processes (`MAP_PRIVATE`).
    pub is_private: bool,
    /// Bytes used since referenced bits were cleared.
    pub referenced_bytes: u64,
    /// Resident bytes that other processes map too.
    pub shared_bytes: u64,
    /// The size in bytes of the pages that are not transparent huge pages.
    pub page_bytes: u64,
    /// Resident bytes by kind of page.
    pub sizes: PageSizes,
}

impl SmapsMapping {
    /// Returns an upper bound on the bytes that this process used since referenced bits were
    /// cleared: pages of a library or another file that other processes map too count as referenced
    /// whoever uses them (`folio_test_referenced` in the kernel's `smaps_account`).
    pub fn used_bytes(&self) -> u64 {
        let of_files = self.sizes.resident.saturating_sub(self.sizes.anonymous);
        let of_others = if self.is_private { self.shared_bytes.min(of_files) } else { 0 };
        self.referenced_bytes.min(self.sizes.resident.saturating_sub(of_others))
    }
}

/// Parses every mapping in order, skipping unknown lines.
pub fn smaps(text: &str) -> Vec<SmapsMapping> {
    let mut mappings: Vec<SmapsMapping> = Vec::new();
    for line in text.lines() {
        match (field(line), mappings.last_mut()) {
            (Some(("KernelPageSize", bytes)), Some(last)) => last.page_bytes = bytes,
            (Some(("Referenced", bytes)), Some(last)) => last.referenced_bytes = bytes,
            (Some(("Shared_Clean" | "Shared_Dirty", bytes)), Some(last)) => {
                last.shared_bytes = last.shared_bytes.saturating_add(bytes);
            }
            (Some((name, bytes)), Some(last)) => take(&mut last.sizes, name, bytes),
            (Some(_), None) => {}
            (None, _) => mappings.extend(address_range(line).map(|(start, end)| SmapsMapping {
                start,
                end,
                is_private: line.split(' ').nth(1).is_some_and(|flags| flags.ends_with('p')),
                ..SmapsMapping::default()
            })),
        }
    }
    mappings
}

/// Adds a line of a mapping, if it has one of the fields that are kept.
fn take(sizes: &mut PageSizes, name: &str, bytes: u64) {
    let field = match name {
        "Rss" => &mut sizes.resident,
        "Anonymous" => &mut sizes.anonymous,
        // Transparent huge pages of anonymous memory, of shared memory and of files.
        "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" => &mut sizes.transparent_huge,
        "Shared_Hugetlb" | "Private_Hugetlb" => &mut sizes.reserved_huge,
        "Swap" => &mut sizes.swapped,
        _ => return,
    };
    *field = field.saturating_add(bytes);
}

/// Returns the page sizes of a process's memory; `None` if it does not exist or may not be read.
pub fn total_page_sizes(process: u32) -> Option<PageSizes> {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    smaps(&text).first().map(|all| all.sizes)
}

/// Returns resident bytes by page size in bytes, of the mappings that begin between `address` and
/// `address + length`. `huge_bytes` is the size of a transparent huge page. `None` if no mapping
/// begins there.
pub(crate) fn bytes_per_page_size(
    text: &str,
    address: u64,
    length: u64,
    huge_bytes: u64,
) -> Option<BTreeMap<u64, u64>> {
    let inside = |mapping: &SmapsMapping| {
        mapping.start.checked_sub(address).is_some_and(|offset| offset < length)
    };
    let mut found = smaps(text).into_iter().filter(inside).peekable();
    found.peek()?;
    let mut sum = BTreeMap::new();
    for SmapsMapping { page_bytes, sizes, .. } in found {
        // Reserved huge pages are not part of Rss.
        let base = sizes.resident.saturating_sub(sizes.transparent_huge);
        let parts = [
            (page_bytes, base),
            (page_bytes, sizes.reserved_huge),
            (huge_bytes, sizes.transparent_huge),
        ];
        for (page, bytes) in parts.into_iter().filter(|(_, bytes)| *bytes > 0) {
            let sum: &mut u64 = sum.entry(page).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    Some(sum)
}

/// Parses `Rss:   12 kB`. The first line of a mapping has a space before its first colon.
fn field(line: &str) -> Option<(&str, u64)> {
    let (name, value) = line.split_once(':')?;
    if name.contains(' ') {
        return None;
    }
    let kib: u64 = value.strip_suffix("kB")?.trim().parse().ok()?;
    Some((name, kib.saturating_mul(1024)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMAPS: &str = "\
7f0000000000-7f0000600000 rw-p 00000000 00:00 0 
KernelPageSize:        4 kB
Rss:                5120 kB
Referenced:           16 kB
Anonymous:          5120 kB
AnonHugePages:      4096 kB
Swap:                 12 kB
VmFlags: rd wr mr mw me ac hg
7f1000000000-7f1000400000 rw-p 00000000 00:10 8       /a: b 1 kB
KernelPageSize:     2048 kB
Rss:                   0 kB
AnonHugePages:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:    4096 kB
";

    #[test]
    fn each_mapping_has_its_pages_and_their_sum_is_over_all() {
        let (mib, kib) = (1 << 20, 1 << 10);
        let first = PageSizes {
            resident: 5 * mib,
            anonymous: 5 * mib,
            transparent_huge: 4 * mib,
            swapped: 12 * kib,
            ..PageSizes::default()
        };
        let second = PageSizes { reserved_huge: 4 * mib, ..PageSizes::default() };
        let found = smaps(SMAPS);
        assert_eq!(
            found,
            [
                SmapsMapping {
                    start: 0x7f00_0000_0000,
                    end: 0x7f00_0060_0000,
                    is_private: true,
                    referenced_bytes: 16 * kib,
                    shared_bytes: 0,
                    page_bytes: 4 * kib,
                    sizes: first
                },
                SmapsMapping {
                    start: 0x7f10_0000_0000,
                    end: 0x7f10_0040_0000,
                    is_private: true,
                    referenced_bytes: 0,
                    shared_bytes: 0,
                    page_bytes: 2 * mib,
                    sizes: second
                },
            ]
        );
        let mut sum = found[0].sizes;
        sum += found[1].sizes;
        assert_eq!(sum, PageSizes { reserved_huge: 4 * mib, ..first });
    }

    #[test]
    fn resident_bytes_are_counted_by_page_size() {
        let of = |address, length| bytes_per_page_size(SMAPS, address, length, 2 << 20);
        let expected = BTreeMap::from([(4096, 1 << 20), (2 << 20, 4 << 20)]);
        assert_eq!(of(0x7f00_0000_0000, 6 << 20), Some(expected));
        let reserved = of(0x7f10_0000_0000, 4 << 20);
        assert_eq!(reserved, Some(BTreeMap::from([(2 << 20, 4 << 20)])), "they are not resident");
    }

    #[test]
    fn a_range_without_mapping_is_not_one_without_pages() {
        assert_eq!(bytes_per_page_size(SMAPS, 0x1000, 1 << 30, 2 << 20), None);
        let untouched = "7f00-7f80 rw-p 00000000 00:00 0\nKernelPageSize: 4 kB\nRss: 0 kB\n";
        let sizes = bytes_per_page_size(untouched, 0x7f00, 0x80, 2 << 20);
        assert_eq!(sizes, Some(BTreeMap::new()));
    }

    #[test]
    fn pages_of_a_library_that_other_processes_map_too_are_not_its_uses() {
        let used = |flags: &str, lines: &str| {
            let text = format!("7f00-7fff {flags} 00000000 00:10 8 /lib/libc.so.6\n{lines}");
            smaps(&text)[0].used_bytes() >> 10
        };
        let of_file = "Rss: 100 kB\nShared_Clean: 90 kB\nPrivate_Clean: 10 kB\nReferenced: 95 kB\n";
        assert_eq!(used("r-xp", of_file), 10);
        assert_eq!(used("rw-s", of_file), 95, "memory that processes share on purpose");
        let forked = "Rss: 100 kB\nShared_Dirty: 90 kB\nReferenced: 95 kB\nAnonymous: 100 kB\n";
        assert_eq!(used("rw-p", forked), 95, "the kernel has one bit for each process");
    }

    proptest! {
        #[test]
        fn a_truncated_smaps_never_reports_more_than_the_whole(end in 0..SMAPS.len()) {
            let sum = |text| -> u64 {
                let sizes = bytes_per_page_size(text, 0, u64::MAX, 2 << 20);
                sizes.unwrap_or_default().values().sum()
            };
            prop_assert!(sum(&SMAPS[..end]) <= sum(SMAPS) + (4 << 20));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "(?s).{0,200}", end in 0..SMAPS.len()) {
            let _ = (smaps(&text), smaps(&SMAPS[..end]));
        }
    }
}
