//! The spread of memory over nodes.

use std::collections::BTreeMap;

use numalab_topology::{NodeId, NodeSet};

pub type BytesByNode = BTreeMap<NodeId, u64>;

/// Adds `more` to `sum`.
pub fn add(sum: &mut BytesByNode, more: &BytesByNode) {
    for (&node, &bytes) in more {
        let total = sum.entry(node).or_default();
        *total = total.saturating_add(bytes);
    }
}

/// Returns the total in bytes.
pub fn total(bytes: &BytesByNode) -> u64 {
    bytes.values().fold(0, |sum, &bytes| sum.saturating_add(bytes))
}

/// Returns the share of the bytes on `nodes`, from 0 to 1; `None` if there are no bytes.
pub fn share_on(bytes: &BytesByNode, nodes: &NodeSet) -> Option<f64> {
    let on = bytes.iter().filter(|(node, _)| nodes.contains(**node)).map(|(_, &bytes)| bytes);
    ratio(on.fold(0, u64::saturating_add), total(bytes))
}

/// Returns the share of the bytes on nodes other than `node`, from 0 to 1; `None` if there are no
/// bytes.
pub fn share_elsewhere(bytes: &BytesByNode, node: NodeId) -> Option<f64> {
    share_on(bytes, &NodeSet::from_iter([node])).map(|share| 1.0 - share)
}

/// Returns the node with the most bytes, and its share.
pub fn most(bytes: &BytesByNode) -> Option<(NodeId, f64)> {
    let (&node, &most) = bytes.iter().max_by_key(|&(node, &bytes)| (bytes, *node))?;
    Some((node, ratio(most, total(bytes))?))
}

/// Returns `part / whole`; `None` if `whole` is 0.
#[expect(clippy::cast_precision_loss, reason = "a share, shown with three digits")]
pub fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Returns the nodes other than `node` that have any bytes, as migratepages(8) takes them.
pub fn others(bytes: &BytesByNode, node: NodeId) -> NodeSet {
    bytes.iter().filter(|(other, bytes)| **other != node && **bytes > 0).map(|(n, _)| *n).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_of_the_total_and_absent_for_an_empty_total() {
        let bytes = BytesByNode::from([(NodeId(0), 96), (NodeId(3), 4)]);
        assert_eq!(most(&bytes), Some((NodeId(0), 0.96)));
        assert_eq!(share_elsewhere(&bytes, NodeId(3)), Some(0.96));
        assert_eq!(share_elsewhere(&bytes, NodeId(7)), Some(1.0));
        assert_eq!(share_elsewhere(&BytesByNode::new(), NodeId(0)), None);
        assert_eq!(others(&bytes, NodeId(0)).to_string(), "3");
    }
}
