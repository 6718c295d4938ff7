//! The guest's kernel: the distribution's, extracted from its package, or a file.

mod error;
mod tiering;

pub use error::KernelError;
pub use tiering::with_tiers;

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::modules::{self, Module, ModuleError, ModuleIndex};
use crate::architecture::Architecture;
use crate::cache::{Cache, EntryKind, altered};
use crate::package::{Archive, PackageError, PackageRecord, backports, each_member, packages_for};
use numalab_guest_agent::sha256;
use numalab_host::bounded::read_file;
use numalab_host::from_json;

/// Packages of kernels for any machine, which can also be the first domain of Xen.
const GENERAL: [&str; 2] = ["linux-image-amd64", "linux-image-generic"];

/// Prefix of the names of kernels in the cache: this distribution's for virtual machines.
pub(crate) const DISTRIBUTION: &str = "distribution-";
/// Prefix of the packages of Debian's backports for virtual machines.
pub(crate) const BACKPORTS: &str = "backports-";
/// Prefix of this distribution's for any machine.
pub(crate) const GENERAL_MACHINE: &str = "general-";

/// Maximum size of a package file in bytes; a kernel package with debugging information has about 1
/// GB.
const MOST_FILE_BYTES: u64 = 2 << 30;
/// The package in a kernel's entry, for modules that are requested later.
const PACKAGE: &str = "package.deb";

/// The source of a kernel's package.
type Source<'a> = &'a dyn Fn(&Cache, &mut dyn FnMut(&str)) -> Result<Archive, PackageError>;

/// The kernel that a guest boots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KernelChoice {
    /// The newest kernel in the distribution's sources.
    #[default]
    Distribution,
    /// The kernel from Debian's backports, for features that the release's kernel lacks.
    Backports,
    /// A Linux image file with virtio and its console built in, or a package of a kernel with its
    /// modules (`.deb`, as `make bindeb-pkg` builds it).
    File(PathBuf),
}

/// A kernel that is ready to boot.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub file: PathBuf,
    /// Release as in `uname -r`, or the file's name for a kernel that is given as a file.
    pub release: String,
    package: Option<PathBuf>,
    index: ModuleIndex,
}

