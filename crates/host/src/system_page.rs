//! The page sizes of this machine.

use numalab_record::Pages;

use crate::proc::{self, PageBytes};
use crate::root::Root;

/// Sizes in KiB of base pages under Linux.
const BASE_KILOBYTES: [u64; 3] = [4, 16, 64];

const TRANSPARENT: &str = "sys/kernel/mm/transparent_hugepage";

/// Returns the size of a base page in bytes: 4,096 on x86-64; 4, 16 or 64 KiB on aarch64.
pub fn base_page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Returns the sizes of pages of the machine below `root`, for kernels that do not print them for a
/// mapping; this machine's size of base pages if a copied tree does not show it.
pub fn usual_page_bytes(root: &Root) -> PageBytes {
    let base = base_page_bytes_of(root).unwrap_or_else(base_page_bytes);
    let memory = root.document("proc/meminfo").unwrap_or_default();
    let pool = proc::bytes(&memory, "Hugepagesize").and_then(Result::ok);
    PageBytes { base, pool: pool.unwrap_or(base) }
}

/// Returns the size in bytes of a base page of the machine below `root`; `None` if a copied tree
/// does not show it.
pub fn base_page_bytes_of(root: &Root) -> Option<u64> {
    if root.is_live() {
        return Some(base_page_bytes());
    }
    mapped_page_bytes(root).or_else(|| counted_page_bytes(root))
}

/// Returns the page size of the first mapping in a copied `smaps`, unless it is on huge pages.
fn mapped_page_bytes(root: &Root) -> Option<u64> {
    let texts = ["self", "1"].map(|process| root.document(&format!("proc/{process}/smaps")).ok());
    let bytes = |text: &String| proc::bytes(text, "KernelPageSize")?.ok();
    texts.iter().flatten().find_map(bytes).filter(|bytes| BASE_KILOBYTES.contains(&(bytes >> 10)))
}

/// Returns the page size at which free memory and free pages agree, for the machine or a node. The
/// two files are read one after the other, so they agree only approximately.
fn counted_page_bytes(root: &Root) -> Option<u64> {
    let directory = "sys/devices/system/node";
    let nodes = root.numbered(directory, "node").into_iter();
    let mut places = nodes.map(|node| format!("{directory}/node{node}"));
    places.find_map(|place| pages_fit(root, &place)).or_else(|| pages_fit(root, "proc"))
}

fn pages_fit(root: &Root, place: &str) -> Option<u64> {
    let meminfo = root.document(&format!("{place}/meminfo")).ok()?;
    let vmstat = root.document(&format!("{place}/vmstat")).ok()?;
    let pages = vmstat.lines().find_map(|line| line.strip_prefix("nr_free_pages "))?;
    let pages: u64 = pages.trim().parse().ok()?;
    let kilobytes = proc::bytes(&meminfo, "MemFree")?.ok()? >> 10;
    let fits = |size: &u64| {
        let by_pages = size.saturating_mul(pages);
        kilobytes > by_pages / 2 && kilobytes / 2 < by_pages
    };
    BASE_KILOBYTES.into_iter().find(fits).map(|size| size << 10)
}

/// Parses the page size in the name of a pool: `hugepages-2048kB`.
pub(crate) fn pool_kilobytes(name: &str) -> Option<u64> {
    name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()
}

/// Returns the base pages of this kernel.
pub fn base_pages() -> Pages {
    Pages::Sized(base_page_bytes())
}

/// Returns true if pages come from a reserved pool, as those of any size but the base page do.
pub fn is_reserved(pages: Pages) -> bool {
    matches!(pages, Pages::Sized(bytes) if bytes != base_page_bytes())
}

/// Returns the choices of pages of this machine: base pages, transparent huge pages if the kernel
/// has them, and the reserved pools.
pub fn pages_here(root: &Root) -> Vec<Pages> {
    let transparent = transparent_huge_page_bytes(root).map(|_| Pages::Transparent);
    let pools = huge_page_sizes(root).into_iter().map(Pages::Sized);
    std::iter::once(base_pages()).chain(transparent).chain(pools).collect()
}

/// Returns the size in bytes of a page of this choice. Without transparent huge pages,
/// [`Pages::Transparent`] is 2 MiB.
pub fn page_size_bytes(pages: Pages) -> u64 {
    match pages {
        Pages::Sized(bytes) => bytes,
        Pages::Transparent => transparent_huge_page_bytes(&Root::live()).unwrap_or(2 << 20),
    }
}

/// Returns the size of a transparent huge page in bytes, if the kernel has them.
pub fn transparent_huge_page_bytes(root: &Root) -> Option<u64> {
    root.value(&format!("{TRANSPARENT}/hpage_pmd_size"))
        .ok()?
        .parse()
        .ok()
        .filter(|bytes: &u64| bytes.is_power_of_two() && *bytes >= base_page_bytes())
}

/// Returns the mode in force for transparent huge pages: since Linux 6.8 that of their size,
/// usually `inherit`, else that of all sizes.
pub fn transparent_huge_page_mode(root: &Root) -> Option<String> {
    let of_all = || chosen(&root.value(&format!("{TRANSPARENT}/enabled")).ok()?);
    let bytes = transparent_huge_page_bytes(root);
    let of_size = bytes.and_then(|bytes| mode_of_size(root, bytes >> 10));
    of_size.filter(|word| word != "inherit").or_else(of_all)
}

