//! Guests as QEMU processes on this machine's nodes.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use numalab_guest::xen::Pinning;
use numalab_guest::{
    AcceleratorChoice, Boot, Guest, GuestError, HostMemory, HostPages, Limits, PinPlan, Pins,
    Runtime, Task,
};
use numalab_guest_agent::{Job, Stream};
use numalab_host::unix_ns;
use numalab_image::{Contents, Image, KernelChoice};
use numalab_record::study::{AcceleratorReason, Evidence};
use numalab_study::BackendError;
use numalab_topology::{Machine, NodeId, UniformMachine};
use numalab_workload::Workload;

use super::boot_context::BootContext;
use super::errors::lacking;
use super::layout::PlacedGuest;
use super::outcome::{GuestOutcome, JobOutcome, Outcome};
use crate::disturbance_watch::DisturbanceWatch;

/// The base delay from the start of the first guest to their common start, to which a constant per
/// guest is added.
const BOOT_S: u64 = 15;
const BOOT_EACH_S: u64 = 4;
const BOOT_LIMIT: Duration = Duration::from_secs(600);
/// The line that a guest prints when it begins.
const BEGUN: &str = "numalab-guest-begins\n";

/// Returns what every guest boots from, from the cache or newly fetched.
pub(super) fn supplies(contents: &Contents) -> Result<(Boot, Image), BackendError> {
    let prepare = || -> Result<(Boot, Image), GuestError> {
        let (guest, choice) = (Guest::default(), KernelChoice::Distribution);
        let mut note = |_: &str| {};
        let boot = Boot::find(&guest, AcceleratorChoice::Auto, &choice, &mut note)?;
        let kernel = boot.kernel(&guest, &choice, &mut note)?;
        let image = boot.image(&kernel, contents, &mut note)?;
        Ok((boot, image))
    };
    prepare().map_err(|error| lacking(&error))
}

/// The state shared by all guests of a boot.
struct Shared {
    boot: Boot,
    image: Image,
    runtime: Runtime,
    host: Machine,
}

impl BootContext<'_> {
    /// Boots all guests at once for each workload.
    pub(super) fn on_qemu(&self) -> Result<Outcome, BackendError> {
        let shared = self.shared()?;
        let guests = self.layout.guests.iter().map(|guest| GuestOutcome {
            name: guest.name.clone(),
            home: Some(guest.home),
            ..GuestOutcome::default()
        });
        let mut outcome = Outcome { guests: guests.collect(), ..Outcome::default() };
        let mut watch = self.watch()?;
        for (job, workload) in self.workloads.iter().enumerate() {
            let before = watch.now();
            self.run_together(&shared, job, workload, &mut outcome)?;
            let disturbance = DisturbanceWatch::disturbance(before, watch.now());
            outcome.disturbances.extend(disturbance.map(|reason| (job, reason)));
        }
        let Boot { qemu, accelerator, .. } = &shared.boot;
        let hypervisor = format!("QEMU {}, {}", qemu.version, accelerator.kind.name());
        outcome.facts = vec![Evidence::fact("hypervisor", hypervisor)];
        if let AcceleratorReason::KvmFails(fault) = &accelerator.reason {
            outcome.facts.push(Evidence::fact("kvm", fault.to_string()));
        }
        Ok(outcome)
    }

    fn shared(&self) -> Result<Shared, BackendError> {
        let (boot, image) = supplies(&self.contents)?;
        let runtime = Runtime::open().map_err(|error| lacking(&error))?;
        Ok(Shared { boot, image, runtime, host: self.layout.machine.clone() })
    }

    /// Runs one workload in all guests, each in a separate thread.
    fn run_together(
        &self,
        shared: &Shared,
        job: usize,
        workload: &Workload,
        outcome: &mut Outcome,
    ) -> Result<(), BackendError> {
        let now = unix_ns() / 1_000_000_000;
        let start_s = now + BOOT_S + BOOT_EACH_S * outcome.guests.len() as u64;
        let task = self.task(workload, start_s);
        let limit = Duration::from_secs(start_s - now + workload.timeout_s) + BOOT_LIMIT;
        let stopped = Mutex::new(false);
        thread::scope(|scope| {
            for (guest, placed) in outcome.guests.iter_mut().zip(&self.layout.guests) {
                if guest.lost.is_some() {
                    continue;
                }
                let (task, stopped) = (&task, &stopped);
                scope.spawn(move || match self.run_one(shared, placed, task, limit) {
                    Ok(ran) => keep(guest, job, ran),
                    Err(GuestError::Stopped) => *lock(stopped) = true,
                    Err(error) => guest.lost = Some(error.to_string()),
                });
            }
        });
        if *lock(&stopped) {
            return Err(BackendError::Interrupted);
        }
        Ok(())
    }

    /// Makes the job of a guest, which begins at `start_s` by the host's clock, shared by all guests.
    fn task(&self, workload: &Workload, start_s: u64) -> Task {
        let script = format!(
            "while [ $(date +%s) -lt {start_s} ]; do sleep 0.1; done; {}; \
             printf '%s\\n' {}; exec \"$@\"",
            self.preparation(),
            BEGUN.trim()
        );
        let mut command = ["sh", "-c", &script, "sh"].map(ToOwned::to_owned).to_vec();
        command.extend(self.words(workload));
        Task { job: Job::new(command), ..Task::default() }
    }

    fn run_one(
        &self,
        shared: &Shared,
        placed: &PlacedGuest,
        task: &Task,
        limit: Duration,
    ) -> Result<Ran, GuestError> {
        let guest = self.guest(shared, placed, limit);
        let launch = shared.boot.launch(guest, shared.image.boot_files())?;
        let mut ran = Ran::default();
        let mut sink = |_: Stream, bytes: &[u8]| ran.take(bytes);
        let wanted = || (self.ended)();
        let outcome = launch.run(&shared.runtime, task, &mut sink, &wanted)?;
        ran.job.exit = outcome.exit.code();
        ran.job.end_ns = unix_ns();
        for proof in outcome.memory.unwrap_or_default() {
            for (node, bytes) in proof.bytes_by_node {
                *ran.memory.entry(node.0).or_default() += bytes;
            }
            for (page, bytes) in proof.bytes_by_page {
                *ran.pages.entry(page).or_default() += bytes;
            }
        }
        Ok(ran)
    }

    /// Returns a guest with one node, whose threads and memory are placed as the treatment
    /// requires.
    fn guest(&self, shared: &Shared, placed: &PlacedGuest, limit: Duration) -> Guest {
        let pinned = self.wanted.pinning != Pinning::None;
        // Pinning to all cpus restricts nothing, but is still verified.
        let cpus = if pinned { placed.cpus.clone() } else { shared.host.online_cpus() };
        let vcpus = self.settings.guest_vcpus;
        let map = (0..vcpus).map(|vcpu| (vcpu, cpus.clone())).collect();
        let bound = self.wanted.numa == "on" && self.wanted.pinning == Pinning::CpusAndMemory;
        let nodes =
            if bound { vec![[NodeId(placed.home)].into_iter().collect()] } else { Vec::new() };
        // The settings' numbers always form a machine.
        let memory_bytes = self.settings.guest_memory_mib << 20;
        let machine = UniformMachine::of_packages(1, vcpus, memory_bytes);
        let pages = self.wanted.pages;
        let prealloc = pages != HostPages::Normal;
        Guest {
            machine: machine.build().unwrap_or_default(),
            memory: HostMemory { pages, prealloc, nodes, ..HostMemory::default() },
            pins: Some(Pins { plan: PinPlan::Map(map), host: shared.host.clone() }),
            limits: Limits { boot: BOOT_LIMIT, run: Some(limit) },
            ..Guest::default()
        }
    }
}

