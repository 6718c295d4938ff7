//! Schedules threads in the emulated machine's time: the cpu that is furthest behind runs next.
//!
//! Every cpu has its own time and a queue of threads, the first of which runs. The others wait
//! until its slice is over, or until another cpu of their node is idle, as under Linux's fair
//! scheduler (kernel/sched/fair.c). Nothing here depends on the host's scheduling: the order of all
//! effects that threads have on each other follows from their times alone.

use std::collections::VecDeque;

use super::family::{Began, Children};

/// The lead over another busy cpu at which a cpu must wait, in ps: half of the window over which
/// load is measured.
const QUANTUM_PS: u64 = 5_000_000;
/// A slice on a machine of one cpu (`sysctl_sched_base_slice`, Linux 6.6 and later); it grows with
/// the logarithm of the number of cpus, up to eight of them.
const SLICE_PS: u64 = 750_000_000;
const SCALING_CPUS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No thread has this seat.
    Empty,
    /// The thread runs or is in its cpu's queue.
    Ready,
    /// The thread waits for something without a known time.
    Waits,
    /// The thread resumes at this time, in ps.
    Sleeps(u64),
}

/// One thread's entry. Threads that use the same seat one after the other are counted as one.
#[derive(Clone, Debug)]
struct Seat {
    state: State,
    /// The cpu that the thread runs on, or ran on last.
    cpu: usize,
    /// The time at which the thread stopped running.
    now_ps: u64,
    /// The cpus that the thread is restricted to, if any.
    allowed: Option<Vec<usize>>,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    now_ps: u64,
    queue: VecDeque<usize>,
    slice_ends_ps: u64,
}

/// A thread's turn to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The thread's seat.
    pub seat: usize,
    /// The cpu that the thread runs on.
    pub cpu: usize,
    /// The time of that cpu.
    pub now_ps: u64,
    /// The time at which the thread must let others run; never, if there are none.
    pub until_ps: u64,
}

/// The machine's scheduler: all threads and cpus.
#[derive(Debug)]
pub struct Schedule {
    seats: Vec<Seat>,
    cpus: Vec<Cpu>,
    /// The node of each cpu.
    nodes: Vec<usize>,
    /// The order in which threads take cpus.
    order: Vec<usize>,
    slice_ps: u64,
    /// Time until an idle cpu runs a thread that another one wakes.
    wake_ps: u64,
    /// The origin of this process among the program's.
    began: Began,
    pub children: Children,
}

impl Schedule {
    /// Returns an empty schedule for cpus of these nodes, which threads take in `order`.
    pub fn new(nodes: &[usize], order: &[usize]) -> Self {
        let scale = 1 + nodes.len().clamp(1, SCALING_CPUS).ilog2();
        Self {
            seats: Vec::new(),
            cpus: vec![Cpu::default(); nodes.len()],
            nodes: nodes.to_vec(),
            order: order.to_vec(),
            slice_ps: SLICE_PS * u64::from(scale),
            wake_ps: 0,
            began: Began::default(),
            children: Children::default(),
        }
    }

    /// Sets the time until an idle cpu runs a thread that another one wakes.
    pub fn waking_in(self, wake_ps: u64) -> Self {
        Self { wake_ps, ..self }
    }

    /// Sets the process's origin.
    pub fn of_process(self, began: Began) -> Self {
        Self { began, ..self }
    }

    /// Adds a thread at this time; returns its seat, the first free one. It runs on the seat's cpu
    /// or another of the same node.
    pub fn begins(&mut self, at_ps: u64) -> usize {
        let free = self.seats.iter().position(|seat| seat.state == State::Empty);
        let seat = free.unwrap_or(self.seats.len());
        let at_ps = at_ps.max(self.began.at_ps);
        let cpu = self.first_cpu(seat);
        let new = Seat { state: State::Waits, cpu, now_ps: at_ps, allowed: None };
        match free {
            Some(seat) => self.seats[seat] = new,
            None => self.seats.push(new),
        }
        self.goes_on(seat, at_ps);
        seat
    }

