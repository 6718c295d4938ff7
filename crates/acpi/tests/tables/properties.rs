//! Any entries survive writing and reading, and any bytes are read without a panic.

use numalab_acpi::acpidump::Dump;
use numalab_acpi::cedt::{FixedMemoryWindow, HostBridge, WindowRestrictions};
use numalab_acpi::hmat::{Cache, CacheAttributes, Locality, LocalityFlags, ProximityAttributes};
use numalab_acpi::madt::{Gicc, LocalApic, LocalApicFlags, LocalX2apic, Rintc};
use numalab_acpi::srat::{
    AffinityFlags, DeviceAffinity, DeviceFlags, GicItsAffinity, GiccAffinity, LocalApicAffinity,
    LocalX2apicAffinity, MemoryAffinity, MemoryFlags, RintcAffinity,
};
use numalab_acpi::{
    Format, Header, List, RawEntry, Signature, Table, cedt, hmat, madt, slit, srat,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{built, read_all, rewrite, sum_again};

/// Builds, reads, compares, and writes again. It is a macro, because entries with two lifetimes of
/// one layout cannot be compared in a generic function.
macro_rules! survives {
    ($layout:ty, $revision:expr, $fixed:expr, $entries:expr) => {
        let header = Header::new(<$layout>::SIGNATURE, $revision);
        let bytes = built::<$layout>(header, $fixed, &$entries);
        let table = Table::<$layout>::read(&bytes).expect("a table that was built");
        prop_assert!(table.entries().map(|at| at.entry).eq($entries.iter().copied()));
        prop_assert_eq!(rewrite(&table), Ok(bytes.clone()));
        read_all(&bytes);
    };
}

fn srat_processor() -> impl Strategy<Value = srat::Entry<'static>> {
    let words = any::<[u32; 3]>();
    prop_oneof![
        any::<(u8, u32, u32, u8)>().prop_map(|(id, domain, flags, sapic_eid)| {
            let flags = AffinityFlags(flags);
            let cpu = LocalApicAffinity::new(id, domain);
            srat::Entry::LocalApic(LocalApicAffinity { flags, sapic_eid, ..cpu })
        }),
        words.prop_map(|[domain, x2apic_id, flags]| {
            let flags = AffinityFlags(flags);
            let cpu = LocalX2apicAffinity { domain, x2apic_id, flags, ..Default::default() };
            srat::Entry::LocalX2apic(cpu)
        }),
        words.prop_map(|[domain, processor_uid, flags]| {
            let flags = AffinityFlags(flags);
            srat::Entry::Gicc(GiccAffinity { domain, processor_uid, flags, clock_domain: 3 })
        }),
        words.prop_map(|[domain, processor_uid, flags]| {
            let flags = AffinityFlags(flags);
            srat::Entry::Rintc(RintcAffinity { domain, processor_uid, flags, ..Default::default() })
        }),
    ]
}

fn srat_other() -> impl Strategy<Value = srat::Entry<'static>> {
    let words = any::<[u32; 3]>();
    prop_oneof![
        (words, any::<[u64; 3]>()).prop_map(
            |([domain, reserved2, flags], [base, length_bytes, reserved3])| {
                let flags = MemoryFlags(flags);
                srat::Entry::Memory(MemoryAffinity {
                    domain,
                    reserved1: 7,
                    base,
                    length_bytes,
                    reserved2,
                    flags,
                    reserved3,
                })
            }
        ),
        words.prop_map(|[domain, its_id, _]| {
            srat::Entry::GicIts(GicItsAffinity { domain, reserved: 0, its_id })
        }),
        (any::<bool>(), any::<u8>(), any::<[u8; 16]>(), words).prop_map(
            |(port, handle_type, handle, [domain, flags, reserved2])| {
                let flags = DeviceFlags(flags);
                let reserved1 = 1;
                let device =
                    DeviceAffinity { reserved1, handle_type, domain, handle, flags, reserved2 };
                if port {
                    srat::Entry::GenericPort(device)
                } else {
                    srat::Entry::GenericInitiator(device)
                }
            }
        ),
        Just(srat::Entry::Raw(RawEntry { kind: 0x80, bytes: &[0x80, 5, 1, 2, 3] })),
    ]
}

fn madt_entry<'a>(extension: &'a [u8]) -> impl Strategy<Value = madt::Entry<'a>> {
    let words = any::<[u32; 3]>();
    prop_oneof![
        any::<(u8, u8, u32)>().prop_map(|(processor_uid, apic_id, flags)| {
            let flags = LocalApicFlags(flags);
            madt::Entry::LocalApic(LocalApic { processor_uid, apic_id, flags })
        }),
        words.prop_map(|[x2apic_id, flags, processor_uid]| {
            let flags = LocalApicFlags(flags);
            madt::Entry::LocalX2apic(LocalX2apic { reserved: 0, x2apic_id, flags, processor_uid })
        }),
        words.prop_map(move |[processor_uid, flags, interface_number]| {
            let flags = madt::GiccFlags(flags);
            let gicc = Gicc { processor_uid, flags, interface_number, ..Default::default() };
            madt::Entry::Gicc(Gicc { extension, ..gicc })
        }),
        words.prop_map(|[hart, flags, processor_uid]| {
            let (hart_id, flags) = (hart.into(), LocalApicFlags(flags));
            madt::Entry::Rintc(Rintc { hart_id, flags, processor_uid, ..Default::default() })
        }),
        Just(madt::Entry::Raw(RawEntry { kind: 4, bytes: &[4, 6, 0xff, 0, 0, 1] })),
    ]
}

