//! The placement of ranks: processes started by a launcher, identified by the environment variables
//! that it set.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use numalab_host::{Root, read_machine_and_devices};
use numalab_record::explore::{ProcessView, RankView, RanksView, Unseen, spread};

use crate::error::ExploreError;
use crate::process::{cpus_by_node, read_process_on};

/// Access to one variable of a process's environment.
pub type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the rank of a process given by its variables, and the number of ranks if it is known;
/// `None` if the process is not a rank.
pub type WhichRank<'a> = &'a dyn Fn(u32, VariableLookup<'_>) -> Option<(usize, Option<usize>)>;

/// Returns the ranks of one job, or of all jobs, on this host, as far as this user may read their
/// processes. The calling process is left out.
///
/// # Errors
/// [`ExploreError::Machine`] if the machine cannot be read.
pub fn read_ranks(
    root: &Root,
    which_rank: WhichRank<'_>,
    job: Option<&str>,
) -> Result<RanksView, ExploreError> {
    let machine = read_machine_and_devices(root)?.machine;
    let own = std::process::id();
    let mut processes: BTreeMap<(String, usize, Option<usize>), Vec<ProcessView>> = BTreeMap::new();
    let mut denied = 0;
    for process in root.numbered("proc", "") {
        let environment = match root.document(&format!("proc/{process}/environ")) {
            Ok(environment) => environment,
            Err(error) => {
                denied += usize::from(error.kind() == ErrorKind::PermissionDenied);
                continue;
            }
        };
        let look = |name: &str| variable(&environment, name);
        let found = which_rank(process, &look).filter(|_| process != own);
        let Some((rank, size)) = found else { continue };
        let own_job = job_of(&look);
        if job.is_some_and(|job| !is_in(&own_job, job)) {
            continue;
        }
        // A process may end, or change to another user, between two reads.
        if let Ok(view) = read_process_on(root, process, &machine) {
            processes.entry((own_job, rank, size)).or_default().push(view);
        }
    }
    let ranks = processes.into_iter().filter_map(|(key, views)| rank_of(key, views));
    Ok(RanksView {
        ranks: ranks.collect(),
        cpus_by_node: cpus_by_node(&machine),
        unseen: (denied > 0)
            .then_some(Unseen::EnvironmentsOfOthers { processes: denied })
            .into_iter()
            .collect(),
    })
}

/// Represents the rank by the process with the most private memory: shells that started it have
/// little.
fn rank_of(
    (job, rank, size): (String, usize, Option<usize>),
    views: Vec<ProcessView>,
) -> Option<RankView> {
    let other_processes = views.len().saturating_sub(1);
    let view = views.into_iter().max_by_key(|view| spread::total(&view.own_bytes_by_node))?;
    Some(RankView {
        job,
        rank,
        size,
        process: view.process,
        other_processes,
        command: view.command,
        threads: view.threads,
        own_bytes_by_node: view.own_bytes_by_node,
        remote_share: view.remote_share,
    })
}

/// Returns a variable of `/proc/PID/environ`.
fn variable(environment: &str, name: &str) -> Option<String> {
    let mut variables = environment.split('\0').filter_map(|line| line.split_once('='));
    variables.find(|(own, _)| *own == name).map(|(_, value)| value.to_owned())
}

/// Returns `4242.0` for a step of SLURM, otherwise the name given by PMIx.
fn job_of(look: VariableLookup<'_>) -> String {
    match (look("SLURM_JOB_ID"), look("SLURM_STEP_ID")) {
        (Some(job), Some(step)) => format!("{job}.{step}"),
        (Some(job), None) => job,
        (None, _) => look("PMIX_NAMESPACE").unwrap_or_default(),
    }
}

/// Returns true if a job, such as `4242.0`, is the requested one, `4242` or `4242.0`.
fn is_in(own: &str, asked: &str) -> bool {
    own == asked || own.strip_prefix(asked).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_slurm_is_found_by_its_job_and_by_itself() {
        let environment = "HOME=/\0SLURM_JOB_ID=42\0SLURM_STEP_ID=0\0";
        let job = job_of(&|name| variable(environment, name));
        assert_eq!(job, "42.0");
        assert!(is_in(&job, "42") && is_in(&job, "42.0"));
        assert!(!is_in(&job, "4") && !is_in(&job, "42.1"));
        assert_eq!(job_of(&|_| None), "");
    }
}
