//! The secret of one start, with which its ranks authenticate over TCP.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::identity::VariableLookup;

/// Variable that gives the secret to ranks, as 64 hexadecimal digits.
pub const SECRET: &str = "NUMALAB_SECRET";
/// Length in bytes of a secret, a nonce and a proof.
pub(super) const BYTES: usize = 32;

/// Returns 256 random bits.
///
/// # Errors
/// The system's error if it has no random numbers.
pub(super) fn random() -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Returns a new secret in the form of [`SECRET`], for a launcher's ranks.
///
/// # Errors
/// The system's error if it has no random numbers.
pub fn new_secret() -> io::Result<String> {
    Ok(random()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The source of a start's secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum SecretSource {
    Given([u8; BYTES]),
    /// A file of this user on a file system that all hosts share.
    File(PathBuf),
}

impl std::fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Given(_) => f.write_str("Given"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

impl SecretSource {
    /// Returns the source for the start called `start`.
    ///
    /// # Errors
    /// The fault of the variable, without its value.
    pub fn of(start: &str, look: VariableLookup<'_>) -> Result<Self, String> {
        if let Some(text) = look(SECRET) {
            let malformed = || format!("{SECRET}: expected {} hexadecimal digits", 2 * BYTES);
            return parse(text.trim()).map(Self::Given).ok_or_else(malformed);
        }
        let home = look("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let home = home.ok_or_else(|| {
            format!("neither HOME, for a file with the secret of the ranks, nor {SECRET} is set")
        })?;
        Ok(Self::File(home.join(".cache/numalab").join(format!("ranks-{start}"))))
    }

    /// Creates the secret, or returns the one given. Rank 0's host does this before it listens.
    pub fn make(&self) -> io::Result<[u8; BYTES]> {
        let path = match self {
            Self::Given(secret) => return Ok(*secret),
            Self::File(path) => path,
        };
        let directory = path.parent().unwrap_or(Path::new("."));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        check(&fs::symlink_metadata(directory)?, 0o022)?;
        let secret = random()?;
        // A leftover of a killed start is in this user's own directory.
        let _ = fs::remove_file(path);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600).open(path)?.write_all(&secret)?;
        Ok(secret)
    }

    /// Reads the secret that rank 0's host creates; fails until that has happened.
    pub fn read(&self) -> io::Result<[u8; BYTES]> {
        let path = match self {
            Self::Given(secret) => return Ok(*secret),
            Self::File(path) => path,
        };
        check(&fs::symlink_metadata(path.parent().unwrap_or(Path::new(".")))?, 0o022)?;
        let mut file = OpenOptions::new().read(true).custom_flags(NO_FOLLOW).open(path)?;
        check(&file.metadata()?, 0o077)?;
        let mut secret = [0; BYTES];
        file.read_exact(&mut secret)?;
        Ok(secret)
    }

    /// Removes the file after all ranks have read it.
    pub fn forget(&self) {
        if let Self::File(path) = self {
            let _ = fs::remove_file(path);
        }
    }
}

/// Refuses to open a symbolic link.
const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

/// Refuses a file of another user, or one that gives others one of these rights.
fn check(found: &fs::Metadata, others: u32) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    match found.uid() == own && found.mode() & others == 0 {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "other users can access it")),
    }
}

fn parse(text: &str) -> Option<[u8; BYTES]> {
    let mut secret = [0; BYTES];
    if text.len() != 2 * BYTES || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in secret.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(secret)
}

/// Computes HMAC-SHA256 (RFC 2104) of these parts, each of which has a fixed length.
pub(super) fn proof(secret: &[u8; BYTES], parts: &[&[u8]]) -> [u8; BYTES] {
    // A key is padded with zeros to a block of SHA-256; one of this size cannot be rejected.
    let mut key = [0; 64];
    key[..BYTES].copy_from_slice(secret);
    let mut code = Hmac::<Sha256>::new(&key.into());
    parts.iter().for_each(|part| code.update(part));
    code.finalize().into_bytes().into()
}

/// Compares two proofs in constant time.
pub(super) fn same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_proof_is_the_hmac_of_its_parts() {
        // printf 'root1234' | openssl dgst -sha256 -mac HMAC -macopt hexkey:0b0b...0b (32 bytes)
        let whole = proof(&[11; BYTES], &[b"root1234"]);
        assert_eq!(whole, proof(&[11; BYTES], &[b"root", b"1234"]));
        assert_eq!(whole[..4], [0x18, 0x27, 0xbc, 0xd8]);
        assert!(same(&whole, &whole));
        assert!(!same(&whole, &proof(&[12; BYTES], &[b"root1234"])));
        assert!(!same(&whole, &whole[..31]));
    }

    #[test]
    fn a_given_secret_is_parsed_and_never_shown() {
        let text = new_secret().unwrap();
        let source = SecretSource::of("x", &|name| (name == SECRET).then(|| text.clone())).unwrap();
        assert_eq!(source.make().unwrap(), source.read().unwrap());
        assert_eq!(format!("{source:?}"), "Given");
        assert_ne!(new_secret().unwrap(), text);
        let error = SecretSource::of("x", &|_| Some("hush".to_owned())).unwrap_err();
        assert!(error.contains("64 hexadecimal") && !error.contains("hush"), "{error}");
    }

    #[test]
    fn a_file_is_private_and_removed_in_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().display().to_string();
        let source = SecretSource::of("s", &|name| (name == "HOME").then(|| home.clone())).unwrap();
        assert!(source.read().is_err());
        assert_eq!(source.make().unwrap(), source.read().unwrap());
        assert_eq!(source.make().unwrap(), source.read().unwrap());
        let path = directory.path().join(".cache/numalab/ranks-s");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(source.read().is_err(), "others may read it");
        source.forget();
        assert!(!path.exists());
    }
}
