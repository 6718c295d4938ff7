//! Follows a program's system calls: their effect on its pages, threads and time.

mod affinity;
mod processes;
mod status;
mod times;
mod transfers;
mod waits;

use std::cell::Cell;
use std::ffi::c_uint;

use numalab_memory_model::engine::Engine;
use numalab_memory_model::space::PAGE_BYTES;

use super::clocks::{self, Busy, NS_PER_S};
use super::futexes::Futex;
use super::regions::{ANONYMOUS, HEAP};
use super::syscalls::Call;
use super::turns::{Leave, Order, Patience};
use super::world::{MOST_CALLERS, World};
use super::{Program, exec, guest_memory};
pub use affinity::is_own;
use affinity::{lends_cpus, takes_cpus_back};
use processes::{copies_pages, is_fork, keeps_turn};
use transfers::Moves;

/// `MADV_DONTNEED`, `MADV_FREE`, `MADV_REMOVE`.
const DISCARDS: [u64; 3] = [4, 8, 9];
/// `MADV_HUGEPAGE`, `MADV_NOHUGEPAGE`.
const HUGE: [u64; 2] = [14, 15];
/// `MAP_ANONYMOUS`.
const MAPS_NO_FILE: u64 = 0x20;
/// `MAP_SHARED`; `MAP_SHARED_VALIDATE` has this bit, too.
const MAPS_SHARED: u64 = 1;
/// `MAP_POPULATE`, and `PROT_WRITE`.
const POPULATES: u64 = 0x8000;
const WRITABLE: u64 = 2;
/// `CLONE_THREAD`, and `CLONE_CHILD_CLEARTID`: the kernel clears a word when the thread ends.
const THREAD: u64 = 0x1_0000;
const CLEARS_AT_END: u64 = 0x20_0000;

/// A call that a thread is in.
#[derive(Clone, Copy, Debug)]
struct Pending {
    call: Call,
    arguments: [u64; 6],
    moves: Option<Moves>,
    /// When it began, in ps of the program's time.
    now_ps: u64,
    /// The deadline.
    until_ps: Option<u64>,
}

thread_local! {
    static PENDING: Cell<Option<Pending>> = const { Cell::new(None) };
}

impl Program {
    /// Follows the calling thread into a system call. Returns true if the process becomes
    /// another program when the call succeeds.
    pub fn begins_call(
        &'static self,
        engine: &'static Engine,
        index: c_uint,
        number: i64,
        arguments: [u64; 6],
    ) -> bool {
        let seat = self.seat(index).unwrap_or_else(|| self.arrives(engine, index));
        while self.here(index).is_none() && self.takes_turn(seat, Patience::Endless) {
            // Replaying may give its turn away again.
            self.catch_up(engine, index);
        }
        let call = self.numbers.call(number);
        let moves = call.and_then(|call| Moves::of(call, &arguments));
        if call.is_some_and(|call| waits::how(call, &arguments, moves, None).is_some()) {
            self.reports_before_waiting(seat);
        }
        let Some(world) = self.in_turn(seat) else { return false };
        if call == Some(Call::ExitGroup) {
            world.tears_down(seat);
        }
        // The call may give the turn away, after which the world must not be used: the thread's
        // work is accounted first.
        let now_ps = self.leaves(world, seat);
        let until_ps = call.and_then(|call| self.until_ps(call, &arguments, now_ps));
        let pending = call.map(|call| Pending { call, arguments, moves, now_ps, until_ps });
        pending.iter().for_each(|pending| self.writes_to_pipe(pending));
        PENDING.set(pending);
        let mut order = self.turns.order();
        // A thread keeps its turn unless it is marked as being in the kernel.
        order.is_in_call(seat, !call.is_some_and(|call| keeps_turn(call, &arguments)));
        order.schedule.comes_to(seat, now_ps);
        let [first, second, ..] = arguments;
        match call {
            Some(Call::Execute) => world.becomes = Some(guest_memory::path(first)),
            Some(Call::SetAffinity) => lends_cpus(&order, &arguments),
            Some(Call::Clone) if first & THREAD != 0 => {
                let clear_at = self.numbers.clear_at_end(&arguments);
                order.makes(now_ps, if first & CLEARS_AT_END != 0 { clear_at } else { 0 });
            }
            Some(call) if is_fork(call, &arguments) => order.schedule.children.makes(),
            Some(Call::Futex) if Futex::of(second).wakes() => order.goes_to_wake(),
            // QEMU clears and wakes this address as the kernel would (CLONE_CHILD_CLEARTID), so its
            // waiters resume at this time.
            Some(Call::Exit) => {
                let clear_at = world.threads[seat].clear_at;
                order.wakes(clear_at, usize::MAX, now_ps);
            }
            _ => {}
        }
        let waits = call.and_then(|call| waits::how(call, &arguments, moves, until_ps));
        if let (Some(Leave::Waits), Some(Call::Futex)) = (waits, call) {
            order.waits_at(seat, first);
        }
        drop(order);
        match (call, waits) {
            (Some(Call::ExitGroup), _) => self.turns.end(),
            (_, Some(how)) => self.turns.leave(seat, now_ps, how),
            // A thread that ends keeps the turn until QEMU has woken those who wait for its end.
            (_, None) => {}
        }
        call == Some(Call::Execute)
    }

