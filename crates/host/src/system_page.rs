//! The page sizes of this machine.

use numalab_record::Pages;

use crate::root::Root;
use crate::sysfs::pool_kilobytes;

/// The size of a base page in bytes: 4,096 on x86-64; 4, 16 or 64 KiB on aarch64.
#[must_use]
pub fn base_page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// The size of a page of this choice in bytes. Without transparent huge pages that of
/// [`Pages::Transparent`] is 2 MiB.
#[must_use]
pub fn page_size_bytes(pages: Pages) -> u64 {
    match pages {
        Pages::Base => base_page_bytes(),
        Pages::Transparent => transparent_huge_page_bytes(&Root::live()).unwrap_or(2 << 20),
        Pages::Huge2M => 2 << 20,
        Pages::Huge1G => 1 << 30,
    }
}

/// Returns the size of a transparent huge page in bytes, if the kernel has them.
#[must_use]
pub fn transparent_huge_page_bytes(root: &Root) -> Option<u64> {
    root.value("sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
        .ok()?
        .parse()
        .ok()
        .filter(|bytes: &u64| bytes.is_power_of_two() && *bytes >= base_page_bytes())
}

/// The sizes in bytes of the huge pages that the kernel can reserve, smallest first.
#[must_use]
pub fn huge_page_sizes(root: &Root) -> Vec<u64> {
    let names = root.names("sys/kernel/mm/hugepages");
    let mut sizes: Vec<u64> =
        names.iter().filter_map(|name| pool_kilobytes(name)?.checked_mul(1 << 10)).collect();
    sizes.sort_unstable();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_page_is_a_power_of_two_of_at_least_4_kib() {
        assert!(base_page_bytes().is_power_of_two());
        assert!(base_page_bytes() >= 4096);
    }

    #[test]
    fn huge_page_sizes_are_read_from_the_names_of_the_pools() {
        let directory = tempfile::tempdir().unwrap();
        let pools = directory.path().join("sys/kernel/mm/hugepages");
        for name in ["hugepages-1048576kB", "hugepages-2048kB", "hugepages-xkB", "other"] {
            std::fs::create_dir_all(pools.join(name)).unwrap();
        }
        let sizes = huge_page_sizes(&Root::at(directory.path()));
        assert_eq!(sizes, [2 << 20, 1 << 30]);
    }
}
