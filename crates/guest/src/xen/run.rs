//! Boots a Xen machine and executes a plan in it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use numalab_topology::Machine;
use tempfile::NamedTempFile;

use super::files::XenFiles;
use super::memory_map::node_ranges;
use crate::MemoryEmulator;
use crate::{Accelerator, Qemu};
use crate::{Guest, GuestError, Hypervisor, Launch, Limits, Runtime, StopCheck, Task};
use numalab_guest_agent::protocol::{Job, Stream};
use numalab_guest_agent::xen::XenPlan;
use numalab_guest_agent::xen::agent::{self, AgentError};
use numalab_guest_agent::xen::text::{XenInfo, cpupools, xen_info};
use numalab_guest_agent::xen::{DOMAIN_IMAGE, DOMAIN_KERNEL};
use numalab_guest_agent::xen::{DomainAnswer, DomainPlace, LostPhase, XenEvent};
use numalab_image::BootFiles;

/// The cpu model that Xen boots on under TCG; newer models make it crash.
const CPU_MODEL: &str = "qemu64";
/// The cpu model for domains that use hardware virtualisation.
const CPU_MODEL_PVH: &str = "qemu64,+svm,+npt";

/// A machine with Xen on it.
#[derive(Clone, Debug, Default)]
pub struct XenMachine {
    /// Cpus, nodes, memory and distances.
    pub machine: Machine,
    /// The hypervisor's arguments, such as `numa=on` and `dom0_mem=1G`.
    pub arguments: Vec<String>,
    /// True if the machine can run PVH domains.
    pub pvh: bool,
    /// The costs of its memory, if that is emulated.
    pub memory_emulator: Option<MemoryEmulator>,
    /// Time limit from the start of QEMU to the first output of the first domain.
    pub boot_limit: Option<Duration>,
}

#[derive(Clone, Debug, Default)]
pub struct XenReport {
    /// The machine as shown by `xl info -n`.
    pub info: XenInfo,
    /// The lines of the hypervisor's log about NUMA.
    pub log: Vec<String>,
    /// The cpupools, if there is one for every node: name and cpus.
    pub pools: Vec<(String, String)>,
    /// Duration of each domain's creation, in seconds.
    pub created_s: BTreeMap<String, f64>,
    pub places: BTreeMap<String, DomainPlace>,
    pub answers: Vec<DomainAnswer>,
    /// The lost domains, with the phase and the reason.
    pub lost: BTreeMap<String, (LostPhase, String)>,
    /// The memory emulator's report (JSON, `numalab-emulator/1`); phase N is job N, counted from 1.
    pub memory_report: Option<String>,
}

/// Reasons why a plan was not executed.
#[derive(Debug, thiserror::Error)]
pub enum XenError {
    /// The machine failed.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// This machine's own toolstack failed.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The agent in the first domain gave up.
    #[error("the agent in dom0 failed: {said}")]
    GaveUp { said: String },
    /// The agent printed a line that is not an event.
    #[error("the agent in dom0 printed {line:?}: {source}")]
    Event { line: String, source: serde_json::Error },
    /// The plan cannot be passed to the agent.
    #[error("the agent's plan: {0}")]
    Plan(io::Error),
}

impl XenReport {
    pub fn add(&mut self, event: XenEvent) {
        match event {
            XenEvent::Toolstack { info, log, .. } => {
                self.info = xen_info(&info);
                self.log = log;
            }
            XenEvent::Split { listed } => self.pools = cpupools(&listed),
            XenEvent::Created { domain, seconds, .. } => {
                self.created_s.insert(domain, seconds);
            }
            XenEvent::Lost { domain, phase, reason } => {
                self.lost.insert(domain, (phase, reason));
            }
            XenEvent::Placed(place) => {
                self.places.insert(place.domain.clone(), place);
            }
            XenEvent::Answered(answer) => self.answers.push(answer),
            XenEvent::Ended { .. } => {}
        }
    }

    /// Executes a plan on the Xen that this machine itself runs under.
    ///
    /// # Errors
    /// [`XenError::Agent`], for example if the machine is not dom0.
    pub fn of_this_dom0(
        plan: &XenPlan,
        watch: &mut dyn FnMut(&XenEvent),
    ) -> Result<Self, XenError> {
        let mut report = Self::default();
        agent::run(plan, &mut |event| {
            watch(&event);
            report.add(event);
            Ok(())
        })?;
        Ok(report)
    }
}

