//! Chooses KVM where it works and TCG elsewhere, with the reason.
//!
//! `/dev/kvm` can exist and be accessible without being able to run a guest (nested virtualisation
//! that lacks a feature hangs or aborts), so a guest is run for a moment.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::time::Duration;

use numalab_record::study::{AcceleratorReason, KvmFault};

use super::choose::{LOCKS_CODE, Qemu};
use super::version::Version;
use numalab_host::{Classed, CommandError, Interrupt, Ran, Root, from_json, run_command};
use numalab_image::{Cache, CacheError, EntryKind};

/// Limit of the probe: under KVM, a kernel without a root file system panics within a second or
/// two.
const PROBE_LIMIT: Duration = Duration::from_secs(6);
/// The message of that panic.
const GAVE_UP: &str = "Kernel panic - not syncing: VFS";
const DEVICE: &str = "/dev/kvm";
const ANSWER: &str = "fault.json";

/// A QEMU with a translator that can, rarely, hang Linux on several cpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QemuHazard {
    pub version: Version,
    /// The first version without the fault.
    pub fixed_in: Version,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AcceleratorChoice {
    /// KVM if a guest runs under it, else TCG.
    #[default]
    Auto,
    Kvm,
    Tcg,
}

/// The engine that runs the guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceleratorKind {
    /// The processor.
    Kvm,
    /// QEMU's translator.
    Tcg,
}

/// The accelerator in use, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accelerator {
    pub kind: AcceleratorKind,
    pub reason: AcceleratorReason,
}

/// Reason why the requested accelerator is not available.
#[derive(Debug, thiserror::Error)]
pub enum AcceleratorError {
    #[error("KVM was requested but does not work here: {0}")]
    NoKvm(KvmFault),
    /// QEMU cannot be run.
    #[error(transparent)]
    Tool(#[from] CommandError),
    #[error(transparent)]
    Cache(#[from] CacheError),
}

impl Classed for AcceleratorError {
    fn remedy(&self) -> Option<String> {
        matches!(self, Self::NoKvm(_)).then(|| "--accel tcg".to_owned())
    }
}

/// The result of the probe, cached until the next boot: the failure of KVM, if any.
type KvmProbe = Option<KvmFault>;

impl AcceleratorKind {
    /// Returns the value of `-accel`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }

    /// Returns the most capable processor model for this accelerator.
    pub fn cpu_model(self) -> &'static str {
        match self {
            Self::Kvm => "host",
            Self::Tcg => "max",
        }
    }

    /// Returns the warning for a Linux guest with this number of cpus on this QEMU.
    pub fn hazard(self, qemu: &Qemu, cpus: usize) -> Option<QemuHazard> {
        // With a single vCPU no other one can change the code that it runs.
        let translated = self == Self::Tcg && cpus > 1;
        (translated && !qemu.locks_code())
            .then_some(QemuHazard { version: qemu.version, fixed_in: LOCKS_CODE })
    }
}

impl Accelerator {
    /// Returns TCG as requested.
    pub fn tcg() -> Self {
        Self::tcg_for(AcceleratorReason::Requested)
    }

    pub fn tcg_for(reason: AcceleratorReason) -> Self {
        Self { kind: AcceleratorKind::Tcg, reason }
    }

    /// Returns TCG if there is no KVM device; `None` if KVM must be tried.
    pub fn without_device() -> Option<Self> {
        let no_device = || Self::tcg_for(AcceleratorReason::KvmFails(KvmFault::NoDevice));
        (!Path::new(DEVICE).exists()).then(no_device)
    }

    /// Returns the accelerator if it is known without a probe: by request, for lack of KVM, or from
    /// the cached result of this boot of the host.
    ///
    /// # Errors
    /// [`AcceleratorError::NoKvm`] if KVM was requested and is known not to work.
    pub fn known(
        choice: AcceleratorChoice,
        qemu: &Qemu,
        cache: &Cache,
    ) -> Result<Option<Self>, AcceleratorError> {
        if choice == AcceleratorChoice::Tcg {
            return Ok(Some(Self::tcg()));
        }
        if let Some(without) = Self::without_device() {
            return Ok(Some(without).filter(|_| choice == AcceleratorChoice::Auto));
        }
        answered(qemu, cache).map(|answer| Self::of_answer(answer, choice)).transpose()
    }

    fn of_answer(answer: KvmProbe, choice: AcceleratorChoice) -> Result<Self, AcceleratorError> {
        match (answer, choice) {
            (None, _) => {
                let reason = AcceleratorReason::KvmWorks;
                Ok(Self { kind: AcceleratorKind::Kvm, reason })
            }
            (Some(fault), AcceleratorChoice::Kvm) => Err(AcceleratorError::NoKvm(fault)),
            (Some(fault), _) => Ok(Self::tcg_for(AcceleratorReason::KvmFails(fault))),
        }
    }

