//! A Linux guest under QEMU: knobs inside it, the pages behind its memory, and knobs of the host
//! (`host:NAME`).

mod described;
mod kind;

use std::collections::BTreeMap;
use std::path::absolute;

use numalab_formats::size::format_rounded;
use numalab_guest::{Accelerator, Boot, Guest, HostMemory, HostPages, Launch, Qemu};
use numalab_host::{Interrupt, Root, read_environment};
use numalab_image::{Cache, KernelChoice};
use numalab_record::Environment;
use numalab_record::study::{Evidence, Notice, Observation, Setting, Treatment};
use numalab_study::{
    Backend, BackendError, BackendSpec, Inspection, Preparation, PrepareError, Prepared,
    SampleRequest, Scope,
};
use numalab_topology::Machine;
use numalab_workload::Workload;

use super::agent::{AgentAnswer, Request, Setup};
use super::disturbance_watch::DisturbanceWatch;
use super::downloads::supplies;
use super::exec::{self, PagesSeen};
use super::facts;
use super::guest_launcher::{KERNEL, Launcher, contents, kernel_of, kernels};
use super::guest_machine::GuestSettings;
use super::host::page_evidence;
use super::host_side::{self, BACKING, HOST};
use super::knob_settings::{self, KnobSettings, check_names};
use super::live_guest::{LiveGuest, failed, unexpected_answer};
use super::placement;
pub use described::boots_new_kernel;
pub(super) use kind::KIND;

/// A Linux guest that is to take samples: its settings and its machine.
pub(super) struct LinuxGuest {
    interrupt: Interrupt,
    settings: GuestSettings,
    machine: Machine,
}

/// A Linux guest, prepared for taking samples. It stays up from one treatment to the next unless
/// they differ in what the host provides, or the study asks for a fresh one each time.
struct PreparedLinuxGuest {
    /// Ended before the host's knobs are restored: a pool of huge pages must not shrink under it.
    live: Option<(Outside, LiveGuest)>,
    /// True if a treatment has been applied: a guest booted before that is still fresh.
    is_used: bool,
    knobs: KnobSettings,
    interrupt: Interrupt,
    settings: GuestSettings,
    machine: Machine,
    launcher: Launcher,
    /// The setup that every new guest receives.
    setup: Setup,
    /// The evidence from the last boot, until a treatment is applied.
    boot_evidence: Vec<Evidence>,
    watch: DisturbanceWatch,
}

/// The part of a treatment that the host provides; if it differs, the guest must be booted again.
#[derive(Clone, Debug, PartialEq)]
struct Outside {
    pages: HostPages,
    kernel: KernelChoice,
    knobs: BTreeMap<String, Setting>,
}

impl Outside {
    fn of(guest: &GuestSettings, treatment: &Treatment) -> Result<Self, BackendError> {
        let settings = &treatment.settings;
        let (pages, knobs) = (host_side::pages(settings)?, host_side::knobs(settings));
        Ok(Self { pages, kernel: kernel_of(guest, treatment)?, knobs })
    }
}

impl LinuxGuest {
    pub(super) fn open(spec: &BackendSpec, interrupt: &Interrupt) -> Result<Self, BackendError> {
        let settings: GuestSettings = KIND.read(spec)?;
        let machine = settings.machine()?;
        Ok(Self { interrupt: interrupt.clone(), settings, machine })
    }

    fn prepared(&self, scope: &Scope<'_>) -> Result<PreparedLinuxGuest, BackendError> {
        let accelerator = self.settings.accelerator();
        let contents = contents(&self.settings, &exec::workloads(scope))?;
        let kernels = kernels(&self.settings, scope.treatments)?;
        let guest = self.settings.guest(&self.machine)?;
        let mut launcher = Launcher::prepare(guest, accelerator, &kernels, contents)?;
        for kernel in &kernels {
            launcher.image(kernel)?;
        }
        Ok(PreparedLinuxGuest {
            live: None,
            is_used: false,
            knobs: KnobSettings::prepare(HOST, scope.treatments)?,
            interrupt: self.interrupt.clone(),
            settings: self.settings.clone(),
            machine: self.machine.clone(),
            launcher,
            setup: Setup {
                treatments: scope.treatments.iter().map(inside).collect(),
                workloads: scope.workloads.iter().map(workload_inside).collect(),
            },
            boot_evidence: Vec::new(),
            watch: DisturbanceWatch::new(!self.settings.emulates_memory())?,
        })
    }

    /// Returns a notice if a knob concerning nodes is set in a guest with one node.
    fn one_node_notice(&self, treatments: &[Treatment]) -> Option<Notice> {
        const ABOUT_NODES: [&str; 3] = ["numa_balancing", "zone_reclaim_mode", "demotion"];
        let nodes = self.machine.nodes.iter().filter(|node| node.memory_bytes > 0).count();
        let names = treatments.iter().flat_map(|treatment| treatment.settings.keys());
        let mut about = names.filter(|name| ABOUT_NODES.contains(&name.as_str()));
        let knob = about.next().filter(|_| nodes < 2)?;
        Some(Notice::GuestOfOneNode { knob: knob.clone() })
    }