impl XenMachine {
    /// Checks that QEMU can emulate this machine. Starts nothing.
    pub fn launch(&self, files: &XenFiles, qemu: Qemu) -> Result<Launch, GuestError> {
        let model = if self.pvh { CPU_MODEL_PVH } else { CPU_MODEL };
        let hypervisor = Hypervisor {
            program: files.hypervisor.clone(),
            arguments: self.arguments.clone(),
            cpu_model: model.to_owned(),
        };
        let boot = self.boot_limit.unwrap_or(Duration::from_secs(600));
        let guest = Guest {
            machine: self.machine.clone(),
            hypervisor: Some(hypervisor),
            memory_emulator: self.memory_emulator.clone(),
            limits: Limits { boot, run: None },
            ..Guest::default()
        };
        let boot = BootFiles { kernel: files.kernel.clone(), initramfs: Some(files.dom0.clone()) };
        Launch::plan(guest, qemu, Accelerator::tcg(), &boot)
    }

    /// Returns the plan adapted to our first domain on this machine.
    pub fn fitted(&self, plan: &XenPlan) -> XenPlan {
        XenPlan {
            memory: node_ranges(&self.machine),
            start_toolstack: true,
            charged: self.memory_emulator.is_some(),
            kernel: DOMAIN_KERNEL.to_owned(),
            image: DOMAIN_IMAGE.to_owned(),
            ..plan.clone()
        }
    }
}

/// Boots, executes the plan, and powers off.
///
/// # Errors
/// [`XenError`]; the failure of a single domain is in the report.
pub fn run(
    launch: &Launch,
    runtime: &Runtime,
    plan: &XenPlan,
    watch: &mut dyn FnMut(&XenEvent),
    asked: StopCheck,
) -> Result<XenReport, XenError> {
    let (file, task) = task(plan)?;
    let mut lines = Lines { report: XenReport::default(), watch, rest: Vec::new(), wrong: None };
    let mut said = Vec::new();
    let mut sink = |stream: Stream, bytes: &[u8]| match stream {
        Stream::Out => lines.take(bytes),
        Stream::Err => said.extend_from_slice(bytes),
    };
    let outcome = launch.run(runtime, &task, &mut sink, asked);
    drop(file);
    let outcome = outcome?;
    if !outcome.exit.success() {
        let mut said = String::from_utf8_lossy(&said).trim().to_owned();
        said.push_str(&outcome.complaints.join("; "));
        return Err(XenError::GaveUp { said });
    }
    if let Some((line, source)) = lines.wrong {
        return Err(XenError::Event { line, source });
    }
    Ok(XenReport { memory_report: outcome.memory_report, ..lines.report })
}

/// Returns the agent as a job, with its plan in a file that exists as long as the first value.
fn task(plan: &XenPlan) -> Result<(NamedTempFile, Task), XenError> {
    let text = serde_json::to_vec(plan).map_err(|error| XenError::Plan(error.into()))?;
    let mut file = NamedTempFile::with_prefix("numalab-plan-").map_err(XenError::Plan)?;
    file.write_all(&text).map_err(XenError::Plan)?;
    let send = vec![(file.path().to_path_buf(), agent::PLAN.to_owned())];
    Ok((file, Task { job: Job::new([agent::PROGRAM]), send, results: None }))
}

/// Splits a stream of bytes into events.
struct Lines<'a> {
    report: XenReport,
    watch: &'a mut dyn FnMut(&XenEvent),
    rest: Vec<u8>,
    wrong: Option<(String, serde_json::Error)>,
}

impl Lines<'_> {
    fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            match numalab_host::from_json::<XenEvent>(&line) {
                Ok(event) => {
                    (self.watch)(&event);
                    self.report.add(event);
                }
                Err(source) => {
                    let line = String::from_utf8_lossy(&line).trim().to_owned();
                    self.wrong.get_or_insert((line, source));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_assembled_from_pieces_and_other_lines_are_kept() {
        let mut seen = 0;
        let mut watch = |_: &XenEvent| seen += 1;
        let mut lines = Lines {
            report: XenReport::default(),
            watch: &mut watch,
            rest: Vec::new(),
            wrong: None,
        };
        lines.take(b"{\"created\":{\"domain\":\"d1\",");
        lines.take(b"\"id\":1,\"seconds\":4.5}}\nsomething else\n{\"lost\":{");
        lines.take(b"\"domain\":\"d2\",\"phase\":\"create\",\"reason\":\"full\"}}\n");
        let wrong = lines.wrong.take().unwrap();
        assert_eq!(wrong.0, "something else");
        assert_eq!(lines.report.created_s["d1"], 4.5);
        assert_eq!(lines.report.lost["d2"], (LostPhase::Create, "full".to_owned()));
        drop(lines);
        assert_eq!(seen, 2);
    }

    #[test]
    fn this_machine_is_not_dom0_which_is_reported() {
        let plan = XenPlan::default();
        let error = XenReport::of_this_dom0(&plan, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("is not a dom0"), "{error}");
    }
}
