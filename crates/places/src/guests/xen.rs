//! Guests as domains of Xen.

use std::collections::BTreeMap;
use std::time::Duration;

use numalab_formats::memory_emulator::MemoryCosts;
use numalab_guest::emulator::PLUGIN;
use numalab_guest::xen;
use numalab_guest::xen::{
    DomainJob, DomainKind, DomainPlace, Pinning, XenError, XenEvent, XenFiles, XenMachine, XenPlan,
    XenReport,
};
use numalab_guest::{EmulatorMode, GuestError, MemoryEmulator, Qemu, QemuNeeds, Runtime};
use numalab_image::{Architecture, Cache, Contents};
use numalab_record::study::Evidence;
use numalab_study::{BackendError, StudyPlace};
use numalab_topology::{CpuId, Machine};
use numalab_workload::Workload;

use super::boot_context::BootContext;
use super::errors::{bad, lacking};
use super::kind::{KIND, XEN};
use super::outcome::{GuestOutcome, JobOutcome, Outcome};
use super::settings::{GuestTreatment, GuestsSettings};
use super::windows::JobWindows;
use crate::disturbance_watch::DisturbanceWatch;

/// The prefix of the lines with which a command marks the part that is measured.
const MARK: &str = "numalab mark ";
/// The limit of a job's virtual time under emulation, in seconds; a guest that spins for this long
/// takes this machine half an hour.
const VIRTUAL_LIMIT_S: u64 = 30;
/// The time limit of a boot; a quiet machine needs a tenth of it.
const BOOT_LIMIT: Duration = Duration::from_secs(1800);

/// Checks that domains can be created, without creating any.
pub(super) fn check(settings: &GuestsSettings) -> Result<(), BackendError> {
    settings.costs.costs(KIND.name)?;
    if settings.on_this_dom0 {
        return xen::check_dom0().map_err(|error| {
            BackendError::lacking(error, "boot this machine with Xen, or omit on-this-dom0")
        });
    }
    if settings.emulates_memory() {
        PLUGIN.find().map_err(|error| lacking(&error))?;
    }
    let cache = Cache::open().map_err(|error| lacking(&error))?;
    qemu(&cache, settings, 2).map(drop)
}

/// Returns the files that Xen boots, from the cache or newly fetched.
pub(super) fn files(contents: &Contents) -> Result<(Cache, XenFiles), BackendError> {
    let cache = Cache::open().map_err(|error| BackendError::failed("cache", error))?;
    let files = XenFiles::ensure(&cache, contents, &mut |_| {});
    let files = files.map_err(|error| lacking(&error))?;
    Ok((cache, files))
}

/// Returns the machine that this Xen runs on.
pub(super) fn host() -> Result<Machine, BackendError> {
    let (machine, _) =
        xen::this_machine().map_err(|error| BackendError::failed("this dom0", error))?;
    Ok(machine)
}

