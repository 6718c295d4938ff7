//! The files that a Xen machine boots: Debian's hypervisor and kernel, and the images of its first
//! domain and of the others, built by our own code and kept in the cache.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use numalab_guest_agent::xen::agent;
use numalab_guest_agent::xen::{DOMAIN_IMAGE, DOMAIN_KERNEL, DOMAIN_MARK};
use numalab_host::Classed;

use numalab_image::build::{Builder, CHANNEL_MODULES};
use numalab_image::package::{self, PackageError, Unpacked};
use numalab_image::vmlinux::{self, VmlinuxError};
use numalab_image::{Cache, CacheError, EntryKind};
use numalab_image::{Contents, Image, ImageError, Kernel, KernelError};

/// The package that depends on the hypervisor's and the tools' packages of this release.
const SYSTEM: &str = "xen-system-amd64";
/// The kernel modules of the first domain that the tools need.
const DOM0_MODULES: [&str; 5] =
    ["xen-evtchn", "xen-gntdev", "xen-gntalloc", "xen-privcmd", "xenfs"];
/// The programs of the first domain.
const TOOLS: [&str; 8] = [
    "xl",
    "xenstored",
    "xenconsoled",
    "xen-init-dom0",
    "xen-mfndump",
    "xen-hptool",
    "xenpm",
    "libxl-save-helper",
];
/// glibc loads it when a thread is cancelled, as in `xl create`; it is not named in any program.
const LOADED_LATER: &str = "libgcc_s.so.1";
/// The files that a Xen machine boots; all of them are in the cache.
#[derive(Clone, Debug)]
pub struct XenFiles {
    /// The hypervisor, an ELF file that a multiboot loader accepts.
    pub hypervisor: PathBuf,
    pub version: String,
    /// The kernel of every domain, uncompressed.
    pub kernel: PathBuf,
    pub release: String,
    /// The first domain's image, which contains the other domains' image.
    pub dom0: PathBuf,
    pub domain: PathBuf,
    /// Size of that image in bytes; it is not compressed.
    pub domain_bytes: u64,
}