    /// Replaces the process by the program that execve(2) names, emulated like this one: on the
    /// same cpus and with the same policy.
    pub fn follow_execute(
        &'static self,
        index: c_uint,
        [path, arguments, environment, ..]: [u64; 6],
    ) {
        let Some(seat) = self.seat(index) else { return };
        let cpus = self.turns.order().schedule.own_cpus(seat).map(<[usize]>::to_vec);
        let Some(world) = self.in_turn(seat) else { return };
        let thread = &world.threads[seat];
        let (policy, now_ps) = (thread.placement.clone(), thread.time_ps() + world.becomes_ps());
        let began = self.turns.order().schedule.began(Some(now_ps));
        began.write(world.engine.arguments.report.as_deref());
        let keeps = exec::Keeps { cpus, policy };
        exec::follow(self.target, &keeps, [path, arguments, environment]);
    }

    /// Follows the return of the calling thread from its system call.
    pub fn returns_from_call(&'static self, index: c_uint, value: i64) {
        let (Some(seat), pending) = (self.seat(index), PENDING.take()) else { return };
        let piped_ps = pending.map_or(0, |of| self.pipe_goes_on_ps(&of, value));
        if pending.is_some_and(|of| of.call == Call::SetAffinity) {
            // The kernel has read the mask by now, and the program may read it again.
            takes_cpus_back();
        }
        let mut order = self.turns.order();
        self.turns.remove_ended(&mut order);
        order.is_in_call(seat, false);
        let is_fork = pending.is_some_and(|of| is_fork(of.call, &of.arguments));
        let is_child = is_fork && value == 0;
        if is_fork {
            self.forked(&mut order, seat, value);
        }
        // 0 from futex(2) means that the thread was woken; only its waker knows at which time.
        if value != 0 || !order.is_early(seat) {
            self.goes_on_after(&mut order, seat, pending, (value, piped_ps));
        }
        drop(order);
        if !self.takes_turn(seat, Patience::Endless) {
            return;
        }
        let has_copy = pending.is_some_and(|of| copies_pages(of.call, &of.arguments));
        if is_child {
            self.is_child(seat, !has_copy);
        }
        let copies = value >= 0 && is_fork && has_copy;
        if let Some(world) = self.in_turn(seat) {
            if copies {
                world.forks(!is_child);
            }
            if let Some(pending) = pending {
                self.returned(world, seat, pending, value);
            }
            world.takes_call(seat, pending, value, copies);
        }
        match pending.map(|of| (of.call, of.arguments)) {
            Some((Call::Yield, _)) => self.lets_others(seat, Leave::GivesWay),
            Some((Call::SetAffinity, arguments)) if value == 0 => {
                self.set_affinity(seat, arguments);
            }
            Some((Call::Asks, arguments)) => self.answers(seat, arguments),
            _ => {}
        }
    }

