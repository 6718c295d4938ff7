//! Finds a QEMU with the features that a guest needs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use numalab_host::{Classed, CommandError, on_path, output_of, tool};

use super::abilities::Abilities;
use super::version::Version;
use crate::board::Board;
use numalab_image::package::PackageError;
use numalab_image::{Architecture, Cache, CacheError, EntryKind};

/// The oldest version known to run plain guests, that of Debian 12.
const OLDEST: Version = Version::new(7, 2, 0);
/// The first version with a translator that locks guest code before reading it (QEMU's commit
/// `deba78709ae8`). Earlier, a vCPU could keep running code that another had just changed: Linux
/// patches its own code, and then hung in an `int3` that was no longer in memory.
pub(super) const LOCKS_CODE: Version = Version::new(8, 1, 0);

/// A guest's requirements on QEMU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QemuNeeds {
    pub architecture: Architecture,
    /// The oldest sufficient version, if 7.2 is not.
    pub least_version: Option<Version>,
    /// True if QEMU must load plugins.
    pub plugins: bool,
    /// True if QEMU must have UEFI firmware, the only source of ACPI tables for an aarch64 guest.
    pub firmware: bool,
}

/// A QEMU that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qemu {
    pub program: PathBuf,
    pub version: Version,
    pub abilities: Abilities,
    /// The package directories, for a QEMU that is unpacked in the cache.
    trees: Vec<PathBuf>,
}

