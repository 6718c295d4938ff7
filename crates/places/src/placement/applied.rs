//! Applies a placement to threads. The commands that a thread starts inherit its affinity and
//! memory policy.

use std::process::Command;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use numalab_host::{
    Classed, CommandError, ErrorClass, Input, Interrupt, Ran, current_affinity, monotonic_raw_ns,
    process_policy, run_with_input, set_process_policy, set_thread_affinity,
};
use numalab_launch::{identity, local};
use numalab_record::study::Evidence;
use numalab_study::BackendError;
use numalab_topology::{CpuSet, Placement};

use super::PlacedCommand;

/// The interval at which concurrent copies are checked.
const LOOK: Duration = Duration::from_millis(20);
/// The variable that sets the number of threads of OpenMP's runtimes.
const OPENMP_THREADS: &str = "OMP_NUM_THREADS";

impl PlacedCommand {
    /// Places a thread as every copy will be, and returns what the kernel reports about it.
    pub(crate) fn proof(&self) -> Result<Vec<Evidence>, BackendError> {
        let mut evidence = placed(&self.placement, Ok)?;
        for (rank, cpus) in self.ranks.iter().enumerate() {
            let of_rank = placed(&on_cpus(cpus), Ok)?.into_iter();
            let named =
                |one: Evidence| Evidence { what: format!("rank {rank} {}", one.what), ..one };
            evidence.extend(of_rank.map(named));
        }
        Ok(evidence)
    }

    /// Runs a closure in a placed thread.
    pub(crate) fn within<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, BackendError> + Send,
    ) -> Result<T, BackendError> {
        placed(&self.placement, |_| work())
    }

    /// Runs a command that reads `input`, or all copies of it at once: the time is that of the
    /// slowest, the output that of all in rank order. If one fails, the others are ended.
    pub(crate) fn run(
        &self,
        command: impl Fn() -> Command,
        (input, limit): (Input<'_>, Duration),
        interrupt: &Interrupt,
        failed: impl Fn(&CommandError) -> BackendError + Sync,
    ) -> Result<Ran, BackendError> {
        let command = || {
            let mut command = command();
            command.envs(self.threads.map(|threads| (OPENMP_THREADS, threads.to_string())));
            self.environment.apply(&mut command);
            command
        };
        if self.ranks.is_empty() {
            let ran = run_with_input(command(), input, limit, interrupt);
            return ran.map_err(|error| failed(&error));
        }
        let meeting = format!("study-{}-{}", std::process::id(), monotonic_raw_ns());
        let (stop, failed) = (Interrupt::never(), &failed);
        let ended = thread::scope(|scope| {
            let start = |(rank, cpus): (usize, &'_ CpuSet)| {
                let (mut command, cpus, stop) = (command(), cpus.clone(), stop.clone());
                command.env(identity::RANK, rank.to_string());
                command.env(identity::SIZE, self.ranks.len().to_string());
                command.env_remove(identity::LOCAL_RANK).env_remove(identity::LOCAL_SIZE);
                command.env(local::MEETING, &meeting);
                scope.spawn(move || {
                    let ran = placed(&on_cpus(&cpus), |_| {
                        let ran = run_with_input(command, input, limit, &stop);
                        ran.map_err(|error| failed(&error))
                    });
                    if !ran.as_ref().is_ok_and(|ran| ran.status.success()) {
                        stop.request();
                    }
                    ran
                })
            };
            let copies: Vec<_> = self.ranks.iter().enumerate().map(start).collect();
            while !copies.iter().all(ScopedJoinHandle::is_finished) {
                if interrupt.requested() {
                    stop.request();
                }
                thread::sleep(LOOK);
            }
            copies.into_iter().map(joined).collect()
        });
        together(ended)
    }
}

fn on_cpus(cpus: &CpuSet) -> Placement {
    Placement { cpus: Some(cpus.clone()), ..Placement::default() }
}

/// Runs a closure in a thread with this placement, and passes it what the kernel reports about it.
fn placed<T: Send>(
    placement: &Placement,
    work: impl FnOnce(Vec<Evidence>) -> Result<T, BackendError> + Send,
) -> Result<T, BackendError> {
    if *placement == Placement::default() {
        return work(Vec::new());
    }
    thread::scope(|scope| joined(scope.spawn(|| work(hold(placement)?))))
}

