//! Downloads a newer QEMU from Debian's backports and unpacks it into the cache.

use std::fs;

use super::choose::{Qemu, QemuError};
use crate::board::Board;
use numalab_image::package::{self, PackageError};
use numalab_image::{Architecture, Cache, CacheError, EntryKind};

impl Qemu {
    /// Downloads QEMU for a guest's processor from the backports of this Debian release; nothing is
    /// installed.
    pub fn fetch_backports(
        cache: &Cache,
        architecture: Architecture,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, QemuError> {
        let board = Board::of(architecture);
        let _lock = cache.lock()?;
        let archive = package::backports(cache, Architecture::X86_64, note)?;
        let records = package::closure(&archive, board.packages, &|_| true)?;
        let mut name = format!("backports-{}", records[0].entry_name());
        let mut wanted: Vec<_> = records.into_iter().map(|record| (&archive, record)).collect();
        let with_firmware;
        if let Some(own) = &board.firmware {
            with_firmware = package::with_firmware(cache, note)?;
            let firmware = with_firmware.record(own.package)?;
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
        Self::at(tree.join("usr/bin").join(board.program), vec![tree])
    }
}
