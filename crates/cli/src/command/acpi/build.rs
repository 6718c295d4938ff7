//! `numalab acpi build`.

use std::path::Path;

use crate::args::MachineArgs;
use crate::failure::Failure;

pub(super) fn run(_: &MachineArgs, _: &Path, _: bool) -> Result<(), Failure> {
    Err(Failure::bad_input("TEMP"))
}
