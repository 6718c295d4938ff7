//! Linux with unusual tables: every sentence of `numalab machine acpi check` about Linux is shown
//! by a boot of the distribution's kernel.
//!
//! | said | code of the finding |
//! |---|---|
//! | drops the SRAT where RAM is in two domains | `memory-overlaps-across-domains` |
//! | drops it where a hot-plug range holds another domain's RAM | the same |
//! | uses it where an NVDIMM is in another domain's hot-plug range | `hot-plug-overlap` |
//! | drops it for an entry that is too short | `entry-too-short` |
//! | drops it for a domain of 1024 or more, not for 1023 | `domain-too-large` |
//! | drops it for zeros where an entry should be | `zero-fill` |
//! | does not use one without memory | `no-memory` |
//! | drops a SLIT for a local distance of 11, for 9, for a remote 10 | `local-distance-not-ten`, `distance-reserved`, `remote-distance-ten` |
//! | ignores a HMAT of an unknown revision | `revision-unknown` |
//! | takes a latency beyond 32 bits as unknown | `base-unit-overflow` |

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use numalab_acpi::hmat::{DataType, Locality};
use numalab_acpi::srat::{Entry, LocalApicAffinity, MemoryAffinity, MemoryFlags};
use numalab_acpi::{
    AnyTable, Builder, Format, Header, List, RawEntry, Signature, Slot, Tables, check, hmat, slit,
    srat,
};
use numalab_image::{Cache, Kernel, KernelChoice};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// The guest has 1 GiB of RAM from address 0 and two cpus.
const HALF: u64 = 512 * MIB;

fn table<F: Format>(header: Header, fixed: F::Fixed, entries: &[F::Entry<'_>]) -> Vec<u8> {
    let mut buffer = vec![0; 4096];
    let mut builder = Builder::<F>::new(&mut buffer, header, fixed);
    entries.iter().for_each(|entry| {
        builder.push(entry);
    });
    builder.finish().expect("a small table").to_vec()
}

/// Returns a SRAT of two cpus, one in each of two domains, with these entries.
fn srat(entries: &[Entry<'_>]) -> Vec<u8> {
    let cpu = |id| Entry::LocalApic(LocalApicAffinity::new(id, id.into()));
    let entries = [&[cpu(0), cpu(1)], entries].concat();
    table::<srat::Layout>(Header::new(Signature::SRAT, 3), srat::Fixed::new(), &entries)
}

fn memory(domain: u32, base: u64, length_bytes: u64, flags: MemoryFlags) -> Entry<'static> {
    let flags = MemoryFlags::ENABLED.with(flags);
    Entry::Memory(MemoryAffinity { domain, base, length_bytes, flags, ..Default::default() })
}

const RAM: MemoryFlags = MemoryFlags(0);

fn two_nodes() -> [Entry<'static>; 2] {
    [memory(0, 0, HALF, RAM), memory(1, HALF, HALF, RAM)]
}

fn slit(cells: [u8; 4]) -> Vec<u8> {
    let mut buffer = [0; 64];
    slit::build(&mut buffer, Header::new(Signature::SLIT, 1), 2, &cells).expect("fits").to_vec()
}

fn hmat(revision: u8, base_unit: u64) -> Vec<u8> {
    let matrix = hmat::Entry::Locality(Locality {
        data_type: DataType::AccessLatency.into(),
        base_unit,
        initiators: List::Values(&[0, 1]),
        targets: List::Values(&[0, 1]),
        values: List::Values(&[100, 200, 200, 100]),
        ..Default::default()
    });
    table::<hmat::Layout>(Header::new(Signature::HMAT, revision), hmat::Fixed::default(), &[matrix])
}

/// Returns the findings of our own check in a table.
fn codes(bytes: &[u8]) -> Vec<&'static str> {
    let tables = Tables::from(AnyTable::read(bytes).expect("a table"));
    let mut scratch = vec![Slot::default(); tables.scratch_slots()];
    let mut codes = Vec::new();
    check(&tables, &mut scratch, &mut |finding| codes.push(finding.code())).expect("scratch");
    codes
}

