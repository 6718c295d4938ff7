//! Many guests on one NUMA machine: their total throughput, and where the memory of each one is.
//!
//! A treatment is a boot: the guests are created, all workloads run in them one after another, in
//! all guests at once, and the samples are returned as they are requested.

mod boot_context;
mod boot_pool;
mod builds;
mod contents;
mod emulated;
mod errors;
mod inputs;
mod kind;
mod layout;
mod machine;
mod notices;
mod outcome;
mod qemu;
mod settings;
mod summary;
mod windows;
mod xen;

use std::collections::BTreeMap;

use numalab_guest::HostPages;
use numalab_host::{Interrupt, Root, read_environment};
use numalab_record::Environment;
use numalab_record::study::{Disturbance, Evidence, Observation, Treatment};
use numalab_study::{
    Backend, BackendError, BackendSpec, Inspection, Preparation, PrepareError, Prepared,
    SampleRequest, Scope, StudyPlace,
};
use numalab_workload::Workload;

use super::exec;
use super::host_side::{self, BACKING, HOST};
use super::knob_settings::{self, KnobSettings};
use boot_pool::BootPool;
use errors::bad;
use inputs::Inputs;
pub(super) use kind::KIND;
use outcome::Outcome;
use settings::{GuestTreatment, GuestsSettings, HypervisorKind};

/// Many guests on one machine.
pub(super) struct Guests {
    settings: GuestsSettings,
    interrupt: Interrupt,
}

/// Many guests, prepared for taking samples.
struct PreparedGuests {
    /// Boots started ahead of time; they end before the knobs under them are restored.
    pool: Option<BootPool>,
    /// Knobs of this machine, for QEMU guests.
    knobs: KnobSettings,
    inputs: Inputs,
    interrupt: Interrupt,
    /// The maximum number of boots at the same time.
    side_by_side: usize,
    /// The outcome of the last applied treatment.
    outcome: Outcome,
    /// The workloads whose samples were returned since.
    taken: Vec<String>,
}

impl Guests {
    pub(super) fn open(spec: &BackendSpec, interrupt: &Interrupt) -> Result<Self, BackendError> {
        Ok(Self { settings: KIND.read(spec)?, interrupt: interrupt.clone() })
    }

    /// Resolves the inputs of boots and the meaning of each treatment. Only reads.
    fn resolve(&self, scope: &Scope<'_>) -> Result<(Inputs, Vec<GuestTreatment>), BackendError> {
        let treatments = scope.treatments.iter();
        let wanted: Result<Vec<GuestTreatment>, BackendError> =
            treatments.map(|treatment| GuestTreatment::of(treatment, &self.settings)).collect();
        let wanted = wanted?;
        self.check_host_side(scope.treatments, &wanted)?;
        if let Some(workload) = scope.workloads.iter().find(|workload| workload.service.is_some()) {
            let place = StudyPlace::Workload(workload.name.clone());
            return Err(bad(place, "a service".to_owned(), "a workload that is one command"));
        }
        let mut inputs = Inputs {
            settings: self.settings.clone(),
            workloads: exec::workloads(scope),
            builds: BTreeMap::new(),
        };
        inputs.check_settings(&wanted)?;
        inputs.builds = builds::hypervisor_builds(&wanted, &inputs.settings)?;
        if self.settings.hypervisor == HypervisorKind::Xen {
            xen::check(&self.settings)?;
        }
        Ok((inputs, wanted))
    }

    /// Rejects host settings for guests that do not run under QEMU, and knobs that this machine
    /// lacks.
    fn check_host_side(
        &self,
        treatments: &[Treatment],
        wanted: &[GuestTreatment],
    ) -> Result<(), BackendError> {
        let mut knobs =
            treatments.iter().flat_map(|one| host_side::knobs(&one.settings)).peekable();
        let of_host =
            knobs.peek().is_some() || wanted.iter().any(|one| one.pages != HostPages::Normal);
        if of_host && self.settings.hypervisor == HypervisorKind::Xen {
            let found = format!("{BACKING} or {HOST}KNOB for domains of Xen");
            return Err(bad(
                StudyPlace::keys(["factor"]),
                found,
                "them with hypervisor = \"qemu\"",
            ));
        }
        if let Some((name, _)) = knobs.find(|(name, _)| knob_settings::find(HOST, name).is_none()) {
            let found = "no such knob".to_owned();
            return Err(bad(
                StudyPlace::Setting(name.to_owned()),
                found,
                "one of `numalab knobs list`",
            ));
        }
        Ok(())
    }
}

impl PreparedGuests {
    /// Returns workers that boot upcoming treatments, if boots may run in parallel.
    fn workers(&self) -> Option<BootPool> {
        let (inputs, interrupt) = (self.inputs.clone(), self.interrupt.clone());
        (self.side_by_side > 1).then(|| {
            BootPool::new(self.side_by_side, move |treatment, stop| {
                inputs.run(treatment, &|| interrupt.requested() || stop.requested())
            })
        })
    }
}