    /// Returns the notices for readers about a guest under this accelerator.
    fn notices(&self, qemu: &Qemu, accelerator: &Accelerator) -> Vec<Notice> {
        let (name, reason) = (accelerator.kind.name(), accelerator.reason.clone());
        let cpus = self.machine.online_cpus().len();
        let can_hang = accelerator.kind.hazard(qemu, cpus).map(|hazard| Notice::QemuCanHang {
            version: hazard.version.to_string(),
            fixed_in: hazard.fixed_in.to_string(),
        });
        let time = match name {
            _ if self.settings.emulates_memory() => Some(Notice::VirtualTime),
            "tcg" => Some(Notice::SoftwareTlb),
            _ => None,
        };
        let runs_under = Notice::Accelerator { name: name.to_owned(), reason };
        [Some(runs_under), can_hang, time].into_iter().flatten().collect()
    }
}

/// Returns evidence that a knob cannot have an effect, which only the guest knows. Its other
/// notices are known from its machine.
fn knob_evidence(notice: &Notice) -> Option<Evidence> {
    let Notice::KnobWithoutEffect { knob, reason } = notice else { return None };
    let reason = serde_json::to_value(reason).ok()?;
    let found = reason.as_str().map_or_else(|| reason.to_string(), str::to_owned);
    Some(Evidence::fact(format!("{knob} has no effect in the guest"), found))
}

impl PreparedLinuxGuest {
    /// Returns facts about the host and the files that it boots, then about the first guest, which
    /// is booted now and runs the baseline.
    fn environment(&mut self, treatments: &[Treatment]) -> Result<Environment, BackendError> {
        let host = read_environment(&Root::live());
        let mut facts = BTreeMap::new();
        for name in ["kernel", "cpu_model", "hypervisor", "machine"] {
            if let Some(fact) = host.fact(name) {
                facts.insert(format!("host_{name}"), fact.to_owned());
            }
        }
        for kernel in kernels(&self.settings, treatments)? {
            if let KernelChoice::File(file) = kernel {
                facts.insert(format!("{KERNEL} {}", file.display()), facts::content(&file)?.into());
            }
        }
        if let Some(baseline) = treatments.first() {
            facts.extend(self.boot(baseline)?.facts);
        }
        Ok(Environment { facts })
    }

    /// Returns the guest of this treatment: the running one, or one booted now.
    fn guest(&mut self, treatment: &Treatment) -> Result<&mut LiveGuest, BackendError> {
        let outside = Outside::of(&self.settings, treatment)?;
        if self.live.as_ref().is_none_or(|(current, _)| *current != outside) {
            self.boot(treatment)?;
        }
        let live = self.live.as_mut().map(|(_, guest)| guest);
        live.ok_or(BackendError::Interrupted)
    }

    /// Boots a guest for this treatment in place of the running one.
    fn boot(&mut self, treatment: &Treatment) -> Result<Environment, BackendError> {
        let outside = Outside::of(&self.settings, treatment)?;
        // The guest's pages must be free before a pool shrinks.
        self.live = None;
        let mut evidence = self.knobs.apply(&outside.knobs)?;
        evidence.push(facts::huge_pages("of the host before the boot"));
        let launch = self.launch(&outside)?;
        let (guest, inside) =
            LiveGuest::boot(launch, self.settings.inner(), &self.setup, &self.interrupt)?;
        evidence.extend(inside.notices.iter().filter_map(knob_evidence));
        evidence.extend(kernel_evidence(treatment, &inside.environment));
        evidence.push(facts::huge_pages("of the host after the boot"));
        self.boot_evidence = evidence;
        self.live = Some((outside, guest));
        Ok(inside.environment)
    }

    fn launch(&mut self, outside: &Outside) -> Result<Launch, BackendError> {
        let huge = outside.pages != HostPages::Normal;
        let guest = Guest {
            memory: HostMemory { pages: outside.pages, prealloc: huge, ..HostMemory::default() },
            ..self.settings.guest(&self.machine)?
        };
        let image = self.launcher.image(&outside.kernel)?;
        self.launcher.boot.launch(guest, image.boot_files()).map_err(|error| failed(&error))
    }
}

/// Returns the kernel that a guest runs, if the study varies it.
fn kernel_evidence(treatment: &Treatment, environment: &Environment) -> Option<Evidence> {
    let wanted = treatment.settings.get(KERNEL)?.to_string();
    let found = environment.text("kernel").unwrap_or_default().to_owned();
    Some(Evidence::of(KERNEL, wanted, found))
}

/// Checks the settings of all levels, and reports those that cannot have an effect.
fn notices_of_settings(scope: &Scope<'_>) -> Result<Vec<Notice>, BackendError> {
    // The guest has another kernel, but knobs have the same names in all of them.
    let knob = |prefix, name: &str| knob_settings::find(prefix, name).is_some();
    let mut notices = check_names(scope, &KIND, |name| knob(HOST, name) || knob("", name))?;
    notices.extend(knob_settings::inspect(HOST, scope.treatments)?);
    Ok(notices)
}

