//! Everything that a guest boots from: QEMU, an accelerator that works here, kernels and images.

use numalab_image::{BootFiles, Cache, Contents, Image, Kernel, KernelChoice, with_tiers};
use numalab_record::study::AcceleratorReason;

use crate::launch::{Guest, GuestError, Launch};
use crate::qemu::{Accelerator, AcceleratorChoice, AcceleratorKind, Qemu};

/// The inputs of guests of one kind.
#[derive(Debug)]
pub struct Boot {
    pub qemu: Qemu,
    pub accelerator: Accelerator,
    cache: Cache,
}

impl Boot {
    /// Finds a QEMU for this guest. If KVM must be tried, it is tried with this kernel.
    ///
    /// # Errors
    /// [`GuestError`] if there is no such QEMU, kernel or accelerator.
    pub fn find(
        guest: &Guest,
        choice: AcceleratorChoice,
        kernel: &KernelChoice,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, GuestError> {
        let (cache, qemu, known) = looked_up(guest, choice)?;
        let accelerator = match known {
            Some(known) => known,
            None => {
                let kernel = Kernel::ensure_for(&cache, kernel, guest.architecture, note)?;
                Accelerator::decide(choice, &qemu, &kernel.file, &cache)?
            }
        };
        Ok(Self { qemu, accelerator, cache })
    }

    /// Finds a QEMU for this guest without starting anything: untried, KVM is used only if it is
    /// requested.
    ///
    /// # Errors
    /// [`GuestError`] if there is no such QEMU.
    pub fn foreseen(guest: &Guest, choice: AcceleratorChoice) -> Result<Self, GuestError> {
        let (cache, qemu) = tools(guest)?;
        let kind = match choice {
            AcceleratorChoice::Kvm => AcceleratorKind::Kvm,
            AcceleratorChoice::Auto | AcceleratorChoice::Tcg => AcceleratorKind::Tcg,
        };
        let untried = Accelerator { kind, reason: AcceleratorReason::NotTried };
        let accelerator = guest.known_accelerator(choice).unwrap_or(untried);
        Ok(Self { qemu, accelerator, cache })
    }

    /// Returns the accelerator as far as known without a probe, and the QEMU for it.
    ///
    /// # Errors
    /// [`GuestError`] if there is no such QEMU, or KVM was requested and is known not to work.
    pub fn known(
        guest: &Guest,
        choice: AcceleratorChoice,
    ) -> Result<(Qemu, Option<Accelerator>), GuestError> {
        let (_, qemu, known) = looked_up(guest, choice)?;
        Ok((qemu, known))
    }

    /// Returns a kernel for this guest, with memory tiers if its machine has some.
    pub fn kernel(
        &self,
        guest: &Guest,
        choice: &KernelChoice,
        note: &mut dyn FnMut(&str),
    ) -> Result<Kernel, GuestError> {
        let mut get = |choice: &KernelChoice| {
            Kernel::ensure_for(&self.cache, choice, guest.architecture, note)
        };
        Ok(match guest.machine.tiers.len() {
            0 | 1 => get(choice)?,
            _ => with_tiers(choice, &mut get)?,
        })
    }

    /// Returns the image with these contents for a kernel, from the cache or newly built.
    pub fn image(
        &self,
        kernel: &Kernel,
        contents: &Contents,
        note: &mut dyn FnMut(&str),
    ) -> Result<Image, GuestError> {
        Ok(Image::ensure(&self.cache, kernel, contents, note)?)
    }

    /// Plans the start of a guest from these files.
    ///
    /// # Errors
    /// As [`Launch::plan`].
    pub fn launch(&self, guest: Guest, files: &BootFiles) -> Result<Launch, GuestError> {
        Launch::plan(guest, self.qemu.clone(), self.accelerator.clone(), files)
    }
}

/// Returns the cache, a QEMU for the guest, and the accelerator if it is known without trying KVM.
fn looked_up(
    guest: &Guest,
    choice: AcceleratorChoice,
) -> Result<(Cache, Qemu, Option<Accelerator>), GuestError> {
    let (cache, qemu) = tools(guest)?;
    let known = match guest.known_accelerator(choice) {
        Some(known) => Some(known),
        None => Accelerator::known(choice, &qemu, &cache)?,
    };
    Ok((cache, qemu, known))
}

fn tools(guest: &Guest) -> Result<(Cache, Qemu), GuestError> {
    let cache = Cache::open()?;
    let qemu = Qemu::find(&cache, &guest.qemu_needs())?;
    Ok((cache, qemu))
}
