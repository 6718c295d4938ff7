//! Distances as other tools print them.

use numalab_topology::{Distances, Findings};

/// Records a distance between two dense node indices; 0 is none, and stays unknown with a finding.
pub(crate) fn record(
    distances: &mut Distances,
    from: usize,
    to: usize,
    distance: u8,
    findings: &mut Findings,
) {
    if distance > 0 {
        distances.set(from, to, distance);
        return;
    }
    let place = format!("distance from node {from} to {to} of the text");
    findings.warning("distance-value", place, "is 0, which is not a distance: taken as unknown");
}
