use std::os::unix::fs::{PermissionsExt, symlink};

use tar::{Builder, Header};

use super::*;

/// A package made for tests, with members that no honest tool would write.
pub(crate) struct Package(Builder<Vec<u8>>);

impl Package {
    pub(crate) fn new() -> Self {
        Self(Builder::new(Vec::new()))
    }

    /// Adds a member with this exact name; `text` is a link's target or a file's content.
    pub(crate) fn with(self, kind: EntryType, name: &str, text: impl AsRef<[u8]>) -> Self {
        let text = text.as_ref();
        let size = if matches!(kind, EntryType::Regular) { text.len() as u64 } else { 0 };
        self.declaring(kind, name, text, size)
    }

    fn declaring(mut self, kind: EntryType, name: &str, text: &[u8], size: u64) -> Self {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o4755);
        header.set_uid(12_345);
        header.set_gid(12_345);
        header.set_size(size);
        if matches!(kind, EntryType::Link | EntryType::Symlink) {
            header.as_old_mut().linkname[..text.len()].copy_from_slice(text);
        }
        header.set_cksum();
        self.0.append(&header, if size == 0 { &[] } else { text }).unwrap();
        self
    }

    /// Adds a member with a name that is too long for a header.
    fn with_long_name(mut self, name: &[u8]) -> Self {
        self.0.append_pax_extensions([("path", name)]).unwrap();
        self.with(EntryType::Regular, "short", "x")
    }

    /// Returns the package's bytes: deb(5), an archive of ar(5).
    pub(crate) fn bytes(self) -> Vec<u8> {
        let control = Builder::new(Vec::new()).into_inner().unwrap();
        let data = self.0.into_inner().unwrap();
        let mut deb = b"!<arch>\n".to_vec();
        let parts = [
            ("debian-binary", b"2.0\n".as_slice()),
            ("control.tar", &control),
            ("data.tar", &data),
        ];
        for (name, content) in parts {
            let size = content.len();
            let head = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 100_644);
            deb.extend_from_slice(head.as_bytes());
            deb.extend_from_slice(content);
            deb.resize(deb.len().next_multiple_of(2), b'\n');
        }
        deb
    }
}

