//! Huge pages and memory-side caches of a node in `lstopo` XML.

use numalab_topology::{HugePagePool, MemorySideCache};
use roxmltree::Node as Element;

use super::LARGEST_BASE_PAGE;
use super::element::{number, positive};
use crate::error::ReadError;

/// Returns true for an object that is memory used as a cache of other memory.
pub(super) fn is_memory_side(element: Element<'_, '_>) -> bool {
    let kind = element.attribute("type");
    kind == Some("MemCache") || element.attribute("subtype") == Some("MemorySideCache")
}

/// Returns the pools of huge pages of a node: all page sizes except the smallest, if that can be
/// the size of ordinary memory. The number of free pages is not given.
pub(super) fn huge_pages(node: Element<'_, '_>) -> Result<Vec<HugePagePool>, ReadError> {
    let mut pools = Vec::new();
    for element in node.children().filter(|child| child.has_tag_name("page_type")) {
        let attribute = |name| {
            let text = element.attribute(name).unwrap_or_default();
            number(element, name, text)
        };
        let (page_bytes, total) = (attribute("size")?, attribute("count")?);
        pools.push(HugePagePool { page_bytes, total, free: 0 });
    }
    pools.sort_by_key(|pool| pool.page_bytes);
    if pools.first().is_some_and(|smallest| smallest.page_bytes <= LARGEST_BASE_PAGE) {
        pools.remove(0);
    }
    Ok(pools)
}

/// Returns the memory-side caches around a node, nearest to the cpus first. On a Knights Landing,
/// high-bandwidth memory that is a separate node is not a cache of the node, but the memory of the
/// cache.
pub(super) fn memory_side_caches(node: Element<'_, '_>) -> Result<Vec<MemorySideCache>, ReadError> {
    if matches!(node.attribute("subtype"), Some("HBM" | "MCDRAM")) {
        return Ok(Vec::new());
    }
    let around: Vec<_> =
        node.ancestors().skip(1).take_while(|element| is_memory_side(*element)).collect();
    let mut caches = Vec::new();
    for (place, element) in (1u8..).zip(around) {
        let depth = element.attribute("depth").and_then(|depth| depth.parse().ok());
        let is_level = element.attribute("type") == Some("MemCache");
        caches.push(MemorySideCache {
            level: depth.filter(|_| is_level).unwrap_or(place),
            size_bytes: positive(element, "cache_size")?.unwrap_or_default(),
            line_bytes: positive(element, "cache_linesize")?,
            ways: positive(element, "cache_associativity")?,
        });
    }
    caches.reverse();
    Ok(caches)
}
