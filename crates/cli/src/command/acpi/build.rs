//! `numalab machine acpi build`.

use std::fs;
use std::path::Path;

use numalab_formats::feature;
use numalab_host::note;
use numalab_topology::TableError;

use crate::args::MachineArgs;
use crate::failure::{Code, Failure};
use crate::output;

pub(super) fn run(args: &MachineArgs, directory: &Path, dry_run: bool) -> Result<(), Failure> {
    let described = args.request().describe()?;
    let tables = described.machine.to_tables().map_err(|error| match error {
        TableError::Refused(_) | TableError::NoMemory => Failure::new(Code::Failed, error),
        _ => Failure::bad_input(error),
    })?;
    let loss = feature::TABLES.loss(&described.machine);
    described.findings.iter().chain(&tables.findings).chain(&loss).for_each(note);
    let files = [
        ("SRAT.bin", Some(tables.srat)),
        ("SLIT.bin", Some(tables.slit)),
        ("HMAT.bin", tables.hmat),
        ("APIC.bin", Some(tables.madt)),
    ];
    let mut text = String::new();
    if !dry_run {
        fs::create_dir_all(directory).map_err(|error| Failure::at(directory, error))?;
    }
    for (name, bytes) in files {
        let Some(bytes) = bytes else { continue };
        let file = directory.join(name);
        if !dry_run {
            fs::write(&file, &bytes).map_err(|error| Failure::at(&file, error))?;
        }
        text.push_str(&format!("{}  {} bytes\n", file.display(), bytes.len()));
    }
    output::print(&text)
}
