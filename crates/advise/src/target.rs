//! The machine that a request names, and the place where candidates are tried.

use numalab_formats::machine_toml::MachineFile;
use numalab_formats::memory_emulator::GivenCosts;
use numalab_host::{Root, read_machine};
use numalab_places::machine::{MachineError, MachineRequest, is_like, machine_file};
use numalab_results::advice::{CostsKnown, TrialPlace};
use numalab_results::capture::capture;
use numalab_topology::{Finding, Machine};

use crate::error::AdviseError;
use crate::here::target_here;
use crate::model::Target;

impl Target {
    /// Returns the requested machine, or this one if the request names no other, with findings about
    /// its description; a guest for trials contains the programs in `with`.
    ///
    /// # Errors
    ///
    /// [`AdviseError`] if it cannot be read or modelled, or candidates cannot run on it.
    pub fn of(
        request: &MachineRequest,
        costs: GivenCosts,
        place: Option<TrialPlace>,
        with: &[String],
    ) -> Result<(Self, Vec<Finding>), AdviseError> {
        let is_here = request.is_here();
        let usual = if is_here { TrialPlace::Host } else { TrialPlace::Emulation };
        let place = place.unwrap_or(usual);
        let (described, guest) = match place {
            TrialPlace::Guest => {
                let guest = request.guest_spec(costs.clone(), with)?;
                (request.describe_guest()?, Some(guest))
            }
            TrialPlace::Emulation if !is_here => (request.describe_for_program()?, None),
            TrialPlace::Emulation | TrialPlace::Host => {
                return here(request, costs, place).map(|target| (target, Vec::new()));
            }
        };
        let target = Self::described(described.followed_memory(costs)?, place, guest);
        Ok((target, described.findings))
    }
}

/// Returns this machine as the emulator models it.
fn here(
    request: &MachineRequest,
    costs: GivenCosts,
    place: TrialPlace,
) -> Result<Target, AdviseError> {
    let here = read_machine(&Root::live()).map_err(MachineError::from)?.machine;
    let (file, known) = figures(request, &here)?;
    let target = target_here(&here, (file, &known), costs, place);
    Ok(target.map_err(|error| match known {
        CostsKnown::Measured(place) => {
            MachineError::File { path: place.into(), reason: error.to_string() }
        }
        _ => error.into(),
    })?)
}

/// Returns the measured figures of this machine, if the request names a result, and the source of all
/// figures.
fn figures(
    request: &MachineRequest,
    here: &Machine,
) -> Result<(Option<MachineFile>, CostsKnown), AdviseError> {
    let run = if request.like.is_none() { request.run()? } else { None };
    let (name, file) = match (&request.like, run, request.source.as_deref()) {
        (Some(name), ..) => (name.clone(), machine_file(name)?),
        (None, Some((place, run)), _) => (place.display().to_string(), capture(&run).figures),
        (None, None, None | Some("sysfs")) if request.is_here() => {
            let known = match here.access.is_empty() {
                true => CostsKnown::Typical,
                false => CostsKnown::Firmware,
            };
            return Ok((None, known));
        }
        _ => return Err(AdviseError::NotHere),
    };
    match is_like(&file.machine, here) {
        true => Ok((Some(file), CostsKnown::Measured(name))),
        false => Err(AdviseError::Unlike { name }),
    }
}

#[cfg(test)]
mod tests {
    use numalab_topology::UniformMachine;

    use super::*;

    fn like(name: &str) -> MachineRequest {
        MachineRequest { like: Some(name.to_owned()), ..MachineRequest::default() }
    }

    #[test]
    fn figures_of_another_machine_are_refused_with_its_name() {
        let here = UniformMachine::of_packages(1, 2, 1 << 30).build().expect("a machine");
        let refused = figures(&like("xeon-8360y-2s"), &here).expect_err("two packages of 36 cores");
        assert!(refused.to_string().contains("xeon-8360y-2s describes a machine with other nodes"));
    }

    #[test]
    fn figures_of_a_machine_like_this_one_are_measured_ones() {
        let here = machine_file("xeon-8360y-2s").expect("a bundled one").machine;
        let (file, known) = figures(&like("xeon-8360y-2s"), &here).expect("alike");
        assert_eq!(known, CostsKnown::Measured("xeon-8360y-2s".to_owned()));
        assert!(!file.expect("its file").machine.nodes.is_empty());
    }

    #[test]
    fn without_measured_figures_the_firmwares_are_used_if_there_are_any() {
        let mut here = UniformMachine::of_packages(2, 2, 1 << 30).build().expect("a machine");
        let known = |here: &Machine| figures(&MachineRequest::default(), here).expect("none").1;
        assert_eq!(known(&here), CostsKnown::Typical);
        here.access = machine_file("xeon-8360y-2s").expect("a bundled one").machine.access;
        assert_eq!(known(&here), CostsKnown::Firmware);
    }
}
