//! The kind of a file that a PC boots, identified by its content, whatever its name.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use ::elf::ElfBytes;
use ::elf::abi::PT_NOTE;
use ::elf::endian::AnyEndian;
use ::elf::note::Note;
use numalab_host::bounded::{open_file, read_file};

use crate::elf::is_elf;

/// The number of bytes at the start of a file in which QEMU looks for a multiboot header, as in the
/// specification.
const MULTIBOOT_BYTES: usize = 8 << 10;
const MULTIBOOT_MAGIC: u32 = 0x1bad_b002;
const MULTIBOOT2_MAGIC: u32 = 0xe852_50d6;
/// `XEN_ELFNOTE_PHYS32_ENTRY`: the entry point of a PVH kernel.
const PVH_NOTE: u64 = 18;
/// Linux's boot protocol, `Documentation/arch/x86/boot.rst`.
const LINUX_MAGIC: (usize, &[u8]) = (0x202, b"HdrS");
/// The first volume descriptor, ECMA-119 8.1.
const ISO_MAGIC: (u64, &[u8]) = (0x8001, b"CD001");
/// Maximum size of a kernel in ELF; with all debugging information it has a few hundred MB.
const MOST_ELF_BYTES: u64 = 1 << 30;
const QCOW2_MAGIC: &[u8] = b"QFI\xfb";
const BOOT_SECTOR_MAGIC: (usize, &[u8]) = (510, &[0x55, 0xaa]);
/// QEMU maps firmware below 4 GiB, in whole units of 64 KiB.
const FIRMWARE_UNIT_BYTES: u64 = 64 << 10;
const FIRMWARE_MOST_BYTES: u64 = 16 << 20;
/// The distance of the processor's first instruction from the end of firmware, in bytes.
const RESET_VECTOR_BYTES: u64 = 16;

/// The kind of a file that a PC boots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A Linux image (bzImage).
    Linux,
    /// A kernel with a multiboot header.
    Multiboot,
    /// An ELF file with an entry point for Xen's PVH.
    Pvh,
    /// Firmware, mapped at the reset vector.
    Firmware,
    /// A disk or a disc, which the firmware boots.
    Disk(DiskFormat),
}

/// The format of a disk's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFormat {
    /// The plain sectors.
    Raw,
    /// QEMU's own format.
    Qcow2,
    /// An image of a CD.
    Iso,
}

/// Reasons why a PC cannot boot a file.
#[derive(Debug, thiserror::Error)]
pub enum MediumError {
    /// It cannot be read.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "{path}: has only a multiboot2 header, which QEMU does not load: expected a multiboot 1 \
         header or a PVH note as well, or an ISO made by grub-mkrescue"
    )]
    Multiboot2 { path: PathBuf },
    #[error(
        "{path}: not bootable, expected a Linux bzImage, an ELF file with a PVH note, a multiboot \
         kernel, an ISO or disk image with a boot sector, qcow2, or firmware with a size that is a \
         multiple of 64 KiB, up to 16 MiB"
    )]
    Unknown { path: PathBuf },
}