impl Backend for Guests {
    fn describe(&self) -> String {
        let settings = &self.settings;
        let memory = if settings.emulates_memory() { ", with emulated memory costs" } else { "" };
        match (settings.hypervisor, settings.on_this_dom0) {
            (HypervisorKind::Xen, true) => "domains of this machine's Xen".to_owned(),
            (HypervisorKind::Xen, false) => format!("domains of Xen in QEMU{memory}"),
            (HypervisorKind::Qemu, _) => "guests of QEMU on this machine".to_owned(),
        }
    }

    fn own_metrics(&self) -> usize {
        // Only their speed is tested; the other metrics are placement counts.
        usize::from(self.settings.emulates_memory())
    }

    fn inspect(&self, scope: &Scope<'_>) -> Result<Inspection, BackendError> {
        let (inputs, wanted) = self.resolve(scope)?;
        inputs.check_host_memory(&wanted)?;
        inputs.check_guest_memory()?;
        let mut notices = inputs.notices(&wanted)?;
        notices.extend(knob_settings::inspect(HOST, scope.treatments)?);
        let memory_bytes = inputs.memory_bytes(&wanted)?;
        Ok(Inspection { notices, downloads: inputs.downloads()?, memory_bytes })
    }

    fn prepare(self: Box<Self>, scope: &Scope<'_>) -> Result<Preparation, PrepareError> {
        let notices = self.inspect(scope)?.notices;
        let (inputs, wanted) = self.resolve(scope)?;
        inputs.fetch()?;
        let mut facts = read_environment(&Root::live()).facts;
        facts.extend(builds::facts(&inputs.builds));
        let backend = PreparedGuests {
            pool: None,
            knobs: KnobSettings::prepare(HOST, scope.treatments)?,
            interrupt: self.interrupt,
            side_by_side: inputs.side_by_side(&wanted)?,
            inputs,
            outcome: Outcome::default(),
            taken: Vec::new(),
        };
        let environment = Environment { facts };
        Ok(Preparation { environment, notices, backend: Box::new(backend) })
    }
}

impl Prepared for PreparedGuests {
    fn expect(&mut self, treatments: &[&Treatment]) {
        if self.pool.is_none() {
            self.pool = self.workers();
        }
        if let Some(pool) = &self.pool {
            pool.expect(treatments);
        }
    }

    fn first_ready(&mut self, treatments: &[&Treatment]) -> usize {
        self.pool.as_ref().map_or(0, |pool| pool.first_done(treatments))
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

    fn sample(&mut self, request: &SampleRequest<'_>) -> Result<Observation, BackendError> {
        // A repeated request means that the sample was disturbed; only a new boot gives a new one.
        let mut boot_evidence = Vec::new();
        if self.taken.contains(&request.workload.name) {
            boot_evidence = self.apply(request.treatment)?;
        }
        self.taken.push(request.workload.name.clone());
        let mut workloads = self.inputs.workloads.iter();
        let job = workloads.position(|own| own.name == request.workload.name);
        // A job that no guest ran has no answers.
        let job = job.unwrap_or(self.inputs.workloads.len());
        let mut taken = summary::sample(&self.outcome, request.workload, job);
        taken.evidence.extend(boot_evidence);
        // If guests were lost, the sample records the reason; a workload that fails in live guests
        // will fail in the next ones too.
        let alive = self.outcome.guests.iter().any(|guest| guest.lost.is_none());
        if alive
            && !taken
                .readings
                .iter()
                .any(|reading| !kind::OWN_METRICS.contains(&reading.quantity.metric.as_str()))
        {
            return Err(no_values(request.workload, &taken.disturbances));
        }
        Ok(taken)
    }

    fn restore(self: Box<Self>) -> Result<(), BackendError> {
        let Self { pool, knobs, .. } = *self;
        // Ends the boots that are no longer needed.
        drop(pool);
        knobs.restore()
    }
}

/// Returns the error for live guests without values, with the first guest's reason.
fn no_values(workload: &Workload, disturbances: &[Disturbance]) -> BackendError {
    let said = disturbances.iter().find_map(|disturbance| match disturbance {
        Disturbance::Guest { guest, reason } => Some((guest.as_str(), reason.clone())),
        _ => None,
    });
    let (guest, reason) = said.unwrap_or_default();
    BackendError::failed(
        format!("workload {} in guest {guest}", workload.name),
        reason.unwrap_or_else(|| "no answer".to_owned()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_workload::WorkloadSpec;
    use outcome::{GuestOutcome, JobOutcome};

    fn guests(outcome: GuestOutcome) -> (PreparedGuests, Workload, Treatment) {
        let workload = WorkloadSpec::of_tool("dbench").resolve().unwrap();
        let guests = PreparedGuests {
            pool: None,
            knobs: KnobSettings::prepare(HOST, &[]).unwrap(),
            inputs: Inputs {
                settings: GuestsSettings::default(),
                workloads: vec![workload.clone()],
                builds: BTreeMap::new(),
            },
            interrupt: Interrupt::never(),
            side_by_side: 1,
            outcome: Outcome { guests: vec![outcome], ..Outcome::default() },
            taken: Vec::new(),
        };
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
        let reason = Some("not \"ready\" after 300s".to_owned());
        assert_eq!(taken.disturbances, [Disturbance::Guest { guest: "g01".to_owned(), reason }]);
    }

    #[test]
    fn a_workload_that_fails_in_a_live_guest_ends_the_study() {
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
