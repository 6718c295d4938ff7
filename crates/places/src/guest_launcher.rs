//! The inputs for booting a study's guests: QEMU, kernels, images.

use std::path::{Path, absolute};

use numalab_guest::{AcceleratorChoice, Boot, Guest, GuestError};
use numalab_host::note;
use numalab_image::{Contents, Image, KernelChoice, KernelError};
use numalab_record::study::Treatment;
use numalab_study::{BackendError, StudyPlace};
use numalab_workload::Workload;

use super::common_settings::LINUX_GUEST;
use super::guest_machine::GuestSettings;
use super::live_guest::failed;

/// The kernel that a guest boots: `linux` (the distribution's), `backports`, or the user's file.
pub(super) const KERNEL: &str = "kernel";

/// Everything needed to boot a guest.
pub(super) struct Launcher {
    pub(super) boot: Boot,
    /// A guest with the processor that all guests have, and with memory tiers if their kernel needs
    /// them.
    guest: Guest,
    contents: Contents,
    /// The image of each kernel booted or prepared so far.
    images: Vec<(KernelChoice, Image)>,
}

impl Launcher {
    /// Finds QEMU and tries KVM with the first of the kernels. Kernels without memory tiers are
    /// allowed if another one has them, so that they can be compared.
    pub(super) fn prepare(
        mut guest: Guest,
        choice: AcceleratorChoice,
        kernels: &[KernelChoice],
        contents: Contents,
    ) -> Result<Self, BackendError> {
        let prepare = || -> Result<Self, GuestError> {
            let first = kernels.first().cloned().unwrap_or_default();
            let boot = Boot::find(&guest, choice, &first, &mut |text| note(text))?;
            let tiers = std::mem::take(&mut guest.machine.tiers);
            let mut one_has_tiers = false;
            for kernel in kernels {
                let kernel = boot.kernel(&guest, kernel, &mut |text| note(text))?;
                one_has_tiers |= kernel.expect_tiers().is_ok();
            }
            if !one_has_tiers {
                guest.machine.tiers = tiers;
            }
            Ok(Self { boot, guest, contents, images: Vec::new() })
        };
        prepare().map_err(|error| failed(&error))
    }

    /// Returns the image for a kernel, from the cache or newly built.
    pub(super) fn image(&mut self, choice: &KernelChoice) -> Result<Image, BackendError> {
        if let Some((_, image)) = self.images.iter().find(|(kernel, _)| kernel == choice) {
            return Ok(image.clone());
        }
        let make = || -> Result<Image, GuestError> {
            let kernel = self.boot.kernel(&self.guest, choice, &mut |text| note(text))?;
            self.boot.image(&kernel, &self.contents, &mut |text| note(text))
        };
        let image = make().map_err(|error| match error {
            GuestError::Kernel(KernelError::NoTiers { .. }) => BackendError::lacking(
                error,
                format!(
                    "--set {KERNEL}=backports, or {KERNEL} = \"backports\" where a level sets it"
                ),
            ),
            error => failed(&error),
        })?;
        self.images.push((choice.clone(), image.clone()));
        Ok(image)
    }
}

/// Returns the contents of the guests' image: this program, and what the workloads need.
pub(super) fn contents(
    settings: &GuestSettings,
    workloads: &[Workload],
) -> Result<Contents, BackendError> {
    let own = Contents::own(settings.architecture());
    let mut contents = own.map_err(|error| failed(&error))?;
    let tools = workloads.iter().flat_map(|workload| &workload.tools);
    let programs = tools.map(|tool| tool.program.as_str());
    for program in programs.chain(settings.count_migrations.then_some("perf")) {
        contents.need_program(program).map_err(|error| failed(&error))?;
    }
    for wanted in &settings.with {
        contents.add_program(wanted).map_err(|error| failed(&error))?;
    }
    for file in workloads.iter().filter_map(|workload| workload.stdin.as_ref()) {
        let inside = absolute(file).unwrap_or_else(|_| file.clone());
        contents.files.push((file.clone(), inside.to_string_lossy().into_owned()));
    }
    Ok(contents)
}

/// Returns the kernels of these treatments, each once.
pub(super) fn kernels(
    settings: &GuestSettings,
    treatments: &[Treatment],
) -> Result<Vec<KernelChoice>, BackendError> {
    let mut kernels = Vec::new();
    for treatment in treatments {
        let kernel = kernel_of(settings, treatment)?;
        if !kernels.contains(&kernel) {
            kernels.push(kernel);
        }
    }
    Ok(kernels)
}

/// Returns the kernel that a treatment names, or else the study's.
pub(super) fn kernel_of(
    settings: &GuestSettings,
    treatment: &Treatment,
) -> Result<KernelChoice, BackendError> {
    let (name, place) = match treatment.settings.get(KERNEL) {
        Some(setting) => (setting.to_string(), StudyPlace::Setting(KERNEL.to_owned())),
        None => (settings.kernel.clone(), StudyPlace::backend(LINUX_GUEST, KERNEL)),
    };
    let refused = |expected| BackendError::bad_input(place, format!("{name:?}"), expected);
    kernel_named(&name).map_err(refused)
}

/// Returns the kernel of a name, or what is expected in its place.
fn kernel_named(name: &str) -> Result<KernelChoice, &'static str> {
    match name {
        "linux" => Ok(KernelChoice::Distribution),
        "backports" => Ok(KernelChoice::Backports),
        file if Path::new(file).is_file() => Ok(KernelChoice::File(file.into())),
        file if file.contains(['/', '.']) => Err("a file that exists"),
        _ => Err("linux, backports, a Linux image or a kernel package (.deb)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_that_does_not_exist_is_refused_for_that_reason() {
        let missing = kernel_named("./linux-image-without.deb");
        assert!(matches!(missing, Err("a file that exists")));
        assert!(matches!(kernel_named("linus"), Err(expected) if expected.starts_with("linux, ")));
    }
}