/// A directory with a target to unpack into, and one outside with a file that must stay unchanged.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Option<Self> {
        if numalab_host::on_path(PROGRAM).is_none() {
            eprintln!("NOT RUN: no {PROGRAM} on this machine, which packages are taken apart by");
            return None;
        }
        let place = Self(tempfile::tempdir().unwrap());
        for directory in ["inside", "outside"] {
            fs::create_dir(place.path(directory)).unwrap();
        }
        fs::write(place.path("outside/file"), "kept").unwrap();
        fs::set_permissions(place.path("outside"), fs::Permissions::from_mode(0o711)).unwrap();
        Some(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn unpack(&self, deb: &[u8]) -> Result<(), PackageError> {
        let file = self.path("a.deb");
        fs::write(&file, deb).unwrap();
        extract(&file, &self.path("inside"))
    }

    /// Returns the reason why the package is rejected, after checking that nothing outside
    /// has changed.
    fn refused(&self, package: Package) -> String {
        let said = self.unpack(&package.bytes()).unwrap_err().to_string();
        assert!(said.contains("a.deb: member \""), "{said}");
        self.assert_untouched();
        said
    }

    fn assert_untouched(&self) {
        let names = |directory: &str| -> Vec<_> {
            let entries = fs::read_dir(self.path(directory)).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        let mut all = names(".");
        all.sort();
        assert_eq!(all, ["a.deb", "inside", "outside"]);
        assert_eq!(names("outside"), ["file"]);
        assert_eq!(fs::read_to_string(self.path("outside/file")).unwrap(), "kept");
        assert_eq!(fs::metadata(self.path("outside")).unwrap().permissions().mode() & 0o777, 0o711);
    }
}

#[test]
fn a_member_with_a_name_that_leads_outside_is_refused_by_its_name() {
    let Some(place) = Place::new() else { return };
    for name in ["../out", "./a/../../out", "/out", "a\nb", "a/\u{1b}[2J"] {
        let said = place.refused(Package::new().with(EntryType::Regular, name, "x"));
        assert!(said.contains(&format!("member {name:?}: expected a name below")), "{said}");
        let said = place.refused(Package::new().with(EntryType::Directory, name, ""));
        assert!(said.contains(&format!("{name:?}")), "{said}");
    }
    let said = place.refused(Package::new().with_long_name(b"a\0b"));
    assert!(said.contains(r#"member "a\0b": expected a name"#), "{said}");
}

#[test]
fn nothing_is_written_through_a_link_of_an_earlier_member() {
    let Some(place) = Place::new() else { return };
    let outside = place.path("outside");
    for target in [outside.to_str().unwrap(), "../outside"] {
        let link = || Package::new().with(EntryType::Symlink, "link", target);
        for (kind, name) in [
            (EntryType::Regular, "link/file"),
            (EntryType::Regular, "link/new/file"),
            (EntryType::Directory, "link/new"),
            (EntryType::Directory, "link/"),
            (EntryType::Symlink, "link/new"),
        ] {
            let said = place.refused(link().with(kind, name, "x"));
            assert!(
                said.contains(&format!("member {name:?}: an earlier member is a link")),
                "{said}"
            );
        }
    }
    let dangling = Package::new().with(EntryType::Symlink, "gone", "../made");
    place.refused(dangling.with(EntryType::Directory, "gone/", ""));
    // A file replaces a link instead of following it.
    let file = outside.join("file");
    let over = Package::new().with(EntryType::Symlink, "f", file.to_str().unwrap());
    place.unpack(&over.with(EntryType::Regular, "f", "new").bytes()).unwrap();
    assert_eq!(fs::read_to_string(place.path("inside/f")).unwrap(), "new");
    place.assert_untouched();
}

#[test]
fn a_hard_link_to_a_file_outside_is_refused() {
    let Some(place) = Place::new() else { return };
    let file = place.path("outside/file");
    for target in [file.to_str().unwrap(), "../outside/file"] {
        let said = place.refused(Package::new().with(EntryType::Link, "hard", target));
        assert!(said.contains("member \"hard\": a hard link to"), "{said}");
    }
    symlink(&file, place.path("inside/soft")).unwrap();
    place.refused(Package::new().with(EntryType::Link, "hard", "soft"));
    assert!(!place.path("inside/hard").exists());
}

#[test]
fn devices_pipes_and_files_of_numalab_are_refused() {
    let Some(place) = Place::new() else { return };
    for kind in [EntryType::Char, EntryType::Block, EntryType::Fifo, EntryType::new(b'Z')] {
        let said = place.refused(Package::new().with(kind, "dev/kmem", ""));
        assert!(said.contains("member \"dev/kmem\": kind"), "{said}");
    }
    for name in ["./.numalab-closure", ".numalab-closure"] {
        let said = place.refused(Package::new().with(EntryType::Regular, name, "../../x"));
        assert!(said.contains("reserved for numalab"), "{said}");
    }
    assert_eq!(fs::read_dir(place.path("inside")).unwrap().count(), 0);
}

#[test]
fn a_member_that_claims_to_be_larger_than_any_file_is_refused_before_it_is_read() {
    let Some(place) = Place::new() else { return };
    for size in [MOST_MEMBER_BYTES + 1, 1 << 62, u64::MAX >> 1] {
        let package = Package::new().declaring(EntryType::Regular, "huge", b"x", size);
        let said = place.refused(package);
        assert!(said.contains(&format!("member \"huge\": {size} bytes, expected at")), "{said}");
    }
}

#[test]
fn a_package_that_is_cut_off_anywhere_is_refused() {
    let Some(place) = Place::new() else { return };
    let long = "x".repeat(3000);
    let whole = Package::new().with(EntryType::Regular, "file", &long).bytes();
    for length in [0, 7, 68, 200, whole.len() - 4000, whole.len() - 512, whole.len() - 1] {
        let said = place.unpack(&whole[..length]).unwrap_err().to_string();
        assert!(said.contains("a.deb: "), "{length}: {said}");
    }
    place.unpack(&whole).unwrap();
    assert_eq!(fs::read_to_string(place.path("inside/file")).unwrap(), long);
}

#[test]
fn links_within_a_package_serve_and_owners_and_changed_users_do_not_come_along() {
    use std::os::unix::fs::MetadataExt;
    let Some(place) = Place::new() else { return };
    let package = Package::new()
        .with(EntryType::Directory, "./", "")
        .with(EntryType::Directory, "./usr/lib/", "")
        .with(EntryType::Symlink, "./lib", "usr/lib")
        .with(EntryType::Directory, "./lib/", "")
        .with(EntryType::Regular, "./lib/a", "text")
        .with(EntryType::Link, "./lib/b", "./usr/lib/a")
        .with(EntryType::Symlink, "./etc/alternative", "/usr/bin/a");
    place.unpack(&package.bytes()).unwrap();
    for name in ["a", "b"] {
        let file = place.path("inside/usr/lib").join(name);
        assert_eq!(fs::read_to_string(&file).unwrap(), "text");
        let data = fs::metadata(&file).unwrap();
        assert_eq!(data.permissions().mode() & 0o7777, 0o755);
        assert_eq!(data.uid(), rustix::process::geteuid().as_raw());
    }
    let link = fs::read_link(place.path("inside/etc/alternative")).unwrap();
    assert_eq!(link, Path::new("/usr/bin/a"));
}