impl BootContext<'_> {
    /// Boots Xen, creates the domains, and runs every workload in all of them.
    pub(super) fn on_xen(&self) -> Result<Outcome, BackendError> {
        let (cache, mut files) = files(&self.contents)?;
        if let Some(build) = &self.build {
            files.hypervisor =
                build.ensure(&cache).map_err(|error| BackendError::failed("Xen", error))?;
        }
        let mut watch = self.watch()?;
        let mut windows = JobWindows::new();
        let mut watch = |event: &XenEvent| windows.see(event, watch.now());
        let machine = (!self.settings.on_this_dom0).then(|| self.machine()).transpose()?;
        let report = self.boot(&cache, &files, machine, &mut watch);
        let report = report.map_err(|error| self.xen_error(&error))?;
        let disturbances = windows.jobs().filter_map(|(job, begun, done)| {
            DisturbanceWatch::disturbance(begun, done).map(|reason| (job, reason))
        });
        Ok(Outcome { disturbances: disturbances.collect(), ..self.outcome(&report) })
    }

    /// Runs domains on this machine, or on the one that is created for them.
    fn boot(
        &self,
        cache: &Cache,
        files: &XenFiles,
        machine: Option<XenMachine>,
        watch: &mut dyn FnMut(&XenEvent),
    ) -> Result<XenReport, XenError> {
        let plan = XenPlan {
            domains: self.layout.domains(self.wanted, self.settings),
            jobs: self.workloads.iter().map(|workload| self.job(workload)).collect(),
            split_pools: self.wanted.splits_pools(),
            restores: self.settings.restores(),
            ..XenPlan::default()
        };
        let Some(machine) = machine else {
            let (_, memory) = xen::this_machine()?;
            let plan = xen::fitted(&plan, &files.kernel, &files.domain, memory);
            return XenReport::of_this_dom0(&plan, watch);
        };
        let qemu = qemu_for(cache, &machine)?;
        let plan = machine.fitted(&plan);
        let launch = machine.launch(files, qemu)?;
        let runtime = Runtime::open().map_err(GuestError::from)?;
        xen::run(&launch, &runtime, &plan, watch, self.ended)
    }

    fn xen_error(&self, error: &XenError) -> BackendError {
        let doing = format!("Xen, {}", self.treatment.name);
        match error {
            XenError::Guest(GuestError::Stopped) => BackendError::Interrupted,
            XenError::Guest(guest) => BackendError::of(&doing, guest),
            error => BackendError::failed(doing, error),
        }
    }

    fn machine(&self) -> Result<XenMachine, BackendError> {
        let mut arguments = vec![
            "loglvl=all".to_owned(),
            format!("numa={}", self.wanted.numa),
            format!("dom0_mem={0}M,max:{0}M", self.settings.dom0_memory_mib),
            "dom0_max_vcpus=2".to_owned(),
            // Scrubbing all free memory would cost the host much work for nothing.
            "bootscrub=0".to_owned(),
            // If each cpu is a package, as on an x460, credit2 has a queue per cpu, and guests
            // share one for hundreds of ms while another cpu is idle.
            "credit2_runqueue=node".to_owned(),
        ];
        arguments.extend(self.wanted.dom0_nodes.iter().map(|nodes| format!("dom0_nodes={nodes}")));
        let machine = self.layout.machine.clone();
        let emulator = self.settings.emulates_memory().then(|| emulator(&machine, self.settings));
        Ok(XenMachine {
            memory_emulator: emulator.transpose()?,
            pvh: self.settings.guest_kind == DomainKind::Pvh,
            boot_limit: Some(BOOT_LIMIT),
            machine,
            arguments,
        })
    }

    fn job(&self, workload: &Workload) -> DomainJob {
        let script = format!("{}; exec \"$@\"", self.preparation());
        let mut command = ["sh", "-c", &script, "sh"].map(ToOwned::to_owned).to_vec();
        command.extend(self.words(workload));
        let marks_itself = command.iter().any(|word| word.contains(MARK));
        let name = workload.name.clone();
        let limit_s = match self.settings.emulates_memory() {
            true => workload.timeout_s.min(VIRTUAL_LIMIT_S),
            false => workload.timeout_s,
        };
        DomainJob { name, command, limit_s, marks_itself }
    }

    fn outcome(&self, report: &XenReport) -> Outcome {
        let guests = self.layout.guests.iter().map(|guest| {
            let place = report.places.get(&guest.name);
            let free = self.wanted.pinning == Pinning::None;
            let ran_on = place.and_then(|place| node_of_cpus(place, &self.layout.machine));
            let knows = self.wanted.numa == "on";
            let (memory, elsewhere) =
                place.map(|place| memory_of(place, knows)).unwrap_or_default();
            let lost = report.lost.get(&guest.name);
            let mut outcome = GuestOutcome {
                name: guest.name.clone(),
                home: if free { ran_on } else { Some(guest.home) },
                memory,
                elsewhere,
                jobs: jobs_of(&guest.name, report),
                lost: lost.map(|(_, reason)| reason.clone()),
                cpus: place.map(allowed_cpus),
                evidence: Vec::new(),
            };
            outcome.evidence = self.evidence(&outcome, place);
            outcome
        });
        let mut facts = facts(report, &self.layout.machine, self.wanted);
        facts.extend(self.build_evidence(report));
        Outcome {
            guests: guests.collect(),
            facts,
            memory_report: report.memory_report.clone(),
            disturbances: BTreeMap::new(),
        }
    }

    /// Returns the hypervisor that ran, if the study varies it.
    fn build_evidence(&self, report: &XenReport) -> Option<Evidence> {
        let wanted = self.treatment.settings.get(XEN)?.to_string();
        let file = self.build.as_ref().map(|build| format!(", file sha256 {}", build.sha256()));
        let (version, id) = (&report.info.version, &report.info.build_id);
        let found = format!("Xen {version}, build id {id}{}", file.unwrap_or_default());
        Some(Evidence::of(XEN, wanted, found))
    }

    /// Returns evidence of a guest's location, with the reason if it is not the intended one.
    fn evidence(&self, guest: &GuestOutcome, place: Option<&DomainPlace>) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        let Some(place) = place else { return evidence };
        evidence.extend((!place.unknown.is_empty()).then(|| {
            Evidence::fact(format!("unknown for {}", guest.name), place.unknown.join("; "))
        }));
        let misplaced = guest.local_share().is_some_and(|share| share < 0.5);
        if misplaced && self.wanted.numa == "on" && self.wanted.pinning == Pinning::CpusAsString {
            evidence.push(Evidence::of(
                format!("placement of {}", guest.name),
                "memory on the node of its cpus",
                LIBXL_FAULT,
            ));
        }
        evidence
    }
}

