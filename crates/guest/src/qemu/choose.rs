//! Finds a QEMU that can do what a guest needs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use numalab_host::{CommandError, on_path, output_of};

use super::abilities::Abilities;
use super::version::Version;
use numalab_image::package::PackageError;
use numalab_image::{Architecture, Cache, CacheError, EntryKind};

/// The oldest that plain guests were proven with: Debian 12's.
const OLDEST: Version = Version::new(7, 2, 0);
/// The first whose translator locks guest code before it reads it (QEMU's commit
/// `deba78709ae8`). Before, a vcpu could keep running code that another had just changed:
/// Linux changes its own, and then hung in an `int3` that was no longer in memory.
pub(super) const LOCKS_CODE: Version = Version::new(8, 1, 0);

/// What a guest needs of QEMU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QemuNeeds {
    /// The guest's processor.
    pub architecture: Architecture,
    /// The oldest version that will do, if 7.2 is not enough.
    pub least_version: Option<Version>,
    /// Whether it must load plugins.
    pub plugins: bool,
    /// Whether it must have UEFI firmware: a guest for aarch64 has ACPI tables through it only.
    pub firmware: bool,
}

/// A QEMU that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qemu {
    /// The program.
    pub program: PathBuf,
    /// Its version.
    pub version: Version,
    /// What it can do.
    pub abilities: Abilities,
    /// For one that is unpacked in the cache: where its files are.
    trees: Vec<PathBuf>,
}

/// Why there is no QEMU that will do.
#[derive(Debug, thiserror::Error)]
pub enum QemuError {
    /// There is none at all.
    #[error("no {} on this machine", program_of(*.architecture))]
    Absent {
        /// The guest's processor.
        architecture: Architecture,
    },
    /// Those that are here cannot do what is needed.
    #[error("{program} is {version}{}: this guest needs {needs}", if *.plugins { "" } else { " without -plugin" })]
    Unfit {
        /// The guest's processor.
        architecture: Architecture,
        /// The best that is here.
        program: PathBuf,
        /// Its version.
        version: Version,
        /// Whether it loads plugins.
        plugins: bool,
        /// What is needed, in words.
        needs: String,
    },
    /// The answer to `--version` is not understood.
    #[error("{program}: --version gave {answer:?}, expected \"QEMU emulator version N.N.N\"")]
    Version {
        /// The program.
        program: PathBuf,
        /// Its answer.
        answer: String,
    },
    /// It cannot be run.
    #[error(transparent)]
    Tool(#[from] CommandError),
    /// The cache failed.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A newer one cannot be fetched.
    #[error(transparent)]
    Package(#[from] PackageError),
}

impl QemuError {
    /// What would mend this machine, if it lacks something.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Absent { architecture: Architecture::X86_64 } => {
                Some("apt-get install qemu-system-x86".to_owned())
            }
            Self::Absent { architecture } => Some(format!(
                "apt-get install qemu-system-arm, or on Debian 12: numalab guest image --fetch-qemu \
                 --arch {}",
                architecture.name()
            )),
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
            && (!self.firmware || qemu.firmware().is_some())
    }

    fn in_words(&self) -> String {
        let version = self.least_version.unwrap_or(OLDEST);
        let asked =
            [(self.plugins, "-plugin"), (self.firmware, "UEFI firmware (qemu-efi-aarch64)")];
        let also: Vec<&str> = asked.iter().filter(|(is, _)| *is).map(|(_, what)| *what).collect();
        match also[..] {
            [] => format!("{version} or later"),
            _ => format!("{version} or later with {}", also.join(" and ")),
        }
    }
}

