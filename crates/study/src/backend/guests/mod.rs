//! Many guests on one NUMA machine: how much they get done together, and where each
//! one's memory lies.
//!
//! A treatment is a boot: the guests are made, all workloads run in them one after the
//! other, in all guests at once, and the samples are handed out as they are wanted for.

mod boot_pool;
mod builds;
mod contents;
mod emulated;
mod errors;
mod layout;
mod notices;
mod outcome;
mod qemu;
mod settings;
mod summary;
mod windows;
mod xen;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread;

use numalab_guest::HostPages;
use numalab_host::{Interrupt, MemoryLimit, Root};
use numalab_image::Contents;
use numalab_record::Environment;
use numalab_record::study::{Evidence, Taken, Treatment};
use numalab_topology::Machine;
use numalab_workload::Workload;
use numalab_xen::XenBuild;

use super::disturbance_watch::DisturbanceWatch;
use super::host_side::{self, BACKING, HOST};
use super::knob_settings::KnobSettings;
use super::{Backend, BackendError, SampleRequest};
use crate::definition::BackendSpec;
use crate::exec;
use boot_pool::BootPool;
use layout::GuestLayout;
use outcome::Outcome;
use settings::{GuestTreatment, GuestsSettings, HypervisorKind, bad};

/// What QEMU takes beside the memory of its guest.
const QEMU_BYTES: u64 = 1 << 30;
/// Where a workload's own directory is in a guest: a tmpfs.
const SCRATCH: &str = "/tmp/scratch";

/// Many guests on one machine.
pub(super) struct Guests {
    inputs: Inputs,
    interrupt: Interrupt,
    /// Knobs of this machine, for guests of QEMU.
    knobs: KnobSettings,
    /// So many boots may run at the same time.
    side_by_side: usize,
    /// Those that were begun before they are wanted for.
    pool: Option<BootPool>,
    /// What came of the treatment that was applied last.
    outcome: Outcome,
    /// The workloads whose sample was handed out since.
    taken: Vec<String>,
}

/// What every boot is made of.
#[derive(Clone)]
struct Inputs {
    settings: GuestsSettings,
    workloads: Vec<Workload>,
    /// Hypervisors of the user's own, by file.
    builds: BTreeMap<PathBuf, XenBuild>,
}

impl Guests {
    pub(super) fn open(spec: &BackendSpec, interrupt: &Interrupt) -> Result<Self, BackendError> {
        let settings = GuestsSettings::read(spec)?;
        Ok(Self {
            inputs: Inputs { settings, workloads: Vec::new(), builds: BTreeMap::new() },
            interrupt: interrupt.clone(),
            knobs: KnobSettings::new(HOST),
            side_by_side: 1,
            pool: None,
            outcome: Outcome::default(),
            taken: Vec::new(),
        })
    }

    /// Refuses what only guests of QEMU have of this machine, and knobs that it has not.
    fn check_host_side(
        &self,
        treatments: &[Treatment],
        wanted: &[GuestTreatment],
    ) -> Result<(), BackendError> {
        let mut knobs =
            treatments.iter().flat_map(|one| host_side::knobs(&one.settings)).peekable();
        let of_host =
            knobs.peek().is_some() || wanted.iter().any(|one| one.pages != HostPages::Normal);
        if of_host && self.inputs.settings.hypervisor == HypervisorKind::Xen {
            let found = format!("{BACKING} or {HOST}KNOB for domains of Xen");
            return Err(bad("factor", found, "them with hypervisor = \"qemu\""));
        }
        if let Some((name, _)) = knobs.find(|(name, _)| self.knobs.knob(name).is_none()) {
            let found = "there is no such knob".to_owned();
            return Err(bad(&format!("setting {name}"), found, "one of `numalab knobs list`"));
        }
        Ok(())
    }