/// Returns the sizes in KiB of transparent huge pages that are not off, smallest first, with the
/// mode of each; available since Linux 6.8.
pub(crate) fn transparent_sizes(root: &Root) -> Vec<(u64, String)> {
    let kilobytes = root.names(TRANSPARENT).into_iter().filter_map(|name| pool_kilobytes(&name));
    let mut sizes: Vec<(u64, String)> = kilobytes
        .filter_map(|size| Some((size, mode_of_size(root, size)?)))
        .filter(|(_, word)| word != "never")
        .collect();
    sizes.sort_unstable();
    sizes
}

/// Returns true if transparent huge pages have this size among others, as since Linux 6.8.
pub(crate) fn is_transparent_size(root: &Root, bytes: u64) -> bool {
    mode_of_size(root, bytes >> 10).is_some()
}

fn mode_of_size(root: &Root, kilobytes: u64) -> Option<String> {
    chosen(&root.value(&format!("{TRANSPARENT}/hugepages-{kilobytes}kB/enabled")).ok()?)
}

/// Returns the bracketed word of a choice such as `always [madvise] never`.
pub(crate) fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    let (word, _) = rest.split_once(']')?;
    Some(word.to_owned())
}

/// Returns the sizes in bytes of the huge pages that the kernel can reserve, smallest first.
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
    use crate::test_tree::{tree, write};

    #[test]
    fn a_base_page_is_a_power_of_two_of_at_least_4_kib() {
        assert!(base_page_bytes().is_power_of_two());
        assert!(base_page_bytes() >= 4096);
    }

    #[test]
    fn the_base_page_of_a_copied_tree_is_that_of_its_machine() {
        let of = |files: &[(&str, &str)]| base_page_bytes_of(&Root::at(tree(files).path()));
        let smaps = "00400000-00410000 r-xp 00000000 00:00 0\nSize: 64 kB\nKernelPageSize: 64 kB\n";
        assert_eq!(of(&[("proc/self/smaps", smaps)]), Some(64 << 10));
        assert_eq!(of(&[("proc/1/smaps", smaps)]), Some(64 << 10));
        let huge = ("proc/self/smaps", "KernelPageSize: 2048 kB\n");
        let node = "sys/devices/system/node/node0";
        let (meminfo, vmstat) = (format!("{node}/meminfo"), format!("{node}/vmstat"));
        let counted = |free: &str, pages: &str| {
            let free = format!("Node 0 MemFree: {free} kB\n");
            let pages = format!("nr_free_pages {pages}\n");
            of(&[huge, (&meminfo, &free), (&vmstat, &pages)])
        };
        assert_eq!(counted("8388608", "131072"), Some(64 << 10));
        assert_eq!(counted("8388608", "524000"), Some(16 << 10));
        assert_eq!(counted("8000000", "2097152"), Some(4 << 10));
        assert_eq!(counted("8000000", "1000000"), None, "8 KiB is no size of a page");
        assert_eq!(counted("0", "0"), None);
        assert_eq!(of(&[]), None);
        assert_eq!(base_page_bytes_of(&Root::live()), Some(base_page_bytes()));
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

    /// Returns an arm64 kernel with base pages of 64 KiB.
    fn arm64_64k() -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| write(&top, &format!("sys/kernel/mm/{path}"), text);
        for kilobytes in [16_777_216, 2048, 524_288] {
            write(&format!("hugepages/hugepages-{kilobytes}kB/nr_hugepages"), "0\n");
        }
        write("transparent_hugepage/hpage_pmd_size", "536870912\n");
        write("transparent_hugepage/enabled", "always [madvise] never\n");
        let of_size = |kilobytes: u64, words: &str| {
            write(&format!("transparent_hugepage/hugepages-{kilobytes}kB/enabled"), words);
        };
        of_size(524_288, "always [inherit] madvise never\n");
        of_size(2048, "[always] inherit madvise never\n");
        of_size(128, "always inherit madvise [never]\n");
        top
    }

    #[test]
    fn sizes_are_those_of_the_machine_where_base_pages_have_64_kib() {
        let top = arm64_64k();
        let root = Root::at(top.path());
        assert_eq!(transparent_huge_page_bytes(&root), Some(512 << 20));
        let names: Vec<String> = pages_here(&root).into_iter().map(Pages::name).collect();
        assert_eq!(names[1..], ["thp", "2m", "512m", "16g"]);
        assert_eq!(page_size_bytes(Pages::Sized(512 << 20)), 512 << 20);
        assert!(is_reserved(Pages::Sized(16 << 30)) && !is_reserved(base_pages()));
        assert!(is_transparent_size(&root, 128 << 10) && !is_transparent_size(&root, 64 << 10));
    }

    #[test]
    fn the_setting_of_their_size_applies_to_transparent_huge_pages() {
        let top = arm64_64k();
        let root = Root::at(top.path());
        assert_eq!(transparent_huge_page_mode(&root).as_deref(), Some("madvise"));
        let sizes = transparent_sizes(&root);
        assert_eq!(sizes, [(2048, "always".to_owned()), (524_288, "inherit".to_owned())]);
        let own = top.path().join("sys/kernel/mm/transparent_hugepage/hugepages-524288kB/enabled");
        std::fs::write(own, "always inherit madvise [never]\n").unwrap();
        assert_eq!(transparent_huge_page_mode(&root).as_deref(), Some("never"));
    }
}
