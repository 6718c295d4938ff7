//! A NUMA-aware page-frame allocator without a heap.
