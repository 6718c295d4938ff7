//! Inputs that the writers refuse, and fields that they fill in.

use numalab_acpi::{
    AnyTable, BuildError, Builder, Header, List, Signature, Srat, checksum, hmat, madt, slit, srat,
};

use crate::support::built;

fn memory(domain: u32, base: u64, length_bytes: u64) -> srat::Entry<'static> {
    let flags = srat::MemoryFlags::ENABLED;
    srat::Entry::Memory(srat::MemoryAffinity {
        domain,
        base,
        length_bytes,
        flags,
        ..Default::default()
    })
}

#[test]
fn an_unsupported_table_is_refused_with_the_supported_signatures() {
    let bytes = built::<srat::Layout>(Header::new(Signature::SRAT, 3), srat::Fixed::new(), &[]);
    let other = [b"FACP", &bytes[4..]].concat();
    let refusal = AnyTable::read(&other).expect_err("no reader for a FADT").problem.to_string();
    assert_eq!(refusal, "signature \"FACP\", expected SRAT, SLIT, HMAT, APIC or CEDT");
}

#[test]
fn a_builder_fills_in_signature_length_and_checksum() {
    let wrong = Header { length: 7, checksum: 7, ..Header::new(Signature(*b"XXXX"), 3) };
    let bytes = built::<srat::Layout>(wrong, srat::Fixed::new(), &[memory(0, 0, 1 << 30)]);
    let table = Srat::read(&bytes).expect("a SRAT");
    assert_eq!(table.header().length, 88);
    assert_eq!(checksum(&bytes), 0);
    assert_eq!(table.header().oem_id, *b"NUMALB");
}

#[test]
fn a_buffer_that_is_too_small_is_refused_with_the_required_length() {
    for have in 0..88 {
        let mut buffer = vec![0; have];
        let header = Header::new(Signature::SRAT, 3);
        let mut builder = Builder::<srat::Layout>::new(&mut buffer, header, srat::Fixed::new());
        builder.push(&memory(0, 0, 1 << 30));
        assert_eq!(builder.finish(), Err(BuildError::BufferTooSmall { needed: 88, have }));
    }
}

#[test]
fn a_matrix_that_is_not_rows_times_columns_is_refused() {
    let locality = hmat::Entry::Locality(hmat::Locality {
        initiators: List::Values(&[0, 1]),
        targets: List::Values(&[0, 1, 2]),
        values: List::Values(&[1, 2, 3]),
        base_unit: 1000,
        ..Default::default()
    });
    let mut buffer = [0; 256];
    let header = Header::new(Signature::HMAT, 2);
    let mut builder = Builder::<hmat::Layout>::new(&mut buffer, header, hmat::Fixed::default());
    builder.push(&locality);
    assert_eq!(builder.finish(), Err(BuildError::ListLength { items: 3, expected: 6 }));

    let refused = slit::build(&mut buffer, Header::new(Signature::SLIT, 1), 2, &[10, 20, 20]);
    assert_eq!(refused, Err(BuildError::ListLength { items: 3, expected: 4 }));
}

#[test]
fn an_entry_longer_than_its_length_field_holds_is_refused() {
    let extension = [0; 216];
    let gicc = madt::Entry::Gicc(madt::Gicc { extension: &extension, ..Default::default() });
    let mut buffer = [0; 512];
    let header = Header::new(Signature::MADT, 6);
    let mut builder = Builder::<madt::Layout>::new(&mut buffer, header, madt::Fixed::default());
    builder.push(&gicc);
    let refused = BuildError::EntryTooLong { kind: 11, length: 256, maximum: 255 };
    assert_eq!(builder.finish(), Err(refused));
}

#[test]
fn a_built_slit_is_read_back() {
    let mut buffer = [0; 64];
    let header = Header::new(Signature::SLIT, 1);
    let bytes = slit::build(&mut buffer, header, 2, &[10, 20, 21, 10]).expect("fits");
    assert_eq!(Some(bytes.len()), slit::size_bytes(2));
    let Ok(AnyTable::Slit(table)) = AnyTable::read(bytes) else { panic!("not a SLIT") };
    assert_eq!(table.distance(0, 1), Some(20));
    assert_eq!(table.distance(1, 0), Some(21));
    assert_eq!(table.distance(0, 2), None);
}
