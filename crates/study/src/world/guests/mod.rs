//! Many guests on one NUMA machine: how much they get done together, and where each
//! one's memory lies.
//!
//! A treatment is a boot: the guests are made, all workloads run in them one after the
//! other, in all guests at once, and the samples are handed out as they are asked for.

mod emulated;
mod outcome;
mod scene;
mod settings;
mod summary;
mod xen;

use numalab_guest::xen::Pinning;
use numalab_host::{Interrupt, Root};
use numalab_record::Environment;
use numalab_record::study::{Evidence, Taken, Treatment};
use numalab_workload::Workload;

use super::{Order, World, WorldError};
use crate::definition::WorldSpec;
use outcome::Outcome;
use scene::Scene;
use settings::{Asked, GuestsSettings, HypervisorKind, bad};

/// Many guests on one machine.
pub(super) struct Guests {
    settings: GuestsSettings,
    interrupt: Interrupt,
    workloads: Vec<Workload>,
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
            outcome: Outcome::default(),
            taken: Vec::new(),
        })
    }

    fn run(&self, treatment: &Treatment) -> Result<Outcome, WorldError> {
        let asked = Asked::of(treatment)?;
        let scene = Scene::of(&asked, &self.settings);
        let runs = Runs {
            settings: &self.settings,
            treatment,
            asked: &asked,
            scene: &scene,
            workloads: &self.workloads,
            interrupt: &self.interrupt,
        };
        runs.on_xen()
    }

    /// What a reader should know before it starts.
    fn notices(&self, asked: &[Asked]) -> Vec<String> {
        let mut notices = Vec::new();
        if !self.settings.emulate_memory && !self.settings.on_this_dom0 {
            notices.push(
                "memory costs the same everywhere in these guests: where it lies is meaningful, \
                 throughput is not; emulate-memory = true gives it costs, in virtual time"
                    .to_owned(),
            );
        }
        if self.settings.emulate_memory {
            notices.push(
                "virtual time is one clock for all cpus: guests share it, so that sums over \
                 guests do not grow with their number; compare treatments with as many guests"
                    .to_owned(),
            );
        }
        if asked.iter().any(|asked| asked.pinning == Pinning::CpusAsString) {
            notices.push(
                "cpus-as-string shows a fault of libxl: cpus=\"...\" pins the cpus, but memory \
                 comes from the node that automatic placement takes"
                    .to_owned(),
            );
        }
        let one_node = |asked: &&Asked| Scene::of(asked, &self.settings).machine.nodes.len() == 1;
        if asked.iter().any(|asked| one_node(&asked)) {
            notices.push("on one node numa cannot act: what differs there is chance".to_owned());
        }
        notices
    }
}

/// What a boot needs to know.
struct Runs<'a> {
    settings: &'a GuestsSettings,
    treatment: &'a Treatment,
    asked: &'a Asked,
    scene: &'a Scene,
    workloads: &'a [Workload],
    interrupt: &'a Interrupt,
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
        let asked: Result<Vec<Asked>, WorldError> = treatments.iter().map(Asked::of).collect();
        let asked = asked?;
        if let Some(workload) = workloads.iter().find(|workload| workload.service.is_some()) {
            let place = format!("workload {}", workload.name);
            return Err(bad(&place, "a service".to_owned(), "a workload that is one command"));
        }
        xen::check(&self.settings)?;
        workloads.clone_into(&mut self.workloads);
        Ok(self.notices(&asked))
    }

    fn about_apply_s(&self) -> f64 {
        90.0
    }

    fn environment(&mut self) -> Result<Environment, WorldError> {
        let facts = numalab_host::Environment::read(&Root::live()).facts();
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
        if taken.readings.is_empty() {
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
