//! The files that are not in the cache yet and must be downloaded before guests can boot.

use crate::architecture::Architecture;
use crate::build::SHELL_PACKAGE;
use crate::cache::{Cache, CacheError, EntryKind};
use crate::kernel::{BACKPORTS, DISTRIBUTION, GENERAL_MACHINE, KernelChoice};

/// The files that guests need from the cache, and those that must be downloaded first.
#[derive(Debug)]
pub struct Supplies {
    architecture: Architecture,
    held: Vec<(EntryKind, String)>,
    missing: Vec<String>,
}

impl Supplies {
    /// Reads the cached files for guests with this processor.
    pub fn read(cache: &Cache, architecture: Architecture) -> Result<Self, CacheError> {
        let held = cache.entries()?.into_iter().map(|entry| (entry.kind, entry.name)).collect();
        Ok(Self { architecture, held, missing: Vec::new() })
    }

    /// Adds a guest's kernel; a kernel that is a file needs no download.
    pub fn need_kernel(&mut self, kernel: &KernelChoice) {
        let (prefix, whose) = match kernel {
            KernelChoice::Distribution => (DISTRIBUTION, "this distribution"),
            KernelChoice::Backports => (BACKPORTS, "Debian's backports"),
            KernelChoice::File(_) => return,
        };
        let what = format!("the kernel of {whose} for virtual machines");
        self.need(EntryKind::Kernel, prefix, &what);
    }

    /// Adds the files for Xen: hypervisor, tools, and a kernel that can be its first domain.
    pub fn need_xen(&mut self) {
        let kernel = "the kernel of this distribution for any machine";
        self.need(EntryKind::Kernel, GENERAL_MACHINE, kernel);
        self.need(EntryKind::Package, "xen-hypervisor-", "package xen-hypervisor");
        self.need(EntryKind::Package, "xen-utils-", "package xen-utils");
    }

    /// Adds the packages of an image.
    pub fn need_packages(&mut self, packages: &[String]) {
        for package in packages.iter().map(String::as_str).chain([SHELL_PACKAGE]) {
            self.need(EntryKind::Package, &format!("{package}_"), &format!("package {package}"));
        }
    }

    fn need(&mut self, kind: EntryKind, prefix: &str, what: &str) {
        let prefix = format!("{}{prefix}", self.architecture.prefix());
        let holds = |(held, name): &(EntryKind, String)| *held == kind && name.starts_with(&prefix);
        let of = self.architecture.foreign().map(|name| format!(" ({name})")).unwrap_or_default();
        let what = format!("{what}{of}");
        if !self.held.iter().any(holds) && !self.missing.contains(&what) {
            self.missing.push(what);
        }
    }

    /// Returns descriptions of the files to download.
    pub fn missing(self) -> Vec<String> {
        self.missing
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn cached_files_are_not_downloaded_again() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path()).unwrap();
        let needed_by = |cache: &Cache, architecture| {
            let mut supplies = Supplies::read(cache, architecture).unwrap();
            supplies.need_kernel(&KernelChoice::Distribution);
            supplies.need_kernel(&KernelChoice::File("bzImage".into()));
            supplies.need_packages(&["sysbench".to_owned(), "sysbench".to_owned()]);
            supplies.missing()
        };
        let needed = |cache: &Cache| needed_by(cache, Architecture::X86_64);
        let kernel = "the kernel of this distribution for virtual machines";
        assert_eq!(needed(&cache), [kernel, "package sysbench", "package busybox-static"]);
        let held =
            [(EntryKind::Kernel, "distribution-linux_6"), (EntryKind::Package, "sysbench_1")];
        for (kind, name) in held {
            fs::create_dir_all(cache.path(kind, name)).unwrap();
        }
        assert_eq!(needed(&cache), ["package busybox-static"]);
        let for_arm = needed_by(&cache, Architecture::Aarch64);
        assert_eq!(for_arm[..2], [format!("{kernel} (arm64)"), "package sysbench (arm64)".into()]);
        fs::create_dir_all(cache.path(EntryKind::Package, "arm64-sysbench_1")).unwrap();
        assert_eq!(needed_by(&cache, Architecture::Aarch64).len(), 2);
    }
}
