//! Jobs with numbers that are not ranks: each is independent, but may share its host with others.

use super::Look;

/// Variables with the kind of number that they give, and its owner. `RANK` comes last: a launcher
/// sets other variables as well.
const NUMBERS: [(&str, &str, &str); 8] = [
    ("PARALLEL_JOBSLOT", "slot", "GNU parallel"),
    ("SLURM_ARRAY_TASK_ID", "task", "a job array"),
    ("SGE_TASK_ID", "task", "a job array"),
    ("PBS_ARRAY_INDEX", "task", "a job array"),
    ("LSB_JOBINDEX", "task", "a job array"),
    ("JOB_COMPLETION_INDEX", "pod", "an indexed job"),
    ("_CONDOR_PROCNO", "process", "a cluster of HTCondor"),
    ("RANK", "number", "an unknown launcher"),
];

/// Returns the number of this process among others that may run on the same host, for people; `None`
/// without one, and for the number 0, which LSF also sets outside of arrays.
pub fn numbered_job(look: Look<'_>) -> Option<String> {
    let mut found = NUMBERS.iter().filter_map(|(name, what, owner)| {
        let number: u32 = look(name)?.trim().parse().ok().filter(|&number| number > 0)?;
        Some(format!("{what} {number} of {owner} ({name})"))
    });
    found.next()
}
