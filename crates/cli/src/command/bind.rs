//! `numalab bind`.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

use numalab_host::{Root, set_process_policy};
use numalab_launch::bind::{Binding, NodeChoice};
use numalab_launch::identity::detect_own;
use numalab_topology::NodeSet;

use crate::args::BindArgs;
use crate::failure::{Code, Failure};
use crate::output;

/// Binds this rank's memory and becomes the command.
pub(crate) fn run(args: &BindArgs) -> Result<(), Failure> {
    let command = command_of(args)?;
    let choice = args.numa.clone().unwrap_or(NodeChoice::Unsaid);
    let identity = detect_own()?;
    let nodes = nodes_with_memory()?;
    let binding = Binding::of(&choice, args.policy.into(), identity.as_ref(), &nodes)?;
    if !args.dry_run {
        set_process_policy(&binding.policy).map_err(numalab_host::Error::from)?;
    }
    if !args.quiet {
        let unsaid = match choice {
            NodeChoice::Unsaid => {
                format!("[Rank {}] No --numa given: binding to node 0\n", binding.rank)
            }
            _ => String::new(),
        };
        output::print(&format!("{unsaid}{}", binding.lines(&command)))?;
    }
    if args.dry_run {
        return Ok(());
    }
    become_command(&command)
}

/// The nodes whose memory this process may take.
fn nodes_with_memory() -> Result<NodeSet, Failure> {
    let reading = numalab_host::read_machine(&Root::live()).map_err(numalab_host::Error::from)?;
    let nodes = reading.machine.memory_nodes();
    let allowed = reading.machine.allowed.map(|allowed| allowed.memory_nodes).unwrap_or_default();
    Ok(if allowed.is_empty() { nodes } else { nodes.intersection(&allowed) })
}

/// What to run: `numalab latency` where only its options are given.
fn command_of(args: &BindArgs) -> Result<Vec<String>, Failure> {
    let mut command = args.command.clone();
    if let Some(program) = &args.executable {
        command.insert(0, program.clone());
    } else if command.first().is_none_or(|word| word.starts_with('-')) {
        let own = std::env::current_exe()
            .map_err(|error| Failure::new(Code::Failed, format!("own program: {error}")))?;
        command.splice(0..0, [own.to_string_lossy().into_owned(), "latency".to_owned()]);
    }
    Ok(command)
}

/// Replaces this process; returns only if that fails.
fn become_command(command: &[String]) -> Result<(), Failure> {
    let (program, arguments) = command.split_first().ok_or_else(|| {
        Failure::bad_input("nothing to run: expected -- and a command, or options of latency")
    })?;
    let error = Command::new(program).args(arguments).exec();
    let code = match error.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied => Code::Lacking,
        _ => Code::Failed,
    };
    Err(Failure::new(code, format!("cannot run `{program}`: {error}")))
}
