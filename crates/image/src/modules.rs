//! Kernel modules: those in a kernel's package, their dependencies, and their load order.
//!
//! Packages have no `modules.dep` (depmod(8) writes it on installation), so dependencies are read
//! from the modules themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use numalab_host::{Classed, ErrorClass};
use serde::{Deserialize, Serialize};

use super::elf::{self, ElfError};
use crate::contents::CXL_MODULES;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleIndex {
    /// Names of the modules built into the kernel.
    pub built_in: BTreeSet<String>,
    pub modules: BTreeMap<String, Module>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// File in the package, without a leading slash.
    pub path: String,
    /// Names of the modules that must be loaded before this one.
    pub depends: Vec<String>,
}

/// Reasons why modules cannot be obtained.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    #[error("kernel {release} has no module {name:?}")]
    Missing { name: String, release: String },
    /// A module cannot be read.
    #[error("{path}: {source}")]
    Elf {
        /// File in the package.
        path: String,
        source: ElfError,
    },
    /// A module cannot be decompressed.
    #[error("{path}: {source}")]
    Decompress {
        /// File in the package.
        path: String,
        source: io::Error,
    },
}

impl Classed for ModuleError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Missing { .. } if self.remedy().is_none() => ErrorClass::BadInput,
            Self::Missing { .. } => ErrorClass::Lacking,
            Self::Elf { .. } | Self::Decompress { .. } => ErrorClass::Failed,
        }
    }

    fn remedy(&self) -> Option<String> {
        let Self::Missing { name, .. } = self else { return None };
        CXL_MODULES.contains(&name.as_str()).then(|| "--kernel backports".to_owned())
    }
}

impl ModuleIndex {
    /// Adds a file of the kernel's package, if it has information about modules.
    ///
    /// # Errors
    /// [`ModuleError`] for a module that cannot be read.
    pub fn add(&mut self, path: &str, content: &[u8]) -> Result<(), ModuleError> {
        if path.ends_with("/modules.builtin") {
            let text = String::from_utf8_lossy(content);
            self.built_in.extend(text.lines().filter_map(module_name));
            return Ok(());
        }
        let Some(name) = module_name(path) else {
            return Ok(());
        };
        let bytes = decompressed(path, content)?;
        let info = elf::module_info(&bytes)
            .map_err(|source| ModuleError::Elf { path: path.to_owned(), source })?;
        let depends = info.iter().find(|(key, _)| key == "depends");
        let depends = depends.map_or("", |(_, value)| value.as_str());
        let names = depends.split(',').filter(|name| !name.is_empty());
        let module = Module { path: path.to_owned(), depends: names.map(normal).collect() };
        self.modules.insert(name, module);
        Ok(())
    }

    /// Returns the wanted modules and their dependencies, each after those it needs. Modules built
    /// into the kernel are left out.
    pub fn load_order(&self, wanted: &[&str], release: &str) -> Result<Vec<&Module>, ModuleError> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for name in wanted {
            self.visit(&normal(name), release, &mut seen, &mut order)?;
        }
        Ok(order)
    }

    fn visit<'a>(
        &'a self,
        name: &str,
        release: &str,
        seen: &mut BTreeSet<String>,
        order: &mut Vec<&'a Module>,
    ) -> Result<(), ModuleError> {
        if self.built_in.contains(name) || !seen.insert(name.to_owned()) {
            return Ok(());
        }
        let module = self.modules.get(name).ok_or_else(|| ModuleError::Missing {
            name: name.to_owned(),
            release: release.to_owned(),
        })?;
        for needed in &module.depends {
            self.visit(needed, release, seen, order)?;
        }
        order.push(module);
        Ok(())
    }
}

/// Returns the name of the module in this file; `None` if it is not a module.
pub fn module_name(path: &str) -> Option<String> {
    let file = path.rsplit('/').next()?;
    let (stem, ending) = file.split_once(".ko")?;
    matches!(ending, "" | ".xz" | ".zst").then(|| normal(stem))
}

