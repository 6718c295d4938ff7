//! Samples of single pages, with their nodes from `move_pages(2)`.

use numalab_host::{PageNodesError, page_nodes};
use numalab_record::explore::{BytesByNode, MappingView, Sampled, spread};

/// Number of sampled pages in total.
const PAGES: u64 = 4096;

/// Samples pages spread over the mappings.
pub(super) fn sample(process: u32, mappings: &[MappingView]) -> Result<Sampled, PageNodesError> {
    let addresses = addresses(mappings);
    let mut pages_by_node = BytesByNode::new();
    for node in page_nodes(process, &addresses)?.into_iter().flatten() {
        *pages_by_node.entry(node).or_default() += 1;
    }
    Ok(Sampled { pages: addresses.len() as u64, pages_by_node })
}

/// Returns addresses in the mappings, weighted by the resident bytes of each, or by its length if
/// those are unknown.
fn addresses(mappings: &[MappingView]) -> Vec<u64> {
    let known = mappings.iter().any(|mapping| !mapping.bytes_by_node.is_empty());
    let weight = |mapping: &MappingView| match known {
        true => spread::total(&mapping.bytes_by_node),
        false => mapping.size_bytes.unwrap_or(0),
    };
    let all = mappings.iter().fold(0, |sum: u64, mapping| sum.saturating_add(weight(mapping)));
    let drawn = |weights: u128| u128::from(PAGES) * weights / u128::from(all.max(1));
    let (mut addresses, mut before) = (Vec::new(), 0_u128);
    for mapping in mappings {
        let pages = mapping.size_bytes.unwrap_or(0) / mapping.page_bytes.max(1);
        // The remainder of one mapping counts for the next, so that many small ones get a share.
        let end = before + u128::from(weight(mapping));
        let wanted = u64::try_from(drawn(end) - drawn(before)).unwrap_or(PAGES).min(pages);
        before = end;
        addresses.extend(
            (0..wanted)
                .map(|part| mapping.start + spread_page(part, wanted, pages) * mapping.page_bytes),
        );
    }
    addresses
}

/// Returns a page in part `part` of `parts` equal ones. It is pseudo-random (the multiplier is 2^64
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
    use numalab_host::proc::PageBytes;

    use super::super::numa_maps;
    use super::*;

    #[test]
    fn many_small_mappings_get_their_share_next_to_a_large_one() {
        let lines: String = (0..8192)
            .map(|at| format!("{:x} default anon=1 N0=1\n", 0x10_0000 + at * 8192))
            .collect();
        let sizes = PageBytes { base: 4096, pool: 4096 };
        let mut mappings = numa_maps::read(&lines, sizes);
        mappings.iter_mut().for_each(|mapping| mapping.size_bytes = Some(4096));
        mappings.extend(numa_maps::read("7f0000000000 default anon=8192 N1=8192", sizes));
        mappings[8192].size_bytes = Some(8192 << 12);
        let addresses = addresses(&mappings);
        assert_eq!(addresses.len(), 4096);
        let in_large = addresses.iter().filter(|address| **address >= 0x7f00_0000_0000).count();
        assert_eq!(in_large, 2048);
    }

    #[test]
    fn pages_are_drawn_from_the_whole_mapping() {
        let drawn: Vec<u64> = (0..8).map(|part| spread_page(part, 8, 8000)).collect();
        assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]), "{drawn:?}");
        assert!(drawn[7] >= 7000 && drawn[7] < 8000, "{drawn:?}");
        assert_eq!((0..5).map(|part| spread_page(part, 5, 5)).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }
}
