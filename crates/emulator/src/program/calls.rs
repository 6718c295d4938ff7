//! What a program's system calls do to its pages and threads.

use std::ffi::c_uint;

use numalab_memory_model::engine::Engine;
use numalab_memory_model::space::{PAGE_BYTES, Placement};

use super::clock::Futex;
use super::syscalls::Call;
use super::{
    ANONYMOUS_NAME, HEAP, MOST_CALLERS, PENDING, Program, exec, guest_memory, lock, pages, stack,
};
use guest_memory::mask;

/// `MPOL_MF_MOVE`, `MPOL_MF_MOVE_ALL`.
const MOVES: u64 = 2 | 4;
/// `MADV_DONTNEED`, `MADV_FREE`, `MADV_REMOVE`.
const DISCARDS: [u64; 3] = [4, 8, 9];
/// `MADV_HUGEPAGE`, `MADV_NOHUGEPAGE`.
const HUGE: [u64; 2] = [14, 15];
/// `MAP_ANONYMOUS`
const ANONYMOUS: u64 = 0x20;

impl Program {
    /// The thread that calls us, by QEMU's index, begins a system call; whether this process goes
    /// on as another program if it succeeds.
    pub fn begins_call(
        &self,
        engine: &Engine,
        index: c_uint,
        number: i64,
        arguments: [u64; 6],
    ) -> bool {
        let call = self.numbers.call(number);
        PENDING.set(call.map(|call| (call, arguments)));
        let place = self.place(engine, index);
        let busy_ps = engine.busy_ps(place);
        self.take_time(engine, place);
        self.pace.stops(place);
        let [first, second, _, _, fifth, _] = arguments;
        match call {
            Some(Call::Execute) => *lock(&self.becomes) = Some(guest_memory::path(first)),
            Some(Call::Clone) => {
                let tells_at = self.numbers.tells_end_at(&arguments);
                self.clock.makes(place, busy_ps, first, tells_at);
            }
            Some(Call::Futex) if Futex::of(second) == Futex::Wake => {
                self.clock.wakes(place, busy_ps, first);
                self.clock.wakes(place, busy_ps, fifth);
            }
            Some(Call::Exit) => self.clock.ends(place, busy_ps),
            _ => {}
        }
        call == Some(Call::Execute)
    }

    /// Goes on as the program that execve(2) was given, emulated as this one is.
    pub fn follow_execute(&self, [path, arguments, environment, ..]: [u64; 6]) {
        exec::follow(&self.target, [path, arguments, environment]);
    }

    /// The system call that it began gave this.
    pub fn returns_from_call(&self, engine: &Engine, index: c_uint, value: i64) {
        let Some((call, arguments)) = PENDING.take() else { return };
        let Ok(value) = u64::try_from(value) else {
            lock(&self.becomes).take_if(|_| call == Call::Execute);
            if call == Call::Clone {
                self.clock.makes_none();
            }
            // The host has one node where the machine has several: what it refuses, the machine
            // would do.
            return self.policy(engine, index, call, arguments);
        };
        self.returned(engine, index, call, arguments, value);
    }

    fn returned(
        &self,
        engine: &Engine,
        index: c_uint,
        call: Call,
        arguments: [u64; 6],
        value: u64,
    ) {
        let [address, length, third, fourth, fifth, _] = arguments;
        match call {
            Call::Map => {
                let end = value + length.next_multiple_of(PAGE_BYTES);
                self.unmap(value, length);
                let file = (fourth & ANONYMOUS == 0).then(|| guest_memory::file(fifth)).flatten();
                let name = file.unwrap_or_else(|| ANONYMOUS_NAME.to_owned());
                lock(&self.regions).add(value, end, name, stack::callers(MOST_CALLERS));
            }
            Call::Unmap => {
                self.unmap(address, length);
                lock(&self.regions).remove(address, address + length);
            }
            Call::Remap => self.remap(address, length, third, value),
            Call::Break => self.moved_break(value),
            Call::Advise if DISCARDS.contains(&third) => {
                lock(&self.space).discard(pages(address, length));
                lock(&self.pages).remove(pages(address, length));
                self.forget();
            }
            Call::Advise if HUGE.contains(&third) => {
                lock(&self.regions).say_huge(address..address + length, third == HUGE[0]);
            }
            Call::SetAffinity | Call::BindMemory | Call::SetPolicy => {
                self.policy(engine, index, call, arguments);
            }
            Call::Futex if Futex::of(length) == Futex::Wait => {
                let place = self.place(engine, index);
                self.clock.woken(place, engine.busy_ps(place), address);
            }
            Call::Clone => self.clock.await_begin(),
            Call::Advise | Call::Execute | Call::Futex | Call::Exit => {}
        }
    }

