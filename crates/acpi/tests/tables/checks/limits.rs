//! Quantities beyond the limits of any system.

use super::*;
use numalab_acpi::{LimitProblem, MAX_DOMAINS, MAX_PROCESSORS, MAX_TABLE_BYTES};

#[test]
fn a_table_larger_than_any_firmware_has_is_refused() {
    let mut bytes = srat(&[memory(0, 0, GIB)]);
    bytes[4..8].copy_from_slice(&(MAX_TABLE_BYTES + 1).to_le_bytes());
    bytes.resize(MAX_TABLE_BYTES as usize + 1, 0);
    assert_eq!(codes(&bytes), ["table-too-large"]);
    bytes[4..8].copy_from_slice(&MAX_TABLE_BYTES.to_le_bytes());
    assert_ne!(codes(&bytes), ["table-too-large"]);
}

#[test]
fn a_slit_with_more_rows_than_linux_has_domains_is_refused() {
    let most = MAX_DOMAINS as usize;
    let large = slit(most + 1, &vec![0; (most + 1) * (most + 1)]);
    let refusal = AnyTable::read(&large).expect_err("too many rows").problem;
    assert_eq!(refusal, LimitProblem::TooManyLocalities { localities: 1025 }.into());
    assert!(AnyTable::read(&slit(most, &vec![0; most * most])).is_ok());
}

#[test]
fn more_processors_than_are_read_are_an_error() {
    let cpus = |count: usize| -> Vec<srat::Entry<'static>> {
        (0..u32::try_from(count).expect("small")).map(|id| x2apic(id, 0)).collect()
    };
    let found = |count| codes(&srat(&[vec![memory(0, 0, GIB)], cpus(count)].concat()));
    assert_eq!(found(MAX_PROCESSORS), [""; 0]);
    assert_eq!(found(MAX_PROCESSORS + 1), ["too-many-processors"]);
}
