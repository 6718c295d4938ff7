//! The kernel's work on all of a process's memory: when it forks, runs another program, or ends.

use numalab_memory_model::cost::ps;
use numalab_memory_model::machine::SystemCall;
use numalab_memory_model::space::PAGE_BYTES;

use super::super::cached_files::FILES_AT;
use super::{AROUND, World};

impl World {
    /// Lets the seat's thread wait for the kernel to remove the memory of the process at its end.
    pub fn tears_down(&mut self, seat: usize) {
        let (pages, of_files) = self.own_pages();
        self.frees(seat, pages, of_files);
        if self.borrows_memory {
            // Its creation took nothing, as it usually becomes a program, which takes the time of both.
            self.in_kernel(seat, |active, shadow| active.calls(SystemCall::Fork(0, 0), shadow));
        }
    }

    /// Returns the time in which the kernel replaces the process's program by another one.
    pub fn becomes_ps(&self) -> u64 {
        let machine = &self.engine.arguments.machine;
        let (pages, of_files) = self.own_pages();
        let faults_ns = machine.faults.map_or(0.0, |faults| faults.frees_ns(pages, of_files));
        let call_ns = machine.calls.map_or(0.0, |calls| calls.takes_ns(SystemCall::Execute));
        ps(faults_ns + call_ns)
    }

    /// Returns the number of small pages that only this process has, and of mapped pages of files.
    pub(super) fn own_pages(&self) -> (u64, u64) {
        if self.borrows_memory {
            return (0, 0);
        }
        let own = self.space.small_pages(0..FILES_AT);
        let own = own.filter(|(number, page)| !page.is_shared && !self.is_inherited(*number));
        (own.count() as u64, self.mapped.len() as u64 * AROUND)
    }

    /// Returns the number of pages with entries of page tables that a child gets: it maps files
    /// again.
    pub fn pages_for_child(&self) -> u64 {
        let small = |numbers| self.space.small_pages(numbers).count() as u64;
        let files = self.regions.all().iter().filter(|region| region.is_file());
        let of_files = files.map(|file| small(file.start / PAGE_BYTES..file.end / PAGE_BYTES));
        small(0..FILES_AT).saturating_sub(of_files.sum())
    }

    /// Shares the process's pages with a child, or a parent.
    pub fn forks(&mut self, has_children: bool) {
        self.forget();
        self.space.forks();
        self.has_children = has_children;
    }
}
