//! numalab's own kernel, or the user's: every sample is a boot, and treatments are kernel
//! arguments.

mod file;
mod metrics;
mod place;
mod shape;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use numalab_guest::{Guest, Limits, Runtime};
use numalab_host::{Interrupt, Root, read_environment};
use numalab_image::{BootFiles, own_kernel};
use numalab_kernel::command::{Command, KEYS};
use numalab_kernel::event::Boot;
use numalab_kernel::results::Results;
use numalab_kernel::run::{RunError, run};
use numalab_record::Environment;
use numalab_record::study::{Evidence, Notice, Observation, Treatment};
use numalab_study::{
    Backend, BackendError, BackendSpec, Inspection, Preparation, PrepareError, Prepared,
    SampleRequest, Scope, StudyPlace,
};
use numalab_topology::Machine;
use numalab_workload::{Ending, Finished, Reading, Workload};

use self::file::KernelFile;
use self::metrics::{as_f64, is_of_time, local_percent, metric_lines};
use self::place::{KernelPlace, PlaceKind, lacking, real_placement};
pub(super) use self::shape::KIND;
use self::shape::{BACKENDS, Shape};
use super::disturbance_watch::DisturbanceWatch;
use crate::exec;

/// The program name for workloads of this backend.
const PROGRAM: &str = "numalab-kernel";
/// The time limit of a boot: counting every access takes time, and more on a loaded host.
const BOOT_LIMIT: Duration = Duration::from_secs(600);

/// The kernel on a machine of any shape.
pub(super) struct Kernel {
    interrupt: Interrupt,
    shape: Shape,
    file: Option<KernelFile>,
    machine: Machine,
}

/// The kernel in the place found for it.
struct PreparedKernel {
    interrupt: Interrupt,
    machine: Machine,
    place: KernelPlace,
    runtime: Runtime,
    /// The kernel supplied by the user, if any.
    file: Option<KernelFile>,
    files: BootFiles,
    watch: DisturbanceWatch,
}

impl Kernel {
    pub(super) fn open(spec: &BackendSpec, interrupt: &Interrupt) -> Result<Self, BackendError> {
        let shape = Shape::of(spec)?;
        let machine = shape.machine()?;
        let file = KernelFile::of(&shape)?;
        Ok(Self { interrupt: interrupt.clone(), shape, file, machine })
    }

    /// Rejects workloads and settings that the kernel does not know.
    fn check(&self, scope: &Scope<'_>) -> Result<(), BackendError> {
        if self.file.is_some() {
            return scope.workloads.iter().try_for_each(KernelFile::check);
        }
        for workload in scope.workloads {
            check_program(workload, PROGRAM, "in the backend kernel")?;
            for treatment in scope.treatments {
                check_settings(treatment)?;
                let line = words(treatment, workload, 0).join(" ");
                Command::parse(&line).map_err(|error| {
                    BackendError::bad_input(
                        StudyPlace::Sample {
                            workload: workload.name.clone(),
                            treatment: treatment.name.clone(),
                        },
                        line.clone(),
                        error,
                    )
                })?;
            }
        }
        Ok(())
    }

    fn path(&self) -> Result<PathBuf, BackendError> {
        if let Some(file) = &self.file {
            return Ok(file.path.clone());
        }
        own_kernel::OWN_KERNEL.find().map_err(|error| lacking(&error))
    }

    fn environment(&self, place: &KernelPlace) -> Result<Environment, BackendError> {
        let mut facts = read_environment(&Root::live()).facts;
        let kernel = match &self.file {
            Some(file) => file.fact()?,
            None => format!("numalab-kernel {}", env!("CARGO_PKG_VERSION")),
        };
        facts.insert("kernel".to_owned(), kernel.into());
        facts.insert("cpus".to_owned(), (self.machine.cpus.len() as u64).into());
        facts.insert("nodes".to_owned(), (self.machine.nodes.len() as u64).into());
        facts.insert("accelerator".to_owned(), place.boot.accelerator.kind.name().into());
        facts.insert("qemu".to_owned(), place.boot.qemu.version.to_string().into());
        facts.insert("memory_system".to_owned(), place.kind.name().into());
        Ok(Environment { facts })
    }
}

/// Checks that memory is only moved between nodes in a place with real ones.
fn check_place(place: &KernelPlace, treatments: &[Treatment]) -> Result<(), BackendError> {
    let moves = treatments.iter().any(|t| t.settings.contains_key(BACKENDS));
    if moves && !matches!(place.kind, PlaceKind::Real { .. }) {
        return Err(BackendError::lacking(
            format!("factor {BACKENDS}: there are no real nodes to bind memory to"),
            "expected a machine with several nodes and KVM",
        ));
    }
    Ok(())
}

