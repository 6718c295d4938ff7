//! Speed of reading tables: Markdown rows with median and spread.

use std::hint::black_box;
use std::time::Instant;

use numalab_acpi::srat::{AffinityFlags, Entry, LocalX2apicAffinity, MemoryAffinity, MemoryFlags};
use numalab_acpi::{
    AnyTable, Builder, Header, Hmat, List, Signature, Slot, Srat, Tables, check, checksum, hmat,
    slit, srat,
};

const SAMPLES: usize = 51;
const CPUS: u32 = 10_000;

/// Times `work` until each sample takes about 20 ms, and prints a row.
fn row(name: &str, bytes: usize, mut work: impl FnMut() -> u64) {
    let started = Instant::now();
    black_box(work());
    let once_s = started.elapsed().as_secs_f64().max(1e-7);
    let repeats = (0.02 / once_s).ceil();
    let mut samples_us: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let started = Instant::now();
            let mut done = 0.0;
            while done < repeats {
                black_box(work());
                done += 1.0;
            }
            started.elapsed().as_secs_f64() * 1e6 / repeats
        })
        .collect();
    samples_us.sort_by(f64::total_cmp);
    let at = |quantile: usize| samples_us[quantile * (SAMPLES - 1) / 100];
    let bytes = u32::try_from(bytes).map_or(f64::NAN, f64::from);
    println!(
        "| {name} | {bytes} | {:.1} | {:.1} to {:.1} | {:.2} |",
        at(50),
        at(5),
        at(95),
        bytes / at(50) / 1e3,
    );
}

/// Returns a table of 10,000 x2APICs, with a range of memory for each hundred of them.
fn big_srat() -> Vec<u8> {
    let mut buffer = vec![0; 48 + 24 * 10_000 + 40 * 100];
    let header = Header::new(Signature::SRAT, 3);
    let mut builder = Builder::<srat::Layout>::new(&mut buffer, header, srat::Fixed::new());
    for x2apic_id in 0..CPUS {
        let domain = x2apic_id / 100;
        if x2apic_id.is_multiple_of(100) {
            let (base, flags) = (u64::from(domain) << 34, MemoryFlags::ENABLED);
            let range =
                MemoryAffinity { domain, base, length_bytes: 1 << 34, flags, ..Default::default() };
            builder.push(&Entry::Memory(range));
        }
        let flags = AffinityFlags::ENABLED;
        let cpu = LocalX2apicAffinity { domain, x2apic_id, flags, ..Default::default() };
        builder.push(&Entry::LocalX2apic(cpu));
    }
    builder.finish().expect("fits").to_vec()
}

fn big_hmat() -> Vec<u8> {
    let domains: Vec<u32> = (0..256).collect();
    let values: Vec<u16> = (0..65_535).chain([1]).collect();
    let locality = hmat::Locality {
        base_unit: 100,
        initiators: List::Values(&domains),
        targets: List::Values(&domains),
        values: List::Values(&values),
        ..Default::default()
    };
    let mut buffer = vec![0; 1 << 20];
    let header = Header::new(Signature::HMAT, 2);
    let mut builder = Builder::<hmat::Layout>::new(&mut buffer, header, hmat::Fixed::default());
    builder.push(&hmat::Entry::Locality(locality));
    builder.finish().expect("fits").to_vec()
}

fn main() {
    let srat = big_srat();
    let hmat = big_hmat();
    let mut slit = vec![0; slit::size_bytes(1024).expect("small")];
    let cells: Vec<u8> =
        (0..1024 * 1024).map(|cell| if cell / 1024 == cell % 1024 { 10 } else { 20 }).collect();
    slit::build(&mut slit, Header::new(Signature::SLIT, 1), 1024, &cells).expect("fits");

    println!("| reading | bytes | median µs | 5 % to 95 % | GB/s |\n|---|---|---|---|---|");
    row("checksum of a 10,000-cpu SRAT", srat.len(), || checksum(&srat).into());
    row("all entries of a 10,000-cpu SRAT", srat.len(), || {
        let table = Srat::read(&srat).expect("a SRAT");
        table.entries().map(|at| u64::from(at.entry.enabled_domain().unwrap_or(0))).sum()
    });
    row("processors, memory and domains of a 10,000-cpu SRAT", srat.len(), || {
        let table = Srat::read(&srat).expect("a SRAT");
        let processors: u64 = table.processors().map(|cpu| u64::from(cpu.domain)).sum();
        let memory: u64 = table.memory().map(|memory| memory.base).sum();
        processors + memory
    });
    row("cells of a 1,024-node SLIT", slit.len(), || {
        let Ok(AnyTable::Slit(table)) = AnyTable::read(&slit) else {
            return 0;
        };
        table.rows().flatten().map(|distance| u64::from(*distance)).sum()
    });
    row("cells of a 256-domain HMAT", hmat.len(), || {
        let table = Hmat::read(&hmat).expect("a HMAT");
        let cells = table.localities().flat_map(|at| {
            let entry = at.entry;
            at.entry.cells().map(move |cell| table.reading(&entry, cell.2))
        });
        cells.filter_map(hmat::CellValue::value).sum()
    });
    let tables = Tables::from(AnyTable::read(&srat).expect("a SRAT"));
    let mut scratch = vec![Slot::default(); tables.scratch_slots()];
    row("full check of a 10,000-cpu SRAT", srat.len(), || {
        let mut findings = 0;
        check(&tables, &mut scratch, &mut |_| findings += 1).expect("scratch");
        findings
    });
}