proptest! {
    #[test]
    fn any_srat_survives(revision in 1_u8..4, entries in vec(prop_oneof![srat_processor(), srat_other()], 0..40)) {
        survives!(srat::Layout, revision, srat::Fixed::new(), entries);
    }

    #[test]
    fn any_madt_survives(length in prop::sample::select(vec![0_usize, 36, 40, 42]), seed: u8) {
        let extension = vec![seed; length];
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let tree = vec(madt_entry(&extension), 0..40).new_tree(&mut runner).expect("entries");
        let entries = proptest::strategy::ValueTree::current(&tree);
        survives!(madt::Layout, 5, madt::Fixed::default(), entries);
    }

    #[test]
    fn any_hmat_survives(
        revision in 1_u8..3,
        rows in vec(any::<u32>(), 0..9),
        columns in vec(any::<u32>(), 0..9),
        handles in vec(any::<u16>(), 0..5),
        (data_type, flags, base_unit, seed) in any::<(u8, u8, u64, u16)>(),
        bits: u32,
    ) {
        let cells = u16::try_from(rows.len() * columns.len()).expect("few");
        let values: Vec<u16> = (0..cells).map(|cell| cell.wrapping_mul(seed)).collect();
        let locality = Locality {
            flags: LocalityFlags(flags),
            data_type,
            base_unit,
            initiators: List::Values(&rows),
            targets: List::Values(&columns),
            values: List::Values(&values),
            ..Default::default()
        };
        let attributes = CacheAttributes { bits };
        let smbios_handles = List::Values(&handles);
        let cache = Cache { size_bytes: base_unit, attributes, smbios_handles, ..Default::default() };
        let link = ProximityAttributes { initiator: bits, ..Default::default() };
        let entries =
            [hmat::Entry::Locality(locality), hmat::Entry::Cache(cache), hmat::Entry::Proximity(link)];
        survives!(hmat::Layout, revision, hmat::Fixed::default(), entries);
        let packed = CacheAttributes::new(
            attributes.levels(),
            attributes.level(),
            attributes.associativity(),
            attributes.write_policy(),
            attributes.line_bytes(),
        );
        prop_assert_eq!(packed, attributes);
    }

    #[test]
    fn any_cedt_survives(
        encoded_ways in prop::sample::select(vec![0_u8, 1, 2, 3, 4, 8, 9, 10]),
        [base, size_bytes] in any::<[u64; 2]>(),
        restrictions: u16,
        uid: u32,
    ) {
        let ways = cedt::interleave_ways(encoded_ways).expect("a defined encoding");
        let targets: Vec<u32> = (0..ways).map(|way| uid.wrapping_add(way.into())).collect();
        let restrictions = WindowRestrictions(restrictions);
        let window = FixedMemoryWindow {
            base,
            size_bytes,
            encoded_ways,
            restrictions,
            targets: List::Values(&targets),
            ..Default::default()
        };
        let bridge = HostBridge { uid, base, ..Default::default() };
        let other = RawEntry { kind: 2, bytes: &[2, 0, 8, 0, 0, 0, 0, 0] };
        let entries =
            [cedt::Entry::HostBridge(bridge), cedt::Entry::Window(window), cedt::Entry::Raw(other)];
        survives!(cedt::Layout, 1, (), entries);
    }

    #[test]
    fn any_slit_survives(rows in 1_usize..20, seed: u8) {
        let cells: Vec<u8> = (0..=u8::MAX).cycle().map(|cell| seed.wrapping_add(cell)).take(rows * rows).collect();
        let mut buffer = vec![0; slit::size_bytes(rows).expect("small")];
        let header = Header::new(Signature::SLIT, 1);
        let bytes = slit::build(&mut buffer, header, rows, &cells).expect("fits");
        let table = numalab_acpi::Slit::read(bytes).expect("a table that was built");
        prop_assert!(table.rows().flatten().eq(&cells));
        read_all(bytes);
    }

    #[test]
    fn any_bytes_are_survived(
        signature in prop::sample::select(Signature::ALL),
        body in vec(any::<u8>(), 0..600),
    ) {
        let mut bytes = Vec::from(signature.0);
        bytes.extend(u32::try_from(body.len() + 8).expect("small").to_le_bytes());
        bytes.extend(&body);
        if bytes.len() > 9 {
            sum_again(&mut bytes);
        }
        read_all(&bytes);
        read_all(&body);
    }

    #[test]
    fn any_dump_is_survived(text in "(SRAT @ 0x0\n)?( {4}[0-9A-F]{4}:( [0-9A-F ]{2}){0,18}  .{0,9}\n){0,5}") {
        for table in Dump::new(text.as_bytes()) {
            let size = table.size_bytes();
            prop_assert_eq!(size, table.decode(&mut [0; 512]).map(<[u8]>::len));
        }
    }
}