impl PreparedKernel {
    fn guest(&self, request: &SampleRequest<'_>) -> Guest {
        let kernel_arguments = match &self.file {
            Some(_) => KernelFile::words(request.treatment, request.workload),
            None => words(request.treatment, request.workload, request.seed),
        };
        let on_first = request.treatment.settings.get(BACKENDS);
        let on_first = on_first.is_some_and(|value| value.to_string() == "node-0");
        let (memory, pins) = real_placement(&self.place.kind, on_first);
        let memory_emulator = match &self.place.kind {
            PlaceKind::Emulated { emulator, .. } => Some((**emulator).clone()),
            PlaceKind::Real { .. } | PlaceKind::Plain => None,
        };
        let run = Some(Duration::from_secs(request.workload.timeout_s));
        Guest {
            machine: self.machine.clone(),
            memory,
            pins,
            memory_emulator,
            kernel_arguments,
            limits: Limits { boot: BOOT_LIMIT, run },
            ..Guest::default()
        }
    }
}

impl Backend for Kernel {
    fn describe(&self) -> String {
        let (nodes, cpus) = (self.machine.nodes.len(), self.machine.cpus.len());
        let kernel = match &self.file {
            Some(file) => file.path.display().to_string(),
            None => "numalab's kernel".to_owned(),
        };
        format!("{kernel}, {nodes} nodes, {cpus} cpus")
    }

    fn inspect(&self, scope: &Scope<'_>) -> Result<Inspection, BackendError> {
        self.check(scope)?;
        self.path()?;
        let place = place::foresee(&self.shape, &self.machine)?;
        check_place(&place, scope.treatments)?;
        let mut notices = vec![place.kind.notice()];
        let mut downloads = Vec::new();
        if place.kind.has_host_times() {
            notices.push(Notice::AcceleratorNotTried);
            downloads = place::downloads()?;
        }
        let memory_bytes = self.machine.memory_bytes();
        Ok(Inspection { notices, downloads, memory_bytes })
    }

    fn prepare(self: Box<Self>, scope: &Scope<'_>) -> Result<Preparation, PrepareError> {
        self.check(scope)?;
        let files = BootFiles { kernel: self.path()?, initramfs: None };
        let place = place::find(&self.shape, &self.machine)?;
        check_place(&place, scope.treatments)?;
        let environment = self.environment(&place)?;
        let notices = vec![place.kind.notice()];
        let backend = PreparedKernel {
            watch: DisturbanceWatch::new(place.kind.has_host_times())?,
            runtime: Runtime::open().map_err(|error| lacking(&error))?,
            interrupt: self.interrupt,
            machine: self.machine,
            place,
            file: self.file,
            files,
        };
        Ok(Preparation { environment, notices, backend: Box::new(backend) })
    }
}

impl Prepared for PreparedKernel {
    fn apply(&mut self, _treatment: &Treatment) -> Result<Vec<Evidence>, BackendError> {
        Ok(Vec::new())
    }

    fn sample(&mut self, request: &SampleRequest<'_>) -> Result<Observation, BackendError> {
        let before = self.watch.now();
        let launch = self.place.boot.launch(self.guest(request), &self.files);
        let launch = launch.map_err(|error| lacking(&error))?;
        if let Some(file) = &self.file {
            let heard = file.run(&launch, &self.runtime, &self.interrupt, request)?;
            let disturbance = DisturbanceWatch::disturbance(before, self.watch.now());
            return Ok(Observation {
                readings: self.readings(request, &heard.text)?,
                counters: heard.counters,
                disturbances: disturbance.into_iter().collect(),
                ..Observation::default()
            });
        }
        let asked = || self.interrupt.requested();
        let ran = run(&launch, &self.runtime, &mut |_, _| (), &asked);
        let (_, results) = ran.map_err(|error| match error {
            RunError::Guest(numalab_guest::GuestError::Stopped) => BackendError::Interrupted,
            RunError::Guest(error) => lacking(&error),
            error => failed(request.workload, error.to_string()),
        })?;
        if let Some((work, message)) = &results.failure {
            return Err(failed(request.workload, format!("{work}: {message}")));
        }
        let disturbance = DisturbanceWatch::disturbance(before, self.watch.now());
        let taken = self.taken(request, &results)?;
        Ok(Observation { disturbances: disturbance.into_iter().collect(), ..taken })
    }