    /// Workers that boot what is wanted for next, if boots may run side by side.
    fn workers(&self) -> Option<BootPool> {
        let (inputs, interrupt) = (self.inputs.clone(), self.interrupt.clone());
        (self.side_by_side > 1).then(|| {
            BootPool::new(self.side_by_side, move |treatment, stop| {
                inputs.run(treatment, &|| interrupt.requested() || stop.requested())
            })
        })
    }
}

impl Inputs {
    /// Boots, runs every workload in all guests, and ends with `ended`.
    fn run(
        &self,
        treatment: &Treatment,
        ended: &(dyn Fn() -> bool + Sync),
    ) -> Result<Outcome, BackendError> {
        let wanted = GuestTreatment::of(treatment, &self.settings)?;
        let layout = self.layout(&wanted)?;
        let contents = contents::of(&self.workloads)?;
        let runs = BootContext {
            settings: &self.settings,
            treatment,
            wanted: &wanted,
            layout: &layout,
            build: builds::build_of(&wanted, &self.builds)?,
            contents,
            workloads: &self.workloads,
            ended,
        };
        match self.settings.hypervisor {
            HypervisorKind::Xen => runs.on_xen(),
            HypervisorKind::Qemu => runs.on_qemu(),
        }
    }

    /// How many boots may run at the same time: as many as there are cpus, and memory for
    /// the largest; where they are measured in this machine's time only one.
    fn side_by_side(&self, wanted: &[GuestTreatment]) -> Result<usize, BackendError> {
        if !self.settings.emulate_memory {
            return Ok(1);
        }
        let bytes = |machine: &Machine| machine.nodes.iter().map(|node| node.memory_bytes).sum();
        let largest: u64 = self.machines(wanted)?.iter().map(bytes).max().unwrap_or(0) + QEMU_BYTES;
        let limit = MemoryLimit::read(&Root::live());
        let fitting = limit.map_or(1, |limit| limit.available_bytes / largest);
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        Ok(usize::try_from(fitting).unwrap_or(usize::MAX).clamp(1, cpus))
    }

    fn machines(&self, wanted: &[GuestTreatment]) -> Result<Vec<Machine>, BackendError> {
        wanted.iter().map(|wanted| Ok(self.layout(wanted)?.machine)).collect()
    }

    /// The machine is emulated for a Xen in QEMU; else it is this one.
    fn layout(&self, wanted: &GuestTreatment) -> Result<GuestLayout, BackendError> {
        Ok(match (self.settings.hypervisor, self.settings.on_this_dom0) {
            (HypervisorKind::Xen, false) => GuestLayout::of(wanted, &self.settings),
            (HypervisorKind::Xen, true) => GuestLayout::of_host(wanted, xen::host()?),
            (HypervisorKind::Qemu, _) => GuestLayout::of_host(wanted, qemu::host()?),
        })
    }

    /// Refuses settings that have no meaning together.
    fn check_settings(&self, wanted: &[GuestTreatment]) -> Result<(), BackendError> {
        let settings = &self.settings;
        if settings.on_this_dom0 && wanted.iter().any(|one| one.numa != wanted[0].numa) {
            let found = "a machine that is booted already".to_owned();
            return Err(bad("factor numa", found, "a Xen in QEMU: numa= is chosen at boot"));
        }
        if settings.on_this_dom0 && wanted.iter().any(|one| one.pools) {
            // Nothing would join them again.
            let found = "a machine that others may use".to_owned();
            return Err(bad("factor cpupools", found, "a Xen in QEMU, whose pools end with it"));
        }
        let real = settings.hypervisor == HypervisorKind::Qemu || settings.on_this_dom0;
        if real && settings.emulate_memory {
            let found = "emulate-memory on this machine's own memory".to_owned();
            return Err(bad("backend.guests", found, "it with a Xen in QEMU only"));
        }
        if settings.hypervisor == HypervisorKind::Qemu && settings.on_this_dom0 {
            let found = "on-this-dom0 with hypervisor qemu".to_owned();
            return Err(bad("backend.guests", found, "hypervisor xen"));
        }
        Ok(())
    }
}