impl Backend for LinuxGuest {
    fn describe(&self) -> String {
        let nodes = self.machine.nodes.len();
        let cpus = self.machine.online_cpus().len();
        let memory = format_rounded(self.machine.memory_bytes());
        let emulated = match self.settings.described.costs.latency() {
            Some(latency) => format!(", memory emulated ({latency})"),
            None => String::new(),
        };
        let some =
            |number: usize, noun| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
        let (nodes, cpus) = (some(nodes, "node"), some(cpus, "cpu"));
        let processor = self.settings.arch.map(|arch| format!("{} ", arch.name()));
        let processor = processor.unwrap_or_default();
        format!("a Linux {processor}guest of {nodes}, {cpus}, {memory}{emulated}")
    }

    fn inspect(&self, scope: &Scope<'_>) -> Result<Inspection, BackendError> {
        let treatments = scope.treatments;
        for treatment in treatments {
            Outside::of(&self.settings, treatment)?;
        }
        let mut notices = notices_of_settings(scope)?;
        notices.extend(placement::inspect(scope, &self.machine)?);
        let cache = Cache::open().map_err(|error| failed(&error))?;
        let guest = self.settings.guest(&self.machine)?;
        let known = Boot::known(&guest, self.settings.accelerator());
        let (qemu, known) = known.map_err(|error| failed(&error))?;
        match known {
            Some(accelerator) => notices.extend(self.notices(&qemu, &accelerator)),
            None => notices.push(Notice::AcceleratorNotTried),
        }
        notices.extend(self.one_node_notice(treatments));
        let mut supplies = supplies(&cache, guest.architecture)?;
        kernels(&self.settings, treatments)?.iter().for_each(|kernel| supplies.need_kernel(kernel));
        supplies.need_packages(&contents(&self.settings, &exec::workloads(scope))?.packages);
        let memory_bytes = self.machine.memory_bytes();
        Ok(Inspection { notices, downloads: supplies.missing(), memory_bytes })
    }

    fn prepare(self: Box<Self>, scope: &Scope<'_>) -> Result<Preparation, PrepareError> {
        self.inspect(scope)?;
        let mut prepared = self.prepared(scope)?;
        let mut notices = notices_of_settings(scope)?;
        let Boot { qemu, accelerator, .. } = &prepared.launcher.boot;
        notices.extend(self.notices(qemu, accelerator));
        notices.extend(self.one_node_notice(scope.treatments));
        match prepared.environment(scope.treatments) {
            Ok(environment) => {
                Ok(Preparation { environment, notices, backend: Box::new(prepared) })
            }
            Err(cause) => Err(PrepareError::restoring(cause, Box::new(prepared))),
        }
    }
}

impl Prepared for PreparedLinuxGuest {
    fn apply(&mut self, treatment: &Treatment) -> Result<Vec<Evidence>, BackendError> {
        if std::mem::replace(&mut self.is_used, true) && self.settings.fresh {
            self.live = None;
        }
        let request = Request::Apply { treatment: inside(treatment) };
        match self.guest(treatment)?.ask(&request)? {
            AgentAnswer::Evidence(inside) => {
                Ok(std::mem::take(&mut self.boot_evidence).into_iter().chain(inside).collect())
            }
            other => Err(unexpected_answer(&other)),
        }
    }

    fn sample(&mut self, request: &SampleRequest<'_>) -> Result<Observation, BackendError> {
        let watch_pages = self.settings.watch_pages;
        let before = self.watch.now();
        let asked = Request::Sample {
            treatment: inside(request.treatment),
            workload: Box::new(workload_inside(request.workload)),
            seed: request.seed,
        };
        let mut taken = match self.guest(request.treatment)?.ask(&asked)? {
            AgentAnswer::Observation(taken) => taken,
            other => return Err(unexpected_answer(&other)),
        };
        taken.disturbances.extend(DisturbanceWatch::disturbance(before, self.watch.now()));
        if watch_pages {
            let qemu = page_evidence(&PagesSeen::now());
            let of_qemu =
                |fact: Evidence| Evidence { what: format!("QEMU: {}", fact.what), ..fact };
            taken.evidence.extend(qemu.into_iter().map(of_qemu));
        }
        Ok(taken)
    }

    fn restore(self: Box<Self>) -> Result<(), BackendError> {
        let Self { live, knobs, .. } = *self;
        drop(live);
        knobs.restore()
    }
}

/// Returns the workload as seen inside the guest, where its file has the same path as here.
fn workload_inside(workload: &Workload) -> Workload {
    let stdin = workload.stdin.as_ref().map(|file| absolute(file).unwrap_or_else(|_| file.clone()));
    Workload { stdin, ..workload.clone() }
}

/// Returns the treatment as the backend inside the guest sees it.
fn inside(treatment: &Treatment) -> Treatment {
    let mut inside = treatment.clone();
    let is_inside = |name: &str| !name.starts_with(HOST) && ![BACKING, KERNEL].contains(&name);
    inside.settings.retain(|name, _| is_inside(name));
    inside
}