    /// Returns the cpu that a thread starts on: processes take cpus in order as threads do.
    fn first_cpu(&self, seat: usize) -> usize {
        self.order[(self.began.place + seat) % self.order.len()]
    }

    /// Returns the next turn; `None` if no thread can run.
    pub fn next(&mut self) -> Option<Turn> {
        self.wake_sleepers();
        let busy = self.cpus.iter().enumerate().filter(|(_, cpu)| !cpu.queue.is_empty());
        // The lower number wins a tie, so that the order is the same in every run.
        let (cpu, _) = busy.min_by_key(|(at, cpu)| (cpu.now_ps, *at))?;
        self.turn_of(self.cpus[cpu].queue[0])
    }

    /// Returns the turn that a seat's thread would get now.
    pub fn turn_of(&mut self, seat: usize) -> Option<Turn> {
        let cpu = self.seats[seat].cpu;
        let others_ps = self.others_ps(cpu);
        let of = &mut self.cpus[cpu];
        let now_ps = of.now_ps;
        // A cpu that is behind the others may run past all of them by a quantum, so that every turn
        // makes progress.
        let mut until_ps = others_ps.map_or(u64::MAX, |others| others.max(now_ps) + QUANTUM_PS);
        if of.queue.len() > 1 {
            if of.slice_ends_ps <= now_ps {
                of.slice_ends_ps = now_ps + self.slice_ps;
            }
            until_ps = until_ps.min(of.slice_ends_ps);
        }
        (of.queue.front() == Some(&seat)).then_some(Turn { seat, cpu, now_ps, until_ps })
    }

    /// Ends a turn at this time; the thread stays ready.
    pub fn yields(&mut self, seat: usize, now_ps: u64) {
        let cpu = self.came_to(seat, now_ps);
        let of = &mut self.cpus[cpu];
        if of.queue.len() > 1 && now_ps >= of.slice_ends_ps {
            of.queue.rotate_left(1);
            of.slice_ends_ps = now_ps + self.slice_ps;
        }
    }

    /// Moves the thread behind the others of its cpu (sched_yield(2)).
    pub fn gives_way(&mut self, seat: usize, now_ps: u64) {
        let cpu = self.came_to(seat, now_ps);
        let of = &mut self.cpus[cpu];
        of.queue.rotate_left(1);
        of.slice_ends_ps = now_ps + self.slice_ps;
    }

    /// Returns the time until which a spinning thread would spin: the next runner's, or the end of
    /// its slice.
    pub fn spins_until_ps(&self, seat: usize, now_ps: u64) -> u64 {
        let cpu = self.seats[seat].cpu;
        let of = &self.cpus[cpu];
        let slice_ps = (of.queue.len() > 1).then_some(of.slice_ends_ps);
        self.others_ps(cpu).into_iter().chain(slice_ps).min().map_or(now_ps, |ps| ps.max(now_ps))
    }

    /// Returns true if another busy cpu is behind this time, so that its thread's effects come
    /// first.
    pub fn is_ahead(&self, seat: usize, now_ps: u64) -> bool {
        self.others_ps(self.seats[seat].cpu).is_some_and(|others_ps| others_ps < now_ps)
    }

    /// Blocks the thread without a deadline.
    pub fn waits(&mut self, seat: usize, now_ps: u64) {
        self.leaves(seat, now_ps, State::Waits);
    }

    /// Blocks the thread until a time.
    pub fn sleeps(&mut self, seat: usize, now_ps: u64, until_ps: u64) {
        self.leaves(seat, now_ps, State::Sleeps(until_ps));
    }

    /// Frees the seat of a thread that has stopped running.
    pub fn ends(&mut self, seat: usize) {
        let cpu = self.seats[seat].cpu;
        self.leaves(seat, self.cpus[cpu].now_ps, State::Empty);
    }

    /// Lets another thread wake the thread at this time.
    pub fn is_woken(&mut self, seat: usize, at_ps: u64) {
        // If other threads run, the thread waits for them instead.
        self.goes_on(seat, at_ps.saturating_add(self.wake_ps));
    }