/// Reason why there is no suitable QEMU.
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    #[error("no {} on this machine", Board::of(*.architecture).program)]
    Absent { architecture: Architecture },
    #[error("{program} is {version}{}: this guest needs {needs}", if *.plugins { "" } else { " without -plugin" })]
    Unfit {
        architecture: Architecture,
        program: PathBuf,
        version: Version,
        /// True if the program loads plugins.
        plugins: bool,
        needs: String,
    },
    /// The output of `--version` cannot be parsed.
    #[error("{program}: --version gave {answer:?}, expected \"QEMU emulator version N.N.N\"")]
    Version { program: PathBuf, answer: String },
    /// QEMU cannot be run.
    #[error(transparent)]
    Tool(#[from] CommandError),
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A newer QEMU cannot be downloaded.
    #[error(transparent)]
    Package(#[from] PackageError),
}

impl Classed for QemuError {
    fn remedy(&self) -> Option<String> {
        match self {
            Self::Absent { architecture } => {
                let Board { packages, is_pc, .. } = Board::of(*architecture);
                let newer = match is_pc {
                    true => String::new(),
                    false => format!(
                        ", or on Debian 12: numalab guest image --fetch-qemu --arch {}",
                        architecture.name()
                    ),
                };
                Some(format!("apt-get install {}{newer}", packages[0]))
            }
            Self::Unfit { architecture, .. } => Some(format!(
                "use Debian 13's QEMU, or on Debian 12: numalab guest image --fetch-qemu --arch {} \
                 (unpacks Debian's newer one into the cache, installs nothing)",
                architecture.name()
            )),
            Self::Package(error) => error.remedy(),
            _ => None,
        }
    }
}

impl QemuNeeds {
    fn met_by(&self, qemu: &Qemu) -> bool {
        qemu.version >= self.least_version.unwrap_or(OLDEST).max(OLDEST)
            && (qemu.abilities.plugins || !self.plugins)
            && (!self.firmware || qemu.firmware(Board::of(self.architecture)).is_some())
    }

    fn in_words(&self) -> String {
        let version = self.least_version.unwrap_or(OLDEST);
        let firmware = Board::of(self.architecture).firmware.as_ref().filter(|_| self.firmware);
        let firmware = firmware.map(|file| format!("UEFI firmware ({})", file.package));
        let plugins = self.plugins.then(|| "-plugin".to_owned());
        let also: Vec<String> = plugins.into_iter().chain(firmware).collect();
        match also[..] {
            [] => format!("{version} or later"),
            _ => format!("{version} or later with {}", also.join(" and ")),
        }
    }
}

impl Qemu {
    /// Finds the first suitable QEMU: `$NUMALAB_QEMU` for x86-64, the one on the `PATH`, those in
    /// the cache; one with a sound translator is preferred.
    ///
    /// # Errors
    /// [`QemuError`]; [`QemuError::remedy`] gives the remedy.
    pub fn find(cache: &Cache, needs: &QemuNeeds) -> Result<Self, QemuError> {
        let architecture = needs.architecture;
        let named = std::env::var_os("NUMALAB_QEMU");
        if let Some(program) = named.filter(|_| architecture == Architecture::X86_64) {
            return Self::at(PathBuf::from(program), Vec::new())?.checked(needs);
        }
        let installed = match Self::installed_for(architecture) {
            Err(QemuError::Absent { .. }) => None,
            found => Some(found?),
        };
        let best = |qemu: &Self| needs.met_by(qemu) && qemu.locks_code();
        // Each cached version has to be started to be queried, which is avoided if the installed
        // one is good.
        let cached = match installed.as_ref().is_some_and(best) {
            true => Vec::new(),
            false => Self::cached(cache, architecture)?,
        };
        if let Some(qemu) = preferred(installed.iter().chain(&cached), needs) {
            return Ok(qemu.clone());
        }
        installed.ok_or(QemuError::Absent { architecture })?.checked(needs)
    }

    /// Finds the QEMU on the `PATH`.
    ///
    /// # Errors
    /// [`QemuError::Absent`], or an error of `--version`.
    pub fn installed() -> Result<Self, QemuError> {
        Self::installed_for(Architecture::X86_64)
    }

    fn installed_for(architecture: Architecture) -> Result<Self, QemuError> {
        let program = on_path(Board::of(architecture).program);
        Self::at(program.ok_or(QemuError::Absent { architecture })?, Vec::new())
    }

    /// Reports whether its translator is sound with several cpus.
    pub(super) fn locks_code(&self) -> bool {
        self.version >= LOCKS_CODE
    }

    /// Returns a machine's UEFI firmware at its distribution's path.
    pub(crate) fn firmware(&self, board: &Board) -> Option<PathBuf> {
        let prefix = self.program.parent()?.parent()?;
        Some(prefix.join(board.firmware.as_ref()?.file)).filter(|file| file.is_file())
    }

    /// Returns a command that starts QEMU, with the paths that an unpacked one needs to find its
    /// files.
    pub fn command(&self) -> Command {
        command(&self.program, &self.trees)
    }

    /// Queries the program's version and features.
    pub(super) fn at(program: PathBuf, trees: Vec<PathBuf>) -> Result<Self, QemuError> {
        let mut ask = command(&program, &trees);
        ask.arg("--version");
        let answer = output_of(ask, Duration::from_secs(20))?;
        let version = Version::of_output(&answer).ok_or_else(|| QemuError::Version {
            program: program.clone(),
            answer: answer.lines().next().unwrap_or_default().to_owned(),
        })?;
        let abilities = Abilities::ask(&|| command(&program, &trees))?;
        Ok(Self { program, version, abilities, trees })
    }

    fn checked(self, needs: &QemuNeeds) -> Result<Self, QemuError> {
        if needs.met_by(&self) {
            return Ok(self);
        }
        Err(QemuError::Unfit {
            architecture: needs.architecture,
            program: self.program,
            version: self.version,
            plugins: self.abilities.plugins,
            needs: needs.in_words(),
        })
    }

    /// Returns the QEMUs that were unpacked into the cache.
    fn cached(cache: &Cache, architecture: Architecture) -> Result<Vec<Self>, QemuError> {
        let mut found = Vec::new();
        for entry in cache.entries()?.into_iter().rev() {
            if entry.kind == EntryKind::Qemu {
                let tree = cache.path(EntryKind::Qemu, &entry.name);
                let program = tree.join("usr/bin").join(Board::of(architecture).program);
                if program.exists() {
                    found.push(Self::at(program, vec![tree])?);
                }
            }
        }
        Ok(found)
    }
}

/// Returns the first suitable candidate with a sound translator, else the first suitable one.
fn preferred<'a>(
    candidates: impl Iterator<Item = &'a Qemu>,
    needs: &QemuNeeds,
) -> Option<&'a Qemu> {
    // Candidates keep their order, so that the installed one is preferred among equals.
    let fit: Vec<&Qemu> = candidates.filter(|qemu| needs.met_by(qemu)).collect();
    let sound = fit.iter().find(|qemu| qemu.locks_code());
    sound.or(fit.first()).copied()
}

