//! This machine: treatments are knobs, and words in the commands that are run.

use std::collections::BTreeMap;

use numalab_host::{
    Interrupt, Root, SystemWatch, adopt_orphans, on_path, read_environment, run_command,
};
use numalab_record::study::{
    Disturbance, Evidence, LoadedMachine, Observation, Setting, Treatment,
};
use numalab_record::{Environment, Pages};
use numalab_study::{
    Backend, BackendError, BackendKind, BackendSpec, Inspection, Preparation, PrepareError,
    Prepared, SampleRequest, Scope,
};
use numalab_topology::Machine;
use numalab_workload::{KernelNeed, Tool, Workload};
use serde::Deserialize;

use super::common_settings::{COUNT_MIGRATIONS, COUNTERS, WATCH_OUTPUT, WATCH_PAGES};
use super::disturbance_watch::allowed_cpus;
use super::exec::{self, Counting, FilesRead, PagesSeen, PagesWatch};
use super::facts;
use super::knob_settings::{self, KnobSettings, check_names};
use super::nested_paging::{self, EMULATED_HOST_PAGES};
use super::placement::{self, PlacedCommand};

/// The time limit for a tool to print its version.
const VERSION_LIMIT: std::time::Duration = std::time::Duration::from_secs(10);

/// The name of the evidence that holds the hash of a workload's output.
pub const OUTPUT: &str = "output";

/// This machine. A setting with a knob's name sets that knob; others are filled into the commands.
/// All are passed as environment variables `NUMALAB_<NAME>`, with the seed as `NUMALAB_SEED`.
#[derive(Debug)]
pub(super) struct Host {
    interrupt: Interrupt,
    options: Options,
}

/// This machine, prepared for taking samples.
#[derive(Debug)]
struct PreparedHost {
    interrupt: Interrupt,
    watch: SystemWatch,
    options: Options,
    knobs: KnobSettings,
    machine: Machine,
    workloads: Vec<Workload>,
    files: FilesRead,
}

/// The optional observations: settings of `[backend.host]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Options {
    counters: Vec<String>,
    count_migrations: bool,
    watch_pages: bool,
    watch_output: bool,
}

pub(super) const KIND: BackendKind = BackendKind {
    name: "host",
    about: "this machine: factors are its knobs, placements, or parts of commands",
    settings: &[COUNTERS, COUNT_MIGRATIONS, WATCH_PAGES, WATCH_OUTPUT],
    levels: &placement::LEVELS,
    ..BackendKind::PLAIN
};

impl Host {
    pub(super) fn open(spec: &BackendSpec, interrupt: &Interrupt) -> Result<Self, BackendError> {
        let options = KIND.read(spec)?;
        Ok(Self { interrupt: interrupt.clone(), options })
    }

    /// Returns facts about this machine, and the versions of the workloads' tools.
    fn environment(&self, workloads: &[Workload]) -> Environment {
        let mut facts = read_environment(&Root::live()).facts;
        for tool in workloads.iter().flat_map(|workload| &workload.tools) {
            let name = format!("tool_{}", tool.program);
            if let Some(version) = version(tool, &self.interrupt) {
                facts.insert(name, version.into());
            }
        }
        Environment { facts }
    }
}

impl PreparedHost {
    /// Returns the counters of the kernel, and of the emulator if there is one.
    fn counted(&self) -> BTreeMap<String, u64> {
        let mut counted = facts::vmstat();
        counted.extend(nested_paging::counted(&self.machine));
        counted
    }

    /// Runs a workload once under its placement.
    fn observe(
        &mut self,
        request: &SampleRequest<'_>,
        placement: &PlacedCommand,
    ) -> Result<Observation, BackendError> {
        let before = self.watch.snapshot();
        let counters_before = self.counted();
        let pages = self.options.watch_pages.then(PagesWatch::start);
        let executed = exec::run(request, placement, self.counting(), &self.interrupt);
        let seen = pages.map(PagesWatch::end);
        let executed = executed?;
        let output = self.options.watch_output.then(|| Evidence::fact(OUTPUT, executed.output));
        let mut counters = executed.counters;
        counters.extend(facts::grown(&self.options.counters, &counters_before, &self.counted()));
        let load = self.watch.snapshot().disturbance_since(&before);
        let disturbance = load.map(|load| Disturbance::Load { on: LoadedMachine::Own, load });
        Ok(Observation {
            readings: executed.readings,
            looks: executed.looks,
            counters,
            evidence: seen.iter().flat_map(page_evidence).chain(output).collect(),
            disturbances: disturbance.into_iter().collect(),
            ..Observation::default()
        })
    }

    fn counting(&self) -> Counting {
        if self.options.count_migrations { Counting::Scheduler } else { Counting::Off }
    }
}

impl Backend for Host {
    fn describe(&self) -> String {
        "this machine".to_owned()
    }

    fn inspect(&self, scope: &Scope<'_>) -> Result<Inspection, BackendError> {
        for workload in &exec::workloads(scope) {
            let missing = |tool: &&Tool| on_path(&tool.program).is_none();
            if let Some(tool) = workload.tools.iter().find(missing) {
                return Err(BackendError::missing(workload, &tool.program));
            }
        }
        if self.options.count_migrations && on_path("perf").is_none() {
            return Err(BackendError::lacking(
                "count-migrations: `perf` is not installed",
                "install it: apt-get install linux-perf",
            ));
        }
        let is_emulated_pages = |name: &str| name == EMULATED_HOST_PAGES.name;
        let is_knob =
            |name: &str| is_emulated_pages(name) || knob_settings::find("", name).is_some();
        let mut notices = check_names(scope, &KIND, is_knob)?;
        notices.extend(knob_settings::inspect("", scope.treatments)?);
        notices.extend(placement::inspect(scope, &machine()?)?);
        for treatment in scope.treatments {
            for workload in scope.workloads {
                check_needs(treatment, workload)?;
            }
        }
        Ok(Inspection { notices, ..Inspection::default() })
    }

