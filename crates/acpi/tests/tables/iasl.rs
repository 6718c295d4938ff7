//! Agreement with `iasl -d` on entries, nodes and cpus of the valid tables.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use numalab_acpi::srat::{Entry, MemoryFlags};
use numalab_acpi::{AnyTable, Madt, Slit, Srat};

use crate::support::{Sample, samples};

/// One structure of a disassembled table: the fields after its "Type" line, and their values.
type Structure = Vec<(String, String)>;

/// Disassembles a table and cuts it into structures; the first contains header and fixed fields.
fn disassembled(directory: &Path, sample: &Sample) -> Vec<Structure> {
    let binary = directory.join("table.bin");
    std::fs::write(&binary, &sample.bytes).expect("a writable directory");
    // iasl 20200925 never stops writing on some damaged tables.
    let limits = "ulimit -f 20480; exec timeout 10 iasl -d table.bin";
    let run = Command::new("sh")
        .args(["-c", limits])
        .current_dir(directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("sh runs");
    assert!(run.success(), "iasl -d {}: {run}", sample.file);
    let text = std::fs::read_to_string(directory.join("table.dsl")).expect("iasl's output");
    let text = text.split("Raw Table Data").next().unwrap_or_default();
    structures(text)
}

fn structures(text: &str) -> Vec<Structure> {
    let mut all = vec![Structure::new()];
    for line in text.lines() {
        let line = line
            .split_once(']')
            .map_or(line, |(place, rest)| if place.starts_with('[') { rest } else { line });
        let Some((name, value)) = line.split_once(" : ") else {
            continue;
        };
        let name = name.trim().to_owned();
        if name == "Subtable Type" || name == "Structure Type" {
            all.push(Structure::new());
        }
        let value = value.split('[').next().unwrap_or_default().trim().to_owned();
        all.last_mut().expect("at least one").push((name, value));
    }
    all
}

fn hex(structure: &Structure, name: &str) -> u64 {
    let (_, value) = structure
        .iter()
        .find(|(field, _)| field == name)
        .unwrap_or_else(|| panic!("no {name} in {structure:?}"));
    u64::from_str_radix(value, 16).unwrap_or_else(|_| panic!("{name}: {value}"))
}

fn kind(structure: &Structure) -> u64 {
    u64::from_str_radix(&structure[0].1, 16).expect("a type")
}

fn iasl_is_there() -> bool {
    let there = Command::new("iasl").arg("-v").stdout(Stdio::null()).status().is_ok();
    if !there {
        eprintln!("NOT RUN: no iasl: apt-get install -y acpica-tools");
        let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|value| value == "1");
        assert!(!required, "NUMALAB_REQUIRE_TOOLS=1 and no iasl: apt-get install acpica-tools");
    }
    there
}

/// Returns the SRAT entries as iasl prints them: type, domain, id or base, length, enabled.
fn srat_of_iasl(structures: &[Structure]) -> Vec<(u64, u64, u64, u64, bool)> {
    let entry = |s: &Structure| match kind(s) {
        0 => {
            let domain =
                hex(s, "Proximity Domain Low(8)") | hex(s, "Proximity Domain High(24)") << 8;
            (0, domain, hex(s, "Apic ID"), 0, hex(s, "Enabled") == 1)
        }
        1 => {
            let range = (hex(s, "Base Address"), hex(s, "Address Length"));
            (1, hex(s, "Proximity Domain"), range.0, range.1, hex(s, "Enabled") == 1)
        }
        2 => (2, hex(s, "Proximity Domain"), hex(s, "Apic ID"), 0, hex(s, "Enabled") == 1),
        3 => {
            (3, hex(s, "Proximity Domain"), hex(s, "Acpi Processor UID"), 0, hex(s, "Enabled") == 1)
        }
        4 => (4, hex(s, "Proximity Domain"), hex(s, "ITS ID"), 0, true),
        kind => (kind, hex(s, "Proximity Domain"), 0, 0, hex(s, "Enabled") == 1),
    };
    structures[1..].iter().map(entry).collect()
}

