//! Checks of a single SLIT and of a single HMAT.

use super::*;

#[test]
fn distances_that_linux_refuses_are_errors() {
    let cell = |value: u8| slit(2, &[10, value, 20, 10]);
    assert_eq!(codes(&cell(9)), ["distance-reserved"]);
    assert_eq!(codes(&cell(10)), ["remote-distance-ten"]);
    assert_eq!(codes(&cell(21)), ["distance-asymmetric"]);
    assert_eq!(codes(&slit(2, &[0, 20, 20, 10])), ["local-distance-not-ten"]);
    let found = table_findings(&slit(2, &[10, 20, 20, 255]));
    let expected = Problem::LocalDistanceNotTen { locality: 1, distance: 255 };
    assert_eq!((found[0].problem, found[0].offset), (expected, 47));
}

#[test]
fn a_slit_without_rows_or_without_room_for_them_is_refused() {
    assert_eq!(codes(&slit(0, &[])), ["no-localities"]);
    let mut bytes = slit(2, &[10, 20, 20, 10]);
    bytes[36] = 3;
    assert_eq!(codes(&bytes), ["matrix-overruns"]);
    bytes[36..44].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(codes(&bytes), ["matrix-overruns"]);
}

#[test]
fn odd_hmat_fields_are_found() {
    let rows = [0];
    let good = Locality {
        base_unit: 1000,
        initiators: List::Values(&rows),
        targets: List::Values(&rows),
        values: List::Values(&[80]),
        ..Default::default()
    };
    let of = |locality: Locality<'_>| codes(&hmat(2, &[hmat::Entry::Locality(locality)]));
    assert_eq!(of(good), [""; 0]);
    assert_eq!(of(Locality { data_type: 6, ..good }), ["field-undefined"]);
    assert_eq!(of(Locality { base_unit: 0, ..good }), ["field-zero"]);
    assert_eq!(of(Locality { base_unit: 1 << 28, ..good }), ["base-unit-overflow"]);
    assert_eq!(of(Locality { base_unit: u64::MAX, ..good }), ["base-unit-overflow"]);
    assert_eq!(of(Locality { reserved2: 1, ..good }), ["reserved-not-zero"]);
    let bits = 0x3321;
    let cache = Cache { attributes: CacheAttributes { bits }, ..Default::default() };
    let found = codes(&hmat(2, &[hmat::Entry::Cache(cache)]));
    assert_eq!(found, ["field-undefined", "field-undefined"]);
    let link = hmat::Entry::Proximity(ProximityAttributes { base: GIB, ..Default::default() });
    assert_eq!(codes(&hmat(1, &[link])), [""; 0]);
    assert_eq!(codes(&hmat(2, &[link])), ["reserved-not-zero"]);
    assert_eq!(codes(&hmat(3, &[])), ["revision-unknown"]);
}

#[test]
fn a_matrix_longer_than_its_entry_is_found_and_kept_raw() {
    let rows = [0];
    let locality = Locality {
        base_unit: 1,
        initiators: List::Values(&rows),
        targets: List::Values(&rows),
        values: List::Values(&[1]),
        ..Default::default()
    };
    let mut bytes = hmat(2, &[hmat::Entry::Locality(locality)]);
    bytes[52] = 2;
    sum_again(&mut bytes);
    let found = table_findings(&bytes);
    assert_eq!(found[0].problem, Problem::EntryTooShort { kind: 1, length: 42, expected: 48 });
    bytes[52..60].fill(0xff);
    sum_again(&mut bytes);
    assert_eq!(codes(&bytes), ["entry-too-short"]);
    let AnyTable::Hmat(table) = AnyTable::read(&bytes).expect("readable") else { panic!() };
    assert_eq!(table.localities().count(), 0);
    assert_eq!(table.entries().count(), 1);
}
