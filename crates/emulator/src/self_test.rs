//! What must hold before the plugin's figures mean anything.

use serde::Serialize;

/// A check and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was checked.
    pub check: &'static str,
    /// Whether it holds.
    pub passed: bool,
    /// What was seen.
    pub detail: String,
}

/// Whether every vCPU has a node.
pub fn vcpus(described: usize, qemu_has: usize) -> Check {
    let detail = format!("the machine has {described} vCPUs, QEMU {qemu_has}");
    Check { check: "vcpus", passed: described == qemu_has, detail }
}

/// Whether the clock moves by what it is charged, given the results of trials.
pub fn clock(trials: &[(i64, i64)]) -> Check {
    let wrong = trials.iter().find(|(asked, moved)| asked != moved);
    let detail = match wrong {
        None => "QEMU's clock moves by what it is charged".to_owned(),
        Some((asked, moved)) => format!("QEMU's clock moved by {moved} ns when charged {asked} ns"),
    };
    Check { check: "charge per access", passed: wrong.is_none(), detail }
}

/// Whether it is known which vCPU runs, where QEMU does not say it.
pub fn index(expected: usize, known: Result<usize, &'static str>) -> Check {
    let detail = match known {
        Ok(known) => format!("{known} of {expected} vCPUs known by QEMU's own list"),
        Err(reason) => reason.to_owned(),
    };
    Check { check: "vcpu index", passed: known == Ok(expected), detail }
}

/// Accesses looked at before the ranges are judged.
pub const RANGE_ACCESSES: u64 = 4096;

/// Whether the addresses that QEMU gives lie in the ranges described, given how many of the
/// first accesses to memory did.
pub fn ranges(on_nodes: u64, elsewhere: u64) -> Check {
    let all = on_nodes + elsewhere;
    Check {
        check: "physical ranges",
        // Firmware runs from its own memory, on no node; its data lies on nodes.
        passed: all < RANGE_ACCESSES || on_nodes * 10 >= all,
        detail: format!("{on_nodes} of the first {all} accesses to memory were on a node"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_moves_otherwise_is_refused() {
        assert!(clock(&[(1 << 20, 1 << 20), (12, 12)]).passed);
        let check = clock(&[(12, 12), (1 << 20, 0)]);
        assert!(!check.passed);
        assert_eq!(check.detail, "QEMU's clock moved by 0 ns when charged 1048576 ns");
    }

    #[test]
    fn a_machine_of_another_size_is_refused() {
        assert!(vcpus(4, 4).passed);
        assert!(!vcpus(4, 8).passed);
    }

    #[test]
    fn an_unknown_vcpu_is_refused() {
        assert!(index(4, Ok(4)).passed);
        assert!(!index(4, Ok(3)).passed);
        assert!(!index(4, Err("no symbols")).passed);
    }

    #[test]
    fn ranges_that_miss_the_guests_memory_are_refused() {
        assert!(ranges(4096, 0).passed);
        assert!(ranges(1000, 3096).passed);
        assert!(!ranges(100, 3996).passed);
        assert!(ranges(0, 10).passed, "too few to judge");
    }
}