/// What a boot needs to know.
struct BootContext<'a> {
    settings: &'a GuestsSettings,
    treatment: &'a Treatment,
    wanted: &'a GuestTreatment,
    layout: &'a GuestLayout,
    /// The hypervisor, if it is not Debian's.
    build: Option<&'a XenBuild>,
    /// What the guests' image holds.
    contents: Contents,
    workloads: &'a [Workload],
    /// Whether the boot is to be ended, because nobody needs it any more.
    ended: &'a (dyn Fn() -> bool + Sync),
}

impl BootContext<'_> {
    /// Watches what disturbs the samples.
    fn watch(&self) -> Result<DisturbanceWatch, BackendError> {
        DisturbanceWatch::new(self.settings.in_host_time())
    }

    /// What a shell of a guest does before a workload: an empty directory, and how often
    /// one repeats its work that can.
    fn preparation(&self) -> String {
        let rounds = self.settings.rounds();
        format!("rm -rf {SCRATCH}; mkdir -p {SCRATCH}; cd {SCRATCH}; export ROUNDS={rounds}")
    }

    /// A workload's command line in a guest.
    fn words(&self, workload: &Workload) -> Vec<String> {
        let words = Workload::filled_in(&workload.command, SCRATCH, "numalab");
        words.iter().map(|word| exec::filled(word, &self.treatment.settings)).collect()
    }
}

impl Backend for Guests {
    fn describe(&self) -> String {
        let settings = &self.inputs.settings;
        let memory = if settings.emulate_memory { ", with emulated memory costs" } else { "" };
        match (settings.hypervisor, settings.on_this_dom0) {
            (HypervisorKind::Xen, true) => "domains of this machine's Xen".to_owned(),
            (HypervisorKind::Xen, false) => format!("domains of Xen in QEMU{memory}"),
            (HypervisorKind::Qemu, _) => "guests of QEMU on this machine".to_owned(),
        }
    }

    fn own_metrics(&self) -> usize {
        match self.inputs.settings.emulate_memory {
            true => summary::OWN.len(),
            false => 1,
        }
    }

    fn check(
        &mut self,
        treatments: &[Treatment],
        workloads: &[Workload],
    ) -> Result<Vec<String>, BackendError> {
        let settings = &self.inputs.settings;
        let wanted: Result<Vec<GuestTreatment>, BackendError> =
            treatments.iter().map(|treatment| GuestTreatment::of(treatment, settings)).collect();
        let wanted = wanted?;
        self.check_host_side(treatments, &wanted)?;
        let inputs = &mut self.inputs;
        if let Some(workload) = workloads.iter().find(|workload| workload.service.is_some()) {
            let place = format!("workload {}", workload.name);
            return Err(bad(&place, "a service".to_owned(), "a workload that is one command"));
        }
        inputs.check_settings(&wanted)?;
        inputs.builds = builds::of(&wanted, &inputs.settings)?;
        if inputs.settings.hypervisor == HypervisorKind::Xen {
            xen::check(&inputs.settings)?;
        }
        workloads.clone_into(&mut inputs.workloads);
        self.side_by_side = inputs.side_by_side(&wanted)?;
        let of_knobs = self.knobs.check(treatments)?;
        Ok([self.notices(&wanted)?, of_knobs].concat())
    }

    fn environment(&mut self) -> Result<Environment, BackendError> {
        let mut facts = numalab_host::Environment::read(&Root::live()).facts();
        facts.extend(builds::facts(&self.inputs.builds));
        Ok(Environment { facts })
    }

    fn expect(&mut self, treatments: &[&Treatment]) {
        if self.pool.is_none() {
            self.pool = self.workers();
        }
        if let Some(pool) = &self.pool {
            pool.expect(treatments);
        }
    }