impl Qemu {
    /// The first that will do: `$NUMALAB_QEMU` for x86-64, the one on the `PATH`, those in
    /// the cache; one with a sound translator before one without.
    ///
    /// # Errors
    /// [`QemuError`]; [`QemuError::remedy`] tells what would mend it.
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
        let cached = match installed.as_ref().is_some_and(best) {
            true => Vec::new(),
            false => Self::cached(cache, architecture)?,
        };
        if let Some(qemu) = preferred(installed.iter().chain(&cached), needs) {
            return Ok(qemu.clone());
        }
        installed.ok_or(QemuError::Absent { architecture })?.checked(needs)
    }

    /// The one on the `PATH`.
    ///
    /// # Errors
    /// [`QemuError::Absent`], or it does not say what it is.
    pub fn installed() -> Result<Self, QemuError> {
        Self::installed_for(Architecture::X86_64)
    }

    fn installed_for(architecture: Architecture) -> Result<Self, QemuError> {
        let program = on_path(program_of(architecture));
        Self::at(program.ok_or(QemuError::Absent { architecture })?, Vec::new())
    }

    /// Whether its translator is sound with several cpus.
    pub(super) fn locks_code(&self) -> bool {
        self.version >= LOCKS_CODE
    }

    /// UEFI for aarch64 where its distribution puts it.
    pub(crate) fn firmware(&self) -> Option<PathBuf> {
        let prefix = self.program.parent()?.parent()?;
        Some(prefix.join("share/qemu-efi-aarch64/QEMU_EFI.fd")).filter(|file| file.is_file())
    }

    /// A command that starts it, with what an unpacked one needs to find its files.
    #[must_use]
    pub fn command(&self) -> Command {
        command(&self.program, &self.trees)
    }

    /// Asks the program what it is and can do.
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

    /// Those that were unpacked into the cache.
    fn cached(cache: &Cache, architecture: Architecture) -> Result<Vec<Self>, QemuError> {
        let mut found = Vec::new();
        for entry in cache.entries()?.into_iter().rev() {
            if entry.kind == EntryKind::Qemu {
                let tree = cache.path(EntryKind::Qemu, &entry.name);
                let program = tree.join("usr/bin").join(program_of(architecture));
                if program.exists() {
                    found.push(Self::at(program, vec![tree])?);
                }
            }
        }
        Ok(found)
    }
}

/// The program that is a machine with this processor.
pub(super) const fn program_of(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::X86_64 => "qemu-system-x86_64",
        Architecture::Aarch64 => "qemu-system-aarch64",
    }
}

/// The first that meets the needs and has a sound translator, or else that meets them.
fn preferred<'a>(
    candidates: impl Iterator<Item = &'a Qemu>,
    needs: &QemuNeeds,
) -> Option<&'a Qemu> {
    let fit: Vec<&Qemu> = candidates.filter(|qemu| needs.met_by(qemu)).collect();
    let sound = fit.iter().find(|qemu| qemu.locks_code());
    sound.or(fit.first()).copied()
}

fn command(program: &Path, trees: &[PathBuf]) -> Command {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C");
    let libraries = trees.iter().map(|tree| tree.join("usr/lib/x86_64-linux-gnu"));
    let libraries: Vec<PathBuf> = libraries.collect();
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
    // The cache's own paths hold no colon: package versions are escaped.
    std::env::join_paths(paths).unwrap_or_default()
}

#[cfg(test)]
impl Qemu {
    /// One that is not there.
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
    fn a_qemu_is_chosen_by_what_it_can_do() {
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
    fn a_translator_that_can_hang_linux_is_taken_only_where_there_is_no_better_one() {
        let (old, new) = (qemu(Version::new(7, 2, 22), true), qemu(Version::new(10, 0, 2), true));
        let plain = QemuNeeds::default();
        assert_eq!(preferred([&old, &new].into_iter(), &plain), Some(&new));
        assert_eq!(preferred([&old].into_iter(), &plain), Some(&old));
        let ancient = qemu(Version::new(6, 2, 0), true);
        assert_eq!(preferred([&ancient].into_iter(), &plain), None);
    }

    #[test]
    fn an_unfit_qemu_is_named_with_what_is_needed_and_the_way_to_get_it() {
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
