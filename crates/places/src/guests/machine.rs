//! The machine created for guests, read from a machine file.

use std::path::Path;

use numalab_formats::{gallery, machine_toml};
use numalab_host::bounded::{MOST_STUDY_BYTES, read_file_text};
use numalab_study::{BackendError, StudyPlace};
use numalab_topology::Machine;

use super::errors::bad;

/// The bundled machines; the first one dates from 2006.
const MACHINES: [(&str, &str); 3] = [
    ("x460", include_str!("../../machines/x460.toml")),
    ("two-sockets", include_str!("../../machines/two-sockets.toml")),
    ("four-sockets", include_str!("../../machines/four-sockets.toml")),
];

/// Reads the bundled machine with this name, or the given file.
pub(super) fn read(name: &str) -> Result<Machine, BackendError> {
    let known = MACHINES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    let text = match known.or_else(|| gallery::machine(name)) {
        Some(text) => text.to_owned(),
        None => read_file_text(Path::new(name), MOST_STUDY_BYTES).map_err(|error| {
            let names = MACHINES.map(|(known, _)| known).join(", ");
            let expected = format!("{names}, one of `numalab machine list`, or a file in TOML");
            bad(StudyPlace::Setting("machine".to_owned()), format!("{name}: {error}"), &expected)
        })?,
    };
    let machine = machine_toml::read(&text).map_err(|error| {
        bad(
            StudyPlace::Setting("machine".to_owned()),
            format!("{name}: {error}"),
            "a machine in TOML",
        )
    })?;
    match machine.cpu_nodes().is_empty() {
        true => Err(bad(
            StudyPlace::Setting("machine".to_owned()),
            name.to_owned(),
            "a machine with CPUs on its nodes",
        )),
        false => Ok(machine),
    }
}

#[cfg(test)]
mod tests;
