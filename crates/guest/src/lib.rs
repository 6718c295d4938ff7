//! NUMA guests on any machine: QEMU arguments, images, pinning, results.
