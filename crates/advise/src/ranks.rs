//! Ranks started by `srun`: SLURM's daemons start them, so no emulator can follow them, and `srun`
//! places them. Within an allocation of one node its placements are tried.

use std::env;
use std::path::Path;

use numalab_results::advice::{Advice, Candidate, MachineCosts, TrialPlace};

/// Reason why ranks cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RanksError {
    #[error("srun: ranks can only be tried on this machine: omit the description of another one")]
    OtherMachine,
    #[error(
        "srun: its options already place the ranks, so there is nothing to try: omit \
         --distribution, --cpu-bind and --mem-bind"
    )]
    NothingLeft,
    #[error(
        "srun outside an allocation: expected salloc -N1 --exclusive numalab advise -- srun ..."
    )]
    NoAllocation,
    #[error("srun in an allocation of {0} nodes: expected one node, as from salloc -N1")]
    SeveralNodes(String),
}

/// Placements by options of `srun`: consecutive ranks; ranks that alternate between sockets; the
/// same within a node.
const PLACEMENTS: [&[&str]; 3] = [
    &["--distribution=block:block", "--cpu-bind=cores", "--mem-bind=local"],
    &["--distribution=block:cyclic", "--cpu-bind=cores", "--mem-bind=local"],
    &["--cpu-bind=ldoms", "--mem-bind=local"],
];
const SHORT_DISTRIBUTION: &str = "-m";
/// Short options that do not take a separate value: srun(1), 22.05.
const SHORT_FLAGS: &str = "EHIKkhlOQsuVvXZ";
const FLAGS: [&str; 22] = [
    "contiguous",
    "disable-status",
    "exact",
    "exclusive",
    "hold",
    "immediate",
    "kill-on-bad-exit",
    "label",
    "multi-prog",
    "no-kill",
    "overcommit",
    "overlap",
    "oversubscribe",
    "preserve-env",
    "pty",
    "quiet",
    "quit-on-interrupt",
    "reboot",
    "spread-job",
    "unbuffered",
    "use-min-nodes",
    "verbose",
];

/// Returns true if the command starts ranks.
pub(super) fn are_started_by(command: &[String]) -> bool {
    let program = command.first().map(Path::new).and_then(Path::file_name);
    program.is_some_and(|name| name == "srun")
}

/// Returns candidates for ranks, if they can be tried: on this machine, in an allocation of one
/// node.
pub(super) fn advice(
    command: &[String],
    machine: MachineCosts,
    place: TrialPlace,
) -> Result<Advice, RanksError> {
    if place != TrialPlace::Host {
        return Err(RanksError::OtherMachine);
    }
    let nodes = |name| env::var(name).ok();
    check_allocation(nodes("SLURM_JOB_ID"), nodes("SLURM_JOB_NUM_NODES"))?;
    let candidates = candidates(command);
    if candidates.is_empty() {
        return Err(RanksError::NothingLeft);
    }
    Ok(Advice::unprofiled(command, candidates, machine, place))
}

/// Checks for an allocation; outside one, each trial would wait for a new one.
fn check_allocation(job: Option<String>, nodes: Option<String>) -> Result<(), RanksError> {
    let nodes = nodes.as_deref().unwrap_or("1");
    match job {
        None => Err(RanksError::NoAllocation),
        Some(_) if nodes != "1" => Err(RanksError::SeveralNodes(nodes.to_owned())),
        Some(_) => Ok(()),
    }
}

/// Returns the placements that the command line does not already determine.
fn candidates(command: &[String]) -> Vec<Candidate> {
    let name = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
    let is_said = |option: &str| {
        let name = name(option);
        let short = (name == "--distribution").then_some(SHORT_DISTRIBUTION);
        let is_it = |word: &String| {
            word.starts_with(&name) || short.is_some_and(|short| word.starts_with(short))
        };
        options(command).any(is_it)
    };
    let free = PLACEMENTS.iter().filter(|options| !options.iter().any(|option| is_said(option)));
    let ranks = |options: &&[&str]| Candidate::Ranks {
        options: options.iter().map(|option| (*option).to_owned()).collect(),
    };
    free.map(ranks).collect()
}

/// Returns the options of `srun`, which end at the program's name.
fn options(command: &[String]) -> impl Iterator<Item = &String> {
    let mut is_value = false;
    command
        .iter()
        .skip(1)
        .map_while(move |word| {
            if is_value {
                is_value = false;
                return Some(None);
            }
            let option = word.strip_prefix('-').filter(|option| !matches!(*option, "" | "-"))?;
            is_value = match option.strip_prefix('-') {
                Some(long) => !long.contains('=') && !FLAGS.contains(&long),
                None => option.len() == 1 && !SHORT_FLAGS.contains(option),
            };
            Some(Some(word))
        })
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number_of_candidates(line: &str) -> usize {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert!(are_started_by(&words));
        candidates(&words).len()
    }

    #[test]
    fn placements_that_the_command_says_itself_are_left_to_it() {
        assert_eq!(number_of_candidates("srun -n4 ./ranks"), 3);
        assert_eq!(number_of_candidates("/usr/bin/srun -m cyclic -n4 ./ranks"), 1);
        assert_eq!(number_of_candidates("srun --distribution=block -n4 ./ranks"), 1);
        assert_eq!(number_of_candidates("srun --cpu-bind=none ./ranks"), 0);
        assert_eq!(number_of_candidates("srun --cpu-bind none ./ranks"), 0);
        assert_eq!(
            number_of_candidates("srun -l -n 4 ./ranks -m 3 --cpu-bind=none"),
            3,
            "they are the program's"
        );
        assert_eq!(number_of_candidates("srun --label -- ./ranks -m 3"), 3);
        assert_eq!(number_of_candidates("srun --ntasks 4 -m cyclic ./ranks"), 1);
        assert!(!are_started_by(&["./srun-like".to_owned()]) && !are_started_by(&[]));
    }

    #[test]
    fn an_allocation_of_one_node_is_expected() {
        let check = |job: Option<&str>, nodes: Option<&str>| {
            let checked = check_allocation(job.map(str::to_owned), nodes.map(str::to_owned));
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(check(Some("7"), Some("1")), Ok(()));
        assert!(check(None, None).is_err_and(|words| words.contains("salloc -N1")));
        assert!(check(Some("7"), Some("2")).is_err_and(|words| words.contains("2 nodes")));
    }
}
