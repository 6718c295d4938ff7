//! Page faults: first uses of pages that need the kernel, and the time that it takes. On a machine
//! without these times ([`numalab_memory_model::machine::Faults`]), faults take none.

mod process;

use std::ops::Range;

use numalab_memory_model::arguments::MOST_ALTERNATIVES;
use numalab_memory_model::engine::{Active, Shadow, There};
use numalab_memory_model::machine::Fault;
use numalab_memory_model::space::{PAGE_BYTES, Page, block};

use super::calls::pages;
use super::guest_memory;
use super::memory::Remembered;
use super::page_use::PageUse;
use super::world::World;

/// Number of pages that a fault maps around a page that was loaded from a file
/// (`fault_around_bytes`).
const AROUND: u64 = 16;

impl World {
    /// Returns the fault of an access to a page of a region, before it is placed.
    pub fn fault_of(&mut self, number: u64, region: usize, store: bool) -> Option<Fault> {
        let of = &self.regions.all()[region];
        let (is_file, is_common) = (of.is_file(), of.shared);
        match self.space.node_of(number) {
            Some(_) if !store || is_common || !self.space.is_shared(number) => None,
            // The kernel leaves a page to the last process that has it.
            Some(_) if !is_file && !self.is_inherited(number) && !self.has_children => {
                Some(Fault::Reuse)
            }
            Some(_) => Some(Fault::Copy),
            None if !is_file => Some(Fault::Store),
            None if store && !is_common => Some(Fault::Copy),
            None => self.mapped.insert(number / AROUND).then_some(Fault::File),
        }
    }

    fn is_inherited(&self, number: u64) -> bool {
        self.pages.get(number).is_some_and(PageUse::is_inherited)
    }

    /// Handles a store to a page that a file or another process shares: the copy is a new page,
    /// except that the parent of a child keeps its record.
    pub fn copies(&mut self, number: u64, region: usize) {
        self.forget_page(number);
        if self.regions.all()[region].is_file() || self.is_inherited(number) {
            self.space.discard(number..number + 1);
            self.pages.remove(number..number + 1);
        } else {
            self.space.shares(number, false);
        }
    }

    /// Lets the seat's thread wait for a fault of a page with this number. If it could be part of a
    /// huge page, `if_huge` is true for that page's first one.
    pub fn faults(
        &mut self,
        seat: usize,
        fault: Fault,
        (number, page): (u64, Page),
        if_huge: Option<bool>,
    ) {
        if let (Some(is_first), Fault::Store) = (if_huge, fault) {
            self.engine.stores_if_huge(is_first, &mut self.threads[seat].shadow);
        }
        self.in_kernel(seat, |active, shadow| {
            active.faults(fault, shadow);
            if matches!(fault, Fault::Store | Fault::Copy | Fault::Huge) {
                active.writes_page(page, number, fault == Fault::Huge);
            }
        });
    }

    /// Lets the seat's thread wait for the kernel to free pages, and to unmap pages of files.
    fn frees(&mut self, seat: usize, pages: u64, of_files: u64) {
        self.in_kernel(seat, |active, shadow| active.frees(pages, of_files, shadow));
    }

    /// Lets the seat's thread wait for the kernel to map the page of its code at this address.
    pub fn runs_code(&mut self, seat: usize, address: u64) {
        let number = address / PAGE_BYTES;
        // Pages that were stored to or loaded from are mapped already.
        if self.space.node_of(number).is_none() && self.mapped.insert(number / AROUND) {
            self.in_kernel(seat, |active, shadow| active.faults(Fault::File, shadow));
        }
    }

