//! The pages behind a mapping, from `/proc/self/smaps`.

use std::collections::BTreeMap;

use crate::proc::address_range;

/// Bytes behind pages of each size in bytes, for the mappings within an address range.
pub(crate) type BytesPerPageSize = BTreeMap<u64, u64>;

/// Reads what `smaps` says of the mappings that begin within `address` and
/// `address + length`: resident bytes by page size (Linux
/// `Documentation/filesystems/proc.rst`). `huge_bytes` is the size of a
/// transparent huge page. `None` if no mapping begins there.
pub(crate) fn page_sizes(
    smaps: &str,
    address: u64,
    length: u64,
    huge_bytes: u64,
) -> Option<BytesPerPageSize> {
    let mut sizes = BytesPerPageSize::new();
    let mut found = false;
    let mut area = None;
    for line in smaps.lines() {
        if let Some((begin, _)) = address_range(line) {
            add(&mut sizes, area.take(), huge_bytes);
            let inside = begin >= address && begin - address < length;
            found |= inside;
            area = inside.then(Area::default);
        } else if let Some(area) = &mut area {
            area.take_line(line);
        }
    }
    add(&mut sizes, area, huge_bytes);
    found.then_some(sizes)
}

/// What `smaps` says of one mapping, in bytes.
#[derive(Default)]
struct Area {
    page: u64,
    resident: u64,
    transparent_huge: u64,
    reserved_huge: u64,
}

impl Area {
    fn take_line(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next()) else {
            return;
        };
        let bytes = || value.parse::<u64>().map_or(0, |kb| kb.saturating_mul(1024));
        match name {
            "KernelPageSize:" => self.page = bytes(),
            "Rss:" => self.resident = bytes(),
            "AnonHugePages:" => self.transparent_huge = bytes(),
            "Private_Hugetlb:" | "Shared_Hugetlb:" => {
                self.reserved_huge = self.reserved_huge.saturating_add(bytes());
            }
            _ => {}
        }
    }
}

fn add(sizes: &mut BytesPerPageSize, area: Option<Area>, huge_bytes: u64) {
    let Some(area) = area else {
        return;
    };
    // Reserved huge pages are not in Rss.
    let base = area.resident.saturating_sub(area.transparent_huge);
    for (page, bytes) in
        [(area.page, base), (area.page, area.reserved_huge), (huge_bytes, area.transparent_huge)]
    {
        if bytes > 0 {
            let sum = sizes.entry(page).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMAPS: &str = "\
7f0000000000-7f0000600000 rw-p 00000000 00:00 0
Size:               6144 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:                5120 kB
AnonHugePages:      4096 kB
Private_Hugetlb:       0 kB
VmFlags: rd wr mr mw me ac hg
7f1000000000-7f1000400000 rw-p 00000000 00:10 8 /anon_hugepage (deleted)
KernelPageSize:     2048 kB
Rss:                   0 kB
AnonHugePages:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:    4096 kB
";

    #[test]
    fn resident_bytes_are_told_by_page_size() {
        let sizes = page_sizes(SMAPS, 0x7f00_0000_0000, 6 << 20, 2 << 20).unwrap();
        assert_eq!(sizes, BTreeMap::from([(4096, 1 << 20), (2 << 20, 4 << 20)]));
    }

    #[test]
    fn reserved_huge_pages_are_counted_though_they_are_not_resident() {
        let sizes = page_sizes(SMAPS, 0x7f10_0000_0000, 4 << 20, 2 << 20).unwrap();
        assert_eq!(sizes, BTreeMap::from([(2 << 20, 4 << 20)]));
    }

    #[test]
    fn a_range_without_mapping_is_not_one_without_pages() {
        assert_eq!(page_sizes(SMAPS, 0x1000, 1 << 30, 2 << 20), None);
        let untouched = "7f00-7f80 rw-p 00000000 00:00 0\nKernelPageSize: 4 kB\nRss: 0 kB\n";
        let sizes = page_sizes(untouched, 0x7f00, 0x80, 2 << 20);
        assert_eq!(sizes, Some(BTreeMap::new()));
    }

    proptest! {
        #[test]
        fn a_cut_smaps_never_tells_more_than_the_whole(end in 0..SMAPS.len()) {
            let sum = |text| -> u64 {
                let sizes = page_sizes(text, 0, u64::MAX, 2 << 20);
                sizes.unwrap_or_default().values().sum()
            };
            prop_assert!(sum(&SMAPS[..end]) <= sum(SMAPS) + (4 << 20));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "(?s).{0,200}") {
            let _ = page_sizes(&text, 0, u64::MAX, 2 << 20);
        }
    }
}