/// Returns the size of the domains' image, from its parts in the cache.
pub(super) fn domain_bytes(contents: &Contents) -> Result<u64, BackendError> {
    let cache = Cache::open().map_err(|error| lacking(&error))?;
    XenFiles::domain_bytes_of(&cache, contents).map_err(|error| lacking(&error))
}

/// Refuses domains with too little memory to unpack an image of this size.
pub(super) fn check_guest_memory(given_mib: u64, image_bytes: u64) -> Result<(), BackendError> {
    let needed_mib = needed_mib(image_bytes);
    if given_mib >= needed_mib {
        return Ok(());
    }
    let expected =
        format!("at least {needed_mib}, for an image of {} MiB and its content", image_bytes >> 20);
    Err(bad(StudyPlace::backend("guests", "guest-memory-mib"), given_mib.to_string(), &expected))
}

/// Returns the memory that a domain needs for an image of this size: the loaded image, the kernel,
/// and twice the unpacked size, since Linux's first tmpfs holds at most half of the rest.
fn needed_mib(image_bytes: u64) -> u64 {
    const KERNEL_MIB: u64 = 48;
    KERNEL_MIB + 3 * (image_bytes >> 20)
}

/// Returns the CPUs that a domain's vCPUs may run on: `4-7`, or a list if they differ.
fn allowed_cpus(place: &DomainPlace) -> String {
    let mut cpus: Vec<String> = place.vcpus.iter().map(|vcpu| vcpu.hard.to_string()).collect();
    cpus.dedup();
    cpus.join("; ")
}

const LIBXL_FAULT: &str = "a fault of libxl since 2018 (numa_place_domain looks at the pool's \
    cpus instead of the domain's): cpus=\"...\" pins cpus and leaves memory to automatic \
    placement; the list form cpus=[\"...\"] places both";

fn jobs_of(name: &str, report: &XenReport) -> BTreeMap<usize, JobOutcome> {
    let answers = report.answers.iter().filter(|answer| answer.domain == name);
    let jobs = answers.map(|answer| {
        let outcome = JobOutcome {
            exit: answer.exit,
            output: answer.output.clone(),
            begin_ns: answer.begin_ns,
            end_ns: answer.end_ns,
        };
        (answer.job, outcome)
    });
    jobs.collect()
}

/// Returns the frames by node, from the domain's own table if there is one, else from a hypervisor
/// that knows the machine's nodes.
fn memory_of(place: &DomainPlace, knows: bool) -> (BTreeMap<u32, u64>, u64) {
    match (place.total(), knows) {
        (0, true) => (place.hypervisor.clone(), 0),
        (0, false) => (BTreeMap::new(), 0),
        _ => (place.frames.clone(), place.elsewhere),
    }
}

/// Returns the node of the cpu that a domain's first vCPU ran on.
fn node_of_cpus(place: &DomainPlace, machine: &Machine) -> Option<u32> {
    let cpu = place.vcpus.first()?.cpu?;
    machine.cpu(CpuId(cpu))?.node.map(|node| node.0)
}

