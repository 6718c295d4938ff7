use numalab_guest_agent::sha256;
use tar::EntryType;

use numalab_host::CommandError;

use super::*;
use crate::package::TestPackage;

const NAME: &str = "numalab-test-package";

/// A mirror in a directory, with one package and the index of it.
struct Mirror(tempfile::TempDir);

impl Mirror {
    fn new() -> Option<Self> {
        for program in ["apt-get", "apt-cache"] {
            if numalab_host::on_path(program).is_none() {
                eprintln!("NOT RUN: no {program} on this machine, which packages come by");
                return None;
            }
        }
        let mirror = Self(tempfile::tempdir().unwrap());
        let deb = TestPackage::new().with(EntryType::Regular, "./usr/bin/a", "program").bytes();
        let (size, hash) = (deb.len(), sha256(&deb));
        let index = format!(
            "Package: {NAME}\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@b>\n\
             Filename: ./a.deb\nSize: {size}\nSHA256: {hash}\nDescription: a test\n\n"
        );
        fs::create_dir(mirror.path("mirror")).unwrap();
        fs::write(mirror.package(), deb).unwrap();
        fs::write(mirror.path("mirror/Packages"), index).unwrap();
        Some(mirror)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn package(&self) -> PathBuf {
        self.path("mirror/a.deb")
    }

    fn archive(&self, options: &str) -> Result<Archive, PackageError> {
        // Files from apt's `copy` method are downloaded, as over a network.
        let line = format!("deb {options} copy:{} ./", self.path("mirror").display());
        let lists = self.path("lists");
        fs::create_dir_all(&lists).unwrap();
        Archive::of_source(&line, &lists, None)
    }

    fn download(&self, archive: &Archive) -> Result<Vec<u8>, PackageError> {
        let record = archive.record(NAME)?;
        let directory = tempfile::tempdir().unwrap();
        archive.download(&record, directory.path()).map(|file| fs::read(file).unwrap())
    }
}

#[test]
fn a_package_that_a_mirror_altered_is_refused() {
    let Some(mirror) = Mirror::new() else { return };
    let archive = mirror.archive("[trusted=yes]").unwrap();
    let whole = fs::read(mirror.package()).unwrap();
    assert_eq!(mirror.download(&archive).unwrap(), whole);
    let mut altered = whole.clone();
    let at = altered.windows(7).position(|part| part == b"program").unwrap();
    altered[at] = b'P';
    let longer = [whole.as_slice(), b"more"].concat();
    for content in [altered.as_slice(), &whole[..whole.len() / 2], &longer, b""] {
        fs::write(mirror.package(), content).unwrap();
        let error = mirror.download(&archive).unwrap_err();
        assert!(matches!(error, PackageError::Tool(CommandError::Failed { .. })), "{error}");
    }
}

#[test]
fn a_mirror_without_a_signature_is_refused() {
    let Some(mirror) = Mirror::new() else { return };
    let keys = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]";
    let error = mirror.archive(keys).unwrap_err().to_string();
    assert!(error.contains("not signed") || error.contains("Release"), "{error}");
    // Signed, but with an unknown key.
    let release = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\nSuite: x\n\
                   -----BEGIN PGP SIGNATURE-----\n\niQ==\n-----END PGP SIGNATURE-----\n";
    fs::write(mirror.path("mirror/InRelease"), release).unwrap();
    assert!(matches!(mirror.archive(keys).unwrap_err(), PackageError::Tool(_)));
}
