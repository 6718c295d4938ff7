//! Downloads a newer QEMU from Debian's backports and unpacks it into the cache.

use std::fs;

use super::choose::{Qemu, QemuError, program_of};
use numalab_image::package::{self, PackageError};
use numalab_image::{Architecture, Cache, CacheError, EntryKind};

/// UEFI for aarch64, through which Linux gets a machine's ACPI tables.
const FIRMWARE_PACKAGE: &str = "qemu-efi-aarch64";

/// Returns the packages of the emulator, its shared and data files, and a PC's firmware.
const fn packages(architecture: Architecture) -> &'static [&'static str] {
    match architecture {
        Architecture::X86_64 => {
            &["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"]
        }
        Architecture::Aarch64 => &["qemu-system-arm", "qemu-system-common", "qemu-system-data"],
    }
}

impl Qemu {
    /// Downloads QEMU for a guest's processor from the backports of this Debian release; nothing is
    /// installed.
    pub fn fetch_backports(
        cache: &Cache,
        architecture: Architecture,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, QemuError> {
        let _lock = cache.lock()?;
        let archive = package::backports(cache, Architecture::X86_64, note)?;
        let records = package::closure(&archive, packages(architecture), &|_| true)?;
        let mut name = format!("backports-{}", records[0].entry_name());
        let mut wanted: Vec<_> = records.into_iter().map(|record| (&archive, record)).collect();
        let with_firmware;
        if architecture == Architecture::Aarch64 {
            with_firmware = package::with_firmware(cache, note)?;
            let firmware = with_firmware.record(FIRMWARE_PACKAGE)?;
            name = format!("{name}-{}", firmware.entry_name());
            wanted.push((&with_firmware, firmware));
        }
        let tree = cache.make(EntryKind::Qemu, &name, |directory| {
            for (archive, record) in &wanted {
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
