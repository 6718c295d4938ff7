//! Builds the initramfs: our own process 1, a shell, and the requirements of the workload.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use numalab_host::{Classed, CommandError, ErrorClass, output_of, tool};

use super::contents::Contents;
use super::elf;
use super::kernel::{Kernel, KernelError};
use super::libraries::{self, LibraryError, Roots};
use super::tree::Tree;
use crate::architecture::Architecture;
use crate::cache::{Cache, CacheError, EntryKind};
use crate::package::{self, PackageError, Unpacked};
use numalab_guest_agent::init;
use numalab_guest_agent::sha256;

/// The kernel modules for the result channel.
pub const CHANNEL_MODULES: [&str; 2] = ["virtio_pci", "virtio_console"];
/// The package of a shell and the usual small tools in one static program.
pub(crate) const SHELL_PACKAGE: &str = "busybox-static";
/// Size in bytes of the images above which older ones are removed; those of a Xen machine contain
/// an uncompressed kernel and the image of its domains.
const IMAGES_BYTES: u64 = 640 << 20;
/// Parts of a package that are not needed in a guest.
const LEFT_OUT: [&str; 8] = [
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/lintian",
    "usr/share/bug",
    "usr/share/info",
    "usr/lib/systemd",
    "lib/systemd",
];

/// The files that a guest boots from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootFiles {
    pub kernel: PathBuf,
    /// The initramfs, if the kernel needs one.
    pub initramfs: Option<PathBuf>,
}

/// An initramfs in the cache, with the kernel it was built for.
#[derive(Clone, Debug)]
pub struct Image {
    /// SHA-256 of its content, in hexadecimal.
    pub hash: String,
    /// True if the image was already in the cache.
    pub cached: bool,
    files: BootFiles,
}

/// Reasons why an image cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A package cannot be obtained.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The kernel's modules cannot be obtained.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A library cannot be obtained.
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error(transparent)]
    Tool(#[from] CommandError),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Classed for ImageError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Package(error) => error.class(),
            Self::Kernel(error) => error.class(),
            _ => ErrorClass::Failed,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Package(error) => error.remedy(),
            Self::Kernel(error) => error.remedy(),
            _ => None,
        }
    }
}

