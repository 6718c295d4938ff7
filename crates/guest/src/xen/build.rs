//! A user's own hypervisor, checked before a boot: QEMU must be able to load it.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use numalab_guest_agent::sha256;
use numalab_image::{Cache, CacheError, EntryKind};

/// The largest size of a hypervisor, decompressed, in bytes.
const MOST_BYTES: u64 = 256 << 20;
/// The number of first bytes in which a loader looks for the header (Multiboot 0.6.96, 3.1).
const HEADER_WITHIN: usize = 8192;
const HEADER_MAGIC: u32 = 0x1bad_b002;
/// `e_machine` of 32-bit x86: QEMU's multiboot loader accepts no other (`hw/i386/multiboot.c`).
const EM_386: u32 = 3;
/// A text that every Xen contains, to be printed when it boots (`xen/drivers/char/console.c`).
const BANNER: &[u8] = b"Xen version %d.%d";

/// A hypervisor built by a user, in the state of its file when it was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XenBuild {
    file: PathBuf,
    sha256: String,
}

/// Reasons why a file is not a bootable hypervisor.
#[derive(Debug, thiserror::Error)]
pub enum XenBuildError {
    /// The file cannot be read, or cannot be written to the cache.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// The file is something else.
    #[error("{path}: it is {found}")]
    Other {
        path: PathBuf,
        /// The kind of file it is.
        found: &'static str,
    },
    #[error("{path}: it has been rebuilt since the start")]
    Changed { path: PathBuf },
    #[error(transparent)]
    Cache(#[from] CacheError),
}

impl XenBuild {
    /// Checks that QEMU can load a file: `xen` or `xen.gz` as Xen's own build makes them.
    ///
    /// # Errors
    /// [`XenBuildError`] with the kind of file it is instead.
    pub fn check(file: &Path) -> Result<Self, XenBuildError> {
        let (sha256, _) = program_of(file)?;
        Ok(Self { file: file.to_path_buf(), sha256 })
    }

    /// Returns the SHA-256 of its file, in hexadecimal digits.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Returns the hypervisor, decompressed, in the cache, so that a rebuild in the meantime does
    /// not change what is booted.
    ///
    /// # Errors
    /// [`XenBuildError`]; [`XenBuildError::Changed`] if it was rebuilt before the first boot.
    pub fn ensure(&self, cache: &Cache) -> Result<PathBuf, XenBuildError> {
        let name = format!("xen-file-{:.16}", self.sha256);
        let kept = cache.path(EntryKind::Kernel, &name).join("xen.elf");
        let _lock = cache.lock()?;
        if !cache.holds(EntryKind::Kernel, &name) {
            let (sha256, program) = program_of(&self.file)?;
            if sha256 != self.sha256 {
                return Err(XenBuildError::Changed { path: self.file.clone() });
            }
            cache.make(EntryKind::Kernel, &name, |directory| {
                let path = directory.join("xen.elf");
                fs::write(&path, &program).map_err(|source| XenBuildError::Io { path, source })
            })?;
        }
        cache.touch(EntryKind::Kernel, &name);
        Ok(kept)
    }
}

/// Returns the hash of a file, and the hypervisor in it.
fn program_of(file: &Path) -> Result<(String, Vec<u8>), XenBuildError> {
    let path = || file.to_path_buf();
    let content = fs::read(file).map_err(|source| XenBuildError::Io { path: path(), source })?;
    let sha256 = sha256(&content);
    let program = decompressed(content);
    let program = program.map_err(|found| XenBuildError::Other { path: path(), found })?;
    match other_than_xen(&program) {
        None => Ok((sha256, program)),
        Some(found) => Err(XenBuildError::Other { path: path(), found }),
    }
}

fn decompressed(content: Vec<u8>) -> Result<Vec<u8>, &'static str> {
    if !content.starts_with(&[0x1f, 0x8b]) {
        return Ok(content);
    }
    let mut program = Vec::new();
    let read = GzDecoder::new(content.as_slice()).take(MOST_BYTES).read_to_end(&mut program);
    read.map(|_| program).map_err(|_| "a damaged gzip file")
}

/// Returns the kind of a program, unless it is a Xen that QEMU's multiboot loader accepts.
fn other_than_xen(program: &[u8]) -> Option<&'static str> {
    match program {
        [b'M', b'Z', ..] if program.get(0x202..0x206) == Some(b"HdrS") => Some("a Linux kernel"),
        [b'M', b'Z', ..] => Some("a program for EFI, such as xen.efi"),
        [0x7f, b'E', b'L', b'F', 2, ..] => {
            Some("a 64-bit ELF file, such as xen-syms, which QEMU does not load")
        }
        [0x7f, b'E', b'L', b'F', 1, ..] if number(program, 18, 2) == Some(EM_386) => {
            if !has_multiboot_header(program) {
                Some("a program without a multiboot header")
            } else if !program.windows(BANNER.len()).any(|window| window == BANNER) {
                Some("a multiboot kernel, but not Xen")
            } else {
                None
            }
        }
        _ => Some("neither an ELF file for x86 nor a gzip file of one"),
    }
}

