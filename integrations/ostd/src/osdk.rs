//! Free memory as reported by OSTD's own allocator.

/// Free bytes.
pub fn free_bytes() -> u64 {
    osdk_frame_allocator::load_total_free_size() as u64
}