impl Kernel {
    /// Returns the chosen kernel, from the cache, or downloaded and unpacked into it.
    pub fn ensure(
        cache: &Cache,
        choice: &KernelChoice,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, KernelError> {
        Self::ensure_for(cache, choice, Architecture::X86_64, note)
    }

    /// Returns the kernel as [`ensure`](Self::ensure) does, for the processor of a guest.
    pub fn ensure_for(
        cache: &Cache,
        choice: &KernelChoice,
        architecture: Architecture,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, KernelError> {
        let prefix = match choice {
            KernelChoice::File(file) if file.extension().is_some_and(|kind| kind == "deb") => {
                return Self::of_package(cache, file, note)?.checked(file, architecture);
            }
            KernelChoice::File(file) => return Self::of_file(file)?.checked(file, architecture),
            KernelChoice::Distribution => DISTRIBUTION,
            KernelChoice::Backports => BACKPORTS,
        };
        let prefix = format!("{}{prefix}", architecture.prefix());
        let source: Source<'_> = match choice {
            KernelChoice::Backports => &|cache, note| backports(cache, architecture, note),
            _ => &|cache, note| packages_for(cache, architecture, note),
        };
        Self::ensure_packaged(cache, &prefix, architecture.kernel_packages(), source, note)
    }

    /// Returns the distribution's kernel for any machine, with all drivers.
    pub fn ensure_general(cache: &Cache, note: &mut dyn FnMut(&str)) -> Result<Self, KernelError> {
        Self::ensure_packaged(cache, GENERAL_MACHINE, &GENERAL, &|_, _| Ok(Archive::host()), note)
    }

    fn ensure_packaged(
        cache: &Cache,
        prefix: &str,
        metas: &[&str],
        source: Source<'_>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, KernelError> {
        if let Some(known) = Self::newest(cache, prefix, note)? {
            return Ok(known);
        }
        let _lock = cache.lock()?;
        if let Some(known) = Self::newest(cache, prefix, &mut |_| {})? {
            return Ok(known);
        }
        let archive = source(cache, note)?;
        let package = kernel_package(&archive, metas)?;
        Self::fetch(cache, &archive, &package, prefix, note)
    }

    /// Returns these modules and all modules that they need, in load order, as name and content.
    /// They are extracted from the package once, then kept next to it.
    ///
    /// # Errors
    /// [`KernelError`]: a module is missing or unreadable.
    pub fn modules(&self, wanted: &[&str]) -> Result<Vec<(String, Vec<u8>)>, KernelError> {
        let Some(package) = &self.package else {
            return Ok(Vec::new());
        };
        let order = self.index.load_order(wanted, &self.release)?;
        let kept = package.with_file_name("modules");
        let place = |module: &Module| kept.join(module.path.replace('/', "!"));
        if order.iter().any(|module| !place(module).exists()) {
            let entry = package.parent().unwrap_or(package);
            if let Some(path) = altered(entry, &|path| path == Path::new(PACKAGE)) {
                return Err(KernelError::Altered { path, entry: entry.to_path_buf() });
            }
            extract_modules(package, &order, &place)?;
        }
        let mut found = Vec::new();
        for module in order {
            let path = place(module);
            let content = fs::read(&path).map_err(|source| KernelError::Io { path, source })?;
            let name = modules::module_name(&module.path).unwrap_or_default();
            found.push((name, modules::decompressed(&module.path, &content)?));
        }
        Ok(found)
    }

    /// Refuses modules for a kernel that is a single file, which has no modules.
    pub fn expect_modules(&self, wanted: &[String]) -> Result<(), KernelError> {
        match wanted.first() {
            Some(name) if self.package.is_none() => {
                let (name, release) = (name.clone(), self.release.clone());
                Err(ModuleError::Missing { name, release }.into())
            }
            _ => Ok(()),
        }
    }

    /// Refuses the kernel given as `file` if its image is for another processor.
    fn checked(self, file: &Path, expected: Architecture) -> Result<Self, KernelError> {
        let found = Architecture::of_file(&self.file);
        let found = found.map_err(|source| KernelError::Io { path: self.file.clone(), source })?;
        match found.filter(|found| *found != expected) {
            Some(found) => {
                Err(KernelError::OtherProcessor { path: file.to_path_buf(), found, expected })
            }
            None => Ok(self),
        }
    }

    fn of_file(file: &Path) -> Result<Self, KernelError> {
        let io = |source| KernelError::Io { path: file.to_path_buf(), source };
        let file = file.canonicalize().map_err(io)?;
        fs::File::open(&file).map_err(io)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        Ok(Self { release: name.into_owned(), package: None, index: ModuleIndex::default(), file })
    }

    /// Returns the kernel in a package file, unpacked into the cache under its content's hash.
    fn of_package(
        cache: &Cache,
        file: &Path,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, KernelError> {
        let io = |source| KernelError::Io { path: file.to_path_buf(), source };
        let content = read_file(file, MOST_FILE_BYTES).map_err(io)?;
        let name = format!("file-{:.16}", sha256(&content));
        let _lock = cache.lock()?;
        let entry = cache.path(EntryKind::Kernel, &name);
        if !entry.exists() || is_altered(cache, &name, note) {
            note("unpacking the kernel");
            cache.make(EntryKind::Kernel, &name, |directory| {
                let copy = directory.join("copy.deb");
                fs::write(&copy, &content).map_err(io)?;
                unpack(&file.display().to_string(), &copy, directory)
            })?;
        }
        cache.touch(EntryKind::Kernel, &name);
        Self::read(&entry)
    }

    /// Returns the kernel of this kind in the cache; the last by name if there are several.
    fn newest(
        cache: &Cache,
        prefix: &str,
        note: &mut dyn FnMut(&str),
    ) -> Result<Option<Self>, KernelError> {
        let entries = cache.entries()?;
        let ours = |entry: &&crate::cache::CacheEntry| {
            entry.kind == EntryKind::Kernel && entry.name.starts_with(prefix)
        };
        let Some(entry) = entries.iter().filter(ours).max_by_key(|entry| entry.used) else {
            return Ok(None);
        };
        if is_altered(cache, &entry.name, note) {
            return Ok(None);
        }
        Self::read(&cache.path(EntryKind::Kernel, &entry.name)).map(Some)
    }

    fn read(entry: &Path) -> Result<Self, KernelError> {
        let path = entry.join("modules.json");
        let io = |source| KernelError::Io { path: path.clone(), source };
        let text = fs::read(&path).map_err(io)?;
        let (release, index): (String, ModuleIndex) =
            from_json(&text).map_err(|error| io(error.into()))?;
        Ok(Self { file: entry.join("vmlinuz"), release, package: Some(entry.join(PACKAGE)), index })
    }

    fn fetch(
        cache: &Cache,
        archive: &Archive,
        package: &PackageRecord,
        prefix: &str,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, KernelError> {
        note(&format!("downloading kernel {} {}", package.name, package.version));
        let name = format!("{prefix}{}", package.entry_name());
        let entry = cache.make(EntryKind::Kernel, &name, |directory| {
            let deb = archive.download(package, directory)?;
            note("unpacking the kernel");
            unpack(&package.name, &deb, directory)
        })?;
        Self::read(&entry)
    }
}

/// Returns true if the kernel's files have changed in the cache, and notes it. The package is
/// compared only when modules are taken from it, because it is large.
fn is_altered(cache: &Cache, name: &str, note: &mut dyn FnMut(&str)) -> bool {
    let entry = cache.path(EntryKind::Kernel, name);
    let altered = altered(&entry, &|path| path != Path::new(PACKAGE));
    if let Some(file) = &altered {
        note(&format!("{}: changed since it was stored; replaced", file.display()));
    }
    altered.is_some()
}

/// Returns the package with the kernel itself, on which the meta package depends.
fn kernel_package(archive: &Archive, metas: &[&str]) -> Result<PackageRecord, PackageError> {
    let known = archive.show(metas)?;
    let images = known.iter().flat_map(|meta| &meta.depends).flatten();
    let image = images.into_iter().find(|name| name.starts_with("linux-image-"));
    match image {
        Some(name) => archive.record(name),
        None => Err(PackageError::Unknown { name: metas.join(" or ") }),
    }
}

/// Extracts the image and the index of modules from the package, which is kept next to them for
/// modules that are requested later.
fn unpack(package: &str, deb: &Path, directory: &Path) -> Result<(), KernelError> {
    let mut index = ModuleIndex::default();
    let mut image = Vec::new();
    let mut release = String::new();
    let mut broken = None;
    each_member(deb, &mut |member| {
        let path = member.path.as_str();
        if !member.is_file() {
            return Ok(());
        }
        if let Some(name) = path.strip_prefix("boot/vmlinuz-") {
            name.clone_into(&mut release);
            member.entry.read_to_end(&mut image)?;
        } else if path.contains("lib/modules/") {
            let mut bytes = Vec::new();
            member.entry.read_to_end(&mut bytes)?;
            broken = broken.take().or(index.add(path, &bytes).err());
        }
        Ok(())
    })?;
    if let Some(error) = broken {
        return Err(error.into());
    }
    if image.is_empty() {
        return Err(KernelError::NoImage { package: package.to_owned() });
    }
    let write = |name: &str, content: &[u8]| {
        let path = directory.join(name);
        fs::write(&path, content).map_err(|source| KernelError::Io { path, source })
    };
    write("vmlinuz", &image)?;
    let json = serde_json::to_vec(&(release, index))
        .map_err(|error| KernelError::Io { path: directory.to_path_buf(), source: error.into() })?;
    write("modules.json", &json)?;
    let kept = directory.join(PACKAGE);
    fs::rename(deb, &kept).map_err(|source| KernelError::Io { path: kept, source })
}

/// Writes these modules' files to the paths from `place`, each completely or not at all.
fn extract_modules(
    package: &Path,
    wanted: &[&Module],
    place: &dyn Fn(&Module) -> PathBuf,
) -> Result<(), KernelError> {
    each_member(package, &mut |member| {
        let module = wanted.iter().find(|module| module.path == member.path);
        let Some(module) = module.filter(|_| member.is_file()) else {
            return Ok(());
        };
        let done = place(module);
        let directory = done.parent().unwrap_or(Path::new(""));
        fs::create_dir_all(directory)?;
        let mode = fs::Permissions::from_mode(0o666);
        let mut working =
            tempfile::Builder::new().prefix("making-").permissions(mode).tempfile_in(directory)?;
        io::copy(&mut member.entry, &mut working)?;
        working.persist(done).map_err(io::Error::from)?;
        Ok(())
    })?;
    Ok(())
}

#[cfg(test)]
mod tests;
