//! Distances as other tools print them.

use numalab_topology::{Distances, Findings, LOCAL_DISTANCE};

/// Records a distance between two dense node indices. A distance below that of a node to itself has
/// no meaning (ACPI 6.5, section 5.2.17): it stays unknown, with a finding.
pub(crate) fn record(
    distances: &mut Distances,
    from: usize,
    to: usize,
    distance: u8,
    findings: &mut Findings,
) {
    let place = format!("distance from node {from} to {to} in the text");
    if distance >= LOCAL_DISTANCE {
        distances.set(from, to, distance);
        if from == to && distance != LOCAL_DISTANCE {
            let message = format!("is {distance}, expected {LOCAL_DISTANCE}, the local distance");
            findings.warning("distance-local", place, message);
        }
        return;
    }
    let message = format!("is {distance}, which is not a distance: taken as unknown");
    findings.warning("distance-value", place, message);
}