    fn apply(&mut self, treatment: &Treatment) -> Result<Vec<Evidence>, BackendError> {
        let mut evidence = self.knobs.apply(&host_side::knobs(&treatment.settings))?;
        self.outcome = match &self.pool {
            Some(pool) => pool.take(treatment)?,
            None => self.inputs.run(treatment, &|| self.interrupt.requested())?,
        };
        self.taken.clear();
        evidence.extend(self.outcome.facts.iter().cloned());
        Ok(evidence)
    }

    fn sample(&mut self, request: &SampleRequest<'_>) -> Result<Taken, BackendError> {
        // A sample that is wanted for again was disturbed: only another boot gives another.
        if self.taken.contains(&request.workload.name) {
            self.apply(request.treatment)?;
        }
        self.taken.push(request.workload.name.clone());
        let job = self.inputs.workloads.iter().position(|own| own.name == request.workload.name);
        let job = job.ok_or_else(|| {
            let place = format!("workload {}", request.workload.name);
            bad(&place, "one that was not checked".to_owned(), "a workload of the study")
        })?;
        let taken = summary::sample(&self.outcome, request.workload, job);
        // Guests that were lost are a sample with a reason; a workload that fails in guests
        // that live will fail in the next ones too.
        let alive = self.outcome.guests.iter().any(|guest| guest.lost.is_none());
        if alive
            && !taken
                .readings
                .iter()
                .any(|reading| !summary::OWN.contains(&reading.quantity.metric.as_str()))
        {
            return Err(BackendError::Failed {
                doing: format!("workload {} in the guests", request.workload.name),
                reason: taken.disturbances.join("; "),
            });
        }
        Ok(taken)
    }

    fn restore(&mut self) -> Result<(), BackendError> {
        // What was begun and is not needed any more ends here.
        self.pool = None;
        self.knobs.restore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_workload::WorkloadSpec;
    use outcome::{GuestOutcome, JobOutcome};

    fn guests(outcome: GuestOutcome) -> (Guests, Workload, Treatment) {
        let spec = BackendSpec { kind: "guests".to_owned(), ..BackendSpec::default() };
        let mut guests = Guests::open(&spec, &Interrupt::never()).unwrap();
        let workload = WorkloadSpec::of_tool("dbench").resolve().unwrap();
        guests.inputs.workloads = vec![workload.clone()];
        guests.outcome = Outcome { guests: vec![outcome], ..Outcome::default() };
        let treatment =
            Treatment { name: "t".to_owned(), levels: Vec::new(), settings: Default::default() };
        (guests, workload, treatment)
    }

    #[test]
    fn a_boot_in_which_every_guest_was_lost_is_a_sample_with_the_reason() {
        let lost = GuestOutcome {
            name: "g01".to_owned(),
            lost: Some("not \"ready\" after 300s".to_owned()),
            ..GuestOutcome::default()
        };
        let (mut guests, workload, treatment) = guests(lost);
        let request = SampleRequest { treatment: &treatment, workload: &workload, seed: 1 };
        let taken = guests.sample(&request).unwrap();
        assert_eq!(taken.readings, []);
        assert_eq!(taken.disturbances, ["guest g01: not \"ready\" after 300s"]);
    }

    #[test]
    fn a_workload_that_fails_in_a_guest_that_lives_ends_the_study() {
        let job = JobOutcome { exit: 1, output: "no such option".to_owned(), ..Default::default() };
        let alive = GuestOutcome {
            name: "g01".to_owned(),
            home: Some(0),
            memory: [(0, 1)].into_iter().collect(),
            jobs: [(0, job)].into_iter().collect(),
            ..GuestOutcome::default()
        };
        let (mut guests, workload, treatment) = guests(alive);
        let request = SampleRequest { treatment: &treatment, workload: &workload, seed: 1 };
        let error = guests.sample(&request).unwrap_err().to_string();
        assert!(error.contains("guest g01: "), "{error}");
        assert!(error.contains("no such option"), "{error}");
    }
}
