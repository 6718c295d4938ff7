//! Records events of a process and its descendants, with one ring for each cpu.

use std::collections::HashMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use numalab_record::profile::Hindrance;
use numalab_topology::{CpuId, CpuSet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::layout::{self, Begin, Privilege, SampleLayout};
use super::open::{identifier, open, write_into};
use super::record::{PerfRecord, parse};
use super::ring::{LEAST_BYTES, Ring};
use super::unit::{MemoryEvent, MemoryUnit};
use crate::proc::threads;
use crate::root::Root;

/// Upper limit of the size of all rings together.
const ALL_RINGS_BYTES: usize = 64 << 20;
const RING_BYTES: usize = 4 << 20;
/// Poll interval for rings for which the kernel no longer wakes the reader.
const UNWOKEN: Duration = Duration::from_millis(10);

/// The process to record, always with its descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// A process, from its next exec on.
    FromExec(u32),
    /// A process with all its current threads.
    Now(u32),
}

/// Reason why events cannot be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PerfError {
    /// The process does not exist.
    #[error("process {process}: no such process")]
    NoProcess { process: u32 },
    #[error(
        "process {process}: the kernel lets only its user, and root with CAP_SYS_PTRACE, record it: run \
         numalab as one of them (in a container: docker run --cap-add SYS_PTRACE)"
    )]
    Foreign { process: u32 },
    /// The kernel refused.
    #[error("perf_event_open(2): {0:?}")]
    Hindered(Hindrance),
}

/// The records taken from the rings at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub records: Vec<PerfRecord>,
    /// Records lost because a ring was full.
    pub lost: u64,
    /// Number of times that the kernel paused sampling.
    pub throttled: u64,
}

/// Events that are being recorded.
#[derive(Debug)]
pub struct Recording {
    /// All events, including those that own a ring.
    events: Vec<OwnedFd>,
    rings: Vec<CpuRing>,
    layouts: HashMap<u64, SampleLayout>,
    privilege: Privilege,
}

#[derive(Debug)]
struct CpuRing {
    cpu: CpuId,
    ring: Ring,
    /// Index of the event that owns the ring.
    owner: usize,
    /// True if the kernel still wakes its reader: it stops when the owner's thread ends.
    wakes: bool,
}

/// Checks whether this user may record the page faults of their own processes.
///
/// # Errors
/// The reason why it may not.
pub fn page_faults_allowed(root: &Root) -> Result<(), Hindrance> {
    let attr = layout::page_faults(Begin::Now, Privilege::User, 0);
    let cpu = crate::current_place().cpu.0;
    open(attr, 0, cpu, None).map(drop).map_err(|errno| hindrance(root, errno))
}

fn hindrance(root: &Root, errno: Errno) -> Hindrance {
    let level = root.value("proc/sys/kernel/perf_event_paranoid").ok();
    match (errno, level.and_then(|level| level.parse().ok())) {
        (Errno::MFILE, _) => Hindrance::TooFewFiles {
            limit: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        },
        (Errno::ACCESS | Errno::PERM, Some(level)) if level > 2 => {
            Hindrance::PerfParanoid { level }
        }
        (errno, _) => Hindrance::PerfRefused { reason: errno.to_string() },
    }
}

impl Recording {
    /// Begins to record on these cpus: page faults, and the events of `unit` if one is given.
    ///
    /// # Errors
    /// [`PerfError`] if the process does not exist, is another user's, or the kernel refuses.
    pub fn open(
        followed: Followed,
        unit: Option<&MemoryUnit>,
        cpus: &CpuSet,
    ) -> Result<Self, PerfError> {
        allow_many_files();
        let (process, begin) = match followed {
            Followed::FromExec(process) => (process, Begin::AtExec),
            Followed::Now(process) => (process, Begin::Now),
        };
        let mut threads: Vec<u32> = threads(process).collect();
        threads.sort_unstable();
        let mut recording = Self {
            events: Vec::new(),
            rings: Vec::new(),
            layouts: HashMap::new(),
            privilege: Privilege::Kernel,
        };
        let share = (ALL_RINGS_BYTES / cpus.len().max(1)).clamp(LEAST_BYTES, RING_BYTES);
        let mut found = false;
        for thread in threads {
            match recording.follow(thread, begin, unit, cpus, share) {
                Ok(()) => found = true,
                // The thread has ended since it was listed.
                Err(Errno::SRCH) => {}
                Err(errno) => return Err(error(process, errno)),
            }
        }
        if found { Ok(recording) } else { Err(PerfError::NoProcess { process }) }
    }

    /// Reports whether faults and samples in kernel code are recorded too.
    pub fn sees_kernel(&self) -> bool {
        self.privilege == Privilege::Kernel
    }

    fn follow(
        &mut self,
        thread: u32,
        begin: Begin,
        unit: Option<&MemoryUnit>,
        cpus: &CpuSet,
        ring_bytes: usize,
    ) -> Result<(), Errno> {
        // The kernel gives an inherited event a ring only if it is bound to a cpu.
        for cpu in cpus.iter() {
            let watermark = u32::try_from(ring_bytes / 4).unwrap_or(u32::MAX);
            match self.faults(thread, cpu, begin, ring_bytes, watermark) {
                // The cpu has gone offline.
                Err(Errno::NODEV) => continue,
                done => done?,
            }
            let events = unit.into_iter().flat_map(|unit| &unit.events);
            let here = |event: &&MemoryEvent| {
                event.cpus.as_ref().is_none_or(|of_event| of_event.contains(cpu))
            };
            for event in events.filter(here) {
                self.samples(event, thread, cpu, begin, watermark)?;
            }
        }
        Ok(())
    }

