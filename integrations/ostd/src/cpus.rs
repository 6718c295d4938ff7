//! Work for cpus: the boot cpu gives a job to others, and waits.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use numalab_kernel::plan::Plan;
use numalab_kernel::work::dealt;
use ostd::sync::SpinLock;
use ostd::task::halt_cpu;

use crate::machine;

/// The work of a cpu, which gets its index.
type Job = Arc<dyn Fn(usize) + Send + Sync>;

/// The job of each cpu that has one.
static JOBS: SpinLock<Vec<(usize, Job)>> = SpinLock::new(Vec::new());
/// Number of cpus with a job that they have not finished.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// Waits for jobs and runs them forever: the main function of the other cpus. The timer wakes a cpu
/// that got its job just before it halted.
pub fn serve() {
    loop {
        let job = machine::made().and_then(machine::place).and_then(take);
        match job {
            Some((place, job)) => end(place, &job),
            None => halt_cpu(),
        }
    }
}

fn take(place: usize) -> Option<(usize, Job)> {
    let mut jobs = JOBS.lock();
    let at = jobs.iter().position(|(of, _)| *of == place)?;
    Some(jobs.swap_remove(at))
}

fn end(place: usize, job: &Job) {
    job(place);
    // Pairs with the load in `on`: the waiting cpu sees everything that the job wrote.
    BUSY.fetch_sub(1, Ordering::Release);
}

/// Runs a job on all of these cpus at once, and waits for its end.
pub fn on(plan: &Plan, places: &[usize], job: impl Fn(usize) + Send + Sync + 'static) {
    let job: Job = Arc::new(job);
    let own = machine::place(plan);
    BUSY.store(places.len(), Ordering::Relaxed);
    let others = places.iter().filter(|place| Some(**place) != own);
    let given: Box<[_]> = others.map(|&place| (place, job.clone())).collect();
    JOBS.lock().extend(given);
    // A sleeping cpu looks for jobs when it is woken.
    ostd::smp::inter_processor_call(&ostd::cpu::CpuSet::new_full(), || {});
    if let Some(place) = own.filter(|place| places.contains(place)) {
        end(place, &job);
    }
    while BUSY.load(Ordering::Acquire) > 0 {
        core::hint::spin_loop();
    }
}

/// Returns this number of cpus, taken from the nodes in turn.
pub fn chosen(plan: &Plan, count: usize) -> Vec<usize> {
    let nodes: Vec<u16> = plan.cpu_nodes.iter().map(|node| node.0).collect();
    dealt(&nodes, count).collect()
}
