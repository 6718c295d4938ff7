//! Boots made ahead of time. In virtual time boots cannot disturb each other, so as many run in
//! parallel as this machine has cpus and memory for. The requested treatments and their order do
//! not change, only the waiting.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use numalab_host::Interrupt;
use numalab_record::study::Treatment;
use numalab_study::BackendError;

use super::outcome::Outcome;

/// The number of boots per worker that may be finished or running ahead of time: a worker that
/// finishes a short one continues while another still has a long one, and at most this many are
/// lost if the study ends.
const AHEAD_EACH: usize = 2;

/// Boots a treatment until done or interrupted.
type Boot = dyn Fn(&Treatment, &Interrupt) -> Result<Outcome, BackendError> + Send + Sync;

/// Workers that boot upcoming treatments.
pub(super) struct BootPool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    boots: Mutex<Boots>,
    changed: Condvar,
    stop: Interrupt,
    boot: Box<Boot>,
}

#[derive(Default)]
struct Boots {
    waiting: VecDeque<Treatment>,
    /// The names of the treatments being booted.
    running: Vec<String>,
    done: Vec<(String, Result<Outcome, BackendError>)>,
}

impl BootPool {
    /// Starts idle workers.
    pub(super) fn new(
        workers: usize,
        boot: impl Fn(&Treatment, &Interrupt) -> Result<Outcome, BackendError> + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            boots: Mutex::default(),
            changed: Condvar::new(),
            stop: Interrupt::never(),
            boot: Box::new(boot),
        });
        let worker = |_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.work())
        };
        Self { workers: (0..workers).map(worker).collect(), shared }
    }

    /// Starts booting the treatments that will be requested next, in this order.
    pub(super) fn expect(&self, treatments: &[&Treatment]) {
        let most = AHEAD_EACH * self.workers.len();
        let mut boots = self.shared.boots();
        let mut known = boots.known();
        for &treatment in treatments.iter().take(most) {
            match known.get_mut(&treatment.name) {
                Some(left) if *left > 0 => *left -= 1,
                _ => boots.waiting.push_back(treatment.clone()),
            }
        }
        self.shared.changed.notify_all();
    }

    /// Waits until a boot of one of the treatments is done, and returns the treatment's index: the
    /// first one's if it is.
    pub(super) fn first_done(&self, treatments: &[&Treatment]) -> usize {
        let mut boots = self.shared.boots();
        if let Some(first) = treatments.first() {
            self.shared.start(&mut boots, first);
        }
        loop {
            let is_done = |of: &&Treatment| boots.done.iter().any(|(name, _)| *name == of.name);
            match treatments.iter().position(is_done) {
                None if !treatments.is_empty() => {}
                found => return found.unwrap_or(0),
            }
            boots = self.shared.changed.wait(boots).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for a boot of the treatment and returns its outcome.
    pub(super) fn take(&self, treatment: &Treatment) -> Result<Outcome, BackendError> {
        let mut boots = self.shared.boots();
        self.shared.start(&mut boots, treatment);
        loop {
            let found = boots.done.iter().position(|(name, _)| *name == treatment.name);
            if let Some(at) = found {
                return boots.done.remove(at).1;
            }
            boots = self.shared.changed.wait(boots).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for BootPool {
    fn drop(&mut self) {
        self.shared.stop.request();
        self.shared.boots().waiting.clear();
        self.shared.changed.notify_all();
        for worker in self.workers.drain(..) {
            // A worker that panicked has already printed why.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn boots(&self) -> MutexGuard<'_, Boots> {
        self.boots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Boots a treatment next, unless one of its boots is in progress or done.
    fn start(&self, boots: &mut Boots, treatment: &Treatment) {
        if !boots.known().contains_key(&treatment.name) {
            boots.waiting.push_front(treatment.clone());
            self.changed.notify_all();
        }
    }

    /// Boots queued treatments until told to stop.
    fn work(&self) {
        while let Some(treatment) = self.next() {
            let boot = AssertUnwindSafe(|| (self.boot)(&treatment, &self.stop));
            let outcome = catch_unwind(boot).unwrap_or_else(|_| {
                // Otherwise the caller that requests it would wait forever.
                Err(BackendError::failed(
                    treatment.name.clone(),
                    "numalab itself failed; its message is above",
                ))
            });
            let mut boots = self.boots();
            let at = boots.running.iter().position(|name| *name == treatment.name);
            at.map(|at| boots.running.swap_remove(at));
            boots.done.push((treatment.name, outcome));
            self.changed.notify_all();
        }
    }

    fn next(&self) -> Option<Treatment> {
        let mut boots = self.boots();
        loop {
            if self.stop.requested() {
                return None;
            }
            if let Some(treatment) = boots.waiting.pop_front() {
                boots.running.push(treatment.name.clone());
                return Some(treatment);
            }
            boots = self.changed.wait(boots).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Boots {
    /// Returns the number of boots of each treatment, by name.
    fn known(&self) -> BTreeMap<String, usize> {
        let waiting = self.waiting.iter().map(|treatment| &treatment.name);
        let done = self.done.iter().map(|(name, _)| name);
        let mut known = BTreeMap::new();
        for name in waiting.chain(&self.running).chain(done) {
            *known.entry(name.clone()).or_default() += 1;
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    fn treatment(name: &str) -> Treatment {
        Treatment { name: name.to_owned(), levels: Vec::new(), settings: BTreeMap::new() }
    }

    fn outcome(report: &str) -> Outcome {
        Outcome { memory_report: Some(report.to_owned()), ..Outcome::default() }
    }

    #[test]
    fn expected_boots_run_in_parallel() {
        let meet = Arc::new(Barrier::new(2));
        let boot = move |treatment: &Treatment, _: &Interrupt| {
            // A single worker would wait here forever.
            meet.wait();
            Ok(outcome(&treatment.name))
        };
        let pool = BootPool::new(2, boot);
        let (a, b) = (treatment("a"), treatment("b"));
        pool.expect(&[&a, &b]);
        assert_eq!(pool.take(&b), Ok(outcome("b")));
        assert_eq!(pool.take(&a), Ok(outcome("a")));
    }

    #[test]
    fn each_boot_is_returned_once_however_often_it_was_expected() {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let pool = BootPool::new(3, move |_: &Treatment, _: &Interrupt| {
            Ok(outcome(&counted.fetch_add(1, Ordering::Relaxed).to_string()))
        });
        let (a, b) = (treatment("a"), treatment("b"));
        let visits = [&a, &b, &a];
        let mut given = Vec::new();
        for done in 0..visits.len() {
            pool.expect(&visits[done..]);
            given.push(pool.take(visits[done]).unwrap().memory_report.unwrap());
        }
        given.sort();
        assert_eq!(given, ["0", "1", "2"]);
        assert_eq!(count.load(Ordering::Relaxed), 3);
        // This treatment was not announced.
        assert_eq!(pool.take(&a), Ok(outcome("3")));
    }

    #[test]
    fn a_boot_that_ends_before_the_one_that_is_due_is_named_first() {
        let meet = Arc::new(Barrier::new(2));
        let waiting = Arc::clone(&meet);
        let pool = BootPool::new(2, move |treatment: &Treatment, _: &Interrupt| {
            if treatment.name == "a" {
                waiting.wait();
            }
            Ok(outcome(&treatment.name))
        });
        let (a, b) = (treatment("a"), treatment("b"));
        pool.expect(&[&a, &b]);
        assert_eq!(pool.first_done(&[&a, &b]), 1);
        assert_eq!(pool.take(&b), Ok(outcome("b")));
        meet.wait();
        assert_eq!(pool.first_done(&[&a]), 0);
    }

    #[test]
    fn the_number_of_boots_ahead_is_limited() {
        let pool = BootPool::new(1, |_: &Treatment, _: &Interrupt| Ok(outcome("")));
        let names: Vec<Treatment> = (0..9).map(|at| treatment(&at.to_string())).collect();
        pool.expect(&names.iter().collect::<Vec<_>>());
        assert_eq!(pool.shared.boots().known().len(), AHEAD_EACH);
    }

    #[test]
    fn running_boots_are_ended_when_they_are_no_longer_needed() {
        let ended = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&ended);
        let pool = BootPool::new(2, move |_: &Treatment, stop: &Interrupt| {
            while !stop.requested() {
                thread::sleep(Duration::from_millis(1));
            }
            counted.fetch_add(1, Ordering::Relaxed);
            Err(BackendError::Interrupted)
        });
        let (a, b) = (treatment("a"), treatment("b"));
        pool.expect(&[&a, &b]);
        while pool.shared.boots().running.len() < 2 {
            thread::sleep(Duration::from_millis(1));
        }
        drop(pool);
        assert_eq!(ended.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_failed_boot_gives_its_error_to_its_own_request() {
        let failed = BackendError::failed("boot", "no");
        let error = failed.clone();
        let pool = BootPool::new(1, move |_: &Treatment, _: &Interrupt| Err(error.clone()));
        assert_eq!(pool.take(&treatment("a")), Err(failed));
    }

    #[test]
    fn a_boot_that_panics_is_an_error_and_not_waited_for() {
        let pool = BootPool::new(1, |_: &Treatment, _: &Interrupt| panic!("a fault"));
        let error = pool.take(&treatment("a")).unwrap_err().to_string();
        assert_eq!(error, "a: numalab itself failed; its message is above");
    }
}
