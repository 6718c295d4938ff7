//! What is not in the cache yet and must be downloaded before guests can boot.

use std::path::Path;

use numalab_guest::{Accelerator, AcceleratorChoice};
use numalab_image::{Cache, EntryKind, KernelChoice};

use super::BackendError;

/// Every image has a shell out of this package.
const SHELL: &str = "busybox-static";

/// What a backend takes out of the cache.
pub(super) struct Supplies {
    held: Vec<(EntryKind, String)>,
    missing: Vec<String>,
}

impl Supplies {
    /// Reads what the cache has.
    pub(super) fn read(cache: &Cache) -> Result<Self, BackendError> {
        let entries = cache.entries().map_err(|error| BackendError::Failed {
            doing: "reading the cache".to_owned(),
            reason: error.to_string(),
        })?;
        let held = entries.into_iter().map(|entry| (entry.kind, entry.name)).collect();
        Ok(Self { held, missing: Vec::new() })
    }

    /// A guest's kernel is needed; one that is a file is there.
    pub(super) fn need_kernel(&mut self, kernel: &KernelChoice) {
        match kernel {
            KernelChoice::Distribution => self.need(
                EntryKind::Kernel,
                "distribution-",
                "the kernel of this distribution for virtual machines",
            ),
            KernelChoice::Backports => self.need(
                EntryKind::Kernel,
                "backports-",
                "the kernel of Debian's backports for virtual machines",
            ),
            KernelChoice::File(_) => {}
        }
    }

    /// What Xen boots is needed: hypervisor, tools, a kernel that can be its first domain.
    pub(super) fn need_xen(&mut self) {
        let kernel = "the kernel of this distribution for any machine";
        self.need(EntryKind::Kernel, "general-", kernel);
        self.need(EntryKind::Package, "xen-hypervisor-", "package xen-hypervisor");
        self.need(EntryKind::Package, "xen-utils-", "package xen-utils");
    }

    /// The packages of an image are needed.
    pub(super) fn need_packages(&mut self, packages: &[String]) {
        for package in packages.iter().map(String::as_str).chain([SHELL]) {
            self.need(EntryKind::Package, &format!("{package}_"), &format!("package {package}"));
        }
    }

    fn need(&mut self, kind: EntryKind, prefix: &str, what: &str) {
        let holds = |(held, name): &(EntryKind, String)| *held == kind && name.starts_with(prefix);
        if !self.held.iter().any(holds) && !self.missing.iter().any(|missing| missing == what) {
            self.missing.push(what.to_owned());
        }
    }

    /// What must be downloaded.
    pub(super) fn missing(self) -> Vec<String> {
        self.missing
    }
}

/// The accelerator as far as it is known without booting a guest: `None` if KVM must be tried.
pub(super) fn known_accelerator(choice: AcceleratorChoice) -> Option<Accelerator> {
    let no_kvm = || {
        let reason = "/dev/kvm is not there".to_owned();
        Accelerator { reason, ..Accelerator::tcg() }
    };
    match choice {
        AcceleratorChoice::Tcg => Some(Accelerator::tcg()),
        AcceleratorChoice::Auto => (!Path::new("/dev/kvm").exists()).then(no_kvm),
        AcceleratorChoice::Kvm => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_in_the_cache_is_not_downloaded_again() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path()).unwrap();
        let needed = |cache: &Cache| {
            let mut supplies = Supplies::read(cache).unwrap();
            supplies.need_kernel(&KernelChoice::Distribution);
            supplies.need_kernel(&KernelChoice::File("bzImage".into()));
            supplies.need_packages(&["sysbench".to_owned(), "sysbench".to_owned()]);
            supplies.missing()
        };
        let kernel = "the kernel of this distribution for virtual machines";
        assert_eq!(needed(&cache), [kernel, "package sysbench", "package busybox-static"]);
        let held =
            [(EntryKind::Kernel, "distribution-linux_6"), (EntryKind::Package, "sysbench_1")];
        for (kind, name) in held {
            fs::create_dir_all(cache.path(kind, name)).unwrap();
        }
        assert_eq!(needed(&cache), ["package busybox-static"]);
    }
}
