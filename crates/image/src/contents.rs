//! The requested contents of a guest's initramfs.

use std::env;
use std::path::{Path, PathBuf};

use crate::architecture::Architecture;
use crate::companion::CompanionError;
use numalab_host::{Classed, ErrorClass};

/// Frequently requested programs, with their packages.
const PACKAGES_OF: [(&str, &[&str]); 12] = [
    ("dbench", &["dbench"]),
    ("hwloc-info", &["hwloc-nox"]),
    ("lstopo-no-graphics", &["hwloc-nox"]),
    ("migratepages", &["numactl"]),
    ("numactl", &["numactl"]),
    ("numastat", &["numactl"]),
    ("perf", &["linux-perf"]),
    ("redis-benchmark", &["redis-tools"]),
    ("redis-cli", &["redis-tools"]),
    // A link in one package to a program in the other.
    ("redis-server", &["redis-server", "redis-tools"]),
    ("stress-ng", &["stress-ng"]),
    ("sysbench", &["sysbench"]),
];

/// The modules that bring the memory of CXL devices online, in the order of loading.
pub const CXL_MODULES: [&str; 6] =
    ["cxl_acpi", "cxl_pci", "cxl_mem", "device_dax", "kmem", "dax_cxl"];

/// The requested contents of a guest's initramfs. A shell and the usual small tools (busybox) are
/// always included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The program that runs as process 1: `numalab`, which calls
    /// [`init::main`](numalab_guest_agent::init::main); in the guest it is `/usr/bin/numalab`.
    pub init: PathBuf,
    /// Programs of the host with the libraries they need, at the same path in the guest.
    pub programs: Vec<PathBuf>,
    /// Packages of the distribution, with the libraries that their programs need.
    pub packages: Vec<String>,
    /// Files of the host, with their paths in the guest.
    pub files: Vec<(PathBuf, String)>,
    pub architecture: Architecture,
    /// Kernel modules in addition to those that the guest itself needs.
    pub modules: Vec<String>,
}

/// Reasons why a guest cannot have a program.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentsError {
    #[error("{path}: no such program on this machine; expected an existing file")]
    NoProgram { path: PathBuf },
    #[error("{path}: a program for {}, expected one for {}", .found.name(), .expected.name())]
    OtherProcessor { path: PathBuf, found: Architecture, expected: Architecture },
    #[error("this program's path: {reason}")]
    Own { reason: String },
    /// The numalab for the guest's processor is missing.
    #[error(transparent)]
    Companion(#[from] CompanionError),
    #[error(
        "`{name}`: no package is known for this program; expected one of {}, or a file such \
         as ./{name}",
        PACKAGES_OF.map(|(name, _)| name).join(", ")
    )]
    Unknown { name: String },
}

impl Classed for ContentsError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Own { .. } => ErrorClass::Failed,
            Self::Companion(error) => error.class(),
            _ => ErrorClass::BadInput,
        }
    }

    fn remedy(&self) -> Option<String> {
        let Self::Companion(error) = self else { return None };
        error.remedy()
    }
}

impl Contents {
    /// Creates contents with only this program, as process 1.
    pub fn new(init: impl Into<PathBuf>) -> Self {
        Self { init: init.into(), ..Self::default() }
    }

    /// Creates contents with this program as process 1, or with numalab for the guest's processor.
    ///
    /// # Errors
    /// [`ContentsError`] if there is no such program.
    pub fn own(architecture: Architecture) -> Result<Self, ContentsError> {
        let init = match architecture.own_program() {
            Some(companion) => companion.find()?,
            None => env::current_exe()
                .map_err(|error| ContentsError::Own { reason: error.to_string() })?,
        };
        let contents = Self { architecture, ..Self::new(init) };
        contents.expect_own_processor(&contents.init)?;
        Ok(contents)
    }

    /// Adds the drivers for CXL memory.
    pub fn need_cxl(&mut self) {
        self.modules.extend(CXL_MODULES.map(str::to_owned));
    }

    /// Adds a program by name: one of a known package, or a file.
    ///
    /// # Errors
    /// [`ContentsError`] for any other.
    pub fn add_program(&mut self, program: &str) -> Result<(), ContentsError> {
        if !program.contains('/') && packages_of(program).is_empty() {
            return Err(ContentsError::Unknown { name: program.to_owned() });
        }
        self.need_program(program).map(drop)
    }

    /// Adds the requirements of the command `program`, and returns its name in the guest.
    ///
    /// A path means that file of the host. A bare name means its known package, or otherwise the
    /// guest's program with that name (busybox).
    ///
    /// # Errors
    /// [`ContentsError::NoProgram`] for a path that is not a file;
    /// [`ContentsError::OtherProcessor`].
    pub fn need_program(&mut self, program: &str) -> Result<String, ContentsError> {
        if program.contains('/') {
            return self.need_host_program(Path::new(program));
        }
        for package in packages_of(program) {
            if !self.packages.iter().any(|name| name == package) {
                self.packages.push((*package).to_owned());
            }
        }
        Ok(program.to_owned())
    }

    fn need_host_program(&mut self, path: &Path) -> Result<String, ContentsError> {
        let file = std::path::absolute(path).ok().filter(|path| path.is_file());
        let file = file.ok_or_else(|| ContentsError::NoProgram { path: path.to_path_buf() })?;
        self.expect_own_processor(&file)?;
        let name = file.to_string_lossy().into_owned();
        if !self.programs.contains(&file) {
            self.programs.push(file);
        }
        Ok(name)
    }

    /// Refuses a program for another processor; a script or a 32-bit program does not identify one.
    pub fn expect_own_processor(&self, program: &Path) -> Result<(), ContentsError> {
        let expected = self.architecture;
        // A file that cannot be read now cannot be put into the image either, which reports the
        // reason.
        let found = Architecture::of_file(program).ok().flatten();
        match found.filter(|found| *found != expected) {
            Some(found) => {
                let path = program.to_path_buf();
                Err(ContentsError::OtherProcessor { path, found, expected })
            }
            None => Ok(()),
        }
    }
}

fn packages_of(program: &str) -> &'static [&'static str] {
    let found = PACKAGES_OF.iter().find(|(name, _)| *name == program);
    found.map_or(&[], |(_, packages)| packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_name_adds_its_package_once() {
        let mut contents = Contents::new("/init");
        assert_eq!(contents.need_program("numactl").unwrap(), "numactl");
        contents.need_program("numastat").unwrap();
        assert_eq!(contents.packages, ["numactl"]);
    }

    #[test]
    fn an_unknown_name_is_left_to_the_guest() {
        let mut contents = Contents::new("/init");
        assert_eq!(contents.need_program("cat").unwrap(), "cat");
        assert_eq!(contents, Contents::new("/init"));
    }

    #[test]
    fn a_path_is_a_program_of_the_host() {
        let mut contents = Contents::new("/init");
        let this = env::current_exe().unwrap();
        let name = contents.need_program(this.to_str().unwrap()).unwrap();
        assert_eq!(contents.programs, [PathBuf::from(name)]);
        contents.architecture = Architecture::Aarch64;
        let error = contents.need_program(this.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.ends_with(": a program for x86_64, expected one for aarch64"), "{error}");
        let error = contents.need_program("./no/such").unwrap_err();
        let path = PathBuf::from("./no/such");
        assert_eq!(error, ContentsError::NoProgram { path });
    }
}