impl Image {
    /// Returns the image with these contents for this kernel, from the cache or newly built.
    pub fn ensure(
        cache: &Cache,
        kernel: &Kernel,
        contents: &Contents,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, ImageError> {
        let _lock = cache.lock()?;
        let archive = assemble(cache, kernel, contents, note)?;
        Self::keep(cache, &archive, &kernel.file, note)
    }

    /// Adds a finished archive to the cache under its content's hash; the cache must be locked.
    pub fn keep(
        cache: &Cache,
        archive: &[u8],
        kernel: &Path,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, ImageError> {
        let hash = sha256(archive);
        let entry = cache.path(EntryKind::Image, &hash);
        // Existence is not enough: a crash or another user may have changed what would be booted.
        let cached = fs::read(entry.join(FILE)).is_ok_and(|kept| kept == archive);
        if cached {
            cache.touch(EntryKind::Image, &hash);
        } else {
            note("writing the image");
            cache.make(EntryKind::Image, &hash, |directory| {
                let path = directory.join(FILE);
                fs::write(&path, archive).map_err(|source| ImageError::Io { path, source })
            })?;
            cache.make_room(EntryKind::Image, IMAGES_BYTES, &hash)?;
        }
        let files = BootFiles { kernel: kernel.to_path_buf(), initramfs: Some(entry.join(FILE)) };
        Ok(Self { hash, cached, files })
    }

    pub fn boot_files(&self) -> &BootFiles {
        &self.files
    }
}

const FILE: &str = "initramfs.cpio";

/// Builds the archive; the same contents always give the same bytes.
fn assemble(
    cache: &Cache,
    kernel: &Kernel,
    contents: &Contents,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<u8>, ImageError> {
    let mut builder = Builder::with_contents(cache, contents, note)?;
    kernel.expect_modules(&contents.modules)?;
    let channel = CHANNEL_MODULES.into_iter();
    let modules: Vec<&str> = channel.chain(contents.modules.iter().map(String::as_str)).collect();
    builder.add_modules(kernel, &modules)?;
    builder.finish(cache, note)
}

/// Collects the files of an image.
pub struct Builder {
    tree: Tree,
    /// Programs with libraries that are still to be found: guest path, file.
    programs: Vec<(String, PathBuf)>,
    /// Trees in which to search for libraries.
    trees: Vec<PathBuf>,
    /// Libraries that are not named in a program, but loaded at run time.
    loaded_later: Vec<String>,
    architecture: Architecture,
}

impl Builder {
    /// Starts an image with settings, process 1, and all of `contents` except the kernel's modules.
    pub fn with_contents(
        cache: &Cache,
        contents: &Contents,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, ImageError> {
        let mut builder = Self {
            tree: Tree::new(),
            programs: Vec::new(),
            trees: Vec::new(),
            loaded_later: Vec::new(),
            architecture: contents.architecture,
        };
        builder.add_settings();
        builder.add_init("/usr/bin/numalab", &contents.init)?;
        builder.tree.link("/init", "usr/bin/numalab");
        for program in &contents.programs {
            builder.add_program(&program.to_string_lossy(), program)?;
        }
        for (file, path) in &contents.files {
            builder.add_program(path, file)?;
        }
        for name in &contents.packages {
            let unpacked = package::ensure_unpacked_for(cache, name, contents.architecture, note)?;
            builder.add_package(unpacked)?;
        }
        Ok(builder)
    }

    /// Adds the shell and every library, and writes the archive.
    pub fn finish(
        mut self,
        cache: &Cache,
        note: &mut dyn FnMut(&str),
    ) -> Result<Vec<u8>, ImageError> {
        // The same program for the host, which is run to get the names of its tools.
        let runs_here = package::ensure_unpacked(cache, SHELL_PACKAGE, note)?;
        let shell = package::ensure_unpacked_for(cache, SHELL_PACKAGE, self.architecture, note)?;
        self.add_shell(&shell.own, &runs_here.own)?;
        self.add_libraries()?;
        let io = |source| ImageError::Io { path: PathBuf::from(FILE), source };
        self.tree.write(Vec::new()).map_err(io)
    }

    /// Adds a file with this content.
    pub fn add_text(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.tree.file(path, 0o644, content);
    }

    pub fn add_link(&mut self, path: &str, target: &str) {
        self.tree.link(path, target);
    }

    /// Adds this library although it is not named in a program: it is loaded at run time.
    pub fn want_library(&mut self, name: &str) {
        self.loaded_later.push(name.to_owned());
    }

    /// Adds trees in which to search for libraries.
    pub fn search_in(&mut self, trees: impl IntoIterator<Item = PathBuf>) {
        self.trees.extend(trees);
    }

    fn add_settings(&mut self) {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n";
        self.tree.file("/etc/passwd", 0o644, passwd);
        self.tree.file("/etc/group", 0o644, "root:x:0:\nnogroup:x:65534:\n");
        self.tree.file("/etc/hosts", 0o644, "127.0.0.1 localhost\n");
        self.tree.file(init::MARK_FILE, 0o644, "a guest of numalab\n");
    }

    /// Adds these modules, and all modules that they need, to those that process 1 loads.
    pub fn add_modules(&mut self, kernel: &Kernel, wanted: &[&str]) -> Result<(), ImageError> {
        let mut list = String::new();
        for (name, content) in kernel.modules(wanted)? {
            let path = format!("{}/{name}.ko", init::MODULE_DIRECTORY);
            self.tree.file(&path, 0o644, content);
            let _ = writeln!(list, "{path}");
        }
        self.tree.file(init::MODULE_LIST, 0o644, list);
        Ok(())
    }

    /// Adds process 1 without debugging information, because a debug build is too large for a small
    /// guest.
    fn add_init(&mut self, path: &str, file: &Path) -> Result<(), ImageError> {
        let added = self.tree.host_program(path, file);
        self.added_program(path, file, added)
    }

    /// Adds a file of the host; the libraries of a program are added at the end.
    pub fn add_program(&mut self, path: &str, file: &Path) -> Result<(), ImageError> {
        let added = self.tree.host_file(path, file);
        self.added_program(path, file, added)
    }

    fn added_program(
        &mut self,
        path: &str,
        file: &Path,
        added: io::Result<()>,
    ) -> Result<(), ImageError> {
        added.map_err(|source| ImageError::Io { path: file.to_path_buf(), source })?;
        self.programs.push((path.to_owned(), file.to_path_buf()));
        Ok(())
    }

    fn add_package(&mut self, unpacked: Unpacked) -> Result<(), ImageError> {
        self.add_directory(&unpacked.own, "")?;
        self.trees.push(unpacked.own);
        self.trees.extend(unpacked.dependencies);
        Ok(())
    }

    /// Adds everything below `directory` of the tree `root`, in the order of names.
    fn add_directory(&mut self, root: &Path, directory: &str) -> Result<(), ImageError> {
        let here = root.join(directory);
        let io = |source| ImageError::Io { path: here.clone(), source };
        let entries = fs::read_dir(&here).map_err(io)?;
        let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(io)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
            let kind = entry.file_type().map_err(io)?;
            if LEFT_OUT.contains(&path.as_str()) || path.starts_with(".numalab") {
                continue;
            }
            if kind.is_dir() {
                self.tree.directory(&path);
                self.add_directory(root, &path)?;
            } else if kind.is_symlink() {
                let target = fs::read_link(entry.path()).map_err(io)?;
                self.tree.link(&path, &target.to_string_lossy());
            } else {
                self.add_package_file(format!("/{path}"), entry.path())?;
            }
        }
        Ok(())
    }

    fn add_package_file(&mut self, path: String, file: PathBuf) -> Result<(), ImageError> {
        self.tree
            .host_file(&path, &file)
            .map_err(|source| ImageError::Io { path: file.clone(), source })?;
        if is_program(&file) {
            self.programs.push((path, file));
        }
        Ok(())
    }

    /// Adds busybox under each of its names that no other program has.
    fn add_shell(&mut self, tree: &Path, runs_here: &Path) -> Result<(), ImageError> {
        self.add_program("/usr/bin/busybox", &busybox_in(tree))?;
        let list = tool(busybox_in(runs_here), ["--list"]);
        for name in output_of(list, Duration::from_secs(10))?.lines() {
            self.tree.link(&format!("/usr/bin/{name}"), "busybox");
        }
        Ok(())
    }

    fn add_libraries(&mut self) -> Result<(), ImageError> {
        let mut programs: Vec<_> = self.programs.drain(..).collect();
        let trees = self.trees.drain(..);
        let roots = match self.architecture.foreign() {
            None => Roots::before_host(trees),
            Some(_) => Roots::alone(trees),
        };
        for name in self.loaded_later.drain(..) {
            let (path, file) = libraries::named(&name, &roots)?;
            self.tree
                .host_file(&path, &file)
                .map_err(|source| ImageError::Io { path: file.clone(), source })?;
            programs.push((path, file));
        }
        for (path, file) in libraries::closure(&programs, &roots)? {
            self.tree
                .host_file(&path, &file)
                .map_err(|source| ImageError::Io { path: file.clone(), source })?;
        }
        Ok(())
    }
}

fn busybox_in(tree: &Path) -> PathBuf {
    let [first, second] = ["bin/busybox", "usr/bin/busybox"].map(|place| tree.join(place));
    if second.exists() { second } else { first }
}

/// Returns true for a program for the guest's processor: packages also contain programs for other
/// processors, which are only data here.
fn is_program(file: &Path) -> bool {
    let mut start = [0; 6];
    let read =
        fs::File::open(file).and_then(|mut file| io::Read::read_exact(&mut file, &mut start));
    read.is_ok() && elf::is_readable(&start)
}

#[cfg(test)]
mod tests;
