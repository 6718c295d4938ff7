//! The reserved pools of huge pages.

use numalab_topology::NodeId;

use crate::mapping_error::MappingError;
use crate::pages::Pages;
use crate::root::Root;

/// How many pages a pool has and how many of them are free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pool {
    total: u64,
    free: u64,
}

/// The command which makes a pool large enough for `needed` more pages than are used.
fn command(directory: &str, pool: Pool, needed: u64) -> String {
    let used = pool.total.saturating_sub(pool.free);
    format!("echo {} > /{directory}/nr_hugepages", used.saturating_add(needed))
}

/// The directory of the pool of such pages, of one node or of the whole machine.
fn directory(pages: Pages, node: Option<NodeId>) -> String {
    let kilobytes = pages.page_bytes() >> 10;
    match node {
        Some(node) => {
            format!("sys/devices/system/node/node{node}/hugepages/hugepages-{kilobytes}kB")
        }
        None => format!("sys/kernel/mm/hugepages/hugepages-{kilobytes}kB"),
    }
}

/// Checks that `needed` free pages are in the pool, on one node or in all. Always true
/// of pages that come from no pool.
///
/// # Errors
/// [`MappingError::NoHugePages`] if too few are free,
/// [`MappingError::HugePagesUnsupported`] if the kernel has no such pages.
pub(crate) fn require(
    root: &Root,
    pages: Pages,
    node: Option<NodeId>,
    needed: u64,
) -> Result<(), MappingError> {
    if !pages.is_reserved() {
        return Ok(());
    }
    let node = node.filter(|&node| has_own_pools(root, node));
    let directory = directory(pages, node);
    let number = |name: &str| -> Option<u64> {
        let text = root.value(&format!("{directory}/{name}")).ok()?;
        text.parse().ok()
    };
    let (Some(total), Some(free)) = (number("nr_hugepages"), number("free_hugepages")) else {
        return Err(MappingError::HugePagesUnsupported { pages });
    };
    if free >= needed {
        return Ok(());
    }
    Err(MappingError::NoHugePages {
        pages,
        node,
        needed,
        free,
        command: command(&directory, Pool { total, free }, needed),
    })
}

/// Whether the kernel keeps pools per node: one without NUMA does not.
fn has_own_pools(root: &Root, node: NodeId) -> bool {
    let directory = format!("sys/devices/system/node/node{node}/hugepages");
    !root.names(&directory).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(free: &str) -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        let pool = top.path().join("sys/devices/system/node/node3/hugepages/hugepages-2048kB");
        std::fs::create_dir_all(&pool).unwrap();
        std::fs::write(pool.join("nr_hugepages"), "10\n").unwrap();
        std::fs::write(pool.join("free_hugepages"), free).unwrap();
        top
    }

    #[test]
    fn a_short_pool_is_refused_with_the_command_that_mends_it() {
        let top = tree("4\n");
        let root = Root::at(top.path());
        let error = require(&root, Pages::Huge2M, Some(NodeId(3)), 5).unwrap_err();
        assert_eq!(
            error.to_string(),
            "5 huge pages of 2m needed on node 3, 4 free; reserve them (as root): \
             echo 11 > /sys/devices/system/node/node3/hugepages/hugepages-2048kB/nr_hugepages"
        );
    }

    #[test]
    fn a_pool_with_enough_free_pages_is_accepted() {
        let top = tree("5\n");
        let root = Root::at(top.path());
        assert_eq!(require(&root, Pages::Huge2M, Some(NodeId(3)), 5), Ok(()));
        assert_eq!(require(&root, Pages::Base, Some(NodeId(3)), 1 << 40), Ok(()));
    }

    #[test]
    fn a_page_size_that_the_kernel_does_not_have_is_refused() {
        let top = tree("5\n");
        let root = Root::at(top.path());
        let error = require(&root, Pages::Huge1G, Some(NodeId(3)), 1).unwrap_err();
        assert_eq!(error, MappingError::HugePagesUnsupported { pages: Pages::Huge1G });
    }
}