    /// Chooses the accelerator; KVM is probed with this kernel once per boot of the host.
    ///
    /// # Errors
    /// [`AcceleratorError::NoKvm`] if KVM was requested and does not work.
    pub fn decide(
        choice: AcceleratorChoice,
        qemu: &Qemu,
        kernel: &Path,
        cache: &Cache,
    ) -> Result<Self, AcceleratorError> {
        if choice == AcceleratorChoice::Tcg {
            return Ok(Self::tcg());
        }
        Self::of_answer(probed(qemu, kernel, cache)?, choice)
    }
}

/// Returns the result for this boot of the host, cached or probed now.
fn probed(qemu: &Qemu, kernel: &Path, cache: &Cache) -> Result<KvmProbe, AcceleratorError> {
    // Opened rather than tested for existence: the permission may be missing too.
    if let Err(error) = OpenOptions::new().read(true).write(true).open(DEVICE) {
        return Ok(Some(KvmFault::NotOpened { error: error.to_string() }));
    }
    if let Some(answer) = answered(qemu, cache) {
        return Ok(answer);
    }
    let answer = probe(qemu, kernel)?;
    // The lock is taken only now, so that a hanging probe does not block other commands.
    let _lock = cache.lock()?;
    cache.make(EntryKind::Probe, &entry(qemu), |directory| {
        let path = directory.join(ANSWER);
        let text = serde_json::to_vec(&answer).map_err(std::io::Error::from);
        text.and_then(|text| fs::write(&path, text))
            .map_err(|source| CacheError::Io { path, source })
    })?;
    Ok(answer)
}

/// Returns the cached result for this boot of the host.
fn answered(qemu: &Qemu, cache: &Cache) -> Option<KvmProbe> {
    let kept = fs::read(cache.path(EntryKind::Probe, &entry(qemu)).join(ANSWER)).ok()?;
    from_json(&kept).ok()
}

/// Returns the name of the probe's result in the cache.
fn entry(qemu: &Qemu) -> String {
    // By boot, since kernel modules and firmware settings change with a restart.
    format!("kvm-{}-qemu-{}", Root::live().boot_id(), qemu.version)
}

/// Boots the kernel under KVM until it panics for lack of a root file system.
fn probe(qemu: &Qemu, kernel: &Path) -> Result<KvmProbe, AcceleratorError> {
    let mut command = qemu.command();
    // Without a root file system the kernel panics at the end of its start, which proves that KVM
    // works.
    command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
    command.args(["-machine", "q35", "-accel", "kvm", "-cpu", "host", "-m", "256"]);
    command.args(["-serial", "stdio", "-append", "console=ttyS0 panic=-1"]);
    command.arg("-kernel").arg(kernel);
    match run_command(command, PROBE_LIMIT, &Interrupt::never()) {
        Ok(finished) => Ok(judged(&finished)),
        Err(CommandError::TimedOut { .. }) => {
            Ok(Some(KvmFault::Hung { limit_s: PROBE_LIMIT.as_secs() }))
        }
        Err(error) => Err(error.into()),
    }
}

fn judged(finished: &Ran) -> KvmProbe {
    if finished.stdout.contains(GAVE_UP) {
        return None;
    }
    let first = finished.stderr.lines().find(|line| !line.trim().is_empty());
    let said = first.unwrap_or("it printed nothing");
    Some(KvmFault::Ended { status: finished.status.to_string(), said: said.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qemu::Version;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn finished(output: &str, errors: &str) -> KvmProbe {
        judged(&Ran {
            command: "qemu".to_owned(),
            status: ExitStatus::from_raw(0),
            stdout: output.to_owned(),
            stderr: errors.to_owned(),
            dropped_bytes: 0,
            took: Duration::ZERO,
            left: Vec::new(),
        })
    }

    #[test]
    fn kvm_works_only_if_the_kernel_came_to_its_end() {
        assert_eq!(finished("[ 0.9] Kernel panic - not syncing: VFS: Unable", ""), None);
        let said = "qemu: error: failed to set MSR 0x10a to 0x69".to_owned();
        let aborted = finished("", &format!("\n{said}\n"));
        let status = ExitStatus::from_raw(0).to_string();
        assert_eq!(aborted, Some(KvmFault::Ended { status, said }));
        assert!(finished("Linux version 6.1", "").is_some(), "a start is not enough");
    }

    #[test]
    fn an_answer_that_was_found_before_is_known_without_trying() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path()).unwrap();
        let qemu = Qemu::of(Version::new(7, 2, 22), true);
        assert_eq!(answered(&qemu, &cache), None);
        let answer: KvmProbe = Some(KvmFault::Hung { limit_s: 6 });
        let lock = cache.lock().unwrap();
        let text = serde_json::to_vec(&answer).unwrap();
        let keep = |directory: &Path| {
            let path = directory.join(ANSWER);
            fs::write(&path, &text).map_err(|source| CacheError::Io { path, source })
        };
        cache.make(EntryKind::Probe, &entry(&qemu), keep).unwrap();
        drop(lock);
        assert_eq!(answered(&qemu, &cache), Some(answer.clone()));
        let auto = Accelerator::of_answer(answer.clone(), AcceleratorChoice::Auto).unwrap();
        assert_eq!(auto.kind, AcceleratorKind::Tcg);
        let kvm = Accelerator::of_answer(answer, AcceleratorChoice::Kvm);
        assert!(matches!(kvm, Err(AcceleratorError::NoKvm(KvmFault::Hung { .. }))));
        let tcg = Accelerator::known(AcceleratorChoice::Tcg, &qemu, &cache).unwrap();
        assert_eq!(tcg, Some(Accelerator::tcg()));
    }

    #[test]
    fn a_translator_that_can_hang_linux_is_named_with_the_version_that_fixes_it() {
        let old = Qemu::of(Version::new(7, 2, 22), true);
        let hazard = QemuHazard { version: old.version, fixed_in: Version::new(8, 1, 0) };
        assert_eq!(AcceleratorKind::Tcg.hazard(&old, 8), Some(hazard));
        assert_eq!(AcceleratorKind::Tcg.hazard(&old, 1), None);
        assert_eq!(AcceleratorKind::Kvm.hazard(&old, 8), None);
        let new = Qemu::of(Version::new(10, 0, 2), true);
        assert_eq!(AcceleratorKind::Tcg.hazard(&new, 8), None);
    }
}
