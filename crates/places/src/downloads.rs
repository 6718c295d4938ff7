//! The files that must be present before guests can boot, as far as known without a boot.

use numalab_image::{Architecture, Cache, Supplies};
use numalab_study::BackendError;

/// Finds the files in the cache for guests with this processor.
pub(super) fn supplies(
    cache: &Cache,
    architecture: Architecture,
) -> Result<Supplies, BackendError> {
    Supplies::read(cache, architecture)
        .map_err(|error| BackendError::failed("reading the cache", error))
}
