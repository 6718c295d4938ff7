//! Events of a process and all that it starts, with a ring for each cpu.

use std::collections::HashMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use numalab_record::profile::Hindrance;
use numalab_topology::{CpuId, CpuSet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::layout::{self, Begin, Layout, Privilege};
use super::open::{identifier, open, write_into};
use super::record::{PerfRecord, parse};
use super::ring::{LEAST_BYTES, Ring};
use super::unit::{MemoryEvent, MemoryUnit};
use crate::proc::threads;
use crate::root::Root;

/// All rings together, and one of them, at most.
const ALL_RINGS_BYTES: usize = 64 << 20;
const RING_BYTES: usize = 4 << 20;
/// Rings are looked at so often where the kernel wakes nobody for them any more.
const UNWOKEN: Duration = Duration::from_millis(10);

/// Whose events are recorded: those of everything that it starts too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// A process, from when it becomes another program.
    FromExec(u32),
    /// A process with all threads that it has now.
    Now(u32),
}

/// Why nothing can be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PerfError {
    /// There is no such process.
    #[error("process {process}: not there")]
    NoProcess {
        /// The process.
        process: u32,
    },
    /// It is another user's.
    #[error("process {process} is another user's: run as root or as that user")]
    Foreign {
        /// The process.
        process: u32,
    },
    /// The kernel does not let us.
    #[error("perf_event_open(2): {0:?}")]
    Hindered(Hindrance),
}

/// What was in the rings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// What happened, by time.
    pub records: Vec<PerfRecord>,
    /// Records that are missing, because a ring was full.
    pub lost: u64,
    /// How often the kernel paused sampling.
    pub throttled: u64,
}

/// Events that are being recorded.
#[derive(Debug)]
pub struct Recording {
    /// The events, among them those that own a ring.
    events: Vec<OwnedFd>,
    rings: Vec<CpuRing>,
    layouts: HashMap<u64, Layout>,
    privilege: Privilege,
}

#[derive(Debug)]
struct CpuRing {
    cpu: CpuId,
    ring: Ring,
    /// The event that owns it, by position.
    owner: usize,
    /// Whether the kernel still wakes who waits for it: not when the owner's thread has ended.
    wakes: bool,
}

/// Whether this user may record the page faults of processes of their own.
///
/// # Errors
/// Why not.
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
    /// Begins to record on these cpus: page faults, and the events of a unit if one is given.
    ///
    /// # Errors
    /// [`PerfError`].
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
                // It has ended meanwhile.
                Err(Errno::SRCH) => {}
                Err(errno) => return Err(error(process, errno)),
            }
        }
        if found { Ok(recording) } else { Err(PerfError::NoProcess { process }) }
    }

    /// Whether faults and samples in the kernel's code are seen too.
    #[must_use]
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
        for cpu in cpus.iter() {
            let watermark = u32::try_from(ring_bytes / 4).unwrap_or(u32::MAX);
            match self.faults(thread, cpu, begin, ring_bytes, watermark) {
                // A cpu may go offline.
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

    /// Page faults; the first one of a cpu owns its ring.
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
        self.add(event, cpu, Layout { is_memory_sample: false })
    }

    /// Memory samples, as near to the instruction as the unit can.
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
                Err(Errno::INVAL | Errno::OPNOTSUPP) if precise > 1 => precise -= 1,
                opened => break opened?,
            }
        };
        self.events.extend(leader);
        self.add(sampled, cpu, Layout { is_memory_sample: true })
    }

    fn add(&mut self, event: OwnedFd, cpu: CpuId, layout: Layout) -> Result<(), Errno> {
        self.layouts.insert(identifier(&event)?, layout);
        let ring = self.rings.iter().find(|ring| ring.cpu == cpu);
        if let Some(owner) = ring.and_then(|ring| self.events.get(ring.owner)) {
            write_into(&event, owner)?;
        }
        self.events.push(event);
        Ok(())
    }

    /// Waits until a ring is filled to a part, or for so long.
    pub fn wait(&mut self, at_most: Duration) {
        let unwoken = self.rings.iter().any(|ring| !ring.wakes);
        let at_most = if unwoken { at_most.min(UNWOKEN) } else { at_most };
        let waking: Vec<usize> = (0..self.rings.len()).filter(|at| self.rings[*at].wakes).collect();
        let owner = |at: &usize| &self.events[self.rings[*at].owner];
        let mut polled: Vec<PollFd<'_>> =
            waking.iter().map(|at| PollFd::new(owner(at), PollFlags::IN)).collect();
        let seconds = i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX);
        let step = Timespec { tv_sec: seconds, tv_nsec: at_most.subsec_nanos().into() };
        // What interrupts it is seen by the caller.
        let _ = poll(&mut polled, Some(&step));
        let ended: Vec<usize> = waking
            .iter()
            .zip(&polled)
            .filter(|(_, polled)| polled.revents().contains(PollFlags::HUP))
            .map(|(at, _)| *at)
            .collect();
        ended.into_iter().for_each(|at| self.rings[at].wakes = false);
    }

    /// Takes what happened since the last time.
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
        batch.records.sort_by_key(PerfRecord::time_ns);
        batch
    }

    /// How many bytes the rings hold together.
    #[must_use]
    pub fn ring_bytes(&self) -> usize {
        self.rings.iter().map(|of_cpu| of_cpu.ring.data_bytes()).sum()
    }
}

fn error(process: u32, errno: Errno) -> PerfError {
    let root = Root::live();
    match errno {
        Errno::ACCESS | Errno::PERM if page_faults_allowed(&root).is_ok() => {
            PerfError::Foreign { process }
        }
        errno => PerfError::Hindered(hindrance(&root, errno)),
    }
}

/// Each event is a descriptor: there may be as many as this user can have.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // A refusal is found where descriptors end.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

#[cfg(test)]
mod tests;
