//! This machine as the emulator models it: its nodes, the cpus that this process may use, and
//! measured figures of its memory.

use std::path::Path;

use numalab_advise::{Target, is_like, target_here};
use numalab_formats::machine_toml::MachineFile;
use numalab_host::knobs::{FileState, Knob};
use numalab_host::{Root, note, read_machine};
use numalab_results::advice::{CostsKnown, KernelNow, TrialPlace};
use numalab_results::capture::capture;
use numalab_topology::Machine;

use crate::args::{AdviseArgs, EmulatedArgs, MachineArgs};
use crate::failure::Failure;
use crate::{input, source};

/// Returns true if the arguments describe no other machine.
pub(super) fn is_meant(args: &MachineArgs) -> bool {
    let EmulatedArgs { emulate_like, emulate, cpus, .. } = &args.emulated;
    let is_made = emulate.is_some()
        || emulate_like.is_some()
        || args.emulate_tiers.is_some()
        || args.topology.is_some()
        || cpus.is_some();
    let is_here = |source: &String| match source.split_once(':') {
        None => source == "sysfs",
        Some(("results", place)) => source::run_document(Path::new(place))
            .is_ok_and(|document| is_this(&document.run.machine)),
        Some(_) => false,
    };
    !is_made && args.source.as_ref().is_none_or(is_here)
}

/// Checks that a machine has the nodes and cpus of this one.
fn is_this(machine: &Machine) -> bool {
    read_machine(&Root::live()).is_ok_and(|here| is_like(machine, &here.machine))
}

/// Returns this machine as the emulator models it.
pub(super) fn target(args: &AdviseArgs, place: TrialPlace) -> Result<Target, Failure> {
    let reading = read_machine(&Root::live())?;
    let (file, known) = figures(&args.machine, &reading.machine)?;
    let kernel = kernel_now(&Root::live());
    let target = target_here(&reading.machine, (file, &known), args.costs.given(), kernel, place);
    target.map_err(|error| match &known {
        CostsKnown::Measured(place) => Failure::bad_input(format!("{place}: {error}")),
        _ => error.into(),
    })
}

/// Returns the measured figures of this machine, if the arguments name a result, and the source of
/// all figures.
fn figures(
    args: &MachineArgs,
    here: &Machine,
) -> Result<(Option<MachineFile>, CostsKnown), Failure> {
    let (name, file) = match (&args.emulated.emulate_like, args.source.as_deref()) {
        (Some(name), _) => (name.clone(), input::machine_file(name)?),
        (None, Some(source)) if source.starts_with("results:") => {
            let place = source.trim_start_matches("results:");
            let document = source::run_document(Path::new(place))?;
            (place.to_owned(), capture(&document).figures)
        }
        (None, None | Some("sysfs")) if is_meant(args) => {
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

/// Returns the kernel's current settings for automatic placement.
fn kernel_now(root: &Root) -> KernelNow {
    let value = |name: &str| match Knob::find(root, name).map(|knob| knob.state(root)) {
        Ok(FileState::Value(value)) => Some(value),
        Ok(_) => None,
        Err(error) => {
            note(error);
            None
        }
    };
    KernelNow {
        balancing: value("numa_balancing").and_then(|value| value.trim().parse().ok()),
        huge_always: value("thp_enabled").is_some_and(|value| value == "always"),
    }
}
