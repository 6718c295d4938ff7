//! Which of the machine's cpus each thread of a program runs on.
//!
//! A place is a seat of the model for one thread at a time; every cpu has several, so that more
//! threads than cpus can be told apart.

use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use numalab_memory_model::machine::{MOST_VCPUS, Machine};
use numalab_memory_model::space::Placement;

/// Threads that QEMU has had at a time, at most.
const MOST_INDICES: usize = 4096;
const NONE: usize = usize::MAX;

/// A machine with a vCPU for each place: the cpus in the order in which threads take them, over
/// and over.
pub fn with_places(machine: Machine, order: &[usize]) -> Machine {
    let places = order.len().max(MOST_VCPUS / order.len().max(1) * order.len());
    let cpu = |place: usize| order[place % order.len()];
    let groups = machine.groups();
    Machine {
        cpus: (0..places).map(|place| machine.cpus[cpu(place)]).collect(),
        l3_groups: Some((0..places).map(|place| groups[cpu(place)]).collect()),
        ..machine
    }
}

/// The threads that live.
#[derive(Debug)]
pub struct Threads {
    /// The place of each of QEMU's indices.
    places: Vec<AtomicUsize>,
    seats: Mutex<Vec<Seat>>,
    /// The cpu of each of the first places, and its node.
    order: Vec<(usize, usize)>,
}

#[derive(Clone, Debug, Default)]
struct Seat {
    taken: bool,
    /// The cpus that the thread asked for, where it did.
    allowed: Option<Vec<usize>>,
    /// What the thread said of its pages.
    placement: Option<Placement>,
}

impl Threads {
    /// Nobody, on a machine made by [`with_places`] with this order.
    pub fn new(machine: &Machine, order: &[usize]) -> Self {
        let places = machine.cpus.len();
        let order = order.iter().copied().zip(machine.cpus.iter().copied()).collect();
        Self {
            places: (0..MOST_INDICES).map(|_| AtomicUsize::new(NONE)).collect(),
            seats: Mutex::new(vec![Seat::default(); places]),
            order,
        }
    }

    /// The place of the thread that QEMU gave this index, which it takes when it first asks.
    #[inline]
    pub fn place(&self, index: usize) -> usize {
        let index = index % MOST_INDICES;
        self.known(index).unwrap_or_else(|| self.sit(index, |_| true))
    }

    /// Its place, if it has asked before.
    #[inline]
    pub fn known(&self, index: usize) -> Option<usize> {
        let place = self.places[index % MOST_INDICES].load(Relaxed);
        (place != NONE).then_some(place)
    }

    /// Takes the first free place on a cpu that is allowed: else one that is taken already, as on
    /// a machine without an idle cpu.
    fn sit(&self, index: usize, allowed: impl Fn(usize) -> bool) -> usize {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = (0..seats.len()).filter(|place| allowed(self.cpu(*place)));
        let first = open.clone().next().unwrap_or(0);
        let place = open.find(|place| !seats[*place].taken).unwrap_or(first);
        seats[place].taken = true;
        self.places[index].store(place, Relaxed);
        place
    }

    /// The machine's cpu of a place.
    pub fn cpu(&self, place: usize) -> usize {
        self.order[place % self.order.len()].0
    }

    /// The cpus of its node on which the thread at a place may run, that of the place first.
    pub fn cpus(&self, place: usize) -> Vec<usize> {
        let seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let allowed = seats[place].allowed.as_ref();
        let (own, node) = self.order[place % self.order.len()];
        let others = self.order.iter().filter(|(cpu, of)| *cpu != own && *of == node);
        let others = others.map(|(cpu, _)| *cpu);
        let others = others.filter(|cpu| allowed.is_none_or(|allowed| allowed.contains(cpu)));
        iter::once(own).chain(others).collect()
    }