/// The result of one guest.
#[derive(Debug, Default)]
struct Ran {
    job: JobOutcome,
    memory: BTreeMap<u32, u64>,
    /// Bytes by page size.
    pages: BTreeMap<u64, u64>,
}

impl Ran {
    fn take(&mut self, bytes: &[u8]) {
        self.job.output.push_str(&String::from_utf8_lossy(bytes));
        if self.job.begin_ns == 0
            && let Some(rest) = self.job.output.strip_prefix(BEGUN)
        {
            self.job.begin_ns = unix_ns();
            self.job.output = rest.to_owned();
        }
    }
}

fn keep(guest: &mut GuestOutcome, job: usize, ran: Ran) {
    guest.memory = ran.memory;
    guest.jobs.insert(job, ran.job);
    guest.evidence = vec![pages_evidence(guest, &ran.pages)];
}

/// Returns the page sizes that back a guest's memory, as evidence.
fn pages_evidence(guest: &GuestOutcome, bytes_by_page: &BTreeMap<u64, u64>) -> Evidence {
    let found = bytes_by_page.iter().filter(|(_, bytes)| **bytes > 0);
    let found: Vec<String> =
        found.map(|(page, bytes)| format!("{} MiB of {} KiB", bytes >> 20, page >> 10)).collect();
    Evidence::fact(
        format!("pages of {}", guest.name),
        if found.is_empty() { "not known".to_owned() } else { found.join(", ") },
    )
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_sizes_are_reported_with_their_amounts() {
        let guest = GuestOutcome { name: "g01".to_owned(), ..GuestOutcome::default() };
        let pages = BTreeMap::from([(4096, 0), (2 << 20, 192 << 20), (65_536, 1 << 20)]);
        let evidence = pages_evidence(&guest, &pages);
        assert_eq!(evidence.what, "pages of g01");
        assert_eq!(evidence.found, "1 MiB of 64 KiB, 192 MiB of 2048 KiB");
        assert_eq!(pages_evidence(&guest, &BTreeMap::new()).found, "not known");
    }

    #[test]
    fn a_guests_time_begins_at_a_first_line_that_is_not_output() {
        let mut ran = Ran::default();
        ran.take(b"numalab-guest-");
        assert_eq!(ran.job.begin_ns, 0);
        ran.take(b"begins\nThroughput");
        ran.take(b" 1");
        assert!(ran.job.begin_ns > 0);
        assert_eq!(ran.job.output, "Throughput 1");
    }
}
