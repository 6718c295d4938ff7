//! Reserved pools of huge pages.

use numalab_record::Pages;
use numalab_topology::NodeId;

use crate::cgroup::{Charge, HugePageLimit, huge_page_limit};
use crate::mapping_error::MappingError;
use crate::root::Root;
use crate::system_page::{is_reserved, is_transparent_size, page_size_bytes, pages_here};

/// A reserved pool of huge pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HugePool {
    directory: String,
    /// The node; `None` for the pool of the whole machine.
    pub node: Option<NodeId>,
    pub total: u64,
    pub free: u64,
}

impl HugePool {
    /// Reads the pool of pages of `page_bytes`: that of a node if the kernel keeps pools per node,
    /// else that of the machine. `None` if the kernel has no such pages.
    pub fn read(root: &Root, page_bytes: u64, node: Option<NodeId>) -> Option<Self> {
        let of_node = |node: NodeId| format!("sys/devices/system/node/node{node}/hugepages");
        // A kernel without NUMA has only the machine's pool.
        let node = node.filter(|&node| !root.names(&of_node(node)).is_empty());
        let pools = node.map_or_else(|| "sys/kernel/mm/hugepages".to_owned(), of_node);
        let directory = format!("{pools}/hugepages-{}kB", page_bytes >> 10);
        let number = |name: &str| root.value(&format!("{directory}/{name}")).ok()?.parse().ok();
        let (total, free) = (number("nr_hugepages")?, number("free_hugepages")?);
        Some(Self { directory, node, total, free })
    }

    /// Returns the command that enlarges the pool so that `needed` pages are free.
    pub fn command(&self, needed: u64) -> String {
        // The file sets the total number of pages, including those in use.
        let used = self.total.saturating_sub(self.free);
        format!("echo {} > /{}/nr_hugepages", used.saturating_add(needed), self.directory)
    }
}

/// Checks that the pool has `needed` free pages, on one node or in total, and that the control
/// group lets this process touch them: the first touch beyond its limit is SIGBUS. Always succeeds
/// for pages that come from no pool.
///
/// # Errors
/// [`MappingError::NoHugePages`] if too few are free, [`MappingError::HugePagesLimited`] if the
/// control group allows too few, [`MappingError::HugePagesUnsupported`] if the kernel has no such
/// pages.
pub(crate) fn require(
    root: &Root,
    pages: Pages,
    node: Option<NodeId>,
    needed: u64,
) -> Result<(), MappingError> {
    if !is_reserved(pages) {
        return Ok(());
    }
    let pool = HugePool::read(root, page_size_bytes(pages), node)
        .ok_or_else(|| unsupported(root, pages))?;
    if pool.free >= needed {
        return within_limit(root, pages, needed, Charge::Touched);
    }
    Err(MappingError::NoHugePages {
        pages,
        node: pool.node,
        needed,
        free: pool.free,
        command: pool.command(needed),
    })
}

fn unsupported(root: &Root, pages: Pages) -> MappingError {
    let here = pages_here(root);
    match is_transparent_size(root, page_size_bytes(pages)) {
        true => MappingError::TransparentSize { pages, here },
        false => MappingError::HugePagesUnsupported { pages, here },
    }
}

