//! The live Linux machine: sysfs to topology, affinity, memory policy, proof of placement.
