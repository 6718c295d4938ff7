//! A newer QEMU out of Debian's backports, unpacked into the cache.

use std::fs;

use super::choose::{Qemu, QemuError, program_of};
use numalab_image::package::{self, PackageError};
use numalab_image::{Architecture, Cache, CacheError, EntryKind};

/// The emulator, what it shares with others, its data, and the firmware.
const fn packages(architecture: Architecture) -> &'static [&'static str] {
    match architecture {
        Architecture::X86_64 => {
            &["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"]
        }
        // The firmware is for guests that are no Linux of ours.
        Architecture::Aarch64 => &["qemu-system-arm", "qemu-system-common", "qemu-system-data"],
    }
}

impl Qemu {
    /// Fetches the QEMU of the backports of this Debian release; nothing is installed.
    ///
    /// # Errors
    /// [`QemuError`].
    pub fn fetch_backports(cache: &Cache, note: &mut dyn FnMut(&str)) -> Result<Self, QemuError> {
        Self::fetch_backports_for(cache, Architecture::X86_64, note)
    }

    /// The same for a guest's processor.
    ///
    /// # Errors
    /// [`QemuError`].
    pub fn fetch_backports_for(
        cache: &Cache,
        architecture: Architecture,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, QemuError> {
        let _lock = cache.lock()?;
        let archive = package::backports(cache, Architecture::X86_64, note)?;
        let records = package::closure(&archive, packages(architecture), &|_| true)?;
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
        Self::at(tree.join("usr/bin").join(program_of(architecture)), vec![tree])
    }
}
