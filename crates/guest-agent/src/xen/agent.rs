//! The agent in the first domain: creates the domains of a plan, finds the nodes of their memory,
//! makes them run the jobs, and reports. Every wait has a limit: a domain that cannot be created,
//! does not respond or dies is reported and left out.

mod create;
mod jobs;
mod places;
mod saved;
mod toolstack;
mod versions;

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use numalab_host::{CommandError, from_json, output_of, tool};

use super::event::{LostPhase, XenEvent};
use super::plan::XenPlan;
use super::xenstore::{Xenstore, XenstoreError};

/// The agent's name in the first domain; it is `numalab` itself.
pub const PROGRAM: &str = "/usr/bin/numalab-xen";
pub const PLAN: &str = "/run/numalab/plan.json";

/// Reasons why the agent gave up; the failure of a single domain is an event instead.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The plan cannot be read.
    #[error("{path}: {source}")]
    Plan { path: String, source: io::Error },
    /// The toolstack cannot be started or does not answer.
    #[error("toolstack: {step}: {source}")]
    Step { step: String, source: io::Error },
    /// This machine is not a first domain of Xen.
    #[error("this machine is not a dom0: {found}")]
    NoDom0 {
        /// The facts that were found.
        found: String,
    },
    /// A tool is missing or failed.
    #[error(transparent)]
    Tool(#[from] CommandError),
    #[error(transparent)]
    Xenstore(#[from] XenstoreError),
    /// The hypervisor does not allow the tools to create domains.
    #[error("{domain}: {reason}")]
    Refused {
        domain: String,
        /// The message of the tools.
        reason: String,
    },
    #[error(
        "{source}; the hypervisor is Xen {hypervisor}, the tools in dom0 are of Xen {tools}: they \
         work only with the same XEN_SYSCTL_INTERFACE_VERSION and XEN_DOMCTL_INTERFACE_VERSION"
    )]
    OtherInterfaces {
        source: Box<AgentError>,
        /// The hypervisor's release, such as `4.20`.
        hypervisor: String,
        tools: String,
    },
    /// The events are no longer received.
    #[error("events: {0}")]
    Events(io::Error),
}

/// The receiver of events as they happen.
pub type Emit<'a> = &'a mut dyn FnMut(XenEvent) -> io::Result<()>;

/// A domain that has been created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CreatedDomain {
    pub index: usize,
    pub name: String,
    pub id: u32,
}

pub(crate) struct Agent<'a> {
    plan: &'a XenPlan,
    emit: Emit<'a>,
    store: Xenstore<UnixStream>,
    began: Instant,
    /// The domains that are still usable.
    made: Vec<CreatedDomain>,
    /// All created domains, to be destroyed at the end.
    leftovers: Vec<CreatedDomain>,
}

/// Checks that this machine is a first domain of Xen.
///
/// # Errors
/// [`AgentError::NoDom0`], with the facts that were found.
pub fn check_dom0() -> Result<(), AgentError> {
    toolstack::check_dom0(Path::new("/"))
}

/// Returns true if this process is the agent.
pub(crate) fn is_wanted() -> bool {
    let name = std::env::args_os().next().unwrap_or_default();
    name.as_bytes() == PROGRAM.as_bytes()
}

/// Runs the agent's program; never returns.
pub(crate) fn main() -> ! {
    let done = read_plan(PLAN).and_then(|plan| {
        run(&plan, &mut |event| {
            let line = serde_json::to_string(&event)?;
            writeln!(io::stdout().lock(), "{line}")
        })
    });
    let code = match done {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(io::stderr().lock(), "numalab: {error}");
            1
        }
    };
    std::process::exit(code)
}

fn read_plan(path: &str) -> Result<XenPlan, AgentError> {
    let failed = |source| AgentError::Plan { path: path.to_owned(), source };
    let text = std::fs::read(path).map_err(failed)?;
    from_json(&text).map_err(|error| failed(error.into()))
}

/// Executes the plan, and destroys every domain that it created.
///
/// # Errors
/// [`AgentError`] if it cannot continue; the failure of a single domain is an event.
pub fn run(plan: &XenPlan, emit: Emit) -> Result<(), AgentError> {
    let began = Instant::now();
    if plan.start_toolstack {
        toolstack::start(plan).map_err(versions::explained)?;
    } else {
        check_dom0()?;
    }
    let store = Xenstore::over(toolstack::connect(plan)?);
    let mut agent = Agent { plan, emit, store, began, made: Vec::new(), leftovers: Vec::new() };
    let done = agent.work();
    agent.destroy_all();
    done.map_err(versions::explained)?;
    let seconds = began.elapsed().as_secs_f64();
    agent.tell(XenEvent::Ended { seconds })
}

impl Agent<'_> {
    fn work(&mut self) -> Result<(), AgentError> {
        let event = toolstack::describe(self.plan, self.began)?;
        self.tell(event)?;
        if self.plan.split_pools {
            self.xl(&["cpupool-numa-split"])?;
            let listed = self.xl(&["cpupool-list", "-c"])?;
            self.tell(XenEvent::Split { listed })?;
        }
        self.prepare_jobs()?;
        self.create_all()?;
        self.wait_until_ready()?;
        self.find_places()?;
        let plan = self.plan;
        for (index, job) in plan.own_jobs.iter().enumerate() {
            self.do_own_job(index, job)?;
        }
        for number in 1..=plan.jobs.len() {
            self.do_job(number)?;
        }
        Ok(())
    }

    fn tell(&mut self, event: XenEvent) -> Result<(), AgentError> {
        (self.emit)(event).map_err(AgentError::Events)
    }

    /// Excludes a domain from the following steps.
    fn lose(
        &mut self,
        name: &str,
        phase: LostPhase,
        reason: impl Into<String>,
    ) -> Result<(), AgentError> {
        self.made.retain(|domain| domain.name != name);
        let event = XenEvent::Lost { domain: name.to_owned(), phase, reason: reason.into() };
        self.tell(event)
    }

    /// Returns the output of `xl`.
    fn xl(&self, arguments: &[&str]) -> Result<String, CommandError> {
        xl(self.plan, arguments)
    }

    /// Destroys the domains, unless the machine ends with the boot.
    fn destroy_all(&mut self) {
        if self.plan.start_toolstack {
            return;
        }
        for domain in std::mem::take(&mut self.leftovers) {
            // A domain that has already ended needs no destruction.
            let _ = self.xl(&["destroy", &domain.id.to_string()]);
        }
    }
}

/// Returns the output of `xl`, within the time limit for one command of the toolstack.
pub fn xl(plan: &XenPlan, arguments: &[&str]) -> Result<String, CommandError> {
    tool_output(plan, "xl", arguments)
}

fn tool_output(plan: &XenPlan, name: &str, arguments: &[&str]) -> Result<String, CommandError> {
    let limit = Duration::from_secs(plan.limits.create_s);
    output_of(tool(tool_path(name), arguments), limit)
}

/// Returns the path of a Xen tool such as `xl`: they are in a directory named after Xen's version,
/// and Debian's commands of these names on the `PATH`, used as a fallback, are scripts around them.
pub fn tool_path(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let xen = versions.filter(|entry| entry.file_name().as_bytes().starts_with(b"xen-"));
    let mut files = xen.map(|entry| entry.path().join("bin").join(name));
    files.find(|file| file.is_file()).unwrap_or_else(|| PathBuf::from(name))
}
