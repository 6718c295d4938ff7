//! Many guests on one NUMA machine: how much they get done together, and where each
//! one's memory lies.
//!
//! A treatment is a boot: the guests are made, all workloads run in them one after the
//! other, in all guests at once, and the samples are handed out as they are asked for.

mod builds;
mod contents;
mod emulated;
mod errors;
mod outcome;
mod qemu;
mod scene;
mod settings;
mod summary;
mod windows;
mod xen;

use std::collections::BTreeMap;
use std::path::PathBuf;

use numalab_guest::Contents;
use numalab_guest::xen::{Pinning, XenBuild};
use numalab_host::{Interrupt, Root};
use numalab_record::Environment;
use numalab_record::study::{Evidence, Taken, Treatment};
use numalab_workload::Workload;

use super::gate::Gate;
use super::{Order, World, WorldError};
use crate::definition::WorldSpec;
use crate::exec;
use outcome::Outcome;
use scene::Scene;
use settings::{Asked, GuestsSettings, HypervisorKind, bad};

/// Where a workload's own directory is in a guest: a tmpfs.
const SCRATCH: &str = "/tmp/scratch";

/// Many guests on one machine.
pub(super) struct Guests {
    settings: GuestsSettings,
    interrupt: Interrupt,
    workloads: Vec<Workload>,
    /// Hypervisors of the user's own, by file.
    builds: BTreeMap<PathBuf, XenBuild>,
    /// What came of the treatment that was applied last.
    outcome: Outcome,
    /// The workloads whose sample was handed out since.
    taken: Vec<String>,
}

impl Guests {
    pub(super) fn open(spec: &WorldSpec, interrupt: &Interrupt) -> Result<Self, WorldError> {
        Ok(Self {
            settings: GuestsSettings::read(spec)?,
            interrupt: interrupt.clone(),
            workloads: Vec::new(),
            builds: BTreeMap::new(),
            outcome: Outcome::default(),
            taken: Vec::new(),
        })
    }

    fn run(&self, treatment: &Treatment) -> Result<Outcome, WorldError> {
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
            interrupt: &self.interrupt,
        };
        match self.settings.hypervisor {
            HypervisorKind::Xen => runs.on_xen(),
            HypervisorKind::Qemu => runs.on_qemu(),
        }
    }

    /// The machine is emulated for a Xen in QEMU; else it is this one.
    fn scene(&self, asked: &Asked) -> Result<Scene, WorldError> {
        Ok(match (self.settings.hypervisor, self.settings.on_this_dom0) {
            (HypervisorKind::Xen, false) => Scene::of(asked, &self.settings),
            (HypervisorKind::Xen, true) => Scene::of_host(asked, xen::host()?),
            (HypervisorKind::Qemu, _) => Scene::of_host(asked, qemu::host()?),
        })
    }

    /// What a reader should know before it starts.
    fn notices(&self, asked: &[Asked]) -> Result<Vec<String>, WorldError> {
        let mut notices = Vec::new();
        let in_qemu =
            self.settings.hypervisor == HypervisorKind::Xen && !self.settings.on_this_dom0;
        if in_qemu && !self.settings.emulate_memory {
            notices.push(COSTS_NOTHING);
        }
        if self.settings.emulate_memory {
            notices.push(OWN_CLOCKS);
        }
        if asked.iter().any(|asked| asked.pinning == Pinning::CpusAsString) {
            notices.push(STRING_FORM);
        }
        let scenes: Result<Vec<Scene>, WorldError> =
            asked.iter().map(|asked| self.scene(asked)).collect();
        if scenes?.iter().any(|scene| scene.machine.nodes.len() < 2) {
            notices.push(ONE_NODE);
        }
        notices.extend((!self.builds.is_empty()).then_some(OWN_XEN));
        let builds = builds::facts(&self.builds).map(|(xen, content)| format!("{xen}: {content}"));
        Ok(notices.into_iter().map(ToOwned::to_owned).chain(builds).collect())
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

const COSTS_NOTHING: &str = "memory costs the same everywhere in these guests: where it lies is \
    meaningful, throughput is not; --emulate-memory gives it costs, in virtual time";
const OWN_CLOCKS: &str = "virtual time: every cpu of the machine has its own, so that guests run \
    side by side whatever this host has; commands see ROUNDS=1 unless the study says another";
const OWN_XEN: &str = "the tools in dom0 are Debian's: they speak to a Xen of their own release, \
    or to one with the same interface versions";
const STRING_FORM: &str = "cpus-as-string shows a fault of libxl: cpus=\"...\" pins the cpus, but \
    memory comes from the node that automatic placement takes";
const ONE_NODE: &str =
    "where the machine has one node numa cannot act: what differs there is chance";

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
    interrupt: &'a Interrupt,
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
        let memory = if self.settings.emulate_memory { ", with emulated memory costs" } else { "" };
        match (self.settings.hypervisor, self.settings.on_this_dom0) {
            (HypervisorKind::Xen, true) => "domains of this machine's Xen".to_owned(),
            (HypervisorKind::Xen, false) => format!("domains of Xen in QEMU{memory}"),
            (HypervisorKind::Qemu, _) => "guests of QEMU on this machine".to_owned(),
        }
    }

    fn check(
        &mut self,
        treatments: &[Treatment],
        workloads: &[Workload],
    ) -> Result<Vec<String>, WorldError> {
        let asked: Result<Vec<Asked>, WorldError> =
            treatments.iter().map(|treatment| Asked::of(treatment, &self.settings)).collect();
        let asked = asked?;
        if let Some(workload) = workloads.iter().find(|workload| workload.service.is_some()) {
            let place = format!("workload {}", workload.name);
            return Err(bad(&place, "a service".to_owned(), "a workload that is one command"));
        }
        self.check_settings(&asked)?;
        self.builds = builds::of(&asked, &self.settings)?;
        if self.settings.hypervisor == HypervisorKind::Xen {
            xen::check(&self.settings)?;
        }
        workloads.clone_into(&mut self.workloads);
        self.notices(&asked)
    }

    fn environment(&mut self) -> Result<Environment, WorldError> {
        let mut facts = numalab_host::Environment::read(&Root::live()).facts();
        facts.extend(builds::facts(&self.builds));
        Ok(Environment { facts })
    }

    fn apply(&mut self, treatment: &Treatment) -> Result<Vec<Evidence>, WorldError> {
        self.outcome = self.run(treatment)?;
        self.taken.clear();
        Ok(self.outcome.facts.clone())
    }

    fn sample(&mut self, order: &Order<'_>) -> Result<Taken, WorldError> {
        // A sample that is asked for again was disturbed: only another boot gives another.
        if self.taken.contains(&order.workload.name) {
            self.apply(order.treatment)?;
        }
        self.taken.push(order.workload.name.clone());
        let job = self.workloads.iter().position(|own| own.name == order.workload.name);
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
        Ok(())
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
        guests.workloads = vec![workload.clone()];
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
