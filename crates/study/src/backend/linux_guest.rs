//! A Linux guest under QEMU: knobs inside it, what stands behind its memory, and knobs of
//! the host (`host:NAME`).

use std::collections::BTreeMap;

use numalab_guest::{Guest, HostMemory, HostPages, Launch, Limits, QemuNeeds};
use numalab_host::{Interrupt, Root};
use numalab_image::KernelChoice;
use numalab_record::Environment;
use numalab_record::study::{Evidence, Setting, Taken, Treatment};
use numalab_topology::Machine;
use numalab_workload::Workload;
use serde_json::Value;

use super::agent::{Answer, Request};
use super::disturbance_watch::DisturbanceWatch;
use super::guest_launcher::{KERNEL, Launcher, Preparation, kernel_of, launcher};
use super::guest_machine::GuestSettings;
use super::host::page_evidence;
use super::host_side::{self, BACKING, HOST};
use super::knob_settings::{KnobSettings, check_names};
use super::live_guest::{LiveGuest, failed, unexpected_answer};
use super::{Backend, BackendError, SampleRequest, facts};
use crate::definition::BackendSpec;
use crate::exec::PagesSeen;

/// A guest that pays for every access by the instruction boots slowly.
const EMULATED_BOOT: std::time::Duration = std::time::Duration::from_secs(900);

/// A Linux guest. It stays up from one treatment to the next unless they differ in what
/// the host gives it.
pub(super) struct LinuxGuest {
    interrupt: Interrupt,
    settings: GuestSettings,
    machine: Machine,
    knobs: KnobSettings,
    launch: Option<Launcher>,
    /// The study as it was checked, which every new guest checks for itself.
    study: (Vec<Treatment>, Vec<Workload>),
    /// The first treatment, with what the host gives.
    baseline: Option<Treatment>,
    live: Option<(Outside, LiveGuest)>,
    watch: DisturbanceWatch,
}

/// What of a treatment the host gives: a guest must be booted anew where it differs.
#[derive(Clone, Debug, PartialEq)]
struct Outside {
    pages: HostPages,
    kernel: KernelChoice,
    knobs: BTreeMap<String, Setting>,
}

impl LinuxGuest {
    pub(super) fn open(spec: &BackendSpec, interrupt: &Interrupt) -> Result<Self, BackendError> {
        let settings: GuestSettings = serde_json::from_value(Value::Object(spec.settings.clone()))
            .map_err(|error| BackendError::BadInput {
                place: "backend.linux-guest".to_owned(),
                found: error.to_string(),
                expected: "emulate, cpus, memory, distances, accel, ...".to_owned(),
            })?;
        let machine = settings.machine()?;
        let watch = DisturbanceWatch::new(settings.emulate_latency.is_none())?;
        Ok(Self {
            interrupt: interrupt.clone(),
            settings,
            machine,
            knobs: KnobSettings::new(HOST),
            launch: None,
            study: (Vec::new(), Vec::new()),
            baseline: None,
            live: None,
            watch,
        })
    }

    fn outside(treatment: &Treatment) -> Result<Outside, BackendError> {
        let settings = &treatment.settings;
        let (pages, knobs) = (host_side::pages(settings)?, host_side::knobs(settings));
        Ok(Outside { pages, kernel: kernel_of(treatment)?, knobs })
    }

    /// The guest of this treatment: the one that is up, or one booted now.
    fn guest(
        &mut self,
        treatment: &Treatment,
    ) -> Result<(&mut LiveGuest, Vec<Evidence>), BackendError> {
        let outside = Self::outside(treatment)?;
        let mut evidence = Vec::new();
        if self.live.as_ref().is_none_or(|(current, _)| *current != outside) {
            // Its pages must be back before a pool shrinks.
            self.live = None;
            evidence = self.knobs.apply(&outside.knobs)?;
            evidence.push(facts::huge_pages("of the host before the boot"));
            let mut guest = self.boot(&outside)?;
            evidence.extend(self.inner_notices(&mut guest)?);
            evidence.extend(kernel_evidence(treatment, &mut guest)?);
            evidence.push(facts::huge_pages("of the host after the boot"));
            self.live = Some((outside, guest));
        }
        let live = self.live.as_mut().map(|(_, guest)| guest);
        let live = live.ok_or(BackendError::Interrupted)?;
        Ok((live, evidence))
    }