/// Checks that this process's control group allows `needed` more pages.
///
/// # Errors
/// [`MappingError::HugePagesLimited`] if it does not.
pub(crate) fn within_limit(
    root: &Root,
    pages: Pages,
    needed: u64,
    charge: Charge,
) -> Result<(), MappingError> {
    let page_bytes = page_size_bytes(pages);
    let short = |limit: &HugePageLimit| limit.left_bytes / page_bytes < needed;
    let limit = huge_page_limit(root, page_bytes, charge).filter(short);
    let Some(HugePageLimit { file, limit_bytes, left_bytes, no_limit }) = limit else {
        return Ok(());
    };
    let left = left_bytes / page_bytes;
    Err(MappingError::HugePagesLimited { pages, needed, left, file, limit_bytes, no_limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_class::{Classed, ErrorClass};
    use crate::system_page::base_pages;
    use crate::test_tree::{tree, write};

    /// Returns a pool of ten pages, with this number of them free.
    fn pool(free: &str) -> tempfile::TempDir {
        let pool = "sys/devices/system/node/node3/hugepages/hugepages-2048kB";
        let [all, of_free] = ["nr_hugepages", "free_hugepages"].map(|of| format!("{pool}/{of}"));
        tree(&[(&all, "10\n"), (&of_free, free)])
    }

    #[test]
    fn a_short_pool_is_refused_with_the_command_that_fixes_it() {
        let top = pool("4\n");
        let root = Root::at(top.path());
        let error = require(&root, Pages::HUGE_2M, Some(NodeId(3)), 5).unwrap_err();
        assert_eq!(
            error.to_string(),
            "5 huge pages of 2m needed on node 3, 4 free; reserve them (as root): \
             echo 11 > /sys/devices/system/node/node3/hugepages/hugepages-2048kB/nr_hugepages"
        );
    }

    #[test]
    fn a_pool_with_enough_free_pages_is_accepted() {
        let top = pool("5\n");
        let root = Root::at(top.path());
        assert_eq!(require(&root, Pages::HUGE_2M, Some(NodeId(3)), 5), Ok(()));
        assert_eq!(require(&root, base_pages(), Some(NodeId(3)), 1 << 40), Ok(()));
    }

    #[test]
    fn a_control_group_that_allows_too_few_is_named_though_pages_are_free() {
        let top = pool("10\n");
        let mounts = "30 1 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        write(&top, "proc/self/cgroup", "0::/job\n");
        write(&top, "proc/self/mountinfo", mounts);
        write(&top, "sys/fs/cgroup/job/hugetlb.2MB.max", "6291456\n");
        write(&top, "sys/fs/cgroup/job/hugetlb.2MB.current", "2097152\n");
        let root = Root::at(top.path());
        assert_eq!(require(&root, Pages::HUGE_2M, Some(NodeId(3)), 2), Ok(()));
        let error = require(&root, Pages::HUGE_2M, Some(NodeId(3)), 3).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Lacking);
        assert_eq!(
            error.to_string(),
            "3 huge pages of 2m needed, but this process's control group allows only 2 more: \
             /sys/fs/cgroup/job/hugetlb.2MB.max is 6291456; raise it (as root): \
             echo max > /sys/fs/cgroup/job/hugetlb.2MB.max"
        );
    }

    #[test]
    fn a_size_of_transparent_huge_pages_is_refused_with_the_reason_and_the_pages_of_the_machine() {
        let top = pool("5\n");
        let sizes = top.path().join("sys/kernel/mm/transparent_hugepage");
        std::fs::create_dir_all(sizes.join("hugepages-128kB")).unwrap();
        std::fs::write(sizes.join("hugepages-128kB/enabled"), "[always] inherit never\n").unwrap();
        std::fs::write(sizes.join("hpage_pmd_size"), "2097152\n").unwrap();
        let pages = Pages::Sized(128 << 10);
        let said = require(&Root::at(top.path()), pages, None, 1).unwrap_err().to_string();
        assert!(said.starts_with("128k is only a size of transparent huge pages here"), "{said}");
        assert!(said.ends_with(&format!("expected one of {}, thp", base_pages())), "{said}");
    }

    #[test]
    fn a_page_size_that_the_kernel_does_not_have_is_refused() {
        let top = pool("5\n");
        let root = Root::at(top.path());
        let error = require(&root, Pages::HUGE_1G, Some(NodeId(3)), 1).unwrap_err();
        let here = vec![base_pages()];
        assert_eq!(error, MappingError::HugePagesUnsupported { pages: Pages::HUGE_1G, here });
    }
}
