//! What must be there before guests can boot, as far as it is known without a boot.

use numalab_image::{Architecture, Cache, Supplies};
use numalab_study::BackendError;

/// Reads what the cache has for guests with this processor.
pub(super) fn supplies(
    cache: &Cache,
    architecture: Architecture,
) -> Result<Supplies, BackendError> {
    Supplies::read(cache, architecture).map_err(|error| BackendError::Failed {
        doing: "reading the cache".to_owned(),
        reason: error.to_string(),
    })
}