    /// Resumes a thread that returned from the kernel by itself or was woken earlier.
    fn goes_on_after(
        &self,
        order: &mut Order,
        seat: usize,
        pending: Option<Pending>,
        (value, piped_ps): (i64, u64),
    ) {
        let is_ready = order.schedule.is_ready(seat);
        let until_ps =
            pending.and_then(|of| waits::timed_out(of.call, value).then_some(of.until_ps));
        match until_ps.flatten() {
            Some(until_ps) => order.waits_on(seat, until_ps),
            None => {
                order.stops_waiting(seat);
                let child = pending.is_some_and(|of| of.call == Call::WaitsForChild);
                let ended_ps = if child { self.child_ended_ps(order, value) } else { piped_ps };
                if !pending.is_some_and(|of| waits::sleeps(of.call)) {
                    order.schedule.goes_on(seat, ended_ps);
                }
            }
        }
        if !is_ready {
            // A thread woken by another one has been given its time already.
            self.turns.notify_holder(order);
        }
    }

    /// Applies the effects of a call, given its return value.
    fn returned(&self, world: &mut World, seat: usize, pending: Pending, value: i64) {
        let Pending { call, arguments, .. } = pending;
        if call == Call::Futex {
            self.woke(arguments, usize::try_from(value).unwrap_or(0), world.threads[seat].now_ps);
        }
        let Ok(value) = u64::try_from(value) else {
            world.becomes.take_if(|_| call == Call::Execute);
            if call == Call::Clone {
                self.turns.order().makes_none();
            }
            // The host may have only one node, and refuses calls that the emulated machine would
            // accept.
            if call != Call::GetPolicy {
                world.answer(seat, call, arguments);
            }
            return;
        };
        let [address, second, ..] = arguments;
        match call {
            Call::BindMemory | Call::SetPolicy => {
                world.answer(seat, call, arguments);
            }
            Call::Clone => self.turns.await_births(),
            Call::WaitsForChild => {
                world.has_children = self.turns.order().schedule.children.are_any();
            }
            Call::ClockTime | Call::TimeOfDay => self.write_time(world, seat, call, arguments),
            Call::GetAffinity if is_own(address) => self.write_cpus(seat, arguments[2], value),
            Call::GetCpu => write_cpu(world, seat, arguments),
            Call::Open => self.opened(world, value),
            Call::Read | Call::ReadAt | Call::Transfer => {
                world.transferred(seat, pages(second, value));
            }
            _ => world.mapped(seat, call, arguments, value),
        }
        if call == Call::Advise && DISCARDS.contains(&arguments[2]) {
            world.discard(seat, address, second);
        }
    }

    /// Records that a thread woke at most `count` waiters.
    fn woke(&self, arguments: [u64; 6], count: usize, now_ps: u64) {
        let [address, operation, most, _, other, _] = arguments;
        let most = usize::try_from(most).unwrap_or(0);
        let mut order = self.turns.order();
        match Futex::of(operation) {
            Futex::Wake => {
                let woken = order.wakes(address, count, now_ps);
                order.wakes(other, count - woken, now_ps);
                order.wakes_out(address, most.saturating_sub(woken), now_ps);
            }
            Futex::Requeue => {
                let woken = count.min(most);
                order.wakes(address, woken, now_ps);
                order.futexes.requeue(address, other, count - woken);
            }
            Futex::Wait | Futex::Other => return,
        }
        order.has_woken(now_ps);
        self.turns.notify_holder(&mut order);
    }

    /// Overwrites the clock reading that a thread got with the program's time.
    fn write_time(&self, world: &World, seat: usize, call: Call, arguments: [u64; 6]) {
        let thread = &world.threads[seat];
        let all_ps: u64 = world.threads.iter().map(|thread| thread.busy_ps()).sum();
        let busy = Busy { thread_ns: thread.busy_ps() / 1000, process_ns: all_ps / 1000 };
        let (clock, address, per_second) = match call {
            Call::TimeOfDay => (0, arguments[0], 1_000_000),
            _ => (arguments[0], arguments[1], NS_PER_S),
        };
        let passed_ns = thread.time_ps() / 1000;
        if let Some(ns) = self.clocks.shows_ns(clock, passed_ns, busy).filter(|_| address != 0) {
            guest_memory::write_words(address, clocks::seconds(ns, per_second));
        }
    }
}

