//! Reads ACPI tables from files and from this system, and the machine that they describe.

use std::fs;
use std::path::{Path, PathBuf};

use numalab_acpi::acpidump::Dump;
use numalab_acpi::{AnyTable, Severity, Signature, Slot, Tables, check};
use numalab_record::system::{AcpiShown, AcpiTable};
use numalab_topology::{Finding, Findings, Machine};

use super::error::MachineError;
use super::files::bytes;

/// Directory in which Linux shows the firmware's tables.
pub const SYSTEM_TABLES: &str = "/sys/firmware/acpi/tables";
/// Endings of files with one table: those of Linux, numalab, acpixtract and iasl.
const ENDINGS: [&str; 4] = ["", ".bin", ".dat", ".aml"];
/// Endings of files with several tables, as acpidump writes them.
const DUMP_ENDINGS: [&str; 4] = [".txt", ".out", ".dump", ".acpidump"];
/// Maximum number of entries shown for a table: more than the SRAT of any machine has.
const MOST_ENTRIES: usize = 1 << 17;
/// Maximum number of files read in a directory; Linux shows fewer than a hundred.
const MOST_FILES: usize = 4096;

/// The bytes of a table, with their origin.
#[derive(Debug)]
pub struct Loaded {
    /// The file, and the table's place in it if it holds several.
    pub place: String,
    pub bytes: Vec<u8>,
}

/// Reads the tables of these files.
///
/// # Errors
/// [`MachineError`] for a file that is not a table.
pub fn of_files(files: &[PathBuf]) -> Result<Vec<Loaded>, MachineError> {
    let mut loaded = Vec::new();
    for file in files {
        loaded.extend(in_file(file)?);
    }
    Ok(loaded)
}

/// Reads the tables of a file, or of a directory written by any of the usual tools.
///
/// # Errors
/// [`MachineError`] if it has none.
pub fn of_directory(directory: &Path) -> Result<Vec<Loaded>, MachineError> {
    if directory.is_file() {
        return in_file(directory);
    }
    let names = names(directory)?;
    let mut found = Vec::new();
    for known in Signature::ALL.iter().map(Signature::to_string) {
        let of_known = |name: &&String| {
            let upper = name.to_ascii_uppercase();
            let end = upper.strip_prefix(&known).map(str::to_ascii_lowercase);
            end.is_some_and(|end| ENDINGS.contains(&end.as_str()))
        };
        found.extend(names.iter().find(of_known).map(|name| directory.join(name)));
    }
    if found.is_empty() {
        let is_dump = |name: &&String| {
            let name = name.to_ascii_lowercase();
            name == "acpidump" || DUMP_ENDINGS.iter().any(|end| name.ends_with(end))
        };
        for name in names.iter().filter(is_dump) {
            let file = directory.join(name);
            if is_text_of_tables(&bytes(&file)?) {
                found.push(file);
            }
        }
    }
    if found.is_empty() {
        let reason = "no table found, expected files such as SRAT, SRAT.bin or srat.dat, or the \
                      text that acpidump writes; iasl's source is compiled with `iasl FILE`";
        return Err(MachineError::file(directory, reason));
    }
    of_files(&found)
}

