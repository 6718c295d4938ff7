//! Work for cpus: the boot cpu hands a job to others, and waits.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use numalab_kernel::plan::Plan;
use numalab_kernel::work::dealt;
use ostd::sync::SpinLock;
use ostd::task::halt_cpu;

use crate::machine;

/// What a cpu does; it is told its place.
type Job = Arc<dyn Fn(usize) + Send + Sync>;

/// The job of each cpu that has one.
static JOBS: SpinLock<Vec<(usize, Job)>> = SpinLock::new(Vec::new());
/// Cpus that have a job and have not ended it.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// Waits for jobs and does them, for ever: the other cpus' main function. The timer wakes a cpu
/// that was given its job just before it halted.
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
    // Pairs with the load in `on`: what the job wrote is seen by who waits.
    BUSY.fetch_sub(1, Ordering::Release);
}

/// Does a job on all of these cpus at once, and waits for its end.
pub fn on(plan: &Plan, places: &[usize], job: impl Fn(usize) + Send + Sync + 'static) {
    let job: Job = Arc::new(job);
    let own = machine::place(plan);
    BUSY.store(places.len(), Ordering::Relaxed);
    let others = places.iter().filter(|place| Some(**place) != own);
    let given: Box<[_]> = others.map(|&place| (place, job.clone())).collect();
    JOBS.lock().extend(given);
    // Who sleeps looks for jobs when it is called.
    ostd::smp::inter_processor_call(&ostd::cpu::CpuSet::new_full(), || {});
    if let Some(place) = own.filter(|place| places.contains(place)) {
        end(place, &job);
    }
    while BUSY.load(Ordering::Acquire) > 0 {
        core::hint::spin_loop();
    }
}

/// So many cpus, dealt to the nodes in turn.
pub fn chosen(plan: &Plan, count: usize) -> Vec<usize> {
    let nodes: Vec<u16> = plan.cpu_nodes.iter().map(|node| node.0).collect();
    dealt(&nodes, count).collect()
}