    /// Lets a new guest look whether it can do what the study wants of it.
    fn inner_notices(&self, guest: &mut LiveGuest) -> Result<Vec<Evidence>, BackendError> {
        let (treatments, workloads) = self.study.clone();
        match guest.ask(&Request::Check { treatments, workloads })? {
            Answer::Notices(notices) => Ok(notices
                .into_iter()
                .map(|found| Evidence {
                    what: "notice of the guest".to_owned(),
                    wanted: String::new(),
                    found,
                })
                .collect()),
            other => Err(unexpected_answer(&other)),
        }
    }

    fn boot(&self, outside: &Outside) -> Result<LiveGuest, BackendError> {
        let Some(launcher) = &self.launch else {
            return Err(BackendError::Failed {
                doing: "booting the guest".to_owned(),
                reason: "it was not prepared".to_owned(),
            });
        };
        let memory_emulator = self.settings.emulator(&self.machine)?;
        let mut limits = Limits::default();
        if memory_emulator.is_some() {
            limits.boot = EMULATED_BOOT;
        }
        let huge = outside.pages != HostPages::Normal;
        let guest = Guest {
            machine: self.machine.clone(),
            memory: HostMemory { pages: outside.pages, prealloc: huge, ..HostMemory::default() },
            kernel_arguments: self.settings.kernel_arguments.clone(),
            memory_emulator,
            limits,
            ..Guest::default()
        };
        let (qemu, accelerator) = (launcher.qemu.clone(), launcher.accelerator.clone());
        let image = launcher.images.iter().find(|(kernel, _)| *kernel == outside.kernel);
        let (_, image) = image.ok_or(BackendError::Interrupted)?;
        let launch = Launch::plan(guest, qemu, accelerator, image.boot_files());
        let launch = launch.map_err(|error| failed(&error))?;
        LiveGuest::boot(launch, self.settings.inner(), &self.interrupt)
    }

    /// The kernel and an image with the workloads' tools, out of the cache or made now.
    fn prepare(
        &mut self,
        treatments: &[Treatment],
        workloads: &[Workload],
    ) -> Result<(), BackendError> {
        let mut kernels = Vec::new();
        for treatment in treatments {
            let kernel = kernel_of(treatment)?;
            if !kernels.contains(&kernel) {
                kernels.push(kernel);
            }
        }
        let mut needs = QemuNeeds::default();
        if let Some(emulator) = self.settings.emulator(&self.machine)? {
            needs = emulator.mode.needs(self.machine.online_cpus().len());
        }
        let launcher = launcher(&self.settings, &needs, kernels, workloads);
        self.launch = Some(launcher.map_err(|error| match error {
            Preparation::Guest(error) => failed(&error),
            Preparation::Backend(error) => error,
        })?);
        Ok(())
    }

    /// That a knob about nodes has nothing to do in a guest of one node.
    fn one_node_notice(&self, treatments: &[Treatment]) -> Option<String> {
        const ABOUT_NODES: [&str; 3] = ["numa_balancing", "zone_reclaim_mode", "demotion"];
        let nodes = self.machine.nodes.iter().filter(|node| node.memory_bytes > 0).count();
        let names = treatments.iter().flat_map(|treatment| treatment.settings.keys());
        let mut about = names.filter(|name| ABOUT_NODES.contains(&name.as_str()));
        let name = about.next().filter(|_| nodes < 2)?;
        Some(format!("{name} cannot act: the guest's memory is on one node"))
    }

    /// What the reader should know of this guest.
    fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        let Some(launcher) = &self.launch else { return notices };
        let kind = launcher.accelerator.kind.name();
        notices.push(format!("the guest runs under {kind}: {}", launcher.accelerator.reason));
        let cpus = self.machine.online_cpus().len();
        notices.extend(launcher.qemu.hazard(launcher.accelerator.kind, cpus));
        if self.settings.emulate_latency.is_some() {
            notices.push(
                "the guest's time is virtual: an instruction takes a nanosecond, and memory \
                 what its distance says"
                    .to_owned(),
            );
        } else if kind == "tcg" {
            notices.push(
                "under TCG every access goes through QEMU's software TLB: the figures are of \
                 the guest kernel's work and of QEMU, not of this processor's page walks"
                    .to_owned(),
            );
        }
        notices
    }
}