/// Returns the names of the files in a directory, sorted.
fn names(directory: &Path) -> Result<Vec<String>, MachineError> {
    let failed = |error| MachineError::unreadable(directory, error);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)?.take(MOST_FILES) {
        let entry = entry.map_err(failed)?;
        if !entry.path().is_dir() {
            names.extend(entry.file_name().into_string().ok());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Parses every table that can be parsed; returns a line with the reason for each of the others.
fn read_all(loaded: &[Loaded]) -> (Tables<'_>, Vec<String>) {
    let (mut tables, mut refused) = (Tables::default(), Vec::new());
    for table in loaded {
        match AnyTable::read(&table.bytes) {
            Ok(read) => tables.insert(read),
            Err(finding) => refused.push(format!("{}: {finding}", table.place)),
        }
    }
    (tables, refused)
}

/// Returns findings about tables, with equal ones counted, and the highest severity.
fn findings(tables: &Tables<'_>) -> (Vec<Finding>, Option<Severity>) {
    let mut scratch = vec![Slot::default(); tables.scratch_slots()];
    let (mut findings, mut worst) = (Findings::default(), None);
    let visited = check(tables, &mut scratch, &mut |finding| {
        worst = worst.max(Some(finding.severity()));
        findings.push(Finding::from(&finding));
    });
    debug_assert!(visited.is_ok(), "the scratch has as many slots as were asked for");
    (findings.into_list(), worst)
}

/// Describes each table with its header and one line per entry, and returns the highest severity
/// found.
pub fn shown(loaded: &[Loaded]) -> (AcpiShown, Option<Severity>) {
    let (tables, refused) = read_all(loaded);
    let shown = loaded.iter().filter_map(|table| {
        let read = AnyTable::read(&table.bytes).ok()?;
        let header = read.header();
        let text = read.to_string();
        let mut lines = text.lines().map(str::to_owned);
        Some(AcpiTable {
            place: table.place.clone(),
            signature: header.signature.to_string(),
            revision: header.revision,
            length_bytes: header.length,
            header: lines.next().unwrap_or_default(),
            entries: lines.take(MOST_ENTRIES).collect(),
        })
    });
    let (findings, worst) = findings(&tables);
    (AcpiShown { tables: shown.collect(), refused, findings }, worst)
}

/// Returns the machine that the tables of a directory or file, or of this system, describe.
pub(super) fn machine(directory: Option<&Path>) -> Result<(Machine, Vec<Finding>), MachineError> {
    let directory = directory.unwrap_or(Path::new(SYSTEM_TABLES));
    let loaded = of_directory(directory)?;
    let (tables, refused) = read_all(&loaded);
    if let Some(refusal) = refused.first() {
        return Err(MachineError::Tables(refusal.clone()));
    }
    let (mut findings, worst) = findings(&tables);
    if worst == Some(Severity::Error) {
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        return Err(MachineError::Tables(lines.join("\n")));
    }
    if tables.srat.is_none() && (tables.slit.is_some() || tables.hmat.is_some()) {
        let message = format!(
            "{}: no SRAT: only the SRAT defines nodes, and SLIT and HMAT are meaningless without \
             it",
            directory.display()
        );
        return Err(MachineError::Tables(message));
    }
    let machine = Machine::from_tables(&tables);
    findings.extend(machine.validate());
    Ok((machine, findings))
}

/// Returns the tables in a file: one in binary, or those of an acpidump text that numalab reads.
fn in_file(file: &Path) -> Result<Vec<Loaded>, MachineError> {
    let bytes = bytes(file)?;
    let place = file.display().to_string();
    if bytes.first_chunk().is_some_and(|first| is_known(&Signature(*first).0)) && !is_text(&bytes) {
        return Ok(vec![Loaded { place, bytes }]);
    }
    if !is_text_of_tables(&bytes) {
        let reason = format!(
            "not a table: expected a {} in binary, or the text that acpidump writes; iasl's source \
             is compiled with `iasl FILE`",
            Signature::choice()
        );
        return Err(MachineError::file(file, reason));
    }
    let mut loaded = Vec::new();
    for table in Dump::new(&bytes).filter(|table| is_known(table.name)) {
        let name = String::from_utf8_lossy(table.name);
        let failed = |error| MachineError::file(file, format_args!("{name}: {error}"));
        let mut buffer = vec![0; table.size_bytes().map_err(failed)?];
        table.decode(&mut buffer).map_err(failed)?;
        loaded.push(Loaded { place: format!("{place}: {name}"), bytes: buffer });
    }
    Ok(loaded)
}

fn is_known(name: &[u8]) -> bool {
    Signature::ALL.iter().any(|known| known.0 == name)
}

/// Returns true for text: a binary table has a zero byte in its length.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0)
}

fn is_text_of_tables(bytes: &[u8]) -> bool {
    Dump::new(bytes).next().is_some()
}
