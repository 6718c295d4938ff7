//! This machine as the emulator models it: its nodes, the cpus that this process may use, and
//! measured figures of its memory.

use std::path::Path;

use numalab_advise::{Target, is_like, target_here};
use numalab_formats::machine_toml::MachineFile;
use numalab_host::{Root, read_machine};
use numalab_places::machine::{MachineError, machine_file, run_document};
use numalab_results::advice::{CostsKnown, TrialPlace};
use numalab_results::capture::capture;
use numalab_topology::Machine;

use crate::args::{AdviseArgs, MachineArgs};
use crate::failure::Failure;

/// Returns this machine as the emulator models it.
pub(super) fn target(args: &AdviseArgs, place: TrialPlace) -> Result<Target, Failure> {
    let reading = read_machine(&Root::live())?;
    let (file, known) = figures(&args.machine, &reading.machine)?;
    let target = target_here(&reading.machine, (file, &known), args.costs.given(), place);
    target.map_err(|error| match &known {
        CostsKnown::Measured(place) => Failure::bad_input(format!("{place}: {error}")),
        _ => MachineError::from(error).into(),
    })
}

/// Returns the measured figures of this machine, if the arguments name a result, and the source of
/// all figures.
fn figures(
    args: &MachineArgs,
    here: &Machine,
) -> Result<(Option<MachineFile>, CostsKnown), Failure> {
    let (name, file) = match (&args.emulated.emulate_like, args.source.as_deref()) {
        (Some(name), _) => (name.clone(), machine_file(name)?),
        (None, Some(source)) if source.starts_with("results:") => {
            let place = source.trim_start_matches("results:");
            let document = run_document(Path::new(place))?;
            (place.to_owned(), capture(&document).figures)
        }
        (None, None | Some("sysfs")) if args.request().is_here(is_like) => {
            let known = match here.access.is_empty() {
                true => CostsKnown::Typical,
                false => CostsKnown::Firmware,
            };
            return Ok((None, known));
        }
        _ => {
            return Err(Failure::bad_input(
                "--try-on host: candidates run on this machine, so no option may describe another \
                 one; --source results:DIR or --emulate-like FILE gives its measured memory costs",
            ));
        }
    };
    if !is_like(&file.machine, here) {
        return Err(Failure::bad_input(format!(
            "--try-on host: {name} describes a machine with other nodes and cpus: expected one \
             measured here"
        )));
    }
    Ok((Some(file), CostsKnown::Measured(name)))
}