    fn unmap(&self, address: u64, length: u64) {
        lock(&self.space).unmap(pages(address, length));
        lock(&self.pages).remove(pages(address, length));
        self.forget();
    }

    fn remap(&self, from: u64, length: u64, new_length: u64, to: u64) {
        let kept = pages(from, length.min(new_length));
        lock(&self.space).remap(kept.clone(), to / PAGE_BYTES);
        lock(&self.pages).rename(kept, to / PAGE_BYTES);
        if new_length < length {
            self.unmap(from + new_length, length - new_length);
        }
        let mut regions = lock(&self.regions);
        let number = regions.of(from, |_, _| ANONYMOUS_NAME.to_owned());
        regions.moved(number, (from, from + length), (to, to + new_length));
        self.forget();
    }

    /// Sets what a thread says about its cpus and where its pages are to lie.
    fn policy(&self, engine: &Engine, index: c_uint, call: Call, arguments: [u64; 6]) {
        let place = self.place(engine, index);
        let [first, second, third, fourth, fifth, sixth] = arguments;
        let machine = &engine.arguments.machine;
        let nodes = |address: u64, bits: u64| -> Vec<usize> {
            let ids = mask(address, bits);
            let known = machine.nodes.iter().enumerate();
            known.filter(|(_, node)| ids.contains(&(node.id as usize))).map(|(at, _)| at).collect()
        };
        match call {
            Call::SetAffinity if first == 0 => {
                let moved = self.threads.allow(index as usize, &mask(third, second * 8));
                if let Some(moved) = moved {
                    let [from, to] = moved.map(|place| (place, engine.busy_ps(place)));
                    self.cpus.comes(to.0, to.1);
                    self.clock.moves(from, to);
                }
            }
            Call::SetPolicy => {
                let placement = placement(first, nodes(second, third)).unwrap_or_default();
                self.threads.set_placement(place, placement);
            }
            Call::BindMemory => {
                let own = placement(third, nodes(fourth, fifth));
                let home = machine.cpus[place];
                lock(&self.space).set_placement(
                    pages(first, second),
                    own,
                    sixth & MOVES != 0,
                    home,
                );
                self.forget();
            }
            _ => {}
        }
    }

    /// The heap ends there now.
    fn moved_break(&self, end: u64) {
        let mut heap = lock(&self.heap);
        let (start, old_end) = *heap.get_or_insert((end, end));
        *heap = Some((start, end));
        if end > old_end {
            lock(&self.regions).grow(old_end, end, HEAP, stack::callers(MOST_CALLERS));
        } else if end < old_end {
            self.unmap(end, old_end - end);
            lock(&self.regions).remove(end, old_end);
        }
    }
}

/// The modes of set_mempolicy(2), their flags left out; `None` for the default.
fn placement(mode: u64, nodes: Vec<usize>) -> Option<Placement> {
    match (mode & 0xff, nodes.first()) {
        (0, _) | (_, None) => None,
        (1 | 5, Some(node)) => Some(Placement::Preferred(*node)),
        (2, _) => Some(Placement::Bind(nodes)),
        (3 | 6, _) => Some(Placement::Interleave(nodes)),
        _ => Some(Placement::Local),
    }
}