/// Returns the first messages of a kernel with these tables, up to the line with `until`.
fn boot(tables: &[Vec<u8>], until: &str) -> String {
    let cache = Cache::open().expect("a cache");
    let kernel =
        Kernel::ensure(&cache, &KernelChoice::Distribution, &mut |_| ()).expect("a kernel");
    let directory = tempfile::tempdir().expect("a directory");
    let mut qemu = Command::new("qemu-system-x86_64");
    qemu.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
    qemu.args(["-machine", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "1G"]);
    qemu.args(["-serial", "stdio", "-append", "console=ttyS0 panic=-1", "-kernel"]);
    qemu.arg(kernel.file);
    for (number, bytes) in tables.iter().enumerate() {
        let file = directory.path().join(number.to_string());
        std::fs::write(&file, bytes).expect("written");
        qemu.arg("-acpitable").arg(format!("file={}", file.display()));
    }
    let mut guest = qemu.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("QEMU");
    let mut log = String::new();
    let mut console = BufReader::new(guest.stdout.take().expect("a pipe"));
    let mut line = Vec::new();
    while console.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        log.push_str(&String::from_utf8_lossy(&line));
        line.clear();
        if log.lines().last().is_some_and(|last| last.contains(until)) {
            break;
        }
    }
    guest.kill().expect("it is ours");
    guest.wait().expect("it is ours");
    assert!(log.contains(until), "no `{until}`: {log}");
    log
}

/// The message at which nodes are set up, after those about the SRAT.
const NODES: &str = "Kernel command line";
/// The message after all built-in drivers have started, including the HMAT's.
const DRIVERS: &str = "Cannot open root device";

/// Checks whether Linux uses the SRAT, and that ours has the finding with this code.
fn srat_is(used: bool, code: &str, bytes: &[u8]) {
    assert!(codes(bytes).contains(&code), "no {code}: {:?}", codes(bytes));
    let log = boot(&[bytes.to_vec()], NODES);
    assert_eq!(!log.contains("No NUMA configuration found"), used, "{code}: {log}");
}

#[test]
fn linux_drops_a_srat_where_ram_is_in_two_domains_hot_pluggable_or_not() {
    let plain = srat(&[memory(0, 0, HALF + MIB, RAM), memory(1, HALF, HALF, RAM)]);
    srat_is(false, "memory-overlaps-across-domains", &plain);
    let hot = memory(0, GIB - MIB, GIB, MemoryFlags::HOT_PLUGGABLE);
    let [low, high] = two_nodes();
    srat_is(false, "memory-overlaps-across-domains", &srat(&[low, high, hot]));
}

#[test]
fn linux_uses_a_srat_with_an_nvdimm_in_a_hot_plug_range() {
    let [low, high] = two_nodes();
    let nvdimm = memory(0, 5 * GIB, GIB, MemoryFlags::NON_VOLATILE);
    let hot = memory(1, 4 * GIB, 4 * GIB, MemoryFlags::HOT_PLUGGABLE);
    srat_is(true, "hot-plug-overlap", &srat(&[low, high, nvdimm, hot]));
}

#[test]
fn linux_drops_a_srat_for_an_entry_that_is_too_short_or_blank() {
    let [low, high] = two_nodes();
    let short = [vec![1, 38], vec![0; 36]].concat();
    let short = Entry::Raw(RawEntry { kind: 1, bytes: &short });
    srat_is(false, "entry-too-short", &srat(&[low, high, short]));
    let blank = Entry::Raw(RawEntry { kind: 0, bytes: &[0; 16] });
    srat_is(false, "zero-fill", &srat(&[low, high, blank]));
}

#[test]
fn linux_takes_domain_1023_and_drops_a_srat_with_1024() {
    let [low, _] = two_nodes();
    srat_is(false, "domain-too-large", &srat(&[low, memory(1024, HALF, HALF, RAM)]));
    let bytes = srat(&[low, memory(1023, HALF, HALF, RAM)]);
    assert_eq!(codes(&bytes), [""; 0]);
    assert!(!boot(&[bytes], NODES).contains("No NUMA configuration found"));
}

#[test]
fn linux_does_not_use_a_srat_without_memory() {
    srat_is(false, "no-memory", &srat(&[]));
}

#[test]
fn linux_drops_a_slit_with_inconsistent_distances() {
    let wrong = [
        ([11, 20, 20, 10], "local-distance-not-ten"),
        ([10, 9, 20, 10], "distance-reserved"),
        ([10, 10, 20, 10], "remote-distance-ten"),
    ];
    for (cells, code) in wrong {
        assert!(codes(&slit(cells)).contains(&code), "{code}");
        let log = boot(&[srat(&two_nodes()), slit(cells)], NODES);
        assert!(log.contains("SLIT table looks invalid. Not used."), "{code}: {log}");
    }
}

#[test]
fn linux_ignores_a_hmat_of_an_unknown_revision_and_a_latency_beyond_32_bits() {
    let (unknown, huge) = (hmat(9, 1000), hmat(2, 1 << 40));
    assert_eq!(codes(&unknown), ["revision-unknown"]);
    let log = boot(&[srat(&two_nodes()), unknown], DRIVERS);
    assert!(log.contains("Unknown revision:9"), "{log}");
    assert_eq!(codes(&huge), ["base-unit-overflow"]);
    let log = boot(&[srat(&two_nodes()), huge], DRIVERS);
    assert!(log.contains("Initiator-Target[0-1]:0 nsec"), "{log}");
}
