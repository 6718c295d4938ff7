//! A NUMA machine as a value: nodes, cpus, memory ranges, distances and caches.