impl Medium {
    /// Identifies the file by its content.
    pub fn of(path: &Path) -> Result<Self, MediumError> {
        let failed = |source| MediumError::Io { path: path.to_owned(), source };
        let file = open_file(path).map_err(failed)?;
        let start = start_of(&file).map_err(failed)?;
        if at(&start, LINUX_MAGIC) {
            return Ok(Self::Linux);
        }
        if multiboot(&start) {
            return Ok(Self::Multiboot);
        }
        if is_elf(&start) && has_pvh_note(&read_file(path, MOST_ELF_BYTES).map_err(failed)?) {
            return Ok(Self::Pvh);
        }
        let format = DiskFormat::of_file(&file).map_err(failed)?;
        if format != DiskFormat::Raw || at(&start, BOOT_SECTOR_MAGIC) {
            return Ok(Self::Disk(format));
        }
        if is_firmware(&file).map_err(failed)? && !is_elf(&start) {
            return Ok(Self::Firmware);
        }
        let path = path.to_owned();
        let multiboot2 = words(&start).any(|word| word == MULTIBOOT2_MAGIC);
        Err(if multiboot2 {
            MediumError::Multiboot2 { path }
        } else {
            MediumError::Unknown { path }
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Linux => "a Linux image",
            Self::Multiboot => "a multiboot kernel",
            Self::Pvh => "a PVH kernel",
            Self::Firmware => "firmware",
            Self::Disk(DiskFormat::Iso) => "an ISO image",
            Self::Disk(DiskFormat::Raw) => "a disk image",
            Self::Disk(DiskFormat::Qcow2) => "a qcow2 disk image",
        }
    }
}

impl DiskFormat {
    /// Identifies the file by its content; a file of no other kind is a raw disk.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(path: &Path) -> Result<Self, MediumError> {
        let found = open_file(path).and_then(|file| Self::of_file(&file));
        found.map_err(|source| MediumError::Io { path: path.to_owned(), source })
    }

    fn of_file(file: &File) -> io::Result<Self> {
        let (offset, magic) = ISO_MAGIC;
        Ok(match () {
            () if read_at(file, offset, magic.len())? == magic => Self::Iso,
            () if read_at(file, 0, QCOW2_MAGIC.len())? == QCOW2_MAGIC => Self::Qcow2,
            () => Self::Raw,
        })
    }
}

fn start_of(file: &File) -> io::Result<Vec<u8>> {
    read_at(file, 0, MULTIBOOT_BYTES)
}