fn srat_of_ours(table: &Srat<'_>) -> Vec<(u64, u64, u64, u64, bool)> {
    let entry = |entry: Entry<'_>| {
        let enabled = entry.enabled_domain().is_some();
        match entry {
            Entry::LocalApic(e) => (0, e.domain().into(), e.apic_id.into(), 0, enabled),
            Entry::Memory(e) => {
                assert_eq!(enabled, e.flags.contains(MemoryFlags::ENABLED));
                (1, e.domain.into(), e.base, e.length_bytes, enabled)
            }
            Entry::LocalX2apic(e) => (2, e.domain.into(), e.x2apic_id.into(), 0, enabled),
            Entry::Gicc(e) => (3, e.domain.into(), e.processor_uid.into(), 0, enabled),
            Entry::GicIts(e) => (4, e.domain.into(), e.its_id.into(), 0, enabled),
            Entry::GenericInitiator(e) => (5, e.domain.into(), 0, 0, enabled),
            other => panic!("a type that iasl does not know: {other}"),
        }
    };
    table.entries().map(|at| entry(at.entry)).collect()
}

fn compare_madt(table: &Madt<'_>, structures: &[Structure], file: &str) {
    assert_eq!(table.entries().count(), structures.len() - 1, "{file}");
    let theirs: BTreeSet<(u64, bool)> = structures[1..]
        .iter()
        .filter_map(|s| {
            let name = match kind(s) {
                0 => "Local Apic ID",
                9 => "Processor x2Apic ID",
                11 => "Processor UID",
                _ => return None,
            };
            Some((hex(s, name), hex(s, "Processor Enabled") == 1))
        })
        .collect();
    let ours: BTreeSet<(u64, bool)> = table
        .processors()
        .map(|cpu| match cpu.hardware {
            numalab_acpi::madt::HardwareId::Apic(id) => (id.into(), cpu.enabled),
            _ => (cpu.uid.into(), cpu.enabled),
        })
        .collect();
    assert_eq!(ours, theirs, "{file}");
}

fn compare_slit(table: &Slit<'_>, structures: &[Structure], file: &str) {
    let fields = &structures[0];
    assert_eq!(hex(fields, "Localities"), u64::try_from(table.localities()).expect("small"));
    // Long rows continue in lines without a name.
    let starts = fields.iter().filter(|(name, _)| name.starts_with("Locality "));
    for (row, (_, cells)) in table.rows().zip(starts) {
        let cells: Vec<u8> =
            cells.split_whitespace().map_while(|cell| u8::from_str_radix(cell, 16).ok()).collect();
        assert!(row.starts_with(&cells) && !cells.is_empty(), "{file}: {row:?} {cells:?}");
    }
}

#[test]
fn valid_tables_agree_with_iasl_in_entries_nodes_and_cpus() {
    if !iasl_is_there() {
        return;
    }
    let directory = std::env::temp_dir().join(format!("numalab-iasl-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a temporary directory");
    let mut compared = 0;
    for sample in samples().iter().filter(|sample| sample.valid == "valid") {
        let file = &sample.file;
        let table = AnyTable::read(&sample.bytes).expect("a valid table");
        if matches!(table, AnyTable::Cedt(_)) {
            println!("{file}: iasl 20200925 does not know CEDT");
            continue;
        }
        let structures = disassembled(&directory, sample);
        match table {
            AnyTable::Srat(table) => {
                assert_eq!(srat_of_ours(&table), srat_of_iasl(&structures), "{file}");
            }
            AnyTable::Madt(table) => compare_madt(&table, &structures, file),
            AnyTable::Slit(table) => compare_slit(&table, &structures, file),
            AnyTable::Hmat(table) => {
                assert_eq!(table.entries().count(), structures.len() - 1, "{file}");
            }
            AnyTable::Cedt(_) => {}
        }
        compared += 1;
    }
    std::fs::remove_dir_all(&directory).expect("our directory");
    println!("{compared} valid tables agree with iasl");
}