    /// Lets the seat's thread wait for the kernel's work, which is no part of a block's own time.
    pub fn in_kernel(
        &mut self,
        seat: usize,
        works: impl FnOnce(&mut Active<'_>, Option<&mut Shadow>),
    ) {
        let thread = &mut self.threads[seat];
        thread.catches_up();
        let Some(active) = &mut thread.active else { return };
        let before_ps = active.now_ps();
        works(active, thread.is_followed.then_some(&mut thread.shadow));
        thread.pace.pauses(active.now_ps() - before_ps);
    }

    /// Places pages at once, as if the seat's thread wrote them.
    pub fn populate(&mut self, seat: usize, numbers: Range<u64>) {
        for number in numbers {
            let huge = self.regions.huge(number * PAGE_BYTES);
            let asked = huge.is_given(self.engine.arguments.huge_always);
            if self.space.node_of(number).is_some() {
                continue;
            }
            let Some((page, fault)) = self.places(seat, number, asked) else { return };
            self.faults(seat, fault, (number, page), None);
        }
    }

    /// Places a page that the seat's thread uses first; returns it and the fault of a store. `None` if
    /// the machine's memory is exhausted.
    pub fn places(&mut self, seat: usize, number: u64, asked: bool) -> Option<(Page, Fault)> {
        let is_empty = asked && self.space.node_of_block(number).is_none();
        let thread = &self.threads[seat];
        let placement = thread.placement.as_ref();
        let page = self.space.touch(number, thread.home, placement, asked)?;
        let is_huge = is_empty && self.space.has_block(number);
        Some((page, if is_huge { Fault::Huge } else { Fault::Store }))
    }

    /// Returns true if a read of a page in a region finds the kernel's page of zeros.
    pub fn reads_zeros(&self, number: u64, region: usize) -> bool {
        self.space.node_of(number).is_none()
            && (self.space.is_zeroed(number)
                || self.regions.all()[region].is_private_memory()
                // The kernel's own writes, such as a file's content, are not visible to the plugin.
                && guest_memory::is_zero(number * PAGE_BYTES, PAGE_BYTES)
                && !(self.hides_stores && guest_memory::is_allocated(number)))
    }

    /// Looks up the page of zeros for a thread that reads it in place of a page.
    pub fn zeros(&mut self, seat: usize, number: u64, region: usize) -> Option<Remembered> {
        let huge = self.regions.huge(number * PAGE_BYTES);
        // A huge page of zeros is mapped at once.
        let asked = huge.is_given(self.engine.arguments.huge_always);
        let mapped = if asked { block(number) } else { number..number + 1 };
        let is_first = !self.space.has_zeros(mapped);
        let Some(page) = self.space.read_zeros(number, self.threads[seat].home) else {
            self.unplaced += 1;
            return None;
        };
        if is_first {
            self.faults(seat, Fault::Load, (number, page), None);
        }
        let slot = u32::try_from(region * self.nodes + page.node).ok()?;
        let used = *self.zeros.get_or_insert_with(|| Box::leak(Box::new(PageUse::new(0, page, 0))));
        Some(Remembered {
            number,
            page,
            slot,
            region,
            used,
            elsewhere: [There::on(page.node, false); MOST_ALTERNATIVES],
            only_loads: true,
            generation: self.generation,
        })
    }

    /// Makes all threads look up pages again that were only read.
    pub fn forget_zeros(&mut self, numbers: Range<u64>) {
        self.space.zeroed(numbers).into_iter().for_each(|number| self.forget_page(number));
    }

    /// Makes all threads look up a page again, and its lines.
    fn forget_page(&mut self, number: u64) {
        let engine = self.engine;
        self.threads.iter_mut().for_each(|thread| thread.forget_page(engine, number));
    }

    pub fn discard(&mut self, seat: usize, address: u64, length: u64) {
        let of_files = self.forgets(address, length);
        let own = self.space.discard(pages(address, length));
        self.frees(seat, own, of_files);
    }

    pub fn unmap(&mut self, seat: usize, address: u64, length: u64) {
        let of_files = self.forgets(address, length);
        let own = self.space.unmap(pages(address, length));
        self.frees(seat, own, of_files);
    }

    /// Forgets pages that are about to be freed; returns the number of mapped pages of files among them.
    fn forgets(&mut self, address: u64, length: u64) -> u64 {
        self.forget();
        let numbers = pages(address, length);
        let around = numbers.start / AROUND..numbers.end.div_ceil(AROUND);
        let gone: Vec<u64> = self.mapped.range(around).copied().collect();
        gone.iter().for_each(|around| _ = self.mapped.remove(around));
        let inside = |around: &u64| {
            let mapped = around * AROUND..(around + 1) * AROUND;
            mapped.end.min(numbers.end) - mapped.start.max(numbers.start)
        };
        let of_files = gone.iter().map(inside).sum();
        self.pages.remove(numbers);
        of_files
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use numalab_memory_model::address::Addressing;
    use numalab_memory_model::arguments::Arguments;
    use numalab_memory_model::counters::Kind;
    use numalab_memory_model::engine::{By, Engine, PS_PER_INSTRUCTION};
    use numalab_memory_model::machine::Faults;
    use numalab_memory_model::space::HUGE_PAGES;

    use super::*;
    use crate::program::code::{Calling, Instruction, Made};
    use crate::program::regions::ANONYMOUS;
    use crate::program::schedule::Turn;
    use crate::program::turns::Born;

    static BY: Instruction = Instruction {
        position: 0,
        by: By { accessor: None, behind: 0 },
        address: 0x40_0000,
        calls: Calling::Nothing,
    };
    const PAGES: usize = 64;

    /// Returns a world with one running thread, on a machine with these fault times in ns: 1 for
    /// loads, 10 for stores, 100 for copies, 1,000 for files, 10,000 for a freed page, 100,000 for an
    /// unmapped one.
    fn world() -> World {
        let words = ["cpus=0", "memory=1G", "distances=10", "caches=1:32K:8:64:cpu"];
        let mut arguments = Arguments::parse(words, |_| Err(String::new())).unwrap();
        let [load_ns, store_ns, copy_ns, file_ns, free_ns] = [1.0, 10.0, 100.0, 1e3, 1e4];
        let unmap_ns = 1e5;
        arguments.machine.faults =
            Some(Faults { load_ns, store_ns, copy_ns, file_ns, free_ns, unmap_ns, huge_ns: None });
        let engine =
            Engine::new(arguments, Addressing::Physical, PS_PER_INSTRUCTION, || Duration::ZERO);
        let engine: &'static Engine = Box::leak(Box::new(engine.for_threads()));
        let mut world = World::new(engine);
        world.begins(0, Born { index: 0, clear_at: 0 });
        let turn = Turn { seat: 0, cpu: 0, now_ps: 0, until_ps: u64::MAX };
        world.threads[0].takes(engine, 0, turn);
        world
    }

    /// Maps memory of zeros as a region with this name; returns its first address.
    fn region(world: &mut World, name: &str) -> u64 {
        let memory: &'static mut [u8] = Box::leak(vec![0_u8; (PAGES + 1) * 4096].into());
        let start = (memory.as_ptr() as u64).next_multiple_of(PAGE_BYTES);
        world.regions.add(start, start + PAGES as u64 * PAGE_BYTES, name.to_owned(), Vec::new());
        start
    }

    /// Makes accesses; returns the ns of page faults of each.
    fn faults_ns(world: &mut World, accesses: &[(Kind, u64)]) -> Vec<u64> {
        let ns = |world: &World| world.engine.counters.of(0, 0).faults_ps.get() / 1000;
        let access = |&(kind, address): &(Kind, u64)| {
            let before_ns = ns(world);
            world.access(0, &Made { address, kind, by: &BY, bytes: 8 });
            ns(world) - before_ns
        };
        accesses.iter().map(access).collect()
    }

    use Kind::{Load, Store};

    #[test]
    fn a_page_costs_its_first_load_its_first_store_and_again_after_it_is_freed() {
        let mut world = world();
        let at = region(&mut world, ANONYMOUS);
        let next = at + PAGE_BYTES;
        let uses = [(Load, at), (Load, at + 64), (Store, at), (Store, at + 8), (Store, next)];
        assert_eq!(faults_ns(&mut world, &uses), [1, 0, 10, 0, 10]);
        world.discard(0, at, 2 * PAGE_BYTES);
        assert_eq!(faults_ns(&mut world, &[(Store, at), (Load, next)]), [10, 1]);
        let figures = world.engine.counters.of(0, 0);
        // Two pages were freed.
        assert_eq!((figures.faults.get(), figures.faults_ps.get()), (5, 20_032_000));
        assert!(world.threads[0].time_ps() > figures.faults_ps.get());
    }

    #[test]
    fn a_line_that_was_read_before_the_first_store_to_its_page_is_not_that_of_zeros_any_more() {
        let mut world = world();
        let at = region(&mut world, ANONYMOUS);
        faults_ns(&mut world, &[(Load, at + 64), (Store, at)]);
        let frame = world.space.touch(at / PAGE_BYTES, 0, None, false).map(|page| page.frame);
        let thread = &mut world.threads[0];
        assert!(thread.lines.of(at + 64, true).is_none());
        assert_eq!(thread.lines.of(at, true).map(|recent| recent.frame), frame);
    }

    #[test]
    fn a_load_from_a_file_maps_sixteen_pages_and_a_store_copies_one() {
        let mut world = world();
        let at = region(&mut world, "/usr/lib/some.so");
        let group = (at / PAGE_BYTES).next_multiple_of(AROUND) * PAGE_BYTES;
        let pages = [0, 1, 15, 16].map(|page| (Load, group + page * PAGE_BYTES));
        assert_eq!(faults_ns(&mut world, &pages), [1000, 0, 0, 1000]);
        let stores = [(Store, group), (Store, group + 64), (Store, group + 2 * PAGE_BYTES)];
        assert_eq!(faults_ns(&mut world, &stores), [100, 0, 100]);
    }

    #[test]
    fn after_fork_a_store_copies_the_page_while_there_are_two_processes() {
        let mut world = world();
        let at = region(&mut world, ANONYMOUS);
        let next = at + PAGE_BYTES;
        faults_ns(&mut world, &[(Store, at), (Store, next)]);
        world.forks(true);
        assert_eq!(faults_ns(&mut world, &[(Load, at), (Store, at), (Store, at)]), [0, 100, 0]);
        world.has_children = false;
        assert_eq!(faults_ns(&mut world, &[(Store, next)]), [1], "only the entry changes");
    }

    #[test]
    fn a_page_that_the_kernel_writes_zeros_to_is_placed_once() {
        let mut world = world();
        let at = region(&mut world, ANONYMOUS);
        assert_eq!(faults_ns(&mut world, &[(Load, at)]), [1]);
        let number = at / PAGE_BYTES;
        world.transferred(0, number..number + 1);
        world.transferred(0, number..number + 1);
        assert_eq!(world.engine.counters.of(0, 0).faults_ps.get(), 11_000);
        assert_eq!(faults_ns(&mut world, &[(Load, at), (Store, at)]), [0, 0]);
    }

    #[test]
    fn code_is_mapped_sixteen_pages_at_a_time_and_each_page_of_a_file_is_unmapped() {
        let mut world = world();
        let at = region(&mut world, "/usr/lib/some.so");
        let group = (at / PAGE_BYTES).next_multiple_of(AROUND) * PAGE_BYTES;
        let faults_ns = |world: &World| world.engine.counters.of(0, 0).faults_ps.get() / 1000;
        world.runs_code(0, group);
        world.runs_code(0, group + 15 * PAGE_BYTES);
        assert_eq!(faults_ns(&world), 1000);
        world.unmap(0, group, 2 * PAGE_BYTES);
        assert_eq!(faults_ns(&world), 201_000, "of two pages");
    }

    #[test]
    fn a_process_frees_what_only_it_has_and_a_child_gets_entries_for_private_memory() {
        let mut world = world();
        let (at, file) = (region(&mut world, ANONYMOUS), region(&mut world, "/some/file"));
        // A page at the offset of its frame would count as part of a huge page; frames are the first ones.
        let far = |page: &u64| (16..HUGE_PAGES - 16).contains(&(page % HUGE_PAGES));
        let at = (at / PAGE_BYTES..).find(far).unwrap_or(0) * PAGE_BYTES;
        let group = (file / PAGE_BYTES).next_multiple_of(AROUND) * PAGE_BYTES;
        faults_ns(&mut world, &[(Store, at), (Store, at + PAGE_BYTES), (Load, group)]);
        assert_eq!((world.own_pages(), world.pages_for_child()), ((2, AROUND), 2));
        assert_eq!(world.becomes_ps(), 1_620_000_000);
        world.forks(false);
        world.starts_over(0, false);
        assert_eq!((world.own_pages(), world.pages_for_child()), ((0, 0), 2));
        faults_ns(&mut world, &[(Store, at)]);
        assert_eq!(world.own_pages(), (1, 0), "a copy");
    }

    #[test]
    fn a_child_that_borrows_its_parents_memory_uses_it_and_removes_nothing() {
        let mut world = world();
        let at = region(&mut world, ANONYMOUS);
        let file = region(&mut world, "/some/file");
        let uses = [(Store, at), (Load, file)];
        assert_eq!(faults_ns(&mut world, &uses), [10, 1000]);
        world.starts_over(0, true);
        assert_eq!(faults_ns(&mut world, &uses), [0, 0]);
        assert_eq!(world.own_pages(), (0, 0));
    }

    #[test]
    fn pages_that_are_populated_are_paid_for_at_once() {
        let mut world = world();
        let at = region(&mut world, ANONYMOUS);
        world.populate(0, at / PAGE_BYTES..at / PAGE_BYTES + 3);
        assert_eq!(world.engine.counters.of(0, 0).faults_ps.get(), 30_000);
        assert_eq!(faults_ns(&mut world, &[(Store, at), (Load, at + PAGE_BYTES)]), [0, 0]);
    }
}