    /// Lets the thread go on at this time.
    pub fn goes_on(&mut self, seat: usize, at_ps: u64) {
        if !matches!(self.seats[seat].state, State::Waits | State::Sleeps(_)) {
            return;
        }
        // The waker may be behind the thread that it wakes, which cannot go back in time.
        let at_ps = at_ps.max(self.seats[seat].now_ps);
        let cpu = self.cpu_for(seat);
        let of = &mut self.cpus[cpu];
        if of.queue.is_empty() {
            // The time of an idle cpu stands still; it jumps to that of its new thread.
            of.now_ps = of.now_ps.max(at_ps);
        }
        of.queue.push_back(seat);
        (self.seats[seat].state, self.seats[seat].cpu) = (State::Ready, cpu);
    }

    /// Sets the time at which a thread that is not running resumes.
    pub fn sleeps_on(&mut self, seat: usize, until_ps: u64) {
        if self.seats[seat].state == State::Waits {
            self.seats[seat].state = State::Sleeps(until_ps);
        }
    }

    /// Advances the running thread to this time; it keeps its turn.
    pub fn comes_to(&mut self, seat: usize, now_ps: u64) {
        self.came_to(seat, now_ps);
    }

    /// Returns true if the thread runs or is in its cpu's queue.
    pub fn is_ready(&self, seat: usize) -> bool {
        self.seats[seat].state == State::Ready
    }

    /// Restricts the thread to these cpus; it leaves a cpu outside of them at once. A set without
    /// any of the machine's cpus is ignored.
    pub fn allows(&mut self, seat: usize, cpus: &[usize], now_ps: u64) {
        if !self.has_any(cpus) {
            return;
        }
        self.seats[seat].allowed = Some(cpus.to_vec());
        if !cpus.contains(&self.seats[seat].cpu) {
            let is_ready = self.is_ready(seat);
            if is_ready {
                self.leaves(seat, now_ps, State::Waits);
            }
            let in_order = self.order.iter().filter(|cpu| cpus.contains(cpu));
            let idlest = in_order.min_by_key(|cpu| self.cpus[**cpu].queue.len());
            self.seats[seat].cpu = idlest.copied().unwrap_or(self.seats[seat].cpu);
            if is_ready {
                self.goes_on(seat, now_ps);
            }
        }
    }

    /// Returns true if the machine has any of these cpus.
    pub fn has_any(&self, cpus: &[usize]) -> bool {
        cpus.iter().any(|cpu| self.order.contains(cpu))
    }

    /// Returns the cpus that the thread is restricted to, if any.
    pub fn own_cpus(&self, seat: usize) -> Option<&[usize]> {
        self.seats[seat].allowed.as_deref()
    }

    /// Returns the cpus that the thread may run on.
    pub fn allowed(&self, seat: usize) -> impl Iterator<Item = usize> {
        self.order.iter().copied().filter(move |&cpu| self.may_run(seat, cpu))
    }

    /// Returns the number of seats.
    pub fn seats(&self) -> usize {
        self.seats.len()
    }

    /// Removes all threads but one, as fork(2) copies no other.
    pub fn keeps_only(&mut self, seat: usize) {
        self.cpus.iter_mut().for_each(|cpu| cpu.queue.retain(|of| *of == seat));
        for (of, other) in self.seats.iter_mut().enumerate() {
            if of != seat {
                other.state = State::Empty;
            }
        }
    }

    /// Makes this process a child with one thread, which moves to the child's own cpu if it may run
    /// there.
    pub fn is_child(&mut self, seat: usize) {
        let now_ps = self.cpus[self.seats[seat].cpu].now_ps;
        let place = self.began.place + self.children.born();
        self.began = Began { place, at_ps: now_ps };
        let cpu = self.first_cpu(seat);
        if self.may_run(seat, cpu) {
            self.leaves(seat, now_ps, State::Waits);
            self.seats[seat].cpu = cpu;
            self.goes_on(seat, now_ps);
        }
    }

    /// Returns the process's origin for the program that execve(2) starts, with a thread's time if
    /// given.
    pub fn began(&self, now_ps: Option<u64>) -> Began {
        Began { at_ps: now_ps.unwrap_or(self.began.at_ps), ..self.began }
    }

