//! What must be there before guests can boot, as far as it is known without a boot.

use numalab_guest::{Accelerator, AcceleratorChoice};
use numalab_image::{Cache, Supplies};

use super::contract::BackendError;

/// Reads what the cache has.
pub(super) fn supplies(cache: &Cache) -> Result<Supplies, BackendError> {
    Supplies::read(cache).map_err(|error| BackendError::Failed {
        doing: "reading the cache".to_owned(),
        reason: error.to_string(),
    })
}

/// The accelerator as far as it is known without booting a guest: `None` if KVM must be tried.
pub(super) fn known_accelerator(choice: AcceleratorChoice) -> Option<Accelerator> {
    match choice {
        AcceleratorChoice::Tcg => Some(Accelerator::tcg()),
        AcceleratorChoice::Auto => Accelerator::without_device(),
        AcceleratorChoice::Kvm => None,
    }
}
