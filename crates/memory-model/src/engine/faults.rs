//! The kernel's work for a program: page faults, with what they leave in the caches, and system calls.

use core::ops::Range;

use super::{Access, Active, Engine};
use crate::cost::ps;
use crate::counters::{Figure, Kind};
use crate::elsewhere::Shadow;
use crate::machine::{Fault, SystemCall};
use crate::pipeline::Pipeline;
use crate::space::{HUGE_PAGES, PAGE_BYTES, Page};

impl Engine {
    /// Adds, to the placement with huge pages, their effect on a first store to a page: the first
    /// store in a huge page clears all of it.
    pub fn stores_if_huge(&self, is_first: bool, shadow: &mut Shadow) {
        let Some(faults) = self.arguments.machine.faults else { return };
        let huge_ns = if is_first { faults.takes_ns(Fault::Huge) } else { 0.0 };
        let takes_ps = ps(huge_ns).cast_signed() - ps(faults.store_ns).cast_signed();
        shadow.works_longer_if_huge(takes_ps);
    }
}

impl Active<'_> {
    /// Waits for everything in flight and then for a page fault, unless the machine has no times of
    /// faults.
    pub fn faults(&mut self, fault: Fault, shadow: Option<&mut Shadow>) {
        let Some(faults) = self.memory.engine.arguments.machine.faults else { return };
        self.memory.figures.faults.add(1);
        self.is_in_kernel(&self.memory.figures.faults_ps, ps(faults.takes_ns(fault)), shadow);
    }

    /// Waits for everything in flight and then for the kernel to free a number of pages, and to unmap
    /// a number of pages of files.
    pub fn frees(&mut self, pages: u64, of_files: u64, shadow: Option<&mut Shadow>) {
        let faults = self.memory.engine.arguments.machine.faults.filter(|_| pages + of_files > 0);
        if let Some(faults) = faults {
            let takes_ns = faults.frees_ns(pages, of_files);
            self.is_in_kernel(&self.memory.figures.faults_ps, ps(takes_ns), shadow);
        }
    }

    /// Waits for everything in flight and then for a system call, unless the machine has no times of
    /// calls.
    pub fn calls(&mut self, call: SystemCall, shadow: Option<&mut Shadow>) {
        let Some(calls) = self.memory.engine.arguments.machine.calls else { return };
        self.memory.figures.calls.add(1);
        self.is_in_kernel(&self.memory.figures.calls_ps, ps(calls.takes_ns(call)), shadow);
    }

    /// Waits for everything in flight and then for the kernel, and counts its time.
    fn is_in_kernel(&mut self, counted: &Figure, takes_ps: u64, shadow: Option<&mut Shadow>) {
        let now_ps = self.time_ps.get();
        let ended_ps = self.state.pipeline.as_mut().map_or(0, Pipeline::stops_ps);
        let waited_ps = ended_ps.saturating_sub(now_ps);
        if let Some(shadow) = shadow {
            shadow.stops(now_ps, waited_ps);
        }
        counted.add(takes_ps);
        self.memory.figures.time_ps.add(waited_ps + takes_ps);
        self.time_ps.add(waited_ps + takes_ps);
    }

    /// Brings the lines of a page that the kernel has written into the caches. Of a huge page, the
    /// lines around this one come last, as Linux clears it (`process_huge_page`).
    pub fn writes_page(&mut self, page: Page, number: u64, is_huge: bool) {
        if self.memory.engine.arguments.machine.faults.is_none() {
            return;
        }
        if !is_huge {
            return self.writes_lines(page.frame, number * PAGE_BYTES);
        }
        let at = number % HUGE_PAGES;
        let first = (page.frame - at * PAGE_BYTES, (number - at) * PAGE_BYTES);
        for distance in (0..HUGE_PAGES).rev() {
            let ends = [at.checked_sub(distance), (distance > 0).then_some(at + distance)];
            let inside = |at: &u64| *at < HUGE_PAGES;
            for bytes in ends.into_iter().flatten().filter(inside).map(|at| at * PAGE_BYTES) {
                self.writes_lines(first.0 + bytes, first.1 + bytes);
            }
        }
    }

    fn writes_lines(&mut self, frame: u64, page: u64) {
        self.looks_up_lines([frame, page], 0..PAGE_BYTES, Kind::Store);
    }

    /// Lets lines of a page that the kernel copies pass the caches, and waits for those from memory: they
    /// come one after the other, as fast as the core gets them.
    pub fn copies_lines(
        &mut self,
        page: Page,
        number: u64,
        bytes: Range<u64>,
        kind: Kind,
        shadow: Option<&mut Shadow>,
    ) {
        let machine = &self.memory.engine.arguments.machine;
        let (Some(_), Some(core)) = (machine.calls, machine.core) else { return };
        let missed = self.looks_up_lines([page.frame, number * PAGE_BYTES], bytes, kind);
        let at_a_time = core.misses + core.prefetch.unwrap_or(0);
        let line_ps = self.memory.engine.costs.memory_ps(self.memory.home, page.node, Kind::Load);
        let takes_ps = missed * line_ps / u64::from(at_a_time);
        if takes_ps > 0 {
            self.is_in_kernel(&self.memory.figures.calls_ps, takes_ps, shadow);
        }
    }

    /// Looks up lines of a page, given its frame and its own address, in the caches; returns the number
    /// that no cache has.
    fn looks_up_lines(&mut self, [frame, page]: [u64; 2], bytes: Range<u64>, kind: Kind) -> u64 {
        let line_bytes = 1_usize << self.memory.engine.line_shift;
        let first = bytes.start & !(line_bytes as u64 - 1);
        let mut missed = 0;
        for offset in (first..bytes.end).step_by(line_bytes) {
            let access = Access {
                address: frame + offset,
                virtual_address: page + offset,
                kind,
                bytes: 64,
                position: 0,
                table: None,
            };
            let reply = self.memory.answers(&mut self.state, &access, self.time_ps.get());
            let is_near = reply.level.is_some() || reply.leaves || reply.transfer.is_some();
            missed += u64::from(!is_near);
        }
        missed
    }
}
