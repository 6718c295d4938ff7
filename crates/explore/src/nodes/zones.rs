//! `/proc/buddyinfo`, `/proc/zoneinfo` and `/proc/pagetypeinfo` (proc(5)): the free
//! memory of each node's zones.

use std::collections::BTreeMap;

use numalab_record::explore::ZoneView;
use numalab_topology::NodeId;

/// Parses the zones of each node; other lines are skipped.
pub fn read_buddyinfo(text: &str) -> BTreeMap<NodeId, Vec<ZoneView>> {
    let mut nodes: BTreeMap<NodeId, Vec<ZoneView>> = BTreeMap::new();
    for line in text.lines() {
        let Some((node, name, rest)) = head(line) else { continue };
        let free_blocks: Vec<u64> =
            rest.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        let zone = ZoneView { name: name.to_owned(), free_blocks, ..ZoneView::default() };
        nodes.entry(node).or_default().push(zone);
    }
    nodes
}

/// Adds the data of `zoneinfo` to the zones.
pub(super) fn take_zoneinfo(nodes: &mut BTreeMap<NodeId, Vec<ZoneView>>, text: &str) {
    let mut zone = None;
    for line in text.lines() {
        if let Some((node, name, _)) = head(line) {
            zone = find(nodes, node, name);
            continue;
        }
        let (Some(zone), Some((name, value))) = (&mut zone, line.trim().split_once(' ')) else {
            continue;
        };
        match (name, value.trim().parse()) {
            ("low", Ok(pages)) => zone.low_pages = zone.low_pages.or(Some(pages)),
            ("managed", Ok(pages)) => zone.managed_pages = zone.managed_pages.or(Some(pages)),
            _ => {}
        }
    }
}

/// Adds the pageblocks from `pagetypeinfo`: the table under `Number of blocks type`.
pub(super) fn take_pagetypeinfo(nodes: &mut BTreeMap<NodeId, Vec<ZoneView>>, text: &str) {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("Number of blocks type"));
    let types: Vec<&str> =
        lines.next().unwrap_or_default().split_ascii_whitespace().skip(4).collect();
    for line in lines {
        let Some((node, name, rest)) = head(line) else { continue };
        let Some(zone) = find(nodes, node, name) else { continue };
        let counts = rest.split_ascii_whitespace().map_while(|word| word.parse::<u64>().ok());
        let named = types.iter().zip(counts).filter(|(_, count)| *count > 0);
        zone.pageblocks = named.map(|(name, count)| ((*name).to_owned(), count)).collect();
    }
}

fn find<'a>(
    nodes: &'a mut BTreeMap<NodeId, Vec<ZoneView>>,
    node: NodeId,
    name: &str,
) -> Option<&'a mut ZoneView> {
    nodes.get_mut(&node)?.iter_mut().find(|zone| zone.name == name)
}

/// Parses a line such as `Node 0, zone   Normal  …`.
fn head(line: &str) -> Option<(NodeId, &str, &str)> {
    let (node, rest) = line.strip_prefix("Node ")?.split_once(',')?;
    let rest = rest.trim_start().strip_prefix("zone")?.trim_start();
    let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some((NodeId(node.trim().parse().ok()?), name, rest))
}

#[cfg(test)]
mod tests {
    use numalab_record::explore::fragmentation;
    use proptest::prelude::*;

    use super::*;

    const BUDDYINFO: &str = "\
Node 0, zone      DMA      0      0      1
Node 0, zone   Normal      8      4      0
Node 1, zone   Normal      0      0      2
";

    #[test]
    fn fragmentation_is_the_share_that_cannot_serve_the_order() {
        let nodes = read_buddyinfo(BUDDYINFO);
        let zones = &nodes[&NodeId(0)];
        assert_eq!(zones[1].free_pages(), 16);
        assert_eq!(fragmentation(zones, 2), Some(0.8));
        assert_eq!(fragmentation(&nodes[&NodeId(1)], 2), Some(0.0));
        assert_eq!(fragmentation(&[], 2), None);
    }

    #[test]
    fn zoneinfo_and_pagetypeinfo_add_to_their_zone() {
        let mut nodes = read_buddyinfo(BUDDYINFO);
        let zoneinfo = "\
Node 0, zone   Normal
  per-node stats
      nr_inactive_anon 12
  pages free     16
        min      1
        low      2
        managed  900
  pagesets
    cpu: 0
              low:  7
";
        take_zoneinfo(&mut nodes, zoneinfo);
        let types = "\
Page block order: 9
Free pages count per migrate type at order       0      1
Node    0, zone   Normal, type    Unmovable      0      1
Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic
Node 0, zone   Normal           12          400            0            0
";
        take_pagetypeinfo(&mut nodes, types);
        let zone = &nodes[&NodeId(0)][1];
        assert_eq!((zone.managed_pages, zone.low_pages), (Some(900), Some(2)));
        let blocks = [("Movable".to_owned(), 400), ("Unmovable".to_owned(), 12)];
        assert_eq!(zone.pageblocks, BTreeMap::from(blocks));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(?s)(Node \\d, zone \\PC{0,40}\n){0,3}\\PC{0,80}", end in 0..BUDDYINFO.len()) {
            let mut nodes = read_buddyinfo(&text);
            take_zoneinfo(&mut nodes, &text);
            take_pagetypeinfo(&mut nodes, &text);
            let _ = read_buddyinfo(&BUDDYINFO[..end]);
        }
    }
}