fn joined<T>(thread: ScopedJoinHandle<'_, Result<T, BackendError>>) -> Result<T, BackendError> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Places the calling thread, and verifies it by reading back.
fn hold(placement: &Placement) -> Result<Vec<Evidence>, BackendError> {
    let mut evidence = Vec::new();
    if let Some(cpus) = &placement.cpus {
        let refused =
            |reason: String| BackendError::failed(format!("running on CPUs {cpus}"), reason);
        set_thread_affinity(0, cpus).map_err(|errno| refused(errno.to_string()))?;
        let found = current_affinity().map_err(|error| refused(error.to_string()))?;
        if found != *cpus {
            return Err(refused(format!("the kernel allows {found}")));
        }
        evidence.push(Evidence::of("cpus", cpus.to_string(), found.to_string()));
    }
    if let Some(policy) = &placement.policy {
        let what = format!("memory policy {policy}");
        let kept = set_process_policy(policy).and_then(|()| process_policy());
        let kept = kept.map_err(|error| match error.class() {
            ErrorClass::Lacking => BackendError::lacking(what, error),
            _ => BackendError::failed(what, error),
        })?;
        evidence.push(Evidence::of("policy", policy.to_string(), kept.to_string()));
    }
    Ok(evidence)
}

/// Merges the results of all copies; the first failure counts as that of all.
fn together(ended: Vec<Result<Ran, BackendError>>) -> Result<Ran, BackendError> {
    let mut all: Option<Ran> = None;
    let mut interrupted = None;
    for ran in ended {
        match (ran, &mut all) {
            (Ok(ran), _) if !ran.status.success() => return Ok(ran),
            (Err(error @ BackendError::Interrupted), _) => interrupted = Some(error),
            (Err(error), _) => return Err(error),
            (Ok(ran), None) => all = Some(ran),
            (Ok(ran), Some(all)) => {
                all.stdout.push_str(&ran.stdout);
                all.stderr.push_str(&ran.stderr);
                all.took = all.took.max(ran.took);
                all.left.extend(ran.left);
            }
        }
    }
    match interrupted {
        Some(error) => Err(error),
        None => all.ok_or(BackendError::Interrupted),
    }
}

#[cfg(test)]
mod tests {
    use numalab_topology::{MemoryPolicy, NodeId};

    use super::super::Environment;
    use super::*;

    fn ranks(count: usize) -> PlacedCommand {
        let cpus = current_affinity().unwrap();
        PlacedCommand { ranks: vec![cpus; count], threads: Some(3), ..PlacedCommand::default() }
    }

    fn run(placement: &PlacedCommand, script: &str) -> Result<Ran, BackendError> {
        let command = || {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let failed = |error: &CommandError| match error {
            CommandError::Interrupted { .. } => BackendError::Interrupted,
            error => BackendError::failed("copy", error),
        };
        let within = (Input::Empty, Duration::from_secs(50));
        placement.run(command, within, &Interrupt::never(), failed)
    }

    #[test]
    fn a_started_command_has_the_cpus_and_the_policy_that_were_read_back() {
        let cpu = current_affinity().unwrap().iter().last().unwrap();
        let placement = PlacedCommand {
            placement: Placement {
                policy: Some(MemoryPolicy::bound_to(NodeId(0))),
                ..on_cpus(&CpuSet::from_iter([cpu]))
            },
            ..PlacedCommand::default()
        };
        let before = current_affinity().unwrap();
        let script = "grep Cpus_allowed_list /proc/self/status; head -1 /proc/self/numa_maps";
        let ran = placement.within(|| run(&placement, script)).unwrap();
        assert!(ran.stdout.contains(&format!("Cpus_allowed_list:\t{cpu}\n")), "{}", ran.stdout);
        assert!(ran.stdout.contains(" bind:0 "), "{}", ran.stdout);
        let proof = placement.proof().unwrap();
        let found: Vec<&str> = proof.iter().map(|evidence| evidence.found.as_str()).collect();
        assert_eq!(found, [cpu.to_string().as_str(), "bind:0"]);
        assert_eq!(current_affinity().unwrap(), before);
    }

    #[test]
    fn a_command_has_the_variables_of_its_treatment() {
        let environment = Environment::of("OMP_PLACES=cores A=b=c").unwrap();
        let placement = PlacedCommand { environment, ..PlacedCommand::default() };
        assert_eq!(run(&placement, "echo $OMP_PLACES $A").unwrap().stdout, "cores b=c\n");
    }

    #[test]
    fn copies_know_their_ranks_and_their_output_is_in_order() {
        let ran = run(&ranks(3), "echo $NUMALAB_RANK/$NUMALAB_RANKS $OMP_NUM_THREADS").unwrap();
        assert_eq!(ran.stdout, "0/3 3\n1/3 3\n2/3 3\n");
    }

    #[test]
    fn a_failed_copy_ends_the_others_and_is_reported() {
        let ran = run(&ranks(2), "[ $NUMALAB_RANK = 1 ] && exit 7; exec sleep 60").unwrap();
        assert_eq!(ran.status.code(), Some(7));
    }
}