/// Reasons why there is nothing to boot.
#[derive(Debug, thiserror::Error)]
pub enum XenFilesError {
    /// A package cannot be obtained.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The kernel cannot be obtained.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// An image cannot be built.
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// There is no kernel in the kernel's file.
    #[error("{path}: {source}")]
    Vmlinux { path: PathBuf, source: VmlinuxError },
    /// A package lacks a file it should have.
    #[error("{tree}: no {expected} in this package")]
    Missing {
        /// The unpacked package.
        tree: PathBuf,
        expected: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Classed for XenFilesError {
    fn remedy(&self) -> Option<String> {
        match self {
            Self::Package(error) => error.remedy(),
            Self::Kernel(error) => error.remedy(),
            Self::Image(error) => error.remedy(),
            _ => None,
        }
    }
}

/// The packages of one release of Xen.
struct Packages {
    hypervisor: Unpacked,
    tools: Unpacked,
}

impl XenFiles {
    /// Returns all files, from the cache or newly built; `contents` are those of every domain but
    /// the first (the process 1 is also that of the first domain).
    pub fn ensure(
        cache: &Cache,
        contents: &Contents,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, XenFilesError> {
        let kernel = Kernel::ensure_general(cache, note)?;
        let _lock = cache.lock()?;
        let packages = Packages::ensure(cache, note)?;
        let vmlinux = vmlinux(cache, &kernel, note)?;
        let domain = domain_image(cache, &kernel, contents, note)?;
        let domain_bytes = domain.len() as u64;
        let kept = Image::keep(cache, &domain, &vmlinux, note)?;
        let domain_file = kept.boot_files().initramfs.clone().unwrap_or_default();
        let dom0 = dom0_image(cache, &kernel, &packages, contents, &vmlinux, domain, note)?;
        let image = Image::keep(cache, &dom0, &vmlinux, note)?;
        let dom0 = image.boot_files().initramfs.clone().unwrap_or_default();
        let (hypervisor, version) = hypervisor(cache, &packages.hypervisor.own)?;
        Ok(Self {
            hypervisor,
            version,
            kernel: vmlinux,
            release: kernel.release,
            dom0,
            domain: domain_file,
            domain_bytes,
        })
    }

    /// Returns the size in bytes of the domains' image with these contents, which are in the cache.
    pub fn domain_bytes_of(cache: &Cache, contents: &Contents) -> Result<u64, XenFilesError> {
        let kernel = Kernel::ensure_general(cache, &mut |_| ())?;
        let _lock = cache.lock()?;
        Ok(domain_image(cache, &kernel, contents, &mut |_| ())?.len() as u64)
    }
}

impl Packages {
    fn ensure(cache: &Cache, note: &mut dyn FnMut(&str)) -> Result<Self, XenFilesError> {
        let (hypervisor, tools) = match known(cache) {
            Some(names) => names,
            None => asked()?,
        };
        Ok(Self {
            hypervisor: package::ensure_with_libraries(cache, &hypervisor, note)?,
            tools: package::ensure_with_libraries(cache, &tools, note)?,
        })
    }
}

/// Returns the names of the packages that are already in the cache, so that apt is not called.
fn known(cache: &Cache) -> Option<(String, String)> {
    let entries = cache.entries().ok()?;
    let name = |prefix: &str| {
        let packages = entries.iter().filter(|entry| entry.kind == EntryKind::Package);
        let found = packages.filter(|entry| entry.name.starts_with(prefix));
        found.max_by_key(|entry| entry.used)?.name.split('_').next().map(ToOwned::to_owned)
    };
    Some((name("xen-hypervisor-4")?, name("xen-utils-4")?))
}

/// Returns the names of the hypervisor's and the tools' packages, which contain Xen's version.
fn asked() -> Result<(String, String), PackageError> {
    let system = package::Archive::host().record(SYSTEM)?;
    let name = |prefix: &str| {
        let names = system.depends.iter().flatten();
        let found = names.into_iter().find(|name| {
            name.strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
        found.cloned().ok_or_else(|| PackageError::Unknown { name: format!("{prefix}VERSION") })
    };
    Ok((name("xen-hypervisor-")?, name("xen-utils-")?))
}

/// Returns the hypervisor, decompressed, because QEMU's multiboot loader does not decompress.
fn hypervisor(cache: &Cache, tree: &Path) -> Result<(PathBuf, String), XenFilesError> {
    let name = tree.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let version = name.split('_').nth(1).unwrap_or_default().to_owned();
    let entry = cache.path(EntryKind::Kernel, &name);
    let file = entry.join("xen.elf");
    if cache.holds(EntryKind::Kernel, &name) {
        return Ok((file, version));
    }
    let compressed =
        only_file(&tree.join("boot"), |name| name.starts_with("xen-") && name.ends_with(".gz"));
    let compressed = compressed.ok_or_else(|| XenFilesError::Missing {
        tree: tree.to_path_buf(),
        expected: "boot/xen-VERSION.gz".to_owned(),
    })?;
    let bytes = read(&compressed)?;
    let mut elf = Vec::new();
    GzDecoder::new(bytes.as_slice())
        .read_to_end(&mut elf)
        .map_err(|source| XenFilesError::Io { path: compressed, source })?;
    keep(cache, &name, "xen.elf", &elf)?;
    Ok((file, version))
}

/// Returns the kernel of the image file, uncompressed.
fn vmlinux(
    cache: &Cache,
    kernel: &Kernel,
    note: &mut dyn FnMut(&str),
) -> Result<PathBuf, XenFilesError> {
    let name = format!("vmlinux-{}", kernel.release);
    let file = cache.path(EntryKind::Kernel, &name).join("vmlinux");
    if cache.holds(EntryKind::Kernel, &name) {
        return Ok(file);
    }
    note("decompressing the kernel");
    let elf = vmlinux::of_bzimage(&read(&kernel.file)?)
        .map_err(|source| XenFilesError::Vmlinux { path: kernel.file.clone(), source })?;
    keep(cache, &name, "vmlinux", &elf)?;
    Ok(file)
}

fn keep(cache: &Cache, name: &str, file: &str, content: &[u8]) -> Result<(), XenFilesError> {
    cache.make(EntryKind::Kernel, name, |directory| {
        let path = directory.join(file);
        fs::write(&path, content).map_err(|source| XenFilesError::Io { path, source })
    })?;
    Ok(())
}

/// Returns the image of the domains other than the first.
fn domain_image(
    cache: &Cache,
    kernel: &Kernel,
    contents: &Contents,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<u8>, XenFilesError> {
    let mut builder = Builder::with_contents(cache, contents, note)?;
    builder.add_text(DOMAIN_MARK, "a domain of numalab\n");
    let modules: Vec<&str> = contents.modules.iter().map(String::as_str).collect();
    builder.add_modules(kernel, &modules)?;
    Ok(builder.finish(cache, note)?)
}

/// Returns the first domain's image: the tools, and the files that the other domains boot.
fn dom0_image(
    cache: &Cache,
    kernel: &Kernel,
    packages: &Packages,
    contents: &Contents,
    vmlinux: &Path,
    domain: Vec<u8>,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<u8>, XenFilesError> {
    let mut builder = Builder::with_contents(cache, &Contents::new(&contents.init), note)?;
    let modules: Vec<&str> = CHANNEL_MODULES.into_iter().chain(DOM0_MODULES).collect();
    builder.add_modules(kernel, &modules)?;
    builder.add_link(agent::PROGRAM, "numalab");
    // Domains have a fixed amount of memory; dom0 does not shrink for them.
    builder.add_text("/etc/xen/xl.conf", "autoballoon=\"off\"\n");
    let tools = &packages.tools;
    let directory = tools_directory(&tools.own)?;
    let place = directory.strip_prefix(&tools.own).unwrap_or(&directory);
    for tool in TOOLS {
        let path = Path::new("/").join(place).join(tool);
        builder.add_program(&path.to_string_lossy(), &directory.join(tool))?;
    }
    builder.want_library(LOADED_LATER);
    builder.search_in([tools.own.clone()].into_iter().chain(tools.dependencies.iter().cloned()));
    builder.add_text(DOMAIN_KERNEL, read(vmlinux)?);
    builder.add_text(DOMAIN_IMAGE, domain);
    Ok(builder.finish(cache, note)?)
}

/// Returns `usr/lib/xen-VERSION/bin` of the unpacked tools.
fn tools_directory(tree: &Path) -> Result<PathBuf, XenFilesError> {
    let versions = fs::read_dir(tree.join("usr/lib")).into_iter().flatten().flatten();
    let bins = versions.map(|entry| entry.path().join("bin"));
    let found = bins.into_iter().find(|bin| bin.join("xl").is_file());
    found.ok_or_else(|| XenFilesError::Missing {
        tree: tree.to_path_buf(),
        expected: "usr/lib/xen-VERSION/bin/xl".to_owned(),
    })
}

fn only_file(directory: &Path, wanted: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let mut files: Vec<PathBuf> = entries
        .filter(|entry| wanted(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files.pop()
}

fn read(path: &Path) -> Result<Vec<u8>, XenFilesError> {
    fs::read(path).map_err(|source| XenFilesError::Io { path: path.to_path_buf(), source })
}
