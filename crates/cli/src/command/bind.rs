//! `numalab bind`.

use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use numalab_host::{
    Pinned, Root, check_startable, generic_initiators, pin, read_machine, read_machine_and_devices,
    set_process_policy, users_program,
};
use numalab_launch::bind::{
    BindError, Binding, Home, NodeChoice, PolicyKind, Seats, Weights, without_weights,
};
use numalab_launch::identity::{self, Launcher, Role, Task};
use numalab_launch::near::{Near, device_memory};
use numalab_topology::{CpuId, CpuSet};

use super::own;
use crate::args::{BindArgs, RankCpus};
use crate::failure::Failure;
use crate::output;

/// Binds this rank's memory and becomes the command; with `--ranks`, starts that number of copies
/// of itself.
pub(crate) fn run(args: &BindArgs) -> Result<ExitCode, Failure> {
    if let Some(weights) = &args.weights {
        return with_weights(args, weights);
    }
    let task = match Role::of_own(args.ranks)? {
        Role::Starter(size) if args.dry_run => {
            let mut ranks = (0..size).map(|rank| Task::of_own(rank, size));
            ranks.try_for_each(|task| prepare(args, Some(&task)).map(drop))?;
            return Ok(ExitCode::SUCCESS);
        }
        Role::Starter(size) => return own::start_ranks(size).map(ExitCode::from),
        Role::Rank(task) => Some(task),
        Role::Alone => None,
    };
    let prepared = prepare(args, task.as_ref())?;
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(home) = &prepared.home {
        home.stay()?;
    }
    // `prepared` is not dropped before: the command keeps the affinity.
    become_command(&prepared.command)
}

/// Becomes `numalab knobs run` with the weights, which then runs this command without `--weights`
/// and restores the old ones.
fn with_weights(args: &BindArgs, weights: &Weights) -> Result<ExitCode, Failure> {
    if args.policy != PolicyKind::Weighted {
        return Err(Failure::bad_input("--weights: expected --policy weighted as well"));
    }
    let settings = weights.settings(&read_machine(&Root::live())?.machine)?;
    let own = own::own_word()?;
    let mut command = vec![own.clone(), "knobs".to_owned(), "run".to_owned()];
    command.extend(settings.into_iter().chain(["--".to_owned(), own]));
    command.extend(without_weights(std::env::args().skip(1)));
    if args.dry_run {
        return output::print(&format!("{}\n", command.join(" "))).map(|()| ExitCode::SUCCESS);
    }
    become_command(&command)
}

/// A rank that is ready to become its command.
struct Prepared {
    command: Vec<String>,
    home: Option<Home>,
    /// Restores the affinity when dropped.
    _pinned: Option<Pinned>,
}

/// Pins this thread, which shows whether the kernel allows it; sets the policy, unless it is a dry run;
/// and reports both.
fn prepare(args: &BindArgs, task: Option<&Task>) -> Result<Prepared, Failure> {
    let command = command_of(args)?;
    let needs_devices = args.near.is_some() || args.policy == PolicyKind::Weighted;
    let read = if needs_devices { read_machine_and_devices } else { read_machine };
    let root = Root::live();
    let machine = read(&root)?.machine;
    let of_devices = device_memory(&machine, &generic_initiators(&root));
    let near = args.near.as_ref().map(|name| Near::of(&machine, name)).transpose();
    let near = near.map_err(|error| error.seen_on(&root))?;
    let choice = match &near {
        Some(near) => NodeChoice::List(vec![near.memory_node]),
        None => args.numa.clone().unwrap_or(NodeChoice::Unsaid),
    };
    let cpu = cpu_of(args, task)?;
    let binding = Binding::of(&choice, args.policy, task, &machine, &of_devices)?;
    let home = match &near {
        _ if cpu.is_some() => None,
        Some(near) => Some(Home { node: near.cpu_node, cpus: near.cpus.clone() }),
        None if args.cpus == Some(RankCpus::OfNode) => Some(binding.home(&machine)?),
        None => None,
    };
    let pinned = cpu.map(pin).transpose().map_err(BindError::from)?;
    let of_home = home.as_ref().map(|home| home.cpus.clone());
    let cpus = cpu.map(|cpu| CpuSet::from_iter([cpu])).or(of_home);
    let binding = Binding { cpus_of: home.as_ref().map(|home| home.node), cpus, ..binding };
    if !args.dry_run {
        set_process_policy(&binding.policy)?;
    }
    if !output::quiet() {
        let unsaid = match choice {
            NodeChoice::Unsaid => {
                format!("[Rank {}] No --numa given: binding to node 0\n", binding.rank)
            }
            _ => String::new(),
        };
        let said = near.as_ref().map_or_else(String::new, |near| {
            format!("[Rank {}] {}\n", binding.rank, near.describe())
        });
        let who = who(args, task);
        let others = match args.dry_run && task.is_none() {
            true => binding.other_tools(&command),
            false => String::new(),
        };
        output::print(&format!("{who}{unsaid}{said}{}{others}", binding.lines(&command)))?;
    }
    Ok(Prepared { command, home, _pinned: pinned })
}

/// Describes a rank as its launcher does, for a dry run, or a part of a job that is not a rank.
fn who(args: &BindArgs, task: Option<&Task>) -> String {
    if let Some(task) = task {
        let is_given = args.dry_run && task.launcher() != Launcher::Local;
        let said = || format!("[Rank {}] Known as {task}\n", task.rank());
        return if is_given { said() } else { String::new() };
    }
    let look = |name: &str| std::env::var(name).ok();
    let Some(part) = identity::shell(&look) else {
        let job = identity::numbered_job(&look);
        let said = |job: String| {
            format!("Not a rank: {job}, bound as one process; {} makes it a rank\n", identity::RANK)
        };
        return job.map_or_else(String::new, said);
    };
    let job = look("SLURM_JOB_ID").or_else(|| look("SLURM_JOBID")).unwrap_or_default();
    format!("Not a rank: {part} of SLURM job {job}, bound as one process\n")
}

/// Returns the cpu of this rank from `--cpus`.
fn cpu_of(args: &BindArgs, task: Option<&Task>) -> Result<Option<CpuId>, Failure> {
    let Some(RankCpus::Listed(cpus)) = &args.cpus else { return Ok(None) };
    let seats = Seats { option: "--cpus", what: "cpu", entries: cpus.len() };
    let seat = seats.of(task).map_err(BindError::from)?;
    Ok(cpus.get(seat).copied())
}

/// Returns the command to run: `numalab latency` if only its options are given.
fn command_of(args: &BindArgs) -> Result<Vec<String>, Failure> {
    let mut command = args.command.clone();
    if let Some(program) = &args.executable {
        command.insert(0, program.clone());
    } else if command.first().is_none_or(|word| word.starts_with('-')) {
        command.splice(0..0, [own::own_word()?, "latency".to_owned()]);
    }
    Ok(command)
}

/// Replaces this process by the command; returns only if that fails.
fn become_command(command: &[String]) -> Result<ExitCode, Failure> {
    let (program, arguments) = command.split_first().ok_or_else(|| {
        Failure::bad_input("nothing to run: expected -- and a command, or options of latency")
    })?;
    check_startable(program)?;
    let error = users_program(program, arguments).exec();
    Err(Failure::not_started(program, &error))
}
