//! A newer QEMU out of Debian's backports, unpacked into the cache.

use std::fs;

use super::choose::{Qemu, QemuError};
use numalab_image::package::{self, PackageError};
use numalab_image::{Cache, CacheError, EntryKind};

/// The emulator, what it shares with others, its data, and the firmware.
const PACKAGES: [&str; 4] =
    ["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"];

impl Qemu {
    /// Fetches the QEMU of the backports of this Debian release; nothing is installed.
    ///
    /// # Errors
    /// [`QemuError`].
    pub fn fetch_backports(cache: &Cache, note: &mut dyn FnMut(&str)) -> Result<Self, QemuError> {
        let _lock = cache.lock()?;
        let archive = package::backports(cache, note)?;
        let records = package::closure(&archive, &PACKAGES, &|_| true)?;
        let name = format!("backports-{}", records[0].entry_name());
        let tree = cache.make(EntryKind::Qemu, &name, |directory| {
            for record in &records {
                note(&format!("downloading package {} {}", record.name, record.version));
                let file = archive.download(record, directory)?;
                package::extract(&file, directory)?;
                fs::remove_file(&file)
                    .map_err(|source| PackageError::Cache(CacheError::Io { path: file, source }))?;
            }
            Ok::<_, PackageError>(())
        })?;
        Self::at(tree.join("usr/bin/qemu-system-x86_64"), vec![tree])
    }
}
