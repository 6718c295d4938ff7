//! Detection of kernels that build memory tiers from the HMAT.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use numalab_host::{linux_version, note};

use super::{Kernel, KernelChoice, KernelError};

/// The first Linux release that uses HMAT for the tier of a node without cpus
/// (`mm/memory-tiers.c`).
const FIRST: (u32, u32) = (6, 10);
/// The header of a Linux image for PCs: its magic number, and the offset of its release minus
/// [`SETUP_BASE`] (Linux `Documentation/arch/x86/boot.rst`).
const MAGIC: std::ops::Range<usize> = 0x202..0x206;
const RELEASE_OFFSET: std::ops::Range<usize> = 0x20e..0x210;
const SETUP_BASE: usize = 0x200;
/// The offset has 16 bits, and a release at most 64 characters.
const HEAD_BYTES: u64 = 0x1_0400;

/// Returns a kernel with memory tiers from `get`: the chosen one, or the one from backports if the
/// distribution's is too old.
///
/// # Errors
/// Errors of `get`; [`KernelError::NoTiers`] if the named kernel is too old.
pub fn with_tiers(
    choice: &KernelChoice,
    get: &mut dyn FnMut(&KernelChoice) -> Result<Kernel, KernelError>,
) -> Result<Kernel, KernelError> {
    let kernel = get(choice)?;
    match (kernel.expect_tiers(), choice) {
        (Err(error @ KernelError::NoTiers { .. }), KernelChoice::Distribution) => {
            note(format_args!("{error}: using the kernel from backports"));
            let newer = get(&KernelChoice::Backports)?;
            newer.expect_tiers().map(|()| newer)
        }
        (expected, _) => expected.map(|()| kernel),
    }
}

impl Kernel {
    /// Refuses a kernel that is known to be too old for memory tiers.
    ///
    /// # Errors
    /// [`KernelError::NoTiers`], [`KernelError::Io`] if the image cannot be read.
    pub fn expect_tiers(&self) -> Result<(), KernelError> {
        let release = match &self.package {
            Some(_) => Some(self.release.clone()),
            None => image_release(&self.file)?,
        };
        match release {
            Some(release) if linux_version(&release).is_some_and(|version| version < FIRST) => {
                Err(KernelError::NoTiers { release })
            }
            _ => Ok(()),
        }
    }
}

/// Returns the release in an image's header; `None` for an image of another form.
fn image_release(file: &Path) -> Result<Option<String>, KernelError> {
    let io = |source| KernelError::Io { path: file.to_path_buf(), source };
    let mut head = Vec::new();
    fs::File::open(file).map_err(io)?.take(HEAD_BYTES).read_to_end(&mut head).map_err(io)?;
    Ok(release_in(&head))
}

fn release_in(head: &[u8]) -> Option<String> {
    if head.get(MAGIC)? != b"HdrS" {
        return None;
    }
    let offset = u16::from_le_bytes(head.get(RELEASE_OFFSET)?.try_into().ok()?);
    let text = head.get(SETUP_BASE + usize::from(offset)..)?;
    let text = text.split(|&byte| byte == 0 || byte == b' ').next()?;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(release: &str) -> Vec<u8> {
        let mut head = vec![0; 0x400];
        head[MAGIC].copy_from_slice(b"HdrS");
        head[RELEASE_OFFSET].copy_from_slice(&0x100_u16.to_le_bytes());
        head[0x300..0x300 + release.len()].copy_from_slice(release.as_bytes());
        head
    }

    fn checked(content: &[u8]) -> Result<(), KernelError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), content).unwrap();
        Kernel::of_file(file.path()).unwrap().expect_tiers()
    }

    #[test]
    fn a_kernel_before_6_10_is_refused_with_the_command_that_gets_another() {
        let error = checked(&image("6.9.12-amd64 (builder) #1")).unwrap_err().to_string();
        let expected = "Linux 6.9.12-amd64 does not build memory tiers from HMAT's latencies: \
                        expected 6.10 or later";
        assert_eq!(error, expected);
        for later in ["6.10.0", "6.12.95+deb12-cloud-amd64", "7.0-rc1"] {
            assert!(checked(&image(later)).is_ok(), "{later}");
        }
    }

    #[test]
    fn the_kernel_from_backports_is_used_if_the_distributions_is_too_old() {
        let directory = tempfile::tempdir().unwrap();
        let of = |release: &str| {
            let file = directory.path().join(release);
            fs::write(&file, image(release)).unwrap();
            Kernel::of_file(&file)
        };
        let mut get = |choice: &KernelChoice| match choice {
            KernelChoice::Distribution => of("6.1.0"),
            KernelChoice::Backports => of("6.12.9"),
            KernelChoice::File(_) => of("6.9.1"),
        };
        let taken = with_tiers(&KernelChoice::Distribution, &mut get).unwrap();
        assert!(taken.file.ends_with("6.12.9"), "{taken:?}");
        let own = with_tiers(&KernelChoice::File("mine".into()), &mut get);
        assert!(matches!(own, Err(KernelError::NoTiers { .. })), "what is named is not replaced");
    }

    #[test]
    fn an_image_without_a_release_is_accepted() {
        assert!(checked(b"\x7fELF").is_ok());
        assert_eq!(release_in(&image("")), Some(String::new()));
        assert!(checked(&image("")).is_ok());
    }
}
