//! Attributes recorded events to programs.

use std::collections::BTreeMap;

use numalab_host::perf::{PerfRecord, SampleRecord};
use numalab_host::proc::{Stat, maps, memory_text};
use numalab_host::{base_page_bytes, cpu_ns_of, monotonic_ns, page_nodes};
use numalab_record::profile::{CannotSee, FaultsSeen};

use crate::nodes::Nodes;
use crate::program::{Counted, Program};

#[derive(Debug)]
pub(crate) struct Follower {
    pub nodes: Nodes,
    pub living: BTreeMap<u32, Program>,
    /// Programs that ended, or called exec.
    pub past: Vec<Program>,
    pub faults: FaultsSeen,
    pub samples: u64,
    /// Facts that turned out to be invisible.
    pub cannot_see: Vec<CannotSee>,
    faults_count: Counted,
    page_bytes: u64,
    /// Each process's cpu time when it was last read, and the time of that read.
    ran: BTreeMap<u32, (u64, u64)>,
}

impl Follower {
    pub(crate) fn new(nodes: Nodes, faults_count: Counted) -> Self {
        Self {
            nodes,
            living: BTreeMap::new(),
            past: Vec::new(),
            faults: FaultsSeen::default(),
            samples: 0,
            cannot_see: Vec::new(),
            faults_count,
            page_bytes: base_page_bytes(),
            ran: BTreeMap::new(),
        }
    }

    /// Follows a process from now on, starting with its present memory.
    pub(crate) fn adopt(&mut self, process: u32) {
        let now = monotonic_ns();
        let name = Stat::of(process).map_or_else(String::new, |stat| stat.name);
        let mut program = Program::new(process, name, now, self.page_bytes);
        if let Some(text) = memory_text(process, "maps") {
            program.space.set(&maps(&text).collect::<Vec<_>>(), now);
        }
        // Cpu time before this moment does not count.
        self.ran.insert(process, (cpu_ns_of(process).unwrap_or(0), now));
        self.living.insert(process, program);
    }

    pub(crate) fn take(&mut self, records: &[PerfRecord]) {
        for record in records {
            match record {
                PerfRecord::Sample(sample) => self.sample(sample),
                PerfRecord::Map(map) => self.program(map.process, map.time_ns).space.take(map),
                PerfRecord::Exec { time_ns, process, name } => self.exec(*process, name, *time_ns),
                PerfRecord::Named { time_ns, process, thread, name } => {
                    self.program(*process, *time_ns).threads.named(*thread, name);
                }
                PerfRecord::Forked { time_ns, parent, process, .. } if parent != process => {
                    self.fork(*parent, *process, *time_ns);
                }
                PerfRecord::Ended { process, thread, .. } if process == thread => {
                    self.end(*process);
                }
                _ => {}
            }
        }
    }

    fn sample(&mut self, sample: &SampleRecord) {
        let is_fault = sample.access.is_none();
        let counted = if is_fault { self.faults_count } else { Counted::Access };
        *(if is_fault { &mut self.faults.seen } else { &mut self.samples }) += 1;
        let node = self.nodes.of_cpu(sample.cpu);
        self.program(sample.process, sample.time_ns).sample(sample, node, counted);
    }

    fn program(&mut self, process: u32, time_ns: u64) -> &mut Program {
        let page_bytes = self.page_bytes;
        self.living.entry(process).or_insert_with(|| {
            let name = Stat::of(process).map_or_else(String::new, |stat| stat.name);
            Program::new(process, name, time_ns, page_bytes)
        })
    }

    /// Replaces the process's program, and its memory.
    fn exec(&mut self, process: u32, name: &str, time_ns: u64) {
        self.settle(process);
        if let Some(mut before) = self.living.remove(&process) {
            before.became = Some(name.to_owned());
            self.past.push(before);
        }
        let program = Program::new(process, name.to_owned(), time_ns, self.page_bytes);
        self.living.insert(process, program);
    }

    /// Copies a parent's memory to a new child.
    fn fork(&mut self, parent: u32, process: u32, time_ns: u64) {
        let of_parent = self.living.get(&parent).map(|of| (of.name.clone(), of.space.clone()));
        let program = self.program(process, time_ns);
        if let Some((name, space)) = of_parent {
            (program.name, program.space) = (name, space);
        }
    }

    /// Moves an ended process's program to the past; its pages can no longer be queried.
    fn end(&mut self, process: u32) {
        if let Some(mut program) = self.living.remove(&process) {
            let only = self.nodes.only();
            program.settle(|pages| vec![only; pages.len()]);
            self.past.push(program);
        }
    }

    /// Queries the nodes of the pages that were accessed since the last call.
    pub(crate) fn settle_all(&mut self) {
        let processes: Vec<u32> = self.living.keys().copied().collect();
        processes.into_iter().for_each(|process| self.settle(process));
    }

    fn settle(&mut self, process: u32) {
        let Some(program) = self.living.get_mut(&process) else { return };
        let only = self.nodes.only();
        let mut refused = None;
        program.settle(|pages| match only {
            Some(_) => vec![only; pages.len()],
            None => page_nodes(process, pages)
                .map(|nodes| nodes.into_iter().map(|node| Some(node?.0)).collect())
                .unwrap_or_else(|error| {
                    refused = Some(error);
                    vec![None; pages.len()]
                }),
        });
        // A process that has just ended is not a refusal, whatever the kernel's error is.
        let is_there = || Stat::of(process).is_some_and(|stat| !stat.has_ended());
        let refused = refused.filter(|_| is_there());
        if let Some(error) = refused {
            self.cannot(CannotSee::PageNodes { reason: error.to_string() });
        }
    }

    /// Records a fact that cannot be seen.
    pub(crate) fn cannot(&mut self, see: CannotSee) {
        if !self.cannot_see.contains(&see) {
            self.cannot_see.push(see);
        }
    }

    /// Records the cpu time of a process so far.
    pub(crate) fn ran(&mut self, process: u32) {
        let (Some(all_ns), now) = (cpu_ns_of(process), monotonic_ns()) else { return };
        let Some(program) = self.living.get_mut(&process) else { return };
        let (before, at) = self.ran.insert(process, (all_ns, now)).unwrap_or((0, program.begun_ns));
        program.timeline.ran(at.max(program.begun_ns), now, all_ns.saturating_sub(before));
    }
}

#[cfg(test)]
mod tests;