    fn prepare(self: Box<Self>, scope: &Scope<'_>) -> Result<Preparation, PrepareError> {
        let notices = self.inspect(scope)?.notices;
        adopt_orphans()
            .map_err(|error| BackendError::failed("watching what workloads leave behind", error))?;
        let environment = self.environment(scope.workloads);
        let machine = machine()?;
        let backend = PreparedHost {
            files: FilesRead::on(machine.memory_nodes().len()),
            watch: SystemWatch::new(&allowed_cpus()?),
            knobs: KnobSettings::prepare("", scope.treatments)?,
            interrupt: self.interrupt,
            options: self.options,
            machine,
            workloads: scope.workloads.to_vec(),
        };
        Ok(Preparation { environment, notices, backend: Box::new(backend) })
    }
}

impl Prepared for PreparedHost {
    fn apply(&mut self, treatment: &Treatment) -> Result<Vec<Evidence>, BackendError> {
        let mut evidence = self.knobs.apply(&treatment.settings)?;
        evidence.extend(nested_paging::apply(&treatment.settings, &self.machine)?);
        let mut placements: Vec<PlacedCommand> = Vec::new();
        for workload in &self.workloads {
            let placement = PlacedCommand::of(&treatment.settings, workload, &self.machine)?;
            if !placements.contains(&placement) {
                evidence.extend(placement.proof()?);
                placements.push(placement);
            }
        }
        if self.options.watch_pages {
            evidence.push(facts::huge_pages("before"));
        }
        Ok(evidence)
    }

    fn sample(&mut self, request: &SampleRequest<'_>) -> Result<Observation, BackendError> {
        let settings = &request.treatment.settings;
        let placement = PlacedCommand::of(settings, request.workload, &self.machine)?;
        let mut files = std::mem::take(&mut self.files);
        let ran = files.run(|| self.observe(request, &placement));
        self.files = files;
        let (observation, files) = ran?;
        Ok(Observation { files, ..observation })
    }

    fn restore(self: Box<Self>) -> Result<(), BackendError> {
        self.knobs.restore()
    }
}

pub(super) fn machine() -> Result<Machine, BackendError> {
    let reading = numalab_host::read_machine(&Root::live());
    let machine = reading.map(|reading| reading.machine);
    machine.map_err(|error| BackendError::failed("reading this machine", error))
}

pub(super) fn page_evidence(seen: &PagesSeen) -> Vec<Evidence> {
    let fact = |what: &str, found: String| Evidence::fact(what, found);
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    let mut evidence = vec![
        fact("smaps: resident at most", mib(seen.resident)),
        fact("smaps: transparent huge pages at most", mib(seen.transparent_huge)),
        fact("smaps: Hugetlb at most", mib(seen.reserved_huge)),
    ];
    if let Some(free) = seen.pool_free_pages {
        evidence.push(fact("HugePages_Free at least", free.to_string()));
    }
    evidence
}

/// Checks that the pool from which a workload takes pages is large enough.
fn check_needs(treatment: &Treatment, workload: &Workload) -> Result<(), BackendError> {
    for need in exec::needs(workload, &treatment.settings) {
        let (have, remedy) = match &need {
            KernelNeed::HugePages { page_kib, pages } => {
                let free = pool_pages(treatment, *page_kib);
                let name = pool_knob(*page_kib);
                let remedy = format!("give the level {name} = {pages}, or reserve them");
                (free >= *pages, remedy)
            }
            KernelNeed::Nodes(count) => {
                let nodes = machine().map_or(0, |machine| machine.nodes.len());
                (nodes >= *count as usize, "run it in a guest with more nodes".to_owned())
            }
        };
        if !have {
            let what = format!("workload {} under {}: {need}", workload.name, treatment.name);
            return Err(BackendError::lacking(what, remedy));
        }
    }
    Ok(())
}

/// Returns the knob of a pool: `huge_2m_pages`.
fn pool_knob(page_kib: u64) -> String {
    format!("huge_{}_pages", Pages::Sized(page_kib << 10).name())
}

/// Returns the pages that a treatment puts into a pool, or else those that are free in it now.
fn pool_pages(treatment: &Treatment, page_kib: u64) -> u64 {
    match treatment.settings.get(&pool_knob(page_kib)) {
        Some(Setting::Integer(pages)) => u64::try_from(*pages).unwrap_or(0),
        _ => {
            let file = format!("sys/kernel/mm/hugepages/hugepages-{page_kib}kB/free_hugepages");
            let pages = Root::live().value(&file).ok();
            pages.and_then(|pages| pages.parse().ok()).unwrap_or(0)
        }
    }
}

fn version(tool: &Tool, interrupt: &Interrupt) -> Option<String> {
    let arguments = tool.version_arguments.as_ref()?;
    let command = numalab_host::tool(&tool.program, arguments);
    let ran = run_command(command, VERSION_LIMIT, interrupt).ok()?;
    Tool::version_in(&ran.stdout).map(str::to_owned)
}