/// Reads `count` bytes, or fewer at the end of the file.
fn read_at(file: &File, offset: u64, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    let mut filled = 0;
    while filled < count {
        match file.read_at(&mut bytes[filled..], offset + filled as u64)? {
            0 => break,
            more => filled += more,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

fn at(bytes: &[u8], (offset, magic): (usize, &[u8])) -> bool {
    bytes.get(offset..).is_some_and(|rest| rest.starts_with(magic))
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word))
}

/// Returns true for a header whose three words add up to 0, as the specification requires.
fn multiboot(start: &[u8]) -> bool {
    let words: Vec<u32> = words(start).collect();
    words.windows(3).any(|header| {
        header[0] == MULTIBOOT_MAGIC
            && header.iter().fold(0, |sum: u32, w| sum.wrapping_add(*w)) == 0
    })
}

fn has_pvh_note(bytes: &[u8]) -> bool {
    let Ok(file) = ElfBytes::<AnyEndian>::minimal_parse(bytes) else { return false };
    let notes = file.segments().into_iter().flatten().filter(|segment| segment.p_type == PT_NOTE);
    let notes = notes.filter_map(|segment| file.segment_data_as_notes(&segment).ok()).flatten();
    notes.into_iter().any(|note| match note {
        Note::Unknown(note) => note.n_type == PVH_NOTE && note.name.starts_with(b"Xen"),
        _ => false,
    })
}

fn is_firmware(file: &File) -> io::Result<bool> {
    let bytes = file.metadata()?.len();
    if bytes == 0 || bytes > FIRMWARE_MOST_BYTES || !bytes.is_multiple_of(FIRMWARE_UNIT_BYTES) {
        return Ok(false);
    }
    let vector = read_at(file, bytes - RESET_VECTOR_BYTES, 16)?;
    Ok(vector.iter().any(|byte| ![0, 0xff].contains(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medium(content: &[u8]) -> Result<Medium, MediumError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, content).unwrap();
        Medium::of(&path)
    }

    /// Returns zeroes with some parts replaced.
    fn zeroes(bytes: usize, parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut content = vec![0; bytes];
        for (at, part) in parts {
            content[*at..at + part.len()].copy_from_slice(part);
        }
        content
    }

    /// Returns a 32-bit ELF file with one segment, of notes.
    fn elf_with_note(owner: &[u8; 4], kind: u32) -> Vec<u8> {
        let half = |value: u16| value.to_le_bytes().to_vec();
        let word = |value: u32| value.to_le_bytes().to_vec();
        let note = [word(4), word(4), word(kind), owner.to_vec(), word(0x10_0000)].concat();
        let header = [half(2), half(3), word(1), word(0), word(52), word(0), word(0)].concat();
        let sizes = [half(52), half(32), half(1), half(0), half(0), half(0)].concat();
        let length = word(u32::try_from(note.len()).unwrap());
        let segment =
            [word(4), word(84), word(0), word(0), length.clone(), length, word(4), word(4)];
        let magic = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        [magic, header, sizes, segment.concat(), note].concat()
    }

    #[test]
    fn a_pipe_and_a_device_are_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for (path, kind) in [(pipe.as_path(), "pipe"), (Path::new("/dev/zero"), "device")] {
            let expected = format!("is a {kind}, expected a file");
            let refused = Medium::of(path).unwrap_err().to_string();
            assert!(refused.contains(&expected), "{refused}");
            assert!(DiskFormat::of(path).unwrap_err().to_string().contains(&expected));
        }
    }

    #[test]
    fn an_elf_file_larger_than_any_kernel_is_refused_unread() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, elf_with_note(b"Xen\0", 18)).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(64 << 30).unwrap();
        let refused = Medium::of(&path).unwrap_err().to_string();
        assert!(refused.contains("has more than 1073741824 bytes"), "{refused}");
    }

    #[test]
    fn a_file_is_identified_by_its_content() {
        let header: Vec<u8> = [0x1bad_b002_u32, 3, 0_u32.wrapping_sub(0x1bad_b005)]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let jump = [(0x1_fff0, &[0xea, 0x5b, 0xe0, 0, 0xf0][..])];
        let known: [(Vec<u8>, Medium); 8] = [
            (zeroes(4096, &[(510, &[0x55, 0xaa]), (0x202, b"HdrS")]), Medium::Linux),
            (zeroes(9000, &[(0x1000, &header)]), Medium::Multiboot),
            (elf_with_note(b"Xen\0", 18), Medium::Pvh),
            (zeroes(128 << 10, &jump), Medium::Firmware),
            (zeroes(0x8800, &[(0x8001, b"CD001")]), Medium::Disk(DiskFormat::Iso)),
            // A hybrid image also has a boot sector.
            (
                zeroes(0x8800, &[(510, &[0x55, 0xaa]), (0x8001, b"CD001")]),
                Medium::Disk(DiskFormat::Iso),
            ),
            (zeroes(64 << 10, &[(510, &[0x55, 0xaa])]), Medium::Disk(DiskFormat::Raw)),
            (zeroes(512, &[(0, b"QFI\xfb")]), Medium::Disk(DiskFormat::Qcow2)),
        ];
        for (content, expected) in known {
            assert_eq!(medium(&content).unwrap(), expected);
        }
    }

    #[test]
    fn files_that_a_pc_cannot_boot_are_refused_with_the_expected_kinds() {
        let magic = 0xe852_50d6_u32.to_le_bytes();
        let multiboot2 = medium(&zeroes(4096, &[(64, &magic)])).unwrap_err().to_string();
        assert!(multiboot2.contains("grub-mkrescue"), "{multiboot2}");
        let others = [
            Vec::new(),
            b"#!/bin/sh\n".to_vec(),
            elf_with_note(b"GNU\0", 18),
            elf_with_note(b"Xen\0", 6),
            // A header with a wrong sum; flash memory that was never written.
            zeroes(4096, &[(0, &0x1bad_b002_u32.to_le_bytes())]),
            vec![0xff; 64 << 10],
        ];
        for content in others {
            let error = medium(&content).unwrap_err();
            assert!(matches!(error, MediumError::Unknown { .. }), "{error}");
        }
        assert!(matches!(Medium::of(Path::new("/no/such")), Err(MediumError::Io { .. })));
    }
}
