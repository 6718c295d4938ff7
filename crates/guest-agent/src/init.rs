//! Process 1 of a guest: prepares the system, does the job it is sent, sends
//! back what came of it, and switches the machine off.
//!
//! The same program serves on both sides: `numalab` calls [`main`] first thing
//! when [`is_wanted`] says so.

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

/// Marks a guest of ours, so that `numalab` as process 1 of a container is not
/// taken for one.
pub const MARK_FILE: &str = "/etc/numalab/guest";
/// The modules to load, one path per line, in order.
pub const MODULE_LIST: &str = "/etc/numalab/modules";
/// Where the modules are.
pub const MODULE_DIRECTORY: &str = "/usr/lib/numalab/modules";
pub(crate) use command::{PATH, exit_of};
/// How long the guest waits for its channel, and for the host to confirm.
const PATIENCE: Duration = Duration::from_secs(60);

/// The writing end of the channel, shared by the threads that stream output.
type Out = Arc<Mutex<FrameWriter<std::fs::File>>>;

/// The reading end of the channel, lent to the thread that feeds a command.
type In = Arc<Mutex<FrameReader<std::fs::File>>>;

/// Why process 1 could not do its job; it is written to the console.
#[derive(Debug, thiserror::Error)]
enum InitError {
    #[error("{what}: {source}")]
    Step { what: String, source: io::Error },
    #[error(transparent)]
    Transfer(#[from] TransferError),
    #[error("the host sent {0} where a job was expected")]
    Unexpected(String),
    #[error("no virtio port is named {0}")]
    NoPort(&'static str),
    #[error(transparent)]
    Xenstore(#[from] xen::xenstore::XenstoreError),
}

/// Whether this process is process 1 of a guest of ours, or one of its helpers: for
/// terminals, or the agent of Xen's first domain.
#[must_use]
pub fn is_wanted() -> bool {
    let ours = std::process::id() == 1 || is_terminal_helper() || agent::is_wanted();
    ours && Path::new(MARK_FILE).exists()
}

/// Does what process 1 does; never returns.
pub fn main() -> ! {
    if is_terminal_helper() {
        terminal::become_command();
    }
    if agent::is_wanted() {
        agent::main();
    }
    let served = if Path::new(xen::DOMAIN_MARK).exists() { serve_in_domain() } else { serve() };
    if let Err(error) = served {
        // The console is what the host shows when there is no result.
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
    // The host looks where everything is, then ends QEMU. If it only closes the
    // channel, this end is as good.
    let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = Message::receive(&mut input);
    Ok(())
}

/// In a domain without a result channel, jobs come through xenstore.
fn serve_in_domain() -> Result<(), InitError> {
    setup::mount_all()?;
    setup::load_modules()?;
    setup::loopback();
    Ok(xen::domain::serve()?)
}

fn hello() -> Hello {
    let read = |path| Root::live().value(path).unwrap_or_default();
    let uptime = read("proc/uptime");
    let seconds = uptime.split(' ').next().unwrap_or_default();
    Hello {
        version: VERSION,
        kernel: read("proc/sys/kernel/osrelease"),
        uptime_s: seconds.parse().unwrap_or_default(),
    }
}

/// Takes the files that come first, then the job.
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

/// What the command left behind would hold the outputs open for ever.
fn end_other_processes() {
    use rustix::process::{Pid, Signal, kill_process_group};
    // Anywhere but in a guest that would be every process of the machine.
    if std::process::id() != 1 {
        return;
    }
    // kill(-1): every process but this one (kill(2)). None being left is fine.
    let _ = kill_process_group(Pid::INIT, Signal::KILL);
}

fn power_off() -> ! {
    rustix::fs::sync();
    let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
    // Only reached without the right to switch off: the kernel panics at our
    // end, which the host reports.
    std::process::exit(1)
}