impl World {
    /// Applies a call that changes mappings.
    fn mapped(&mut self, seat: usize, call: Call, arguments: [u64; 6], value: u64) {
        let [address, length, third, fourth, fifth, _] = arguments;
        match call {
            Call::Map => {
                let end = value + length.next_multiple_of(PAGE_BYTES);
                // `MAP_FIXED` replaces what was mapped there.
                self.unmap(seat, value, length);
                let file =
                    (fourth & MAPS_NO_FILE == 0).then(|| guest_memory::file(fifth)).flatten();
                let name = file.unwrap_or_else(|| ANONYMOUS.to_owned());
                let callers = self.threads[seat].calls.callers(MOST_CALLERS);
                let number = self.regions.add(value, end, name, callers);
                self.regions.is_mapped(number, fourth & MAPS_SHARED != 0);
                if fourth & POPULATES != 0 && third & WRITABLE != 0 {
                    self.populate(seat, pages(value, length));
                }
            }
            Call::Unmap => {
                self.unmap(seat, address, length);
                self.regions.remove(address, address + length);
            }
            Call::Remap => self.remap(seat, (address, length), (value, third)),
            Call::Break => self.moved_break(seat, value),
            Call::Advise if HUGE.contains(&third) => {
                self.regions.say_huge(address..address + length, third == HUGE[0]);
            }
            _ => {}
        }
    }

    /// Places pages that were only read: the kernel may have written to them.
    pub(super) fn transferred(&mut self, seat: usize, numbers: std::ops::Range<u64>) {
        let read = self.space.zeroed(numbers.clone());
        self.forget_zeros(numbers.clone());
        self.space.forget_zeros(numbers);
        read.into_iter().for_each(|number| self.populate(seat, number..number + 1));
    }

    fn remap(&mut self, seat: usize, (from, length): (u64, u64), (to, new_length): (u64, u64)) {
        self.forget();
        let kept = pages(from, length.min(new_length));
        self.space.remap(kept.clone(), to / PAGE_BYTES);
        self.pages.rename(kept, to / PAGE_BYTES);
        if new_length < length {
            self.unmap(seat, from + new_length, length - new_length);
        }
        let number = self.regions.of(from, |_, _| ANONYMOUS.to_owned());
        self.regions.moved(number, (from, from + length), (to, to + new_length));
    }

    /// Moves the end of the heap.
    fn moved_break(&mut self, seat: usize, end: u64) {
        // The C library's first brk(2) asks for the current end.
        let (start, old_end) = *self.heap.get_or_insert((end, end));
        self.heap = Some((start, end));
        if end > old_end {
            let callers = self.threads[seat].calls.callers(MOST_CALLERS);
            self.regions.grow(old_end, end, HEAP, callers);
        } else if end < old_end {
            self.unmap(seat, end, old_end - end);
            self.regions.remove(end, old_end);
        }
    }
}

/// Writes the cpu and node that a thread runs on, as getcpu(2) does.
fn write_cpu(world: &World, seat: usize, [cpu_at, node_at, ..]: [u64; 6]) {
    let thread = &world.threads[seat];
    let node = world.engine.arguments.machine.nodes[thread.home].id;
    let cpu = u32::try_from(thread.cpu).unwrap_or(0);
    for (address, number) in [(cpu_at, cpu), (node_at, node)] {
        if address != 0 {
            guest_memory::write(address, &number.to_ne_bytes());
        }
    }
}

/// Returns the numbers of the pages that a range of addresses touches.
pub fn pages(start: u64, bytes: u64) -> std::ops::Range<u64> {
    start / PAGE_BYTES..start.saturating_add(bytes).div_ceil(PAGE_BYTES)
}
