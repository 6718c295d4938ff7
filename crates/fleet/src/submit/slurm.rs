//! Runs SLURM's programs.

use std::time::Duration;

use numalab_host::{CommandError, Input, Interrupt, run_with_input, tool};

use super::SubmitError;

/// Time limit of a program: a busy controller answers late.
const LIMIT: Duration = Duration::from_secs(300);

/// SLURM's default of `MaxArraySize`; task ids are below it.
const USUAL_LONGEST_ARRAY: usize = 1001;

/// Returns the hosts of a partition, or all hosts of a list such as `n[1-4,7]`.
pub fn hosts(partition: Option<&str>, named: Option<&str>) -> Result<Vec<String>, SubmitError> {
    let text = match named {
        Some(named) if !named.contains('[') => named.replace(',', "\n"),
        Some(named) => run("scontrol", &["show", "hostnames", named], "")?,
        None => {
            // A task bound to a host that is down or drained would wait forever.
            let states = "--states=idle,mixed,allocated,completing";
            let mut arguments = vec!["--noheader", "--Node", "--format=%N", states];
            arguments.extend(partition.iter().flat_map(|name| ["--partition", name]));
            run("sinfo", &arguments, "")?
        }
    };
    let mut hosts: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
    hosts.retain(|host| !host.is_empty());
    // A host in several partitions, or in several ranges, is listed once for each.
    hosts.sort_by_key(|host| numbered(host));
    hosts.dedup();
    match hosts.is_empty() {
        true => Err(SubmitError::NoHosts { partition: partition.unwrap_or("default").to_owned() }),
        false => Ok(hosts),
    }
}

/// Returns a key that sorts `n2` before `n10`.
fn numbered(host: &str) -> (String, u64, String) {
    let digits = host.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    (host[..digits].to_owned(), host[digits..].parse().unwrap_or(0), host.to_owned())
}

/// Returns the longest array that SLURM accepts.
pub fn longest_array() -> usize {
    let text = run("scontrol", &["show", "config"], "").unwrap_or_default();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("MaxArraySize"));
    let size = line.and_then(|line| line.trim_start_matches([' ', '=']).trim().parse().ok());
    size.unwrap_or(USUAL_LONGEST_ARRAY)
}

/// Submits a job and returns its id.
pub fn submit(arguments: &[String]) -> Result<String, SubmitError> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = run("sbatch", &arguments, "")?;
    // `123` or `123;cluster`
    Ok(output.trim().split(';').next().unwrap_or_default().to_owned())
}

/// Passes many commands to `scontrol` at once.
///
/// # Errors
/// [`SubmitError`], also if it rejects a command.
pub fn control(commands: &str) -> Result<(), SubmitError> {
    run("scontrol", &["--oneliner"], commands).map(drop)
}

fn run(program: &'static str, arguments: &[&str], input: &str) -> Result<String, SubmitError> {
    let failed = |message: String| SubmitError::Failed { program, message };
    let command = tool(program, arguments);
    let ran = run_with_input(command, Input::Bytes(input.as_bytes()), LIMIT, &Interrupt::never());
    let ran = ran.map_err(|error| match error {
        CommandError::NotFound { .. } => SubmitError::Absent { program },
        error => failed(error.to_string()),
    })?;
    let errors = ran.stderr.trim();
    match ran.status.success() && (input.is_empty() || errors.is_empty()) {
        true => Ok(ran.stdout),
        false if errors.is_empty() => Err(failed(ran.status.to_string())),
        false => Err(match without_cluster(errors) {
            Some(message) => SubmitError::NoCluster { program, message },
            None => failed(errors.to_owned()),
        }),
    }
}

/// Messages of SLURM's programs without a configuration or a reachable controller.
const NO_CLUSTER: [&str; 2] =
    ["Could not establish a configuration source", "Unable to contact slurm controller"];

/// Returns the message that there is no cluster, if there is one.
fn without_cluster(errors: &str) -> Option<String> {
    let line = errors.lines().find(|line| NO_CLUSTER.iter().any(|words| line.contains(words)))?;
    Some(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_named_one_by_one_need_no_slurm() {
        assert_eq!(hosts(None, Some("b7,a,b7")).unwrap(), ["a", "b7"]);
    }

    #[test]
    fn a_client_without_a_cluster_differs_from_a_rejected_request() {
        let errors = "sinfo: error: fetch_config: DNS SRV lookup failed\n\
                      sinfo: fatal: Could not establish a configuration source\n";
        let expected = "sinfo: fatal: Could not establish a configuration source";
        assert_eq!(without_cluster(errors).as_deref(), Some(expected));
        let gone = "slurm_load_partitions: Unable to contact slurm controller (connect failure)";
        assert_eq!(without_cluster(gone).as_deref(), Some(gone));
        assert_eq!(without_cluster("sbatch: error: invalid partition specified: x"), None);
    }

    #[test]
    fn hosts_are_ordered_by_their_number() {
        let mut hosts = ["n10", "n9", "m2", "n1"];
        hosts.sort_by_key(|host| numbered(host));
        assert_eq!(hosts, ["m2", "n1", "n9", "n10"]);
    }
}
