//! Files that describe machines: read up to a limit and no further.

use std::io::ErrorKind;
use std::path::Path;

use numalab_formats::machine_toml::{self, MachineFile};
use numalab_formats::{architecture, gallery};
use numalab_host::bounded::read_input;

use crate::failure::{Code, Failure};

/// Bytes of a text that describes a machine: one of 1,024 nodes and 8,192 cpus takes 4 MiB with
/// all its distances. More would only cost time.
pub(crate) const MOST_TEXT_BYTES: u64 = 8 << 20;
/// Bytes of a file of tables: the dump of all tables of a server, as text, takes 15 MiB.
pub(crate) const MOST_TABLE_BYTES: u64 = 64 << 20;

/// The bytes of a file or pipe.
pub(crate) fn bytes(file: &Path, most_bytes: u64) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::PermissionDenied => {
            let message = format!("{}: reading it takes root: run with sudo", file.display());
            Failure::new(Code::Lacking, message)
        }
        _ => unreadable(file, &error.to_string()),
    };
    read_input(file, most_bytes).map_err(failed)
}

/// The text of a file or pipe; what is not UTF-8 is replaced.
pub(crate) fn text(file: &Path) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&bytes(file, MOST_TEXT_BYTES)?).into_owned())
}

/// The text of an architecture file: of a file if there is one, else of the known one of that
/// name.
pub(crate) fn architecture(place: &Path) -> Result<String, Failure> {
    if place.exists() {
        return text(place);
    }
    let known = place.to_str().and_then(architecture::known);
    known.map(str::to_owned).ok_or_else(|| {
        let names: Vec<&str> = architecture::KNOWN.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        unreadable(place, &format!("no such file; known by name are {names}"))
    })
}

/// A machine file: a file if there is one, else the machine of that name that comes with numalab.
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
