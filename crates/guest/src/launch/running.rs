//! A guest that has been started: its process, console, monitor and directory.

use std::fs::{self, File};
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use serde_json::Value;

use super::arguments::{self, System, Wiring};
use super::console::Console;
use super::failure::GuestError;
use super::guest::Launch;
use super::process::{QemuProcess, Streams};
use super::runtime::{GuestDirectory, GuestRecord, Runtime};
use super::serial::SerialWriter;
use super::watch::{Watch, Watched};
use crate::emulator::MemoryEmulator;
use crate::qmp::{PinReport, QmpClient, QmpError};

/// Longest time for an answer of QEMU's monitor, including touching all memory.
const MONITOR_LIMIT: Duration = Duration::from_secs(120);
/// Time within which QEMU must exit after `quit`.
const QUIT_LIMIT: Duration = Duration::from_secs(10);

/// A guest that has been started. Dropping it ends QEMU, then closes the console, then removes the
/// directory.
pub struct Running {
    pub process: QemuProcess,
    pub console: Console,
    directory: GuestDirectory,
}

/// The sockets that QEMU connects to, which listen before it starts.
pub struct Sockets {
    monitor: UnixListener,
    /// The socket of the result channel.
    pub result: Option<UnixListener>,
}

impl Running {
    /// Starts QEMU; the guest's cpus do not run yet.
    pub fn start(
        launch: &Launch,
        runtime: &Runtime,
        system: System,
        command: &[String],
        console_copy: Option<SerialWriter>,
    ) -> Result<(Self, Sockets), GuestError> {
        let directory = runtime.begin(&record(launch, command))?;
        let path = directory.path().to_path_buf();
        let result = match system {
            System::Bare | System::Raw(_) => None,
            System::Linux { .. } => Some(arguments::result(&path)),
        };
        // The sockets listen before QEMU starts: it connects at once, and exits if it cannot.
        let listen = |path: PathBuf| UnixListener::bind(path).map_err(GuestError::Start);
        let sockets = Sockets {
            monitor: listen(arguments::monitor(&path))?,
            result: result.map(listen).transpose()?,
        };
        let console = Console::listen(&arguments::console(&path), console_copy);
        let console = console.map_err(GuestError::Start)?;
        let errors = File::create(path.join(ERRORS)).map_err(GuestError::Start)?;
        if let Some(emulator) = &launch.guest.memory_emulator {
            emulator.prepare(&path).map_err(GuestError::Start)?;
        }
        let mut qemu = launch.qemu.command();
        let wiring = Wiring { directory: path, system };
        qemu.args(launch.arguments(&wiring));
        let streams = match system {
            System::Linux { terminal: true } => Streams::Inherited(errors),
            _ => Streams::None(errors),
        };
        let process = QemuProcess::start(qemu, streams).map_err(GuestError::Start)?;
        let running = Self { process, console, directory };
        Ok((running, sockets))
    }

    /// Connects to QEMU's monitor.
    pub fn monitor(
        &mut self,
        sockets: &Sockets,
        asked: super::StopCheck,
    ) -> Result<QmpClient, GuestError> {
        let stream = self.accept(&sockets.monitor, asked)?;
        QmpClient::over_socket(stream, MONITOR_LIMIT).map_err(|error| self.monitor_failed(error))
    }

    /// Pins the threads by the plan.
    pub fn pin(
        &self,
        launch: &Launch,
        monitor: &mut QmpClient,
    ) -> Result<Option<PinReport>, GuestError> {
        let Some(pins) = &launch.guest.pins else {
            return Ok(None);
        };
        Ok(Some(crate::qmp::apply(monitor, &pins.plan, None, &pins.host)?))
    }

    /// Starts the guest's cpus.
    pub fn go(&mut self, monitor: &mut QmpClient) -> Result<(), GuestError> {
        // QEMU has opened the pipe by now, since its monitor is connected.
        self.console.opened();
        let done = monitor.execute("cont", &Value::Null);
        done.map(drop).map_err(|error| self.monitor_failed(error))
    }

    /// Accepts QEMU's connection to the result socket.
    pub fn channel<'a>(
        &self,
        sockets: &Sockets,
        watch: &'a Watch<'a>,
    ) -> Result<Watched<'a>, GuestError> {
        let missing = || io::Error::from(io::ErrorKind::NotConnected);
        let listener = sockets.result.as_ref().ok_or_else(missing).map_err(GuestError::Start)?;
        let stream = listener.accept().map_err(GuestError::Start)?.0;
        Watched::new(stream, watch).map_err(GuestError::Start)
    }

    /// Tells QEMU to quit, which lets its plugins write their reports, and waits; kills it if it
    /// does not end.
    pub fn quit(&mut self, monitor: &mut QmpClient) {
        // Fails if QEMU has ended already.
        let _ = monitor.execute("quit", &Value::Null);
        if self.process.wait(QUIT_LIMIT).is_none() {
            self.process.kill();
        }
        self.console.finish();
    }

    /// Returns QEMU's exit status if it ends soon; the console is complete then.
    pub fn ended(&mut self, soon: Duration) -> Option<ExitStatus> {
        let status = self.process.wait(soon)?;
        self.console.finish();
        Some(status)
    }

    /// Returns the memory emulator's report, which it writes when QEMU quits.
    pub fn memory_report(&self) -> Option<String> {
        MemoryEmulator::report(self.directory.path()).ok()
    }

    /// Reports whether QEMU's translator logged a triple fault.
    pub fn has_triple_fault(&self) -> bool {
        let text = fs::read_to_string(arguments::resets(self.directory.path()));
        text.is_ok_and(|text| text.lines().any(|line| line == "Triple fault"))
    }

    /// Returns QEMU's standard error.
    pub fn errors(&self) -> String {
        fs::read_to_string(self.directory.path().join(ERRORS)).unwrap_or_default()
    }

    fn accept(
        &mut self,
        listener: &UnixListener,
        asked: super::StopCheck,
    ) -> Result<UnixStream, GuestError> {
        // Polled, since QEMU may exit without ever connecting.
        listener.set_nonblocking(true).map_err(GuestError::Start)?;
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).map_err(GuestError::Start)?;
                    return Ok(stream);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(GuestError::Start(error)),
            }
            if let Some(status) = self.process.wait(Duration::from_millis(2)) {
                let errors = self.errors();
                return Err(GuestError::Refused { status, errors });
            }
            if asked() {
                return Err(GuestError::Stopped);
            }
        }
    }

    fn monitor_failed(&mut self, error: QmpError) -> GuestError {
        // QEMU may open the monitor before it rejects an argument and exits.
        let ended = self.process.wait(Duration::from_millis(500));
        let errors = self.errors();
        match ended {
            Some(status) if !status.success() => GuestError::Refused { status, errors },
            _ => GuestError::Monitor { error, errors },
        }
    }
}

const ERRORS: &str = "qemu.stderr";

fn record(launch: &Launch, command: &[String]) -> GuestRecord {
    let machine = &launch.guest.machine;
    GuestRecord {
        owner: std::process::id(),
        cpus: machine.online_cpus().len(),
        nodes: machine.nodes.len(),
        memory_bytes: machine.memory_bytes(),
        command: command.to_vec(),
    }
}
