//! The inputs for booting a study's guests: QEMU, kernels, images.

use std::env;
use std::path::{Path, absolute};

use numalab_guest::{Accelerator, AcceleratorChoice, Guest, GuestError, Qemu};
use numalab_host::note;
use numalab_image::{
    Architecture, Cache, Contents, Image, Kernel, KernelChoice, KernelError, with_tiers,
};
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
    pub(super) qemu: Qemu,
    pub(super) accelerator: Accelerator,
    /// True if a kernel without memory tiers is rejected.
    pub(super) expect_tiers: bool,
    cache: Cache,
    contents: Contents,
    /// The image of each kernel booted or prepared so far.
    images: Vec<(KernelChoice, Image)>,
}

impl Launcher {
    /// Finds QEMU and tries KVM with the first of the kernels.
    pub(super) fn prepare(
        guest: &Guest,
        choice: AcceleratorChoice,
        kernel: &KernelChoice,
        contents: Contents,
    ) -> Result<Self, BackendError> {
        let prepare = || -> Result<Self, GuestError> {
            let cache = Cache::open()?;
            let qemu = Qemu::find(&cache, &guest.qemu_needs())?;
            let kernel = ensure(&cache, kernel, guest.architecture)?;
            let accelerator = match guest.known_accelerator(choice) {
                Some(known) => known,
                None => Accelerator::decide(choice, &qemu, &kernel.file, &cache)?,
            };
            let (images, expect_tiers) = (Vec::new(), false);
            Ok(Self { qemu, accelerator, expect_tiers, cache, contents, images })
        };
        prepare().map_err(|error| failed(&error))
    }

    /// Allows kernels without memory tiers if one of these kernels has them, so that they can be
    /// compared.
    pub(super) fn compare(&mut self, kernels: &[KernelChoice]) -> Result<(), BackendError> {
        for choice in kernels {
            let architecture = self.contents.architecture;
            let mut note = |text: &str| note(text);
            let kernel = Kernel::ensure_for(&self.cache, choice, architecture, &mut note);
            let kernel = kernel.map_err(|error| failed(&error.into()))?;
            self.expect_tiers &= kernel.expect_tiers().is_err();
        }
        Ok(())
    }

    /// Returns the image for a kernel, from the cache or newly built.
    pub(super) fn image(&mut self, choice: &KernelChoice) -> Result<Image, BackendError> {
        if let Some((_, image)) = self.images.iter().find(|(kernel, _)| kernel == choice) {
            return Ok(image.clone());
        }
        let make = || -> Result<Image, GuestError> {
            let mut get = |choice: &KernelChoice| {
                let architecture = self.contents.architecture;
                Kernel::ensure_for(&self.cache, choice, architecture, &mut |text| note(text))
            };
            let kernel = match self.expect_tiers {
                true => with_tiers(choice, &mut get)?,
                false => get(choice)?,
            };
            Ok(Image::ensure(&self.cache, &kernel, &self.contents, &mut |text| note(text))?)
        };
        let image = make().map_err(|error| match error {
            GuestError::Kernel(KernelError::NoTiers { .. }) => BackendError::Lacking {
                what: error.to_string(),
                remedy: format!(
                    "--set {KERNEL}=backports, or {KERNEL} = \"backports\" where a level sets it"
                ),
            },
            error => failed(&error),
        })?;
        self.images.push((choice.clone(), image.clone()));
        Ok(image)
    }
}

fn ensure(
    cache: &Cache,
    choice: &KernelChoice,
    architecture: Architecture,
) -> Result<Kernel, GuestError> {
    Ok(Kernel::ensure_for(cache, choice, architecture, &mut |text| note(text))?)
}

/// Returns the contents of the guests' image: this program, and what the workloads need.
pub(super) fn contents(
    settings: &GuestSettings,
    workloads: &[Workload],
) -> Result<Contents, BackendError> {
    let architecture = settings.architecture()?;
    let program = match architecture.own_program() {
        Some(companion) => companion.find().map_err(|error| failed(&error.into()))?,
        None => env::current_exe()
            .map_err(|error| BackendError::failed("finding this program", error))?,
    };
    let mut contents = Contents { architecture, ..Contents::new(program) };
    let own = contents.expect_own_processor(&contents.init);
    own.map_err(|error| failed(&error.into()))?;
    let tools = workloads.iter().flat_map(|workload| &workload.tools);
    let programs = tools.map(|tool| tool.program.as_str());
    for program in programs.chain(settings.count_migrations.then_some("perf")) {
        contents.need_program(program).map_err(|error| failed(&error.into()))?;
    }
    for wanted in &settings.with {
        contents.add_program(wanted).map_err(|error| failed(&error.into()))?;
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
    match name.as_str() {
        "linux" => Ok(KernelChoice::Distribution),
        "backports" => Ok(KernelChoice::Backports),
        file if Path::new(file).is_file() => Ok(KernelChoice::File(file.into())),
        _ => Err(BackendError::BadInput {
            place,
            found: format!("{name:?}"),
            expected: "linux, backports, a Linux image or a kernel package (.deb)".to_owned(),
        }),
    }
}
