//! Random machines.

use numalab_topology::Machine;
use proptest::prelude::*;

use crate::machines::machine;

/// Machines of 1 to 12 nodes with 0 to 3 cpus each, with and without memory, at random distances
/// that need not be symmetric.
pub fn any_machine() -> impl Strategy<Value = Machine> {
    (1usize..=12).prop_flat_map(|nodes| {
        let remote = prop_oneof![Just(20u8), Just(12), Just(32), 10u8..=40];
        let rows = proptest::collection::vec(proptest::collection::vec(remote, nodes), nodes);
        let cpus = proptest::collection::vec(0u32..=3, nodes);
        let memory = proptest::collection::vec(prop::bool::weighted(0.8), nodes);
        (cpus, memory, rows).prop_map(|(cpus, memory, mut rows)| {
            for (index, row) in rows.iter_mut().enumerate() {
                row[index] = 10;
            }
            machine(&cpus, &memory, &rows)
        })
    })
}
