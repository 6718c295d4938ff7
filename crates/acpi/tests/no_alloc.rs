//! Reading, checking, printing and writing do not allocate: a counting allocator proves it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::{self, Write};

use numalab_acpi::acpidump::Dump;
use numalab_acpi::hmat::Access;
use numalab_acpi::srat::{Entry, LocalX2apicAffinity, MemoryAffinity};
use numalab_acpi::{
    AnyTable, Builder, Header, List, Signature, Slot, Tables, check, hmat, slit, srat,
};

struct Counting;

thread_local! {
    // For each thread, since the test harness allocates in its own while the test runs.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn allocations() -> u64 {
    ALLOCATIONS.get()
}

// SAFETY: 1. Every call is forwarded to `System` with the same arguments. 2. Counting uses a
// constant thread-local without a destructor, which does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract, which is `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System` by `alloc` above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A text sink that discards everything.
struct Nowhere;

impl Write for Nowhere {
    fn write_str(&mut self, _: &str) -> fmt::Result {
        Ok(())
    }
}

fn build_srat(buffer: &mut [u8]) -> &[u8] {
    let header = Header::new(Signature::SRAT, 3);
    let mut builder = Builder::<srat::Layout>::new(buffer, header, srat::Fixed::new());
    for x2apic_id in 0..1000 {
        let cpu = LocalX2apicAffinity { x2apic_id, domain: x2apic_id % 8, ..Default::default() };
        let flags = srat::AffinityFlags::ENABLED;
        builder.push(&Entry::LocalX2apic(LocalX2apicAffinity { flags, ..cpu }));
        let (base, flags) = (u64::from(x2apic_id) << 30, srat::MemoryFlags::ENABLED);
        let range = MemoryAffinity { base, length_bytes: 2 << 30, flags, ..Default::default() };
        builder.push(&Entry::Memory(range));
    }
    builder.finish().expect("fits")
}

fn build_hmat(buffer: &mut [u8]) -> &[u8] {
    let domains = [0, 1];
    let locality = hmat::Locality {
        base_unit: 1000,
        initiators: List::Values(&domains),
        targets: List::Values(&domains),
        values: List::Values(&[80, 140, 140, 80]),
        ..Default::default()
    };
    let header = Header::new(Signature::HMAT, 2);
    let mut builder = Builder::<hmat::Layout>::new(buffer, header, hmat::Fixed::default());
    builder.push(&hmat::Entry::Locality(locality));
    builder.finish().expect("fits")
}

#[test]
fn reading_checking_printing_and_writing_do_not_allocate() {
    static TEXT: &[u8] = b"SLIT @ 0x0\n  0000: 53 4C 49 54 2D 00 00 00 01 36\n";
    let (mut first, mut second, mut third) = ([0; 65536], [0; 256], [0; 256]);
    let mut scratch = [Slot::default(); 2000];
    let (mut findings, mut printed) = (0, Ok(()));

    let before = allocations();
    let tables = [
        AnyTable::read(build_srat(&mut first)),
        AnyTable::read(build_hmat(&mut second)),
        slit::build(&mut third, Header::new(Signature::SLIT, 1), 2, &[10, 9, 20, 10])
            .map_err(|error| panic!("{error}"))
            .and_then(AnyTable::read),
    ];
    let mut all = Tables::default();
    for table in tables.into_iter().flatten() {
        printed = printed.and(write!(Nowhere, "{table}"));
        all.insert(table);
    }
    let checked = check(&all, &mut scratch, &mut |finding| {
        findings += 1;
        printed = printed.and(write!(Nowhere, "{finding}"));
    });
    let latency = all.hmat.and_then(|hmat| hmat.latency_ps(0, 1, Access::Read));
    let dumped = Dump::new(TEXT).next().map(|table| table.decode(&mut third).map(<[u8]>::len));
    let after = allocations();

    assert_eq!(after - before, 0, "allocations");
    assert_eq!((checked, printed), (Ok(()), Ok(())));
    assert_eq!(latency.and_then(|reading| reading.value()), Some(140_000));
    assert_eq!(dumped, Some(Ok(10)));
    assert!(findings > 1000, "{findings} findings");
    drop(Box::new(0_u64));
    assert_eq!(allocations() - after, 1, "the counter counts");
}