    /// The thread has ended.
    pub fn leave(&self, index: usize) {
        let place = self.places[index % MOST_INDICES].swap(NONE, Relaxed);
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seat) = seats.get_mut(place) {
            *seat = Seat::default();
        }
    }

    /// The thread may run on these cpus of the machine alone, and moves if it does not, from a place
    /// to another; a set with none of the machine's cpus says nothing.
    pub fn allow(&self, index: usize, cpus: &[usize]) -> Option<[usize; 2]> {
        let now = self.place(index);
        if !cpus.iter().any(|cpu| self.order.iter().any(|(of, _)| of == cpu)) {
            return None;
        }
        let mut place = now;
        if !cpus.contains(&self.cpu(now)) {
            let placement = self.placement(now);
            self.leave(index);
            place = self.sit(index % MOST_INDICES, |cpu| cpus.contains(&cpu));
            self.keep_placement(place, placement);
        }
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats[place].allowed = Some(cpus.to_vec());
        (place != now).then_some([now, place])
    }

    /// Where the pages go that the thread at this place touches first, if it has said that.
    pub fn placement(&self, place: usize) -> Option<Placement> {
        let seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats[place].placement.clone()
    }

    /// As set_mempolicy(2) sets it.
    pub fn set_placement(&self, place: usize, placement: Placement) {
        self.keep_placement(place, Some(placement));
    }

    fn keep_placement(&self, place: usize, placement: Option<Placement>) {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats[place].placement = placement;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_memory_model::arguments::Arguments;

    fn machine() -> Machine {
        let words = ["cpus=0.0.1.1", "memory=1G.1G", "distances=10.20/20.10"];
        Arguments::parse(words, |_| unreachable!()).unwrap().machine
    }

    fn threads(order: &[usize]) -> Threads {
        let machine = with_places(machine(), order);
        Threads::new(&machine, order)
    }

    #[test]
    fn threads_take_cpus_in_order_and_a_place_that_was_left_is_taken_again() {
        let threads = threads(&[0, 2, 1, 3]);
        let cpus = |indices: &[usize]| -> Vec<usize> {
            indices.iter().map(|index| threads.cpu(threads.place(*index))).collect()
        };
        assert_eq!(cpus(&[0, 1, 2, 3, 4]), [0, 2, 1, 3, 0]);
        assert_ne!(threads.place(0), threads.place(4));
        threads.leave(1);
        assert_eq!(cpus(&[7, 0]), [2, 0]);
    }

    #[test]
    fn a_thread_moves_to_a_cpu_that_it_may_run_on_and_keeps_its_policy() {
        let threads = threads(&[0, 1, 2, 3]);
        let place = threads.place(0);
        threads.set_placement(place, Placement::Bind(vec![0]));
        threads.allow(0, &[2, 3]);
        assert_eq!(threads.cpu(threads.place(0)), 2);
        assert_eq!(threads.placement(threads.place(0)), Some(Placement::Bind(vec![0])));
        threads.allow(0, &[64]);
        assert_eq!(threads.cpu(threads.place(0)), 2);
    }

    #[test]
    fn a_thread_runs_on_any_cpu_of_its_node_that_it_did_not_exclude() {
        let threads = threads(&[0, 2, 1, 3]);
        let place = threads.place(0);
        assert_eq!((threads.cpus(place), threads.cpus(threads.place(1))), (vec![0, 1], vec![2, 3]));
        assert_eq!(threads.allow(0, &[0, 2]), None);
        assert_eq!(threads.cpus(place), [0]);
        threads.allow(0, &[3]);
        assert_eq!(threads.cpus(threads.place(0)), [3]);
    }

    #[test]
    fn every_place_is_on_the_node_of_its_cpu() {
        let order = [0, 2, 1, 3];
        let with = with_places(machine(), &order);
        assert_eq!(with.cpus[..5], [0, 1, 0, 1, 0]);
        assert_eq!(with.groups()[..4], [0, 1, 0, 1]);
        assert!(with.cpus.len() <= MOST_VCPUS);
    }
}
