//! The corpus and its tarballs.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Returns the directory of the corpus, if it exists.
pub fn corpus() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let path = std::env::var_os("NUMALAB_CORPUS").map_or_else(|| beside.into(), PathBuf::from);
    path.join("sysfs/MANIFEST.tsv").exists().then_some(path)
}

/// Parts that the reader never looks at, and that take most of the time to unpack.
const LEFT_OUT: [&str; 12] = [
    "*/sys/block",
    "*/sys/bus",
    "*/sys/class",
    "*/sys/devices/css*",
    "*/sys/devices/pci*",
    "*/sys/fs",
    "*/dev/cpuset",
    "*/acpi_cppc",
    "*/cpufreq",
    "*/cpuidle",
    "*/hotplug",
    "*/power",
];

/// Unpacks a tarball into memory; the directory is removed on drop.
pub fn unpack(tarball: &Path) -> TempDir {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let status = Command::new("tar")
        .arg("--no-same-owner")
        .args(LEFT_OUT.map(|pattern| format!("--exclude={pattern}")))
        .arg("-xf")
        .arg(tarball)
        .arg("-C")
        .arg(directory.path())
        .status()
        .expect("tar is needed: apt-get install tar bzip2 xz-utils");
    assert!(
        status.success(),
        "{}: tar: {status}; apt-get install tar bzip2 xz-utils",
        tarball.display()
    );
    directory
}
