//! Reads files that describe machines, up to a limit.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use numalab_formats::machine_toml::{self, MachineFile};
use numalab_formats::memory_emulator::Curve;
use numalab_formats::{architecture, gallery, mess};
use numalab_host::bounded::{read_input, utf_16};
use numalab_record::{Document, Kind};

use super::error::MachineError;

/// Maximum size of a text that describes a machine: 1,024 nodes and 8,192 cpus take 4 MiB with all
/// their distances.
const MOST_TEXT_BYTES: u64 = 8 << 20;
/// Maximum size of a file of tables: the dump of all tables of a server takes 15 MiB as text.
const MOST_TABLE_BYTES: u64 = 64 << 20;

fn read(file: &Path, most_bytes: u64) -> Result<Vec<u8>, MachineError> {
    read_input(file, most_bytes).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => MachineError::Denied { path: file.to_owned() },
        _ => MachineError::unreadable(file, error),
    })
}

/// Reads the bytes of a file or pipe with tables.
pub(super) fn bytes(file: &Path) -> Result<Vec<u8>, MachineError> {
    read(file, MOST_TABLE_BYTES)
}

/// Reads the text of a file or pipe, in UTF-8 or as Windows writes it; replaces invalid characters.
///
/// # Errors
/// [`MachineError`] if it cannot be read.
pub fn text(file: &Path) -> Result<String, MachineError> {
    let bytes = read(file, MOST_TEXT_BYTES)?;
    Ok(utf_16(&bytes).unwrap_or_else(|| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Reads an architecture file, or the bundled one of this name if there is no such file.
///
/// # Errors
/// [`MachineError`] if there is neither.
pub fn architecture_text(place: &Path) -> Result<String, MachineError> {
    let known = |name: &str| architecture::known(name).map(str::to_owned);
    let names = architecture::KNOWN.iter().map(|(name, _)| *name);
    file_or_known(place, known, names)
}

/// Reads a machine file, or the bundled one of this name if there is no such file.
///
/// # Errors
/// [`MachineError`] if there is neither, or it is not a machine file.
pub fn machine_file(name: &str) -> Result<MachineFile, MachineError> {
    let place = Path::new(name);
    let known = |name: &str| gallery::machine(name).map(str::to_owned);
    let text = file_or_known(place, known, gallery::names())?;
    machine_toml::read_file(&text).map_err(|error| MachineError::file(place, error))
}

fn file_or_known(
    place: &Path,
    known: impl Fn(&str) -> Option<String>,
    names: impl Iterator<Item = &'static str>,
) -> Result<String, MachineError> {
    if place.exists() {
        return text(place);
    }
    place.to_str().and_then(known).ok_or_else(|| {
        let names = names.collect::<Vec<_>>().join(", ");
        MachineError::Absent { path: place.to_owned(), names }
    })
}

/// Reads load curves of Mess: `memory_curves.csv`, or a directory of its simulator's
/// `bwlat_PERCENT.txt`.
///
/// # Errors
/// [`MachineError`] if there are none.
pub fn mess_curves(place: &Path) -> Result<Vec<Curve>, MachineError> {
    let mut curves = Vec::new();
    if place.is_dir() {
        let entries = fs::read_dir(place).map_err(|error| MachineError::file(place, error))?;
        for file in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let percent = name.strip_prefix("bwlat_").and_then(|name| name.strip_suffix(".txt"));
            let Some(percent) = percent.and_then(|percent| percent.parse::<u8>().ok()) else {
                continue;
            };
            let read = mess::read_simulator(f64::from(percent), &text(&file)?);
            curves.push(read.map_err(|error| MachineError::file(&file, error))?);
        }
        curves.sort_by(|a, b| a.writes_percent.total_cmp(&b.writes_percent));
    } else {
        curves = mess::read(&text(place)?).map_err(|error| MachineError::file(place, error))?;
    }
    match curves.is_empty() {
        true => {
            let expected = "expected memory_curves.csv or files bwlat_PERCENT.txt";
            Err(MachineError::file(place, expected))
        }
        false => Ok(curves),
    }
}

/// Reads a run from its result directory or its JSON.
///
/// # Errors
/// [`MachineError`] if it is not a run.
pub fn run_document(place: &Path) -> Result<Document, MachineError> {
    if !place.is_file() {
        return Ok(numalab_measure::read(place)?);
    }
    let bytes = bytes(place)?;
    let read = Kind::Run.read(&String::from_utf8_lossy(&bytes));
    read.map_err(|error| MachineError::file(place, error))
}
