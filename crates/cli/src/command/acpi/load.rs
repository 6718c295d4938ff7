//! Reading tables from files and from this system.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use numalab_acpi::acpidump::Dump;
use numalab_acpi::{AnyTable, Signature, Tables};

use crate::args::TableArgs;
use crate::failure::{Code, Failure};

/// Where Linux shows the firmware's tables.
pub(super) const SYSTEM_TABLES: &str = "/sys/firmware/acpi/tables";
/// The tables that numalab reads, as files name them.
const NAMES: [&str; 5] = ["SRAT", "SLIT", "HMAT", "APIC", "CEDT"];
/// A file larger than this holds no table.
const MOST_FILE_BYTES: u64 = 64 << 20;

/// One table's bytes and where they are from.
pub(super) struct Loaded {
    /// The file, and the table in it where it holds several.
    pub place: String,
    pub bytes: Vec<u8>,
}

/// The tables that the arguments name.
pub(super) fn load(args: &TableArgs) -> Result<Vec<Loaded>, Failure> {
    if args.system {
        return load_directory(Path::new(SYSTEM_TABLES));
    }
    let mut loaded = Vec::new();
    for file in &args.files {
        let bytes = read(file)?.ok_or_else(|| missing(file))?;
        loaded.extend(tables_in(file, bytes)?);
    }
    Ok(loaded)
}

/// The tables of a directory, named `SRAT` or `SRAT.bin`.
pub(super) fn load_directory(directory: &Path) -> Result<Vec<Loaded>, Failure> {
    let mut loaded = Vec::new();
    for name in NAMES.iter().flat_map(|name| [(*name).to_owned(), format!("{name}.bin")]) {
        let file = directory.join(name);
        if let Some(bytes) = read(&file)? {
            loaded.push(Loaded { place: file.display().to_string(), bytes });
        }
    }
    if loaded.is_empty() {
        return Err(Failure::bad_input(format!(
            "{}: no table there, expected files such as SRAT or SRAT.bin",
            directory.display()
        )));
    }
    Ok(loaded)
}

/// Reads every table that can be read; what cannot is a line that says why.
pub(super) fn read_all(loaded: &[Loaded]) -> (Tables<'_>, Vec<String>) {
    let (mut tables, mut refused) = (Tables::default(), Vec::new());
    for table in loaded {
        match AnyTable::read(&table.bytes) {
            Ok(read) => tables.insert(read),
            Err(finding) => refused.push(format!("{}: {finding}", table.place)),
        }
    }
    (tables, refused)
}

fn read(file: &Path) -> Result<Option<Vec<u8>>, Failure> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::PermissionDenied => {
            let message = format!("{}: reading it takes root: run with sudo", file.display());
            Failure::new(Code::Lacking, message)
        }
        _ => Failure::bad_input(format!("{}: could not read it: {error}", file.display())),
    };
    match fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
        Ok(found) if found.len() > MOST_FILE_BYTES => {
            return Err(Failure::bad_input(format!(
                "{}: {} bytes, expected at most {MOST_FILE_BYTES}",
                file.display(),
                found.len()
            )));
        }
        Ok(_) => {}
    }
    fs::read(file).map(Some).map_err(failed)
}

fn missing(file: &Path) -> Failure {
    Failure::bad_input(format!("{}: no such file", file.display()))
}

/// The tables in a file: one in binary, or those of an acpidump text that numalab reads.
fn tables_in(file: &Path, bytes: Vec<u8>) -> Result<Vec<Loaded>, Failure> {
    let place = file.display().to_string();
    let known = |name: &[u8]| NAMES.iter().any(|known| known.as_bytes() == name);
    let signature = bytes.first_chunk().map(|first| Signature(*first));
    let is_binary = signature.is_some_and(|signature| known(&signature.0) && bytes.contains(&0));
    if is_binary || Dump::new(&bytes).next().is_none() {
        return Ok(vec![Loaded { place, bytes }]);
    }
    let mut loaded = Vec::new();
    for table in Dump::new(&bytes).filter(|table| known(table.name)) {
        let name = String::from_utf8_lossy(table.name);
        let in_file = |error| Failure::bad_input(format!("{place}: {name}: {error}"));
        let mut buffer = vec![0; table.size_bytes().map_err(in_file)?];
        table.decode(&mut buffer).map_err(in_file)?;
        loaded.push(Loaded { place: format!("{place}: {name}"), bytes: buffer });
    }
    Ok(loaded)
}