    /// Returns the earliest time of all other busy cpus and of sleepers.
    fn others_ps(&self, cpu: usize) -> Option<u64> {
        let busy =
            self.cpus.iter().enumerate().filter(|(at, of)| *at != cpu && !of.queue.is_empty());
        // A sleeper may become the next to run, so a turn must not go far beyond its time.
        let sleepers = self.seats.iter().filter_map(|seat| match seat.state {
            State::Sleeps(until_ps) => Some(until_ps),
            _ => None,
        });
        busy.map(|(_, of)| of.now_ps).chain(sleepers).min()
    }

    /// Readies sleepers with a time that all cpus have reached.
    fn wake_sleepers(&mut self) {
        loop {
            let sleepers =
                self.seats.iter().enumerate().filter_map(|(at, seat)| match seat.state {
                    State::Sleeps(until_ps) => Some((until_ps, at)),
                    _ => None,
                });
            let Some((until_ps, seat)) = sleepers.min() else { return };
            let busy = self.cpus.iter().filter(|cpu| !cpu.queue.is_empty());
            if busy.map(|cpu| cpu.now_ps).min().is_some_and(|now_ps| now_ps < until_ps) {
                return;
            }
            self.goes_on(seat, until_ps);
        }
    }

    /// Advances the cpu of a running thread to this time; returns the cpu.
    fn came_to(&mut self, seat: usize, now_ps: u64) -> usize {
        let cpu = self.seats[seat].cpu;
        self.cpus[cpu].now_ps = self.cpus[cpu].now_ps.max(now_ps);
        cpu
    }

    /// Takes a thread off its cpu, which may run another one of the node.
    fn leaves(&mut self, seat: usize, now_ps: u64, state: State) {
        let cpu = self.seats[seat].cpu;
        if self.cpus[cpu].queue.front() == Some(&seat) {
            self.came_to(seat, now_ps);
            // The next thread of this cpu begins a new slice.
            self.cpus[cpu].slice_ends_ps = 0;
        }
        self.cpus[cpu].queue.retain(|of| *of != seat);
        (self.seats[seat].state, self.seats[seat].now_ps) = (state, now_ps);
        if self.cpus[cpu].queue.is_empty() {
            self.pull(cpu);
        }
    }

    /// Gives an idle cpu a thread that is queued on another one of its node.
    fn pull(&mut self, cpu: usize) {
        let node = self.nodes[cpu];
        let longest = (0..self.cpus.len())
            .filter(|&from| self.nodes[from] == node && self.cpus[from].queue.len() > 1)
            .max_by_key(|&from| (self.cpus[from].queue.len(), std::cmp::Reverse(from)));
        let Some(from) = longest else { return };
        let waiting = self.cpus[from].queue.iter().skip(1).rev().copied();
        let Some(seat) = waiting.clone().find(|&seat| self.may_run(seat, cpu)) else { return };
        self.cpus[from].queue.retain(|of| *of != seat);
        self.cpus[cpu].queue.push_back(seat);
        self.seats[seat].cpu = cpu;
    }

    /// Chooses the cpu on which a thread resumes: its own if idle, otherwise an idle one of its
    /// node, otherwise the one with the shortest queue.
    fn cpu_for(&self, seat: usize) -> usize {
        let own = self.seats[seat].cpu;
        let of_node = |cpu: &&usize| self.nodes[**cpu] == self.nodes[own];
        let others = self.order.iter().filter(of_node).copied();
        let all = std::iter::once(own).chain(others.filter(|cpu| *cpu != own));
        let allowed = all.filter(|&cpu| self.may_run(seat, cpu));
        allowed.min_by_key(|cpu| self.cpus[*cpu].queue.len()).unwrap_or(own)
    }

    fn may_run(&self, seat: usize, cpu: usize) -> bool {
        let among = |allowed: &Vec<usize>| allowed.contains(&cpu);
        self.order.contains(&cpu) && self.seats[seat].allowed.as_ref().is_none_or(among)
    }
}

#[cfg(test)]
mod tests;
