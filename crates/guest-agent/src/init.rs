//! Process 1 of a guest: prepares the system, runs the job it receives, sends back the result, and
//! powers the machine off.
//!
//! The same program is used on both sides: `numalab` calls [`main`] at its very start if
//! [`is_wanted`] returns true.

mod collect;
mod command;
mod cxl;
mod port;
mod setup;
mod terminal;

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use numalab_host::Root;

use crate::protocol::{
    FrameReader, FrameWriter, Hello, Job, Message, TransferError, VERSION, receive_file,
    safe_relative,
};
use crate::xen::{self, agent};

/// The file that marks our own guests, so that `numalab` as process 1 of a container does not act
/// as a guest.
pub const MARK_FILE: &str = "/etc/numalab/guest";
/// The list of modules to load, one path per line, in order.
pub const MODULE_LIST: &str = "/etc/numalab/modules";
/// Directory of the kernel modules in a guest.
pub const MODULE_DIRECTORY: &str = "/usr/lib/numalab/modules";
pub(crate) use command::{PATH, exit_of};
/// Time limit for the guest's channel to appear, and for the host to confirm.
const PATIENCE: Duration = Duration::from_secs(60);

/// The writing end of the channel, shared by the threads that stream output.
type Out = Arc<Mutex<FrameWriter<std::fs::File>>>;

/// The reading end of the channel, shared with the thread that feeds a command.
type In = Arc<Mutex<FrameReader<std::fs::File>>>;

/// Reasons why process 1 could not run its job; they are written to the console.
#[derive(Debug, thiserror::Error)]
enum InitError {
    #[error("{what}: {source}")]
    Step { what: String, source: io::Error },
    #[error(transparent)]
    Transfer(#[from] TransferError),
    #[error("the host sent {0}, expected a job")]
    Unexpected(String),
    #[error("no virtio port is named {0}")]
    NoPort(&'static str),
    #[error(transparent)]
    Xenstore(#[from] xen::xenstore::XenstoreError),
}

/// Returns true if this process is process 1 of one of numalab's guests, or one of its helpers: for
/// terminals, or the agent of Xen's first domain.
pub fn is_wanted() -> bool {
    let ours = std::process::id() == 1 || is_terminal_helper() || agent::is_wanted();
    ours && Path::new(MARK_FILE).exists()
}

/// Runs process 1; never returns.
pub fn main() -> ! {
    if is_terminal_helper() {
        terminal::become_command();
    }
    if agent::is_wanted() {
        agent::main();
    }
    let served = if Path::new(xen::DOMAIN_MARK).exists() { serve_in_domain() } else { serve() };
    if let Err(error) = served {
        // The host shows the console if there is no result.
        let _ = writeln!(io::stderr(), "numalab guest: {error}");
    }
    power_off()
}

fn is_terminal_helper() -> bool {
    let name = std::env::args_os().next().unwrap_or_default();
    name.as_bytes() == terminal::HELPER_NAME.as_bytes()
}

fn serve() -> Result<(), InitError> {
    setup::mount_all()?;
    setup::load_modules()?;
    cxl::bring_online()?;
    let port = port::open(PATIENCE)?;
    let reading = port.try_clone().map_err(step("result channel"))?;
    let mut input = FrameReader::new(reading);
    let out: Out = Arc::new(Mutex::new(FrameWriter::new(port)));
    send(&out, &Message::Hello(hello()))?;
    let job = receive_job(&mut input)?;
    setup::loopback();
    let input: In = Arc::new(Mutex::new(input));
    let exit = command::run(&job, &input, &out)?;
    end_other_processes();
    for path in &job.collect {
        collect::send(path, &out)?;
    }
    send(&out, &Message::Exit(exit))?;
    let sum = lock(&out).checksum();
    send(&out, &Message::End(sum))?;
    // The host records where the guest's threads and memory are, then ends QEMU. If it only closes
    // the channel, the end of input is equivalent.
    let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = Message::receive(&mut input);
    Ok(())
}

/// Serves a domain without a result channel, where jobs come through xenstore.
fn serve_in_domain() -> Result<(), InitError> {
    setup::mount_all()?;
    setup::load_modules()?;
    setup::loopback();
    Ok(xen::domain::serve()?)
}

fn hello() -> Hello {
    let kernel = Root::live().value("proc/sys/kernel/osrelease").unwrap_or_default();
    Hello { version: VERSION, kernel }
}

/// Receives the files that come first, then the job.
fn receive_job(input: &mut FrameReader<std::fs::File>) -> Result<Job, InitError> {
    loop {
        match Message::receive(input).map_err(TransferError::from)? {
            Message::Job(job) => return Ok(job),
            Message::File(header) => {
                let place = safe_relative(Path::new("/"), header.path.trim_start_matches('/'))?;
                receive_file(input, &header, &place)?;
            }
            other => return Err(InitError::Unexpected(format!("{other:?}"))),
        }
    }
}

fn send(out: &Out, message: &Message) -> Result<(), InitError> {
    message.send(&mut lock(out)).map_err(step("result channel"))
}

fn lock(out: &Out) -> std::sync::MutexGuard<'_, FrameWriter<std::fs::File>> {
    out.lock().unwrap_or_else(PoisonError::into_inner)
}

fn step(what: impl Into<String>) -> impl FnOnce(io::Error) -> InitError {
    let what = what.into();
    |source| InitError::Step { what, source }
}

/// Ends the processes that the command left, which would keep the outputs open forever.
fn end_other_processes() {
    use rustix::process::{Pid, Signal, kill_process_group};
    // Outside a guest this would kill every process of the machine.
    if std::process::id() != 1 {
        return;
    }
    // kill(-1): every process but this one (kill(2)). It is fine if there are none.
    let _ = kill_process_group(Pid::INIT, Signal::KILL);
}

fn power_off() -> ! {
    rustix::fs::sync();
    let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
    // Only reached without the right to power off: the kernel panics when process 1 exits, which
    // the host reports.
    std::process::exit(1)
}