    /// Opens page fault events; the first one of a cpu owns its ring.
    fn faults(
        &mut self,
        thread: u32,
        cpu: CpuId,
        begin: Begin,
        ring_bytes: usize,
        watermark: u32,
    ) -> Result<(), Errno> {
        let ask =
            |privilege| open(layout::page_faults(begin, privilege, watermark), thread, cpu.0, None);
        let event = match ask(self.privilege) {
            // The first event decides, so that all have the same privilege.
            Err(Errno::ACCESS | Errno::PERM) if self.events.is_empty() => {
                self.privilege = Privilege::User;
                ask(Privilege::User)
            }
            asked => asked,
        }?;
        if !self.rings.iter().any(|ring| ring.cpu == cpu) {
            let ring = Ring::of(&event, ring_bytes)?;
            self.rings.push(CpuRing { cpu, ring, owner: self.events.len(), wakes: true });
        }
        self.add(event, cpu, SampleLayout { is_memory_sample: false })
    }

    /// Opens memory events, as precise as the unit can be.
    fn samples(
        &mut self,
        event: &MemoryEvent,
        thread: u32,
        cpu: CpuId,
        begin: Begin,
        watermark: u32,
    ) -> Result<(), Errno> {
        let leader = match event.helper {
            Some(config) => {
                let attr = layout::helper(event, config, begin, self.privilege);
                Some(open(attr, thread, cpu.0, None)?)
            }
            None => None,
        };
        let mut precise = event.precise;
        let sampled = loop {
            let attr = layout::memory_samples(event, begin, self.privilege, precise, watermark);
            let behind = leader.as_ref().map(OwnedFd::as_fd);
            match open(attr, thread, cpu.0, behind) {
                // Units differ in the highest level that they accept.
                Err(Errno::INVAL | Errno::OPNOTSUPP) if precise > 1 => precise -= 1,
                opened => break opened?,
            }
        };
        self.events.extend(leader);
        self.add(sampled, cpu, SampleLayout { is_memory_sample: true })
    }

    fn add(&mut self, event: OwnedFd, cpu: CpuId, layout: SampleLayout) -> Result<(), Errno> {
        self.layouts.insert(identifier(&event)?, layout);
        let ring = self.rings.iter().find(|ring| ring.cpu == cpu);
        if let Some(owner) = ring.and_then(|ring| self.events.get(ring.owner)) {
            write_into(&event, owner)?;
        }
        self.events.push(event);
        Ok(())
    }

    /// Waits until a ring is partly filled, or for `at_most`.
    pub fn wait(&mut self, at_most: Duration) {
        let unwoken = self.rings.iter().any(|ring| !ring.wakes);
        let at_most = if unwoken { at_most.min(UNWOKEN) } else { at_most };
        let waking: Vec<usize> = (0..self.rings.len()).filter(|at| self.rings[*at].wakes).collect();
        let owner = |at: &usize| &self.events[self.rings[*at].owner];
        let mut polled: Vec<PollFd<'_>> =
            waking.iter().map(|at| PollFd::new(owner(at), PollFlags::IN)).collect();
        let seconds = i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX);
        let step = Timespec { tv_sec: seconds, tv_nsec: at_most.subsec_nanos().into() };
        // EINTR: the caller checks for an interrupt itself.
        let _ = poll(&mut polled, Some(&step));
        let ended: Vec<usize> = waking
            .iter()
            .zip(&polled)
            // The thread that owns the ring has ended: poll(2) would return at once from now on.
            .filter(|(_, polled)| polled.revents().contains(PollFlags::HUP))
            .map(|(at, _)| *at)
            .collect();
        ended.into_iter().for_each(|at| self.rings[at].wakes = false);
    }

    /// Takes the records since the last call.
    pub fn drain(&mut self) -> Batch {
        let mut batch = Batch::default();
        for of_cpu in &mut self.rings {
            let layouts = &self.layouts;
            of_cpu.ring.drain(|bytes| match parse(bytes, layouts) {
                Some(PerfRecord::Lost { records }) => batch.lost += records,
                Some(PerfRecord::Throttled) => batch.throttled += 1,
                Some(record) => batch.records.push(record),
                None => {}
            });
        }
        // Each ring is in order, but their times overlap.
        batch.records.sort_by_key(PerfRecord::time_ns);
        batch
    }

    /// Returns the size of all rings in bytes.
    pub fn ring_bytes(&self) -> usize {
        self.rings.iter().map(|of_cpu| of_cpu.ring.data_bytes()).sum()
    }
}

fn error(process: u32, errno: Errno) -> PerfError {
    let root = Root::live();
    match errno {
        // A user may record their own processes, so this one is another user's.
        Errno::ACCESS | Errno::PERM if page_faults_allowed(&root).is_ok() => {
            PerfError::Foreign { process }
        }
        errno => PerfError::Hindered(hindrance(&root, errno)),
    }
}

/// Raises the limit of open files, since each event is a descriptor.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // If this fails, opening a descriptor beyond the limit reports it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

#[cfg(test)]
mod tests;
