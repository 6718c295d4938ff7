//! Reads files that describe machines, up to a limit.

use std::io::ErrorKind;
use std::path::Path;

use numalab_formats::machine_toml::{self, MachineFile};
use numalab_formats::{architecture, gallery};
use numalab_host::bounded::read_input;

use crate::failure::{Code, Failure};

/// Maximum size of a text that describes a machine: 1,024 nodes and 8,192 cpus take 4 MiB with all
/// their distances.
pub(crate) const MOST_TEXT_BYTES: u64 = 8 << 20;
/// Maximum size of a file of tables: the dump of all tables of a server takes 15 MiB as text.
pub(crate) const MOST_TABLE_BYTES: u64 = 64 << 20;

/// Reads the bytes of a file or pipe.
pub(crate) fn bytes(file: &Path, most_bytes: u64) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::PermissionDenied => {
            let message = format!("{}: reading it requires root: run with sudo", file.display());
            Failure::new(Code::Lacking, message)
        }
        _ => unreadable(file, &error.to_string()),
    };
    read_input(file, most_bytes).map_err(failed)
}

/// Reads the text of a file or pipe, in UTF-8 or as Windows writes it; replaces invalid characters.
pub(crate) fn text(file: &Path) -> Result<String, Failure> {
    Ok(decoded(&bytes(file, MOST_TEXT_BYTES)?))
}

/// Decodes UTF-16 with a byte order mark, which `wsl numactl -H > FILE` in `PowerShell` writes, and
/// reads everything else as UTF-8.
fn decoded(bytes: &[u8]) -> String {
    let (units, rest) = match bytes {
        [0xff, 0xfe, rest @ ..] => (u16::from_le_bytes as fn([u8; 2]) -> u16, rest),
        [0xfe, 0xff, rest @ ..] => (u16::from_be_bytes as _, rest),
        _ => return String::from_utf8_lossy(bytes).into_owned(),
    };
    let (pairs, _) = rest.as_chunks();
    String::from_utf16_lossy(&pairs.iter().copied().map(units).collect::<Vec<u16>>())
}

/// Reads an architecture file, or the bundled one of this name if there is no such file.
pub(crate) fn architecture(place: &Path) -> Result<String, Failure> {
    if place.exists() {
        return text(place);
    }
    let known = place.to_str().and_then(architecture::known);
    known.map(str::to_owned).ok_or_else(|| {
        let names: Vec<&str> = architecture::KNOWN.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        unreadable(place, &format!("no such file; the bundled files are {names}"))
    })
}

/// Reads a machine file, or the bundled one of this name if there is no such file.
pub(crate) fn machine_file(place: &str) -> Result<MachineFile, Failure> {
    let text = match gallery::machine(place).filter(|_| !Path::new(place).exists()) {
        Some(text) => text.to_owned(),
        None if Path::new(place).exists() => text(Path::new(place))?,
        None => {
            let names: Vec<&str> = gallery::names().collect();
            let expected = format!("expected a file, or one of {}", names.join(", "));
            return Err(Failure::bad_input(format!("{place}: no such file: {expected}")));
        }
    };
    let read = machine_toml::read_file(&text);
    read.map_err(|error| Failure::bad_input(format!("{place}: {error}")))
}

fn unreadable(file: &Path, reason: &str) -> Failure {
    Failure::bad_input(format!("{}: could not read it: {reason}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_may_be_in_utf_16_of_either_order() {
        let units: Vec<u16> = "\u{feff}node 0\n".encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        assert_eq!((decoded(&little), decoded(&big)), ("node 0\n".into(), "node 0\n".into()));
        assert_eq!(decoded(b"node \xff"), "node \u{fffd}");
    }
}
