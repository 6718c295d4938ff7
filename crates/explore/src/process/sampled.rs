//! Single pages whose node `move_pages(2)` tells.

use numalab_host::{PageNodesError, page_nodes};
use serde::Serialize;

use super::numa_maps::MappingView;
use crate::spread::{self, BytesByNode};

/// Pages that are asked for in all.
const PAGES: u64 = 4096;

/// What a sample of single pages showed, beside the kernel's own sums.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sampled {
    /// Pages that were asked for.
    pub pages: u64,
    /// Pages that were in memory, by node.
    pub pages_by_node: BytesByNode,
}

/// Asks for pages spread over the mappings, each mapping by the bytes that are in memory
/// of it, or by its length where that is not known.
pub(super) fn sample(process: u32, mappings: &[MappingView]) -> Result<Sampled, PageNodesError> {
    let known = mappings.iter().any(|mapping| !mapping.bytes_by_node.is_empty());
    let weight = |mapping: &MappingView| match known {
        true => spread::total(&mapping.bytes_by_node),
        false => mapping.size_bytes.unwrap_or(0),
    };
    let all = mappings.iter().fold(0, |sum: u64, mapping| sum.saturating_add(weight(mapping)));
    let mut addresses = Vec::new();
    for mapping in mappings {
        let length = mapping.size_bytes.unwrap_or(0);
        let pages = length / mapping.page_bytes.max(1);
        let wanted = u128::from(PAGES) * u128::from(weight(mapping)) / u128::from(all.max(1));
        let wanted = u64::try_from(wanted).unwrap_or(PAGES).min(pages);
        addresses.extend(
            (0..wanted)
                .map(|part| mapping.start + spread_page(part, wanted, pages) * mapping.page_bytes),
        );
    }
    let mut pages_by_node = BytesByNode::new();
    for node in page_nodes(process, &addresses)?.into_iter().flatten() {
        *pages_by_node.entry(node).or_default() += 1;
    }
    Ok(Sampled { pages: addresses.len() as u64, pages_by_node })
}

/// A page in part `part` of `parts` equal ones; a pseudo-random one (the multiplier is 2^64
/// over the golden ratio), so that interleaved memory does not look like one node's.
fn spread_page(part: u64, parts: u64, pages: u64) -> u64 {
    let boundary = |part: u64| {
        let page = u128::from(part) * u128::from(pages) / u128::from(parts.max(1));
        u64::try_from(page).unwrap_or(pages)
    };
    let (first, end) = (boundary(part), boundary(part + 1));
    first + (part.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % (end - first).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_drawn_from_the_whole_mapping() {
        let drawn: Vec<u64> = (0..8).map(|part| spread_page(part, 8, 8000)).collect();
        assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]), "{drawn:?}");
        assert!(drawn[7] >= 7000 && drawn[7] < 8000, "{drawn:?}");
        assert_eq!((0..5).map(|part| spread_page(part, 5, 5)).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }
}
