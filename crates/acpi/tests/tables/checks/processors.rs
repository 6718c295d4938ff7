//! Checks of a single MADT.

use super::*;

#[test]
fn odd_processors_of_a_madt_are_found() {
    let both = LocalApicFlags::ENABLED.with(LocalApicFlags::ONLINE_CAPABLE);
    let cpu = |flags| madt::Entry::LocalApic(LocalApic { processor_uid: 0, apic_id: 0, flags });
    assert_eq!(codes(&madt(5, &[cpu(both)])), ["enabled-and-online-capable"]);
    assert_eq!(codes(&madt(4, &[cpu(both)])), [""; 0]);
    assert_eq!(codes(&madt(5, &[cpu(LocalApicFlags::ONLINE_CAPABLE)])), [""; 0]);
    assert_eq!(codes(&madt(5, &[apic(1), apic(1)])), ["processor-id-shared"]);
    assert_eq!(codes(&madt(5, &[cpu(LocalApicFlags(0)), apic(0)])), [""; 0]);
    let x2apic = |x2apic_id| {
        let flags = LocalApicFlags::ENABLED;
        madt::Entry::LocalX2apic(LocalX2apic { x2apic_id, flags, ..Default::default() })
    };
    assert_eq!(codes(&madt(5, &[apic(1), x2apic(1)])), ["processor-repeated"]);
    assert_eq!(codes(&madt(5, &[x2apic(1), x2apic(1)])), ["processor-id-shared"]);
    let everyone =
        LocalX2apic { x2apic_id: u32::MAX, flags: LocalApicFlags::ENABLED, ..Default::default() };
    let found = codes(&madt(5, &[madt::Entry::LocalX2apic(everyone)]));
    assert_eq!(found, ["processor-id-broadcast"]);
}

#[test]
fn a_gicc_is_judged_by_the_version_that_its_length_implies() {
    let extension = [0; 50];
    let of = |length: usize, flags: u32| {
        let gicc = Gicc {
            flags: GiccFlags(flags),
            extension: &extension[..length - 40],
            ..Default::default()
        };
        codes(&madt(6, &[madt::Entry::Gicc(gicc)]))
    };
    for length in [40, 76] {
        assert_eq!((of(length, 0b11), of(length, 0b100)), (vec![], vec!["flags-undefined"]));
    }
    assert_eq!((of(80, 0b111), of(80, 0b1000)), (vec![], vec!["flags-undefined"]));
    assert_eq!((of(82, 0b1110), of(82, 0b1001)), (vec![], vec!["enabled-and-online-capable"]));
    assert_eq!(of(90, 0), ["entry-too-long"]);
}

#[test]
fn interrupt_controllers_that_repeat_an_id_are_found() {
    let io_apic = |id: u8| [1, 12, id, 0, 0, 0, 0xc0, 0xfe, 0, 0, 0, 0];
    let (first, second) = (io_apic(2), io_apic(2));
    let raw = |bytes| madt::Entry::Raw(RawEntry { kind: 1, bytes });
    let found = table_findings(&madt(3, &[raw(&first), raw(&second)]));
    let expected = Problem::IdRepeated { kind: 1, id: 2, first: 44 };
    assert_eq!((found[0].problem, found[0].offset), (expected, 56));
    let other = io_apic(3);
    assert_eq!(codes(&madt(3, &[raw(&first), raw(&other)])), [""; 0]);
}

#[test]
fn entries_of_reserved_and_of_oem_types_are_distinguished() {
    let raw = |bytes: &'static [u8]| madt::Entry::Raw(RawEntry { kind: bytes[0].into(), bytes });
    assert_eq!(codes(&madt(5, &[raw(&[0x7f, 2])])), ["entry-reserved"]);
    assert_eq!(codes(&madt(5, &[raw(&[0x80, 2])])), ["entry-unknown"]);
    assert_eq!(codes(&madt(5, &[raw(&[4, 6, 0xff, 0, 0, 1])])), [""; 0]);
}

#[test]
fn loongarch_cores_are_processors_with_the_ids_that_the_srat_uses() {
    let core = |core_id, flags| {
        madt::Entry::CorePic(madt::CorePic { version: 1, processor_uid: 7, core_id, flags })
    };
    let bytes = madt(6, &[core(0, LocalApicFlags::ENABLED), core(4, LocalApicFlags(0))]);
    let AnyTable::Madt(table) = AnyTable::read(&bytes).expect("a MADT") else { panic!("no MADT") };
    let found: Vec<_> = table.processors().map(|cpu| (cpu.id, cpu.enabled)).collect();
    assert_eq!(found, [(ProcessorId::Apic(0), true), (ProcessorId::Apic(4), false)]);
    assert_eq!(table_findings(&bytes), []);
}