    fn restore(self: Box<Self>) -> Result<(), BackendError> {
        // The guest has already ended: nothing was changed.
        Ok(())
    }
}

impl PreparedKernel {
    /// Returns the readings for the workload's metrics, without times if they have no meaning.
    fn taken(
        &self,
        request: &SampleRequest<'_>,
        results: &Results,
    ) -> Result<Observation, BackendError> {
        let boot = results.boot.clone().unwrap_or_default();
        Ok(Observation {
            readings: self.readings(request, &metric_lines(results, &boot))?,
            counters: counters(results),
            evidence: evidence(request.treatment, results, &boot),
            ..Observation::default()
        })
    }

    /// Returns the readings of the workload's patterns, except times that have no meaning here.
    fn readings(
        &self,
        request: &SampleRequest<'_>,
        text: &str,
    ) -> Result<Vec<Reading>, BackendError> {
        let finished =
            Finished { ending: Ending::Exited(0), stdout: text, stderr: "", elapsed_s: 0.0 };
        let mut readings = request
            .workload
            .read(&finished)
            .map_err(|error| failed(request.workload, error.to_string()))?;
        let has_times = self.place.kind.has_times();
        readings.retain(|reading| has_times || !is_of_time(&reading.quantity.unit));
        Ok(readings)
    }
}

/// Returns the kernel's arguments: the workload's with settings filled in, then the settings.
fn words(treatment: &Treatment, workload: &Workload, seed: u64) -> Vec<String> {
    let own = workload.command.iter().skip(1);
    let mut words: Vec<String> = own.map(|word| exec::filled(word, &treatment.settings)).collect();
    let settings = treatment.settings.iter().filter(|(name, _)| name.as_str() != BACKENDS);
    words.extend(settings.map(|(name, value)| format!("{name}={value}")));
    words.push(format!("seed={seed}"));
    words
}

/// Rejects a workload with another program, and gives the reason.
fn check_program(workload: &Workload, program: &str, why: &str) -> Result<(), BackendError> {
    match workload.command.first().map_or("", String::as_str) {
        found if found == program => Ok(()),
        found => Err(BackendError::bad_input(
            StudyPlace::Workload(workload.name.clone()),
            found,
            format!("{program} and its arguments, {why}"),
        )),
    }
}

fn check_settings(treatment: &Treatment) -> Result<(), BackendError> {
    for (name, value) in &treatment.settings {
        let bad = |expected: String| {
            BackendError::bad_input(
                StudyPlace::Treatment(treatment.name.clone()),
                format!("{name} = {value}"),
                expected,
            )
        };
        let is_word = KEYS.iter().any(|key| key.trim_end_matches('=') == name.as_str());
        if name == BACKENDS {
            if !["own", "node-0"].contains(&value.to_string().as_str()) {
                return Err(bad("own or node-0".to_owned()));
            }
        } else if !is_word {
            return Err(bad(format!("{BACKENDS} or an argument of the kernel")));
        }
    }
    Ok(())
}

/// Returns the emulator's counts for the slowest thread, which explain the time.
fn counters(results: &Results) -> BTreeMap<String, f64> {
    let mut counters = BTreeMap::new();
    let threads =
        results.runs.iter().flat_map(|run| run.touch_accesses.iter().zip(&run.read_accesses));
    let sums = threads.map(|(touch, read)| [touch[0] + read[0], touch[1] + read[1]]);
    if let Some([local, remote]) = sums.max_by_key(|sum| sum[1]) {
        counters.insert("local accesses".to_owned(), as_f64(local));
        counters.insert("remote accesses".to_owned(), as_f64(remote));
    }
    counters
}

/// Returns evidence, from the allocator's own counts, that it did what the treatment asks.
fn evidence(treatment: &Treatment, results: &Results, boot: &Boot) -> Vec<Evidence> {
    let percent = local_percent(results).map(|percent| format!("{percent:.1} % of frames local"));
    let mut evidence: Vec<Evidence> =
        percent.into_iter().map(|found| Evidence::fact("placement", found)).collect();
    for (name, value) in treatment.settings.iter().filter(|(name, _)| name.as_str() != BACKENDS) {
        let word = format!("{name}={value}");
        let heard = boot.command.split(' ').any(|heard| heard == word);
        let found = if heard { value.to_string() } else { "not heard".to_owned() };
        evidence.push(Evidence::of(name, value.to_string(), found));
    }
    evidence
}

fn failed(workload: &Workload, reason: String) -> BackendError {
    BackendError::of_workload(workload, reason)
}