/// Normalises a module name: the kernel treats `-` and `_` as the same.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}

/// Returns the module in the form that the kernel loads.
pub fn decompressed(path: &str, content: &[u8]) -> Result<Vec<u8>, ModuleError> {
    let mut bytes = Vec::new();
    let result = if path.ends_with(".xz") {
        lzma_rust2::XzReader::new(content, true).read_to_end(&mut bytes)
    } else if path.ends_with(".zst") {
        ruzstd::decoding::StreamingDecoder::new(content)
            .map_err(io::Error::other)
            .and_then(|mut reader| reader.read_to_end(&mut bytes))
    } else {
        return Ok(content.to_vec());
    };
    result.map_err(|source| ModuleError::Decompress { path: path.to_owned(), source })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::elf::tests::module_file;
    use super::*;

    fn index() -> ModuleIndex {
        let mut index = ModuleIndex::default();
        let mut add = |path: &str, depends: &str| {
            let info = format!("license=GPL\0depends={depends}\0");
            index.add(path, &module_file(info.as_bytes())).unwrap();
        };
        add("lib/modules/6/kernel/virtio-pci.ko", "virtio_ring,virtio");
        add("lib/modules/6/kernel/virtio_ring.ko", "virtio");
        add("lib/modules/6/kernel/virtio.ko", "core");
        index.add("lib/modules/6/modules.builtin", b"kernel/a/core.ko\n").unwrap();
        index
    }

    fn names(modules: &[&Module]) -> Vec<String> {
        modules.iter().filter_map(|module| module_name(&module.path)).collect()
    }

    #[test]
    fn a_module_comes_once_after_all_modules_that_it_needs() {
        let index = index();
        let order = index.load_order(&["virtio_pci", "virtio"], "6").unwrap();
        assert_eq!(names(&order), ["virtio", "virtio_ring", "virtio_pci"]);
    }

    #[test]
    fn built_in_modules_are_not_loaded_and_missing_ones_are_reported() {
        let index = index();
        assert!(index.load_order(&["core"], "6").unwrap().is_empty());
        let error = index.load_order(&["9p"], "6").unwrap_err();
        assert_eq!(error.to_string(), "kernel 6 has no module \"9p\"");
    }

    #[test]
    fn circular_dependencies_do_not_loop() {
        let mut index = ModuleIndex::default();
        index.add("a.ko", &module_file(b"depends=b\0")).unwrap();
        index.add("b.ko", &module_file(b"depends=a\0")).unwrap();
        assert_eq!(names(&index.load_order(&["a"], "6").unwrap()), ["b", "a"]);
    }

    #[test]
    fn compressed_modules_are_read() {
        // printf hello | xz --check=crc32, and | zstd
        let xz = [
            0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00,
            0x21, 0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x04, 0x68,
            0x65, 0x6c, 0x6c, 0x6f, 0x00, 0x00, 0x00, 0x00, 0x86, 0xa6, 0x10, 0x36, 0x00, 0x01,
            0x19, 0x05, 0xbc, 0xe8, 0xec, 0xcb, 0x90, 0x42, 0x99, 0x0d, 0x01, 0x00, 0x00, 0x00,
            0x00, 0x01, 0x59, 0x5a,
        ];
        assert_eq!(decompressed("a.ko.xz", &xz).unwrap(), b"hello");
        let zst = [
            0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x29, 0x00, 0x00, 0x68, 0x65, 0x6c, 0x6c, 0x6f,
            0xa3, 0x6d, 0x9f, 0x88,
        ];
        assert_eq!(decompressed("a.ko.zst", &zst).unwrap(), b"hello");
        assert!(decompressed("a.ko.xz", &xz[..20]).is_err());
        assert!(decompressed("a.ko.zst", &zst[..9]).is_err());
    }
}
