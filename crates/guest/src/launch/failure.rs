//! Failures of guests, and their diagnosis.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use numalab_formats::WriteError;

use super::console::{Console, ConsoleTail};
use super::host_memory::HostMemoryError;
use super::runtime::RuntimeError;
use super::session::SessionError;
use super::watch::{self, Ended, Phase};
use crate::qemu::{AcceleratorError, QemuError};
use crate::qmp::{PinError, QmpError};
use numalab_guest_agent::protocol::{FrameError, TransferError};
use numalab_host::{Classed, ErrorClass};
use numalab_image::{CacheError, ContentsError, ImageError, KernelError};

/// Reason why there is no guest, or no result from it.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// QEMU cannot express the machine.
    #[error(transparent)]
    Machine(#[from] WriteError),
    /// QEMU's machine for the processor cannot express it.
    #[error(transparent)]
    Board(#[from] crate::board::BoardError),
    #[error(
        "--tables {directory}: no SRAT.bin there, expected the files that `numalab machine acpi build \
         -o {directory}` writes"
    )]
    NoTables { directory: PathBuf },
    /// The host cannot provide the memory.
    #[error(transparent)]
    HostMemory(#[from] HostMemoryError),
    /// There is no directory for running guests.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// No suitable QEMU exists.
    #[error(transparent)]
    Qemu(#[from] QemuError),
    /// The requested accelerator is not available.
    #[error(transparent)]
    Accelerator(#[from] AcceleratorError),
    #[error("emulated memory costs: expected the accelerator tcg, not {found}")]
    EmulatorNeedsTcg { found: &'static str },
    /// The memory emulator's plugin is missing.
    #[error(transparent)]
    Plugin(#[from] numalab_image::CompanionError),
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The image could not be built.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A file requested for the image does not exist.
    #[error(transparent)]
    Contents(#[from] ContentsError),
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// QEMU's threads could not be pinned.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// QEMU did not answer on its monitor.
    #[error("{error}{}", shown_errors(.errors))]
    Monitor {
        error: QmpError,
        /// QEMU's standard error.
        errors: String,
    },
    /// QEMU could not be started, or its sockets could not be created.
    #[error("cannot start the guest: {0}")]
    Start(std::io::Error),
    /// QEMU ended before there was a guest.
    #[error("QEMU refused to start ({status}){}", shown_errors(.errors))]
    Refused {
        status: ExitStatus,
        /// QEMU's standard error.
        errors: String,
    },
    /// The guest's kernel panicked.
    #[error("the guest panicked: {line}{console}")]
    Panicked { line: String, console: ConsoleTail },
    #[error("the guest ran out of memory: {line}{console}")]
    OutOfMemory { line: String, console: ConsoleTail },
    #[error(
        "the guest's memory is too small for its image, which must fit into half of it: give it \
         more (--memory, --emulate), or fewer programs{console}"
    )]
    NoRoom { console: ConsoleTail },
    /// The guest exceeded its time limit.
    #[error("the guest {} within {limit:?}{console}", doing(.phase))]
    Hung { phase: Phase, limit: Duration, console: ConsoleTail },
    #[error("QEMU exited while the guest ran ({status}){}{console}", shown_errors(.errors))]
    Died {
        status: ExitStatus,
        /// QEMU's standard error.
        errors: String,
        console: ConsoleTail,
    },
    #[error("the guest ended before it was ready{console}")]
    NotReady { console: ConsoleTail },
    #[error("the guest ended without its end marker{console}")]
    Silent { console: ConsoleTail },
    /// A message on the channel was invalid.
    #[error("{error}{console}")]
    Channel { error: SessionError, console: ConsoleTail },
    /// The user requested the stop.
    #[error("the guest was stopped")]
    Stopped,
}

/// Restarts after an assertion of QEMU: with several translator threads, one occasionally fails in
/// a guest's first moments (10.0.2: `iotlb_to_section`).
const STARTS_AFTER_ASSERTION: usize = 2;
/// Restarts of a guest that never reported: a guest with many cpus under TCG occasionally loses a
/// timer while it boots ("Possible timer handling issue on cpu=5"); then its drivers never finish,
/// or the console stops.
const STARTS_AFTER_NOT_READY: usize = 1;

/// The facts known when a conversation with a guest has failed.
pub struct Evidence<'a> {
    /// The console, read to its end if QEMU has ended.
    pub console: &'a Console,
    /// QEMU's exit status, if it has ended.
    pub status: Option<ExitStatus>,
    /// QEMU's standard error.
    pub errors: String,
    /// True if process 1 had reported.
    pub greeted: bool,
}

impl GuestError {
    /// Returns the number of restarts that are worthwhile after this failure; above 0 only if no
    /// part of the guest's command has run.
    pub(super) fn fresh_starts(&self) -> usize {
        match self {
            Self::NotReady { .. } | Self::Hung { phase: Phase::Boot, .. } => STARTS_AFTER_NOT_READY,
            _ if self.is_an_assertion_of_qemu() => STARTS_AFTER_ASSERTION,
            _ => 0,
        }
    }

    /// Reports whether QEMU failed an internal assertion before the guest reported.
    fn is_an_assertion_of_qemu(&self) -> bool {
        let Self::Refused { status, errors } = self else { return false };
        let aborted = status.signal() == Some(rustix::process::Signal::ABORT.as_raw());
        aborted && errors.contains("Assertion `")
    }

    /// Returns the error that this one wraps, if any.
    fn part(&self) -> Option<&dyn Classed> {
        Some(match self {
            Self::HostMemory(error) => error,
            Self::Runtime(error) => error,
            Self::Qemu(error) => error,
            Self::Accelerator(error) => error,
            Self::Plugin(error) => error,
            Self::Kernel(error) => error,
            Self::Image(error) => error,
            Self::Contents(error) => error,
            Self::Cache(error) => error,
            Self::Pin(error) => error,
            _ => return None,
        })
    }

    /// Returns the end of the guest's console, if there is one.
    pub fn console(&self) -> Option<&ConsoleTail> {
        match self {
            Self::Panicked { console, .. }
            | Self::OutOfMemory { console, .. }
            | Self::NoRoom { console }
            | Self::Hung { console, .. }
            | Self::Died { console, .. }
            | Self::NotReady { console }
            | Self::Silent { console }
            | Self::Channel { console, .. } => Some(console),
            _ => None,
        }
    }
}

impl Classed for GuestError {
    fn class(&self) -> ErrorClass {
        match (self, self.part()) {
            (
                Self::Machine(_)
                | Self::Board(_)
                | Self::EmulatorNeedsTcg { .. }
                | Self::NoTables { .. },
                _,
            ) => ErrorClass::BadInput,
            (_, Some(part)) => part.class(),
            (_, None) => ErrorClass::Failed,
        }
    }

    fn remedy(&self) -> Option<String> {
        self.part()?.remedy()
    }
}

/// Determines the failure from the evidence.
pub fn diagnose(error: SessionError, evidence: Evidence) -> GuestError {
    let console = evidence.console.tail();
    match reason(&error) {
        Some(Ended::Stopped) => return GuestError::Stopped,
        Some(Ended::Deadline { phase, limit }) => {
            return GuestError::Hung { phase, limit, console };
        }
        Some(Ended::Lost) | None => {}
    }
    if evidence.console.has_no_room() {
        return GuestError::NoRoom { console };
    }
    if let Some(line) = evidence.console.panic() {
        return match evidence.console.out_of_memory() {
            Some(line) => GuestError::OutOfMemory { line, console },
            None => GuestError::Panicked { line, console },
        };
    }
    let closed = matches!(
        &error,
        SessionError::Transfer(TransferError::Frame(FrameError::Closed { .. } | FrameError::Io(_)))
    );
    match evidence.status {
        Some(status)
            if closed && !status.success() && !evidence.greeted && console.0.is_empty() =>
        {
            let errors = evidence.errors;
            GuestError::Refused { status, errors }
        }
        Some(status) if closed && !status.success() => {
            GuestError::Died { status, errors: evidence.errors, console }
        }
        Some(_) if closed && !evidence.greeted => GuestError::NotReady { console },
        Some(_) if closed => GuestError::Silent { console },
        _ => GuestError::Channel { error, console },
    }
}

fn reason(error: &SessionError) -> Option<Ended> {
    match error {
        SessionError::Transfer(TransferError::Frame(FrameError::Io(error))) => watch::ended(error),
        _ => None,
    }
}

fn shown_errors(errors: &str) -> String {
    let errors = errors.trim();
    if errors.is_empty() { String::new() } else { format!(": {errors}") }
}

fn doing(phase: &Phase) -> &'static str {
    match phase {
        Phase::Boot => "did not boot",
        Phase::Run => "did not finish its command",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::os::unix::process::ExitStatusExt;

    fn diagnosed(error: io::Error, text: &str, raw_status: Option<i32>) -> GuestError {
        diagnosed_after(false, error, text, raw_status)
    }

    fn diagnosed_after(
        greeted: bool,
        error: io::Error,
        text: &str,
        raw_status: Option<i32>,
    ) -> GuestError {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("console");
        let mut console = Console::listen(&path, None).unwrap();
        std::fs::write(&path, text).unwrap();
        console.finish();
        let error = match error.kind() {
            io::ErrorKind::UnexpectedEof => FrameError::Closed { frames: 3 },
            _ => FrameError::Io(error),
        };
        diagnose(
            error.into(),
            Evidence {
                console: &console,
                status: raw_status.map(ExitStatus::from_raw),
                errors: "could not allocate".to_owned(),
                greeted,
            },
        )
    }

    fn closed() -> io::Error {
        io::ErrorKind::UnexpectedEof.into()
    }

    #[test]
    fn a_panic_is_reported_with_the_console() {
        let text = "a\n[ 1.2] Kernel panic - not syncing: test\n[ 1.3] CPU: 0\n";
        let error = diagnosed(closed(), text, Some(0));
        let shown = error.to_string();
        assert!(matches!(error, GuestError::Panicked { .. }), "{shown}");
        assert!(shown.contains("not syncing: test; the last lines"), "{shown}");
        assert!(shown.ends_with("  | [ 1.3] CPU: 0"), "{shown}");
    }

    #[test]
    fn only_a_guest_that_cannot_have_begun_its_command_is_restarted() {
        assert_eq!(diagnosed(closed(), "booting\n", Some(0)).fresh_starts(), 1);
        assert_eq!(diagnosed_after(true, closed(), "booting\n", Some(0)).fresh_starts(), 0);
        assert_eq!(diagnosed(closed(), "Kernel panic - not syncing\n", Some(0)).fresh_starts(), 0);
        assert_eq!(diagnosed(closed(), "booting\n", Some(9)).fresh_starts(), 0);
        let hung = |phase| {
            let limit = Duration::from_secs(180);
            diagnosed(io::Error::other(Ended::Deadline { phase, limit }), "", None).fresh_starts()
        };
        assert_eq!((hung(Phase::Boot), hung(Phase::Run)), (1, 0));
    }

    #[test]
    fn an_assertion_of_qemu_differs_from_a_refusal() {
        let refused = |raw_status: i32, errors: &str| {
            let (status, errors) = (ExitStatus::from_raw(raw_status), errors.to_owned());
            GuestError::Refused { status, errors }.is_an_assertion_of_qemu()
        };
        let said = "qemu-system-x86_64: system/physmem.c:2678: iotlb_to_section: Assertion \
                    `section_index < d->map.sections_nb' failed.";
        assert!(refused(6, said));
        assert!(!refused(6, "failed to set MSR 0x10a"));
        assert!(!refused(1 << 8, said));
    }

    #[test]
    fn the_causes_of_an_end_are_distinguished() {
        let killed = diagnosed(closed(), "booting\n", Some(9));
        assert!(matches!(killed, GuestError::Died { .. }), "{killed}");
        let refused = diagnosed(closed(), "", Some(1 << 8));
        assert!(refused.to_string().ends_with("could not allocate"), "{refused}");
        assert!(matches!(refused, GuestError::Refused { .. }), "{refused}");
        let not_ready = diagnosed(closed(), "", Some(0));
        assert!(matches!(not_ready, GuestError::NotReady { .. }), "{not_ready}");
        let silent = diagnosed_after(true, closed(), "", Some(0));
        assert!(matches!(silent, GuestError::Silent { .. }), "{silent}");
        let limit = Duration::from_secs(3);
        let phase = Phase::Run;
        let hung = diagnosed(io::Error::other(Ended::Deadline { phase, limit }), "x\n", None);
        assert!(hung.to_string().starts_with("the guest did not finish its command within 3s"));
        let text = "[ 2.9] Initramfs unpacking failed: write error\n";
        let no_room = diagnosed(io::Error::other(Ended::Lost), text, None).to_string();
        assert!(no_room.starts_with("the guest's memory is too small for its image"), "{no_room}");
        let asked = diagnosed(io::Error::other(Ended::Stopped), "", None);
        assert!(matches!(asked, GuestError::Stopped));
        let deadlock = "Out of memory: Killed process 9 (a)\nKernel panic - not syncing: System is deadlocked on memory\n";
        let memory = diagnosed(closed(), deadlock, Some(0));
        assert!(matches!(memory, GuestError::OutOfMemory { .. }), "{memory}");
    }
}
