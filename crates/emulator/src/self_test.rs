//! Checks without which the plugin's figures are meaningless.

use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The condition that was checked.
    pub check: &'static str,
    pub passed: bool,
    /// The values that were found.
    pub detail: String,
}

/// Checks that every vCPU has a node.
pub fn vcpus(described: usize, qemu_has: usize) -> Check {
    let detail = format!("the machine has {described} vCPUs, QEMU {qemu_has}");
    Check { check: "vcpus", passed: described == qemu_has, detail }
}

/// Checks that the clock moves by the time charged; trials are (charged, moved) in ns.
pub fn clock(trials: &[(i64, i64)]) -> Check {
    let wrong = trials.iter().find(|(asked, moved)| asked != moved);
    let detail = match wrong {
        None => "QEMU's clock moves by the time charged".to_owned(),
        Some((asked, moved)) => format!("QEMU's clock moved by {moved} ns when charged {asked} ns"),
    };
    Check { check: "charge per access", passed: wrong.is_none(), detail }
}

/// Checks that the running vCPU can be identified where QEMU does not pass it.
pub fn index(expected: usize, known: Result<usize, &'static str>) -> Check {
    let detail = match known {
        Ok(known) => format!("{known} of {expected} vCPUs found in QEMU's list"),
        Err(reason) => reason.to_owned(),
    };
    Check { check: "vcpu index", passed: known == Ok(expected), detail }
}

/// Accesses seen before the ranges are judged.
pub const RANGE_ACCESSES: u64 = 4096;

/// Checks, by the first accesses to memory, that the addresses QEMU reports are within the nodes'
/// ranges.
pub fn ranges(on_nodes: u64, elsewhere: u64) -> Check {
    let all = on_nodes + elsewhere;
    Check {
        check: "physical ranges",
        // Firmware runs from its own memory, which is on no node; its data is on nodes.
        passed: all < RANGE_ACCESSES || on_nodes * 10 >= all,
        detail: format!("{on_nodes} of the first {all} accesses to memory were on a node"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_clock_that_does_not_move_by_its_charge() {
        assert!(clock(&[(1 << 20, 1 << 20), (12, 12)]).passed);
        let check = clock(&[(12, 12), (1 << 20, 0)]);
        assert!(!check.passed);
        assert_eq!(check.detail, "QEMU's clock moved by 0 ns when charged 1048576 ns");
    }

    #[test]
    fn refuses_a_machine_with_another_number_of_vcpus() {
        assert!(vcpus(4, 4).passed);
        assert!(!vcpus(4, 8).passed);
    }

    #[test]
    fn refuses_an_unknown_vcpu() {
        assert!(index(4, Ok(4)).passed);
        assert!(!index(4, Ok(3)).passed);
        assert!(!index(4, Err("no symbols")).passed);
    }

    #[test]
    fn refuses_ranges_that_miss_the_guests_memory() {
        assert!(ranges(4096, 0).passed);
        assert!(ranges(1000, 3096).passed);
        assert!(!ranges(100, 3996).passed);
        assert!(ranges(0, 10).passed, "too few to judge");
    }
}
