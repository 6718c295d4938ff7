//! The memory level that served a sampled access (`union perf_mem_data_src` of
//! `linux/perf_event.h`).

use perf_event_open_sys::bindings as sys;

/// The kind of a sampled access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Load,
    Store,
}

/// The part of the machine that had the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedBy {
    /// A cache, or a buffer in front of one.
    Cache,
    /// A cache of another package.
    FarCache,
    Memory,
    /// The processor did not report it.
    Unknown,
}

/// The processor's description of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSource {
    /// The kind of access; `None` for prefetches, instruction fetches and instructions without an
    /// access.
    pub operation: Option<Operation>,
    /// The part of the machine that had the data.
    pub served_by: ServedBy,
}

impl DataSource {
    /// Decodes the data source word of a sample.
    pub fn of(word: u64) -> Self {
        let operation = match bits(word, sys::PERF_MEM_OP_SHIFT, 5) {
            op if op & sys::PERF_MEM_OP_STORE != 0 => Some(Operation::Store),
            op if op & sys::PERF_MEM_OP_LOAD != 0 => Some(Operation::Load),
            _ => None,
        };
        Self { operation, served_by: served_by(word) }
    }
}

/// Returns the level that served an access. Older kernels set only the level; newer ones also its
/// number and whether it is remote.
fn served_by(word: u64) -> ServedBy {
    const MEMORY: u32 =
        sys::PERF_MEM_LVL_LOC_RAM | sys::PERF_MEM_LVL_REM_RAM1 | sys::PERF_MEM_LVL_REM_RAM2;
    const FAR: u32 = sys::PERF_MEM_LVL_REM_CCE1 | sys::PERF_MEM_LVL_REM_CCE2;
    const NEAR: u32 =
        sys::PERF_MEM_LVL_L1 | sys::PERF_MEM_LVL_LFB | sys::PERF_MEM_LVL_L2 | sys::PERF_MEM_LVL_L3;
    let level = bits(word, sys::PERF_MEM_LVL_SHIFT, 14);
    let is_remote = bits(word, sys::PERF_MEM_REMOTE_SHIFT, 1) != 0;
    match bits(word, sys::PERF_MEM_LVLNUM_SHIFT, 4) {
        sys::PERF_MEM_LVLNUM_RAM | sys::PERF_MEM_LVLNUM_PMEM | sys::PERF_MEM_LVLNUM_CXL => {
            ServedBy::Memory
        }
        _ if level & MEMORY != 0 => ServedBy::Memory,
        _ if level & FAR != 0 => ServedBy::FarCache,
        sys::PERF_MEM_LVLNUM_L1
        | sys::PERF_MEM_LVLNUM_L2
        | sys::PERF_MEM_LVLNUM_L3
        | sys::PERF_MEM_LVLNUM_L4
        | sys::PERF_MEM_LVLNUM_L2_MHB
        | sys::PERF_MEM_LVLNUM_ANY_CACHE
        | sys::PERF_MEM_LVLNUM_LFB => {
            if is_remote {
                ServedBy::FarCache
            } else {
                ServedBy::Cache
            }
        }
        _ if level & NEAR != 0 => ServedBy::Cache,
        _ => ServedBy::Unknown,
    }
}

fn bits(word: u64, shift: u32, width: u32) -> u32 {
    u32::try_from((word >> shift) & ((1 << width) - 1)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(operation: u32, level: u32, number: u32, remote: u32) -> u64 {
        u64::from(operation) << sys::PERF_MEM_OP_SHIFT
            | u64::from(level) << sys::PERF_MEM_LVL_SHIFT
            | u64::from(number) << sys::PERF_MEM_LVLNUM_SHIFT
            | u64::from(remote) << sys::PERF_MEM_REMOTE_SHIFT
    }

    #[test]
    fn an_access_has_its_kind_and_the_level_that_served_it() {
        let load = sys::PERF_MEM_OP_LOAD;
        let hit = sys::PERF_MEM_LVL_HIT;
        let served =
            |level, number, remote| DataSource::of(word(load, level, number, remote)).served_by;
        assert_eq!(served(hit | sys::PERF_MEM_LVL_L1, sys::PERF_MEM_LVLNUM_L1, 0), ServedBy::Cache);
        assert_eq!(served(hit | sys::PERF_MEM_LVL_LOC_RAM, 0, 0), ServedBy::Memory, "old kernels");
        assert_eq!(
            served(hit, sys::PERF_MEM_LVLNUM_RAM, 1),
            ServedBy::Memory,
            "of another node: still memory"
        );
        assert_eq!(served(hit | sys::PERF_MEM_LVL_REM_CCE1, 0, 0), ServedBy::FarCache);
        assert_eq!(served(hit, sys::PERF_MEM_LVLNUM_ANY_CACHE, 1), ServedBy::FarCache);
        assert_eq!(served(sys::PERF_MEM_LVL_NA, sys::PERF_MEM_LVLNUM_NA, 0), ServedBy::Unknown);
        let does = |operation| DataSource::of(word(operation, 0, 0, 0)).operation;
        assert_eq!(does(load), Some(Operation::Load));
        assert_eq!(does(sys::PERF_MEM_OP_STORE), Some(Operation::Store));
        assert_eq!(does(sys::PERF_MEM_OP_NA), None);
        assert_eq!(does(sys::PERF_MEM_OP_PFETCH), None);
    }
}
