//! What the guests of a study are booted from: QEMU, kernels, images.

use std::env;
use std::path::Path;

use numalab_guest::{Accelerator, GuestError, Qemu, QemuNeeds};
use numalab_host::note;
use numalab_image::{Cache, Contents, Image, Kernel, KernelChoice};
use numalab_record::study::Treatment;
use numalab_workload::Workload;

use super::BackendError;
use super::guest_machine::GuestSettings;

/// What the guest boots: `linux` (the distribution's), `backports`, or a file of one's own.
pub(super) const KERNEL: &str = "kernel";

/// All that is needed to boot, made once.
pub(super) struct Launcher {
    pub(super) qemu: Qemu,
    pub(super) accelerator: Accelerator,
    /// One for each kernel of the study.
    pub(super) images: Vec<(KernelChoice, Image)>,
}

/// Why a guest cannot be prepared.
pub(super) enum Preparation {
    Guest(GuestError),
    Backend(BackendError),
}

impl<E: Into<GuestError>> From<E> for Preparation {
    fn from(error: E) -> Self {
        Self::Guest(error.into())
    }
}

/// Finds QEMU, and makes an image with the workloads' tools for each kernel.
pub(super) fn launcher(
    settings: &GuestSettings,
    needs: &QemuNeeds,
    kernels: Vec<KernelChoice>,
    workloads: &[Workload],
) -> Result<Launcher, Preparation> {
    let mut report = |text: &str| note(text);
    let choice = settings.accelerator().map_err(Preparation::Backend)?;
    let cache = Cache::open()?;
    let qemu = Qemu::find(&cache, needs)?;
    let program = env::current_exe().map_err(|error| {
        Preparation::Backend(BackendError::Failed {
            doing: "finding this program".to_owned(),
            reason: error.to_string(),
        })
    })?;
    let mut contents = Contents::new(program);
    let tools = workloads.iter().flat_map(|workload| &workload.tools);
    for tool in tools.map(|tool| tool.program.as_str()) {
        contents.need_program(tool)?;
    }
    if settings.count_migrations {
        contents.need_program("perf")?;
    }
    let mut images = Vec::new();
    let mut accelerator = Accelerator::tcg();
    for choice_of_kernel in kernels {
        let kernel = Kernel::ensure(&cache, &choice_of_kernel, &mut report)?;
        accelerator = Accelerator::decide(choice, &qemu, &kernel.file, &cache)?;
        images.push((choice_of_kernel, Image::ensure(&cache, &kernel, &contents, &mut report)?));
    }
    Ok(Launcher { qemu, accelerator, images })
}

/// The kernel that a treatment names.
pub(super) fn kernel_of(treatment: &Treatment) -> Result<KernelChoice, BackendError> {
    let Some(setting) = treatment.settings.get(KERNEL) else {
        return Ok(KernelChoice::Distribution);
    };
    let name = setting.to_string();
    match name.as_str() {
        "linux" => Ok(KernelChoice::Distribution),
        "backports" => Ok(KernelChoice::Backports),
        file if Path::new(file).is_file() => Ok(KernelChoice::File(file.into())),
        _ => Err(BackendError::BadInput {
            place: format!("setting {KERNEL}"),
            found: format!("{name:?}"),
            expected: "linux, backports, a Linux image or a kernel package (.deb)".to_owned(),
        }),
    }
}
