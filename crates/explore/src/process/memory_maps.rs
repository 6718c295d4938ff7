//! `maps`, `smaps` and `smaps_rollup` (proc(5)): lengths and huge pages.

use std::collections::HashMap;

use numalab_host::proc::address_range;
use serde::Serialize;

/// What pages a process's memory is made of, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageSizes {
    /// In memory, reserved huge pages apart.
    pub resident: u64,
    /// Of these: anonymous.
    pub anonymous: u64,
    /// Of these: in transparent huge pages, anonymous or not.
    pub transparent_huge: u64,
    /// In reserved huge pages.
    pub reserved_huge: u64,
    /// Swapped out.
    pub swapped: u64,
}

impl PageSizes {
    fn take(&mut self, name: &str, bytes: u64) {
        let field = match name {
            "Rss" => &mut self.resident,
            "Anonymous" => &mut self.anonymous,
            "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" => &mut self.transparent_huge,
            "Shared_Hugetlb" | "Private_Hugetlb" => &mut self.reserved_huge,
            "Swap" => &mut self.swapped,
            _ => return,
        };
        *field = field.saturating_add(bytes);
    }
}

/// The length in bytes of each mapping, by its first address.
pub(super) fn lengths(maps: &str) -> HashMap<u64, u64> {
    maps.lines().filter_map(head).collect()
}

/// Sums over all of `smaps` or `smaps_rollup`, and of each mapping the bytes in
/// transparent huge pages.
pub(super) fn page_sizes(smaps: &str) -> (PageSizes, HashMap<u64, u64>) {
    let mut sum = PageSizes::default();
    let mut huge = HashMap::new();
    let mut start = None;
    for line in smaps.lines() {
        match field(line) {
            Some((name, bytes)) => {
                sum.take(name, bytes);
                if name == "AnonHugePages"
                    && let Some(start) = start
                {
                    huge.insert(start, bytes);
                }
            }
            None => start = head(line).map(|(start, _)| start).or(start),
        }
    }
    (sum, huge)
}

/// `Rss:   12 kB`. A head line's first word has no colon at its end.
fn field(line: &str) -> Option<(&str, u64)> {
    let (name, value) = line.split_once(':')?;
    if name.contains(' ') {
        return None;
    }
    let kib: u64 = value.strip_suffix("kB")?.trim().parse().ok()?;
    Some((name, kib.saturating_mul(1024)))
}

/// `7f00-7f80 rw-p …`: first address and length.
fn head(line: &str) -> Option<(u64, u64)> {
    let (start, end) = address_range(line)?;
    Some((start, end.checked_sub(start)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMAPS: &str = "\
7f0000000000-7f0000600000 rw-p 00000000 00:00 0 
Rss:                5120 kB
Anonymous:          5120 kB
AnonHugePages:      4096 kB
Swap:                 12 kB
VmFlags: rd wr mr mw me ac hg
7f1000000000-7f1000400000 rw-p 00000000 00:10 8       /a: b 1 kB
Rss:                   0 kB
AnonHugePages:         0 kB
Private_Hugetlb:    4096 kB
";

    #[test]
    fn sums_are_over_all_mappings_and_huge_pages_by_mapping() {
        let (sum, huge) = page_sizes(SMAPS);
        let (mib, kib) = (1 << 20, 1 << 10);
        let expected = PageSizes {
            resident: 5 * mib,
            anonymous: 5 * mib,
            transparent_huge: 4 * mib,
            reserved_huge: 4 * mib,
            swapped: 12 * kib,
        };
        assert_eq!(sum, expected);
        assert_eq!(huge, HashMap::from([(0x7f00_0000_0000, 4 * mib), (0x7f10_0000_0000, 0)]));
        assert_eq!(lengths(SMAPS)[&0x7f10_0000_0000], 4 * mib);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(?s)\\PC{0,200}", end in 0..SMAPS.len()) {
            let _ = (page_sizes(&text), lengths(&text), page_sizes(&SMAPS[..end]));
        }
    }
}