/// Returns the facts that apply to all guests: how the hypervisor interpreted `numa=`, and whether
/// it exports the machine it was given.
fn facts(report: &XenReport, machine: &Machine, wanted: &GuestTreatment) -> Vec<Evidence> {
    let info = &report.info;
    let about = |line: &&String| line.contains("NUMA") || line.contains("Faking");
    let said = report.log.iter().filter(about).map(|line| line.trim_start_matches("(XEN) "));
    let mut facts = vec![
        Evidence::fact("hypervisor", format!("Xen {}: {}", info.version, info.command_line)),
        Evidence::of(
            "numa",
            &wanted.numa,
            format!("{} nodes; {}", info.nodes.len(), said.collect::<Vec<_>>().join("; ")),
        ),
    ];
    let exported = machine.nodes.iter().map(|node| format!("node {} cpus {}", node.id, node.cpus));
    facts.push(Evidence::of(
        "topology exported (xl info -n)",
        exported.collect::<Vec<_>>().join(", "),
        xen::difference(info, machine).unwrap_or_else(|| "the same".to_owned()),
    ));
    let pools = report.pools.iter().map(|(name, cpus)| format!("{name} has cpus {cpus}"));
    let pools = pools.collect::<Vec<_>>().join(", ");
    facts.extend(wanted.pools.then(|| {
        Evidence::of(
            "cpupools (xl cpupool-list)",
            "one for each node",
            if pools.is_empty() { "no node is known to be split".to_owned() } else { pools },
        )
    }));
    let seconds: Vec<f64> = report.created_s.values().copied().collect();
    let mean = seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
    facts.push(Evidence::fact(
        "creation of a domain",
        format!("{mean:.1} s on average of {}", seconds.len()),
    ));
    facts
}

fn emulator(machine: &Machine, settings: &GuestsSettings) -> Result<MemoryEmulator, BackendError> {
    let machine = settings.costs.described(KIND.name, machine, MemoryCosts::of_guest)?;
    let found = MemoryEmulator::find(EmulatorMode::Virtual, Architecture::X86_64, machine);
    found.map_err(|error| lacking(&error))
}

fn qemu_for(cache: &Cache, machine: &XenMachine) -> Result<Qemu, GuestError> {
    let cpus = machine.machine.cpus.len();
    let needs =
        machine.memory_emulator.as_ref().map(|emulator| emulator.needs(Architecture::X86_64, cpus));
    Ok(Qemu::find(cache, &needs.unwrap_or_default())?)
}

fn qemu(cache: &Cache, settings: &GuestsSettings, cpus: usize) -> Result<Qemu, BackendError> {
    let needs = match settings.emulates_memory() {
        true => EmulatorMode::Virtual.needs(Architecture::X86_64, cpus),
        false => QemuNeeds::default(),
    };
    Qemu::find(cache, &needs).map_err(|error| lacking(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_larger_than_half_of_the_remaining_memory_is_refused() {
        // Measured with 192 and 224 MiB: process 1 of the larger image was cut off.
        assert!(needed_mib(47_196_148) <= 192);
        let refused = check_guest_memory(224, 76_072_104).unwrap_err().to_string();
        assert_eq!(
            refused,
            "backend.guests.guest-memory-mib: 224: expected at least 264, for an image of 72 MiB \
             and its content"
        );
        assert_eq!(check_guest_memory(264, 76_072_104), Ok(()));
    }

    #[test]
    fn a_domain_has_room_for_a_command_that_is_not_stripped() {
        let (system, command) = (25 << 20, 32 << 20);
        assert!(needed_mib(system + command) <= GuestsSettings::default().guest_memory_mib);
    }

    #[test]
    fn frame_counts_of_a_hypervisor_without_nodes_are_ignored() {
        let counted =
            DomainPlace { hypervisor: BTreeMap::from([(0, 9)]), ..DomainPlace::default() };
        assert_eq!(memory_of(&counted, true), (BTreeMap::from([(0, 9)]), 0));
        assert_eq!(memory_of(&counted, false), (BTreeMap::new(), 0));
        let found = DomainPlace { frames: BTreeMap::from([(1, 8)]), elsewhere: 1, ..counted };
        assert_eq!(memory_of(&found, false), (BTreeMap::from([(1, 8)]), 1));
    }
}
