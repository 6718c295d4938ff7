//! Many guests on one NUMA machine: how much they get done together, and where each
//! one's memory lies.
//!
//! A treatment is a boot: the guests are made, all workloads run in them one after the
//! other, in all guests at once, and the samples are handed out as they are asked for.

mod ahead;
mod builds;
mod contents;
mod emulated;
mod errors;
mod notices;
mod outcome;
mod qemu;
mod scene;
mod settings;
mod summary;
mod windows;
mod xen;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread;

use numalab_guest::xen::XenBuild;
use numalab_guest::{Contents, HostPages};
use numalab_host::{Interrupt, MemoryLimit, Root};
use numalab_record::Environment;
use numalab_record::study::{Evidence, Taken, Treatment};
use numalab_topology::Machine;
use numalab_workload::Workload;

use super::gate::Gate;
use super::host_side::{self, BACKING, HOST};
use super::knob_settings::KnobSettings;
use super::{Order, World, WorldError};
use crate::definition::WorldSpec;
use crate::exec;
use ahead::Ahead;
use outcome::Outcome;
use scene::Scene;
use settings::{Asked, GuestsSettings, HypervisorKind, bad};

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
    /// Those that were begun before they are asked for.
    ahead: Option<Ahead>,
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
    pub(super) fn open(spec: &WorldSpec, interrupt: &Interrupt) -> Result<Self, WorldError> {
        let settings = GuestsSettings::read(spec)?;
        Ok(Self {
            inputs: Inputs { settings, workloads: Vec::new(), builds: BTreeMap::new() },
            interrupt: interrupt.clone(),
            knobs: KnobSettings::new(HOST),
            side_by_side: 1,
            ahead: None,
            outcome: Outcome::default(),
            taken: Vec::new(),
        })
    }

    /// Refuses what only guests of QEMU have of this machine, and knobs that it has not.
    fn check_host_side(&self, treatments: &[Treatment], asked: &[Asked]) -> Result<(), WorldError> {
        let mut knobs =
            treatments.iter().flat_map(|one| host_side::knobs(&one.settings)).peekable();
        let of_host =
            knobs.peek().is_some() || asked.iter().any(|one| one.pages != HostPages::Normal);
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

    /// Workers that boot what is asked for next, if boots may run side by side.
    fn workers(&self) -> Option<Ahead> {
        let (inputs, interrupt) = (self.inputs.clone(), self.interrupt.clone());
        (self.side_by_side > 1).then(|| {
            Ahead::new(self.side_by_side, move |treatment, stop| {
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
    ) -> Result<Outcome, WorldError> {
        let asked = Asked::of(treatment, &self.settings)?;
        let scene = self.scene(&asked)?;
        let contents = contents::of(&self.workloads)?;
        let runs = Runs {
            settings: &self.settings,
            treatment,
            asked: &asked,
            scene: &scene,
            build: builds::build_of(&asked, &self.builds)?,
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
    fn side_by_side(&self, asked: &[Asked]) -> Result<usize, WorldError> {
        if !self.settings.emulate_memory {
            return Ok(1);
        }
        let bytes = |machine: &Machine| machine.nodes.iter().map(|node| node.memory_bytes).sum();
        let largest: u64 = self.machines(asked)?.iter().map(bytes).max().unwrap_or(0) + QEMU_BYTES;
        let limit = MemoryLimit::read(&Root::live());
        let fitting = limit.map_or(1, |limit| limit.available_bytes / largest);
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        Ok(usize::try_from(fitting).unwrap_or(usize::MAX).clamp(1, cpus))
    }

    fn machines(&self, asked: &[Asked]) -> Result<Vec<Machine>, WorldError> {
        asked.iter().map(|asked| Ok(self.scene(asked)?.machine)).collect()
    }

    /// The machine is emulated for a Xen in QEMU; else it is this one.
    fn scene(&self, asked: &Asked) -> Result<Scene, WorldError> {
        Ok(match (self.settings.hypervisor, self.settings.on_this_dom0) {
            (HypervisorKind::Xen, false) => Scene::of(asked, &self.settings),
            (HypervisorKind::Xen, true) => Scene::of_host(asked, xen::host()?),
            (HypervisorKind::Qemu, _) => Scene::of_host(asked, qemu::host()?),
        })
    }

    /// Refuses settings that have no meaning together.
    fn check_settings(&self, asked: &[Asked]) -> Result<(), WorldError> {
        let settings = &self.settings;
        if settings.on_this_dom0 && asked.iter().any(|one| one.numa != asked[0].numa) {
            let found = "a machine that is booted already".to_owned();
            return Err(bad("factor numa", found, "a Xen in QEMU: numa= is chosen at boot"));
        }
        if settings.on_this_dom0 && asked.iter().any(|one| one.pools) {
            // Nothing would join them again.
            let found = "a machine that others may use".to_owned();
            return Err(bad("factor cpupools", found, "a Xen in QEMU, whose pools end with it"));
        }
        let real = settings.hypervisor == HypervisorKind::Qemu || settings.on_this_dom0;
        if real && settings.emulate_memory {
            let found = "emulate-memory on this machine's own memory".to_owned();
            return Err(bad("world.guests", found, "it with a Xen in QEMU only"));
        }
        if settings.hypervisor == HypervisorKind::Qemu && settings.on_this_dom0 {
            let found = "on-this-dom0 with hypervisor qemu".to_owned();
            return Err(bad("world.guests", found, "hypervisor xen"));
        }
        Ok(())
    }
}

/// What a boot needs to know.
struct Runs<'a> {
    settings: &'a GuestsSettings,
    treatment: &'a Treatment,
    asked: &'a Asked,
    scene: &'a Scene,
    /// The hypervisor, if it is not Debian's.
    build: Option<&'a XenBuild>,
    /// What the guests' image holds.
    contents: Contents,
    workloads: &'a [Workload],
    /// Whether the boot is to be ended, because nobody needs it any more.
    ended: &'a (dyn Fn() -> bool + Sync),
}

impl Runs<'_> {
    /// Watches what disturbs the samples.
    fn gate(&self) -> Result<Gate, WorldError> {
        Gate::new(self.settings.in_host_time())
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

impl World for Guests {
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
    ) -> Result<Vec<String>, WorldError> {
        let settings = &self.inputs.settings;
        let asked: Result<Vec<Asked>, WorldError> =
            treatments.iter().map(|treatment| Asked::of(treatment, settings)).collect();
        let asked = asked?;
        self.check_host_side(treatments, &asked)?;
        let inputs = &mut self.inputs;
        if let Some(workload) = workloads.iter().find(|workload| workload.service.is_some()) {
            let place = format!("workload {}", workload.name);
            return Err(bad(&place, "a service".to_owned(), "a workload that is one command"));
        }
        inputs.check_settings(&asked)?;
        inputs.builds = builds::of(&asked, &inputs.settings)?;
        if inputs.settings.hypervisor == HypervisorKind::Xen {
            xen::check(&inputs.settings)?;
        }
        workloads.clone_into(&mut inputs.workloads);
        self.side_by_side = inputs.side_by_side(&asked)?;
        let of_knobs = self.knobs.check(treatments)?;
        Ok([self.notices(&asked)?, of_knobs].concat())
    }

    fn environment(&mut self) -> Result<Environment, WorldError> {
        let mut facts = numalab_host::Environment::read(&Root::live()).facts();
        facts.extend(builds::facts(&self.inputs.builds));
        Ok(Environment { facts })
    }

    fn expect(&mut self, treatments: &[&Treatment]) {
        if self.ahead.is_none() {
            self.ahead = self.workers();
        }
        if let Some(ahead) = &self.ahead {
            ahead.expect(treatments);
        }
    }

    fn apply(&mut self, treatment: &Treatment) -> Result<Vec<Evidence>, WorldError> {
        let mut evidence = self.knobs.apply(&host_side::knobs(&treatment.settings))?;
        self.outcome = match &self.ahead {
            Some(ahead) => ahead.take(treatment)?,
            None => self.inputs.run(treatment, &|| self.interrupt.requested())?,
        };
        self.taken.clear();
        evidence.extend(self.outcome.facts.iter().cloned());
        Ok(evidence)
    }

    fn sample(&mut self, order: &Order<'_>) -> Result<Taken, WorldError> {
        // A sample that is asked for again was disturbed: only another boot gives another.
        if self.taken.contains(&order.workload.name) {
            self.apply(order.treatment)?;
        }
        self.taken.push(order.workload.name.clone());
        let job = self.inputs.workloads.iter().position(|own| own.name == order.workload.name);
        let job = job.ok_or_else(|| {
            let place = format!("workload {}", order.workload.name);
            bad(&place, "one that was not checked".to_owned(), "a workload of the study")
        })?;
        let taken = summary::sample(&self.outcome, order.workload, job);
        // Guests that were lost are a sample with a reason; a workload that fails in guests
        // that live will fail in the next ones too.
        let alive = self.outcome.guests.iter().any(|guest| guest.lost.is_none());
        if alive
            && !taken
                .readings
                .iter()
                .any(|reading| !summary::OWN.contains(&reading.quantity.metric.as_str()))
        {
            return Err(WorldError::Failed {
                doing: format!("workload {} in the guests", order.workload.name),
                reason: taken.disturbances.join("; "),
            });
        }
        Ok(taken)
    }

    fn restore(&mut self) -> Result<(), WorldError> {
        // What was begun and is not needed any more ends here.
        self.ahead = None;
        self.knobs.restore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_workload::WorkloadSpec;
    use outcome::{GuestOutcome, JobOutcome};

    fn guests(outcome: GuestOutcome) -> (Guests, Workload, Treatment) {
        let spec = WorldSpec { kind: "guests".to_owned(), ..WorldSpec::default() };
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
        let order = Order { treatment: &treatment, workload: &workload, seed: 1 };
        let taken = guests.sample(&order).unwrap();
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
        let order = Order { treatment: &treatment, workload: &workload, seed: 1 };
        let error = guests.sample(&order).unwrap_err().to_string();
        assert!(error.contains("guest g01: "), "{error}");
        assert!(error.contains("no such option"), "{error}");
    }
}