/// Returns true if there is a header: magic, flags and checksum with a sum of 0 (Multiboot 0.6.96,
/// 3.1.1).
fn has_multiboot_header(program: &[u8]) -> bool {
    let within = program.len().min(HEADER_WITHIN);
    (0..within).step_by(4).any(|at| {
        let field = |index: usize| number(program, at + 4 * index, 4);
        let fields = [field(0), field(1), field(2)];
        let [Some(HEADER_MAGIC), Some(flags), Some(checksum)] = fields else { return false };
        HEADER_MAGIC.wrapping_add(flags).wrapping_add(checksum) == 0
    })
}

/// Returns a little-endian number of this number of bytes.
fn number(program: &[u8], at: usize, bytes: usize) -> Option<u32> {
    let digits = program.get(at..at + bytes)?;
    Some(digits.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    /// Returns the part of a hypervisor that a loader reads.
    fn xen() -> Vec<u8> {
        let mut program = vec![0; 256];
        program[..5].copy_from_slice(b"\x7fELF\x01");
        program[18] = 3;
        let flags = 3_u32;
        let checksum = 0_u32.wrapping_sub(HEADER_MAGIC).wrapping_sub(flags);
        for (at, field) in [(128, HEADER_MAGIC), (132, flags), (136, checksum)] {
            program[at..at + 4].copy_from_slice(&field.to_le_bytes());
        }
        program.extend_from_slice(b"Xen version %d.%d%s (%s@%s)\n");
        program
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    struct Lab {
        directory: tempfile::TempDir,
    }

    impl Lab {
        fn new() -> Self {
            Self { directory: tempfile::tempdir().unwrap() }
        }

        fn file(&self, name: &str, content: &[u8]) -> PathBuf {
            let path = self.directory.path().join(name);
            fs::write(&path, content).unwrap();
            path
        }

        fn cache(&self) -> Cache {
            Cache::at(self.directory.path().join("cache")).unwrap()
        }
    }

    #[test]
    fn a_hypervisor_is_decompressed_for_booting_and_identified_by_the_hash_of_its_file() {
        let lab = Lab::new();
        let plain = XenBuild::check(&lab.file("xen", &xen())).unwrap();
        let packed = XenBuild::check(&lab.file("xen.gz", &gzip(&xen()))).unwrap();
        assert_eq!(plain.sha256().len(), 64);
        assert_ne!(plain.sha256(), packed.sha256());
        for build in [plain, packed] {
            assert_eq!(fs::read(build.ensure(&lab.cache()).unwrap()).unwrap(), xen());
        }
    }

    #[test]
    fn the_checked_hypervisor_is_booted_even_if_it_is_rebuilt_meanwhile() {
        let lab = Lab::new();
        let path = lab.file("xen", &xen());
        let build = XenBuild::check(&path).unwrap();
        let anew = [xen(), b"anew".to_vec()].concat();
        lab.file("xen", &anew);
        let error = build.ensure(&lab.cache()).unwrap_err();
        assert!(error.to_string().ends_with("it has been rebuilt since the start"), "{error}");
        lab.file("xen", &xen());
        build.ensure(&lab.cache()).unwrap();
        lab.file("xen", &anew);
        assert_eq!(fs::read(build.ensure(&lab.cache()).unwrap()).unwrap(), xen());
    }

    #[test]
    fn files_that_this_loader_cannot_boot_are_refused_with_their_kind() {
        let lab = Lab::new();
        let without = |range: std::ops::Range<usize>| {
            let mut program = xen();
            program[range].fill(0);
            program
        };
        let mut linux = vec![0; 0x210];
        linux[..2].copy_from_slice(b"MZ");
        linux[0x202..0x206].copy_from_slice(b"HdrS");
        let mut cut = gzip(&xen());
        cut.truncate(cut.len() / 2);
        for (content, words) in [
            (linux, "a Linux kernel"),
            (b"MZ".to_vec(), "for EFI, such as xen.efi"),
            (b"\x7fELF\x02".to_vec(), "such as xen-syms"),
            (without(128..132), "without a multiboot header"),
            (without(256..260), "not Xen"),
            (without(18..19), "neither an ELF file for x86"),
            (gzip(b"text"), "neither an ELF file for x86"),
            (cut, "damaged"),
            (Vec::new(), "neither"),
        ] {
            let error = XenBuild::check(&lab.file("file", &content)).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        let error = XenBuild::check(Path::new("/no/such/xen")).unwrap_err().to_string();
        assert!(error.starts_with("/no/such/xen: No such file"), "{error}");
    }

    proptest! {
        #[test]
        fn no_truncated_file_makes_it_panic(end in 0_usize..260) {
            prop_assert!(other_than_xen(&xen()[..end]).is_some());
        }
    }
}