fn command(program: &Path, trees: &[PathBuf]) -> Command {
    let mut command = tool(program, [""; 0]);
    let libraries = trees.iter().map(|tree| tree.join("usr/lib/x86_64-linux-gnu"));
    let libraries: Vec<PathBuf> = libraries.collect();
    // Modules and libraries must be of the unpacked version; the system's may not match.
    if let Some(first) = libraries.first() {
        command.env("QEMU_MODULE_DIR", first.join("qemu"));
        command.env("LD_LIBRARY_PATH", joined(&libraries));
    }
    for tree in trees {
        for data in ["usr/share/qemu", "usr/share/seabios"] {
            command.arg("-L").arg(tree.join(data));
        }
    }
    command
}

fn joined(paths: &[PathBuf]) -> OsString {
    // The cache's paths have no colon: package versions are escaped.
    std::env::join_paths(paths).unwrap_or_default()
}

#[cfg(test)]
impl Qemu {
    /// Creates a QEMU that does not exist.
    pub(super) fn of(version: Version, plugins: bool) -> Self {
        let abilities = Abilities { plugins, ..Abilities::default() };
        Self { program: "/usr/bin/qemu".into(), version, abilities, trees: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qemu(version: Version, plugins: bool) -> Qemu {
        Qemu::of(version, plugins)
    }

    #[test]
    fn a_qemu_is_chosen_by_its_capabilities() {
        let plain = QemuNeeds::default();
        assert!(plain.met_by(&qemu(Version::new(7, 2, 0), false)));
        assert!(!plain.met_by(&qemu(Version::new(6, 2, 0), true)));
        let emulated = QemuNeeds {
            least_version: Some(Version::new(10, 0, 0)),
            plugins: true,
            ..QemuNeeds::default()
        };
        assert!(emulated.met_by(&qemu(Version::new(10, 0, 2), true)));
        assert!(!emulated.met_by(&qemu(Version::new(10, 0, 2), false)));
        assert!(!emulated.met_by(&qemu(Version::new(7, 2, 22), true)));
    }

    #[test]
    fn a_translator_that_can_hang_linux_is_the_last_resort() {
        let (old, new) = (qemu(Version::new(7, 2, 22), true), qemu(Version::new(10, 0, 2), true));
        let plain = QemuNeeds::default();
        assert_eq!(preferred([&old, &new].into_iter(), &plain), Some(&new));
        assert_eq!(preferred([&old].into_iter(), &plain), Some(&old));
        let ancient = qemu(Version::new(6, 2, 0), true);
        assert_eq!(preferred([&ancient].into_iter(), &plain), None);
    }

    #[test]
    fn an_unfit_qemu_is_named_with_the_requirements_and_the_remedy() {
        let needs = QemuNeeds {
            least_version: Some(Version::new(10, 0, 0)),
            plugins: true,
            ..QemuNeeds::default()
        };
        let error = qemu(Version::new(7, 2, 22), true).checked(&needs).unwrap_err();
        let expected = "/usr/bin/qemu is 7.2.22: this guest needs 10.0.0 or later with -plugin";
        assert_eq!(error.to_string(), expected);
        assert!(error.remedy().unwrap().contains("--fetch-qemu --arch x86_64"));
        let on_arm = QemuNeeds { architecture: Architecture::Aarch64, ..needs };
        let error = qemu(Version::new(7, 2, 22), true).checked(&on_arm).unwrap_err();
        assert!(error.remedy().unwrap().contains("--fetch-qemu --arch aarch64"));
    }
}
