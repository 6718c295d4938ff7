use tar::EntryType;

use super::*;
use crate::elf::tests::module_file;
use crate::package::TestPackage;

const RELEASE: &str = "6.1.0-test";
const INFO: &[u8] = b"license=GPL\0";
const MODULE: &str = "lib/modules/6.1.0-test/kernel/a.ko";

/// Creates a cache with the kernel of a package file; its module is not extracted yet.
fn lab(directory: &Path) -> (Cache, KernelChoice) {
    let deb = directory.join("k.deb");
    let package = TestPackage::new()
        .with(EntryType::Regular, &format!("./boot/vmlinuz-{RELEASE}"), "the image")
        .with(EntryType::Regular, &format!("./{MODULE}"), module_file(INFO));
    fs::write(&deb, package.bytes()).unwrap();
    (Cache::at(directory.join("cache")).unwrap(), KernelChoice::File(deb))
}

fn can_run() -> bool {
    let is_there = numalab_host::on_path("dpkg-deb").is_some();
    if !is_there {
        eprintln!("NOT RUN: no dpkg-deb on this machine, which packages are taken apart by");
    }
    is_there
}

#[test]
fn a_kernel_truncated_or_changed_in_the_cache_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let (cache, choice) = lab(directory.path());
    if !can_run() {
        return;
    }
    for damage in ["", "the im", "THE image"] {
        let mut notes = Vec::new();
        let mut note = |text: &str| notes.push(text.to_owned());
        let kernel = Kernel::ensure(&cache, &choice, &mut note).unwrap();
        assert_eq!(kernel.release, RELEASE);
        assert_eq!(fs::read(&kernel.file).unwrap(), b"the image");
        fs::write(&kernel.file, damage).unwrap();
        let kernel = Kernel::ensure(&cache, &choice, &mut note).unwrap();
        assert_eq!(fs::read(&kernel.file).unwrap(), b"the image");
        let said = notes.iter().filter(|note| note.contains("vmlinuz: changed since")).count();
        assert_eq!(said, 1, "{notes:?}");
    }
}

#[test]
fn modules_are_not_taken_out_of_a_package_that_changed_in_the_cache() {
    let directory = tempfile::tempdir().unwrap();
    let (cache, choice) = lab(directory.path());
    if !can_run() {
        return;
    }
    let kernel = Kernel::ensure(&cache, &choice, &mut |_| {}).unwrap();
    let package = kernel.package.clone().unwrap();
    let whole = fs::read(&package).unwrap();
    let mut other = whole.clone();
    let at = other.windows(INFO.len()).position(|part| part == INFO).unwrap();
    other[at] = b'L';
    fs::write(&package, &other).unwrap();
    let error = kernel.modules(&["a"]).unwrap_err();
    assert!(matches!(error, KernelError::Altered { .. }), "{error}");
    fs::write(&package, &whole).unwrap();
    assert_eq!(kernel.modules(&["a"]).unwrap()[0].1, module_file(INFO));
}

#[test]
fn a_package_file_that_never_ends_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (cache, _) = lab(directory.path());
    let endless = directory.path().join("endless.deb");
    std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
    let error = Kernel::ensure(&cache, &KernelChoice::File(endless), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("expected a file"), "{error}");
}