/// Which kernel a guest runs, where the study varies it.
fn kernel_evidence(
    treatment: &Treatment,
    guest: &mut LiveGuest,
) -> Result<Option<Evidence>, BackendError> {
    let Some(wanted) = treatment.settings.get(KERNEL) else { return Ok(None) };
    match guest.ask(&Request::Environment)? {
        Answer::Environment(environment) => Ok(Some(Evidence {
            what: KERNEL.to_owned(),
            wanted: wanted.to_string(),
            found: environment.facts.get("kernel").cloned().unwrap_or_default(),
        })),
        other => Err(unexpected_answer(&other)),
    }
}

impl Backend for LinuxGuest {
    fn describe(&self) -> String {
        let nodes = self.machine.nodes.len();
        let cpus = self.machine.online_cpus().len();
        let memory = &self.settings.memory;
        let emulated = match &self.settings.emulate_latency {
            Some(latency) => format!(", memory emulated ({latency} ns)"),
            None => String::new(),
        };
        let some =
            |number: usize, noun| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
        let (nodes, cpus) = (some(nodes, "node"), some(cpus, "cpu"));
        format!("a Linux guest of {nodes}, {cpus}, {memory}{emulated}")
    }

    fn check(
        &mut self,
        treatments: &[Treatment],
        workloads: &[Workload],
    ) -> Result<Vec<String>, BackendError> {
        for treatment in treatments {
            Self::outside(treatment)?;
        }
        // The guest has another kernel, but knobs have the same names in every one.
        let inner = KnobSettings::new("");
        check_names(treatments, workloads, |name| {
            let is_outside = [BACKING, KERNEL].contains(&name) || self.knobs.knob(name).is_some();
            is_outside || inner.knob(name).is_some()
        })?;
        let mut notices = self.knobs.check(treatments)?;
        self.prepare(treatments, workloads)?;
        notices.extend(self.notices());
        notices.extend(self.one_node_notice(treatments));
        self.baseline = treatments.first().cloned();
        self.study = (treatments.iter().map(inside).collect(), workloads.to_vec());
        Ok(notices)
    }

    fn environment(&mut self) -> Result<Environment, BackendError> {
        let host = numalab_host::Environment::read(&Root::live());
        let mut facts = BTreeMap::new();
        for name in ["kernel", "cpu_model", "hypervisor", "machine"] {
            if let Some(fact) = host.fact(name) {
                facts.insert(format!("host_{name}"), fact.to_owned());
            }
        }
        for (kernel, _) in self.launch.iter().flat_map(|launcher| &launcher.images) {
            if let KernelChoice::File(file) = kernel {
                facts.insert(format!("{KERNEL} {}", file.display()), facts::content(file)?);
            }
        }
        let Some(first) = self.baseline.clone() else { return Ok(Environment { facts }) };
        let (guest, _) = self.guest(&first)?;
        match guest.ask(&Request::Environment)? {
            Answer::Environment(environment) => facts.extend(environment.facts),
            other => return Err(unexpected_answer(&other)),
        }
        Ok(Environment { facts })
    }

    fn apply(&mut self, treatment: &Treatment) -> Result<Vec<Evidence>, BackendError> {
        let (guest, mut evidence) = self.guest(treatment)?;
        match guest.ask(&Request::Apply { treatment: inside(treatment) })? {
            Answer::Evidence(more) => evidence.extend(more),
            other => return Err(unexpected_answer(&other)),
        }
        Ok(evidence)
    }

    fn sample(&mut self, request: &SampleRequest<'_>) -> Result<Taken, BackendError> {
        let watch_pages = self.settings.watch_pages;
        let before = self.watch.now();
        let (guest, _) = self.guest(request.treatment)?;
        let request = Request::Sample {
            treatment: inside(request.treatment),
            workload: Box::new(request.workload.clone()),
            seed: request.seed,
        };
        let mut taken = match guest.ask(&request)? {
            Answer::Taken(taken) => taken,
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

    fn restore(&mut self) -> Result<(), BackendError> {
        self.live = None;
        self.knobs.restore()
    }
}

/// The treatment as the backend inside the guest sees it.
fn inside(treatment: &Treatment) -> Treatment {
    let mut inside = treatment.clone();
    let is_inside = |name: &str| !name.starts_with(HOST) && ![BACKING, KERNEL].contains(&name);
    inside.settings.retain(|name, _| is_inside(name));
    inside
}
