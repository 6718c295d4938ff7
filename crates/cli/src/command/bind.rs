//! `numalab bind`.

use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use clap::Args;
use numalab_host::{
    Pinned, Root, generic_initiators, note, pin, read_machine, read_machine_and_devices,
    set_process_policy,
};
use numalab_launch::bind::{
    BindError, BindRequest, Home, NodeChoice, PolicyKind, RankCpus, Weights, without_weights,
};
use numalab_launch::identity::{Role, Task};
use numalab_launch::near::{Near, device_memory};

use super::{own, wrapper};
use crate::args::value;
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srun -n4 --cpu-bind=map_cpu:1,17,33,49 numalab bind --numa=3 -- --size=2048
  srun -n8 numalab bind --numa=0,1,2,3,0,1,2,3 -- ./a.out      a node for each rank
  mpirun -n 4 numalab bind --numa=auto -- numalab latency --size=1-512
  numalab bind --ranks 4 --cpus=0,8,1,9 --numa=0 -- ./a.out    without a launcher
  numalab bind --numa=0 --cpus node -- ./a.out   its CPUs too, like numactl --cpunodebind=0
  numalab bind --numa=0,1 --policy interleave -- ./a.out
  numalab bind --near mlx5_0 -- ./a.out          CPUs and memory of the node nearest to a device
  numalab bind --numa=auto --policy weighted --weights auto -- ./a.out   by bandwidth
  srun -n4 numalab bind --numa=0,1,2,3 --dry-run -- --size=512

With only options after --, it runs `numalab latency` with them. Neither numactl nor a
launcher is needed.")]
pub(crate) struct BindArgs {
    /// A node for all ranks; a node for each rank, or for each rank of a host, such as 0,1,2,3; or
    /// nodes in turn by the rank's number on its host: auto (those with memory and CPUs), all, or
    /// !0 for all but node 0 [default: node 0]
    #[arg(long, value_name = "NODES")]
    pub numa: Option<NodeChoice>,
    /// Bind to the CPUs and memory of the node nearest to this PCI device: an address such as
    /// 0000:41:00.0, or a name such as eth0, mlx5_0, nvme0n1 or nvidia0
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["numa", "weights"])]
    pub near: Option<String>,
    /// Memory policy: bind to the rank's node, prefer it, or interleave across all nodes
    #[arg(long, default_value = "bind", value_parser = value::one_of(PolicyKind::ALL))]
    pub policy: PolicyKind,
    /// Weights for --policy weighted, set in the kernel while the command runs: auto (by
    /// bandwidth), or one for each node, such as 2,1 [default: the kernel's current ones]
    #[arg(long, value_name = "WEIGHTS", conflicts_with = "ranks")]
    pub weights: Option<Weights>,
    /// CPU for each rank, such as 0,8,1,9, to which it is pinned; or `node`: each rank runs on the
    /// CPUs of its node
    #[arg(long, value_name = "CPUS|node", value_parser = cpus)]
    pub cpus: Option<RankCpus>,
    /// Number of ranks to start on this host, without a launcher
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub ranks: Option<u32>,
    /// Program to run with the arguments after -- [default: their first word]
    #[arg(long, value_name = "PROGRAM")]
    pub executable: Option<String>,
    /// Print the binding of each rank (the default)
    #[arg(long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Show what would be done; change and start nothing
    #[arg(long, conflicts_with = "quiet")]
    pub dry_run: bool,
    /// The command, or only options of `numalab latency`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

fn cpus(text: &str) -> Result<RankCpus, String> {
    match text {
        "node" => Ok(RankCpus::OfNode),
        _ => value::cpu_list(text).map(RankCpus::Listed),
    }
}

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
        Role::Starter(size) => {
            // A cpu that no rank can use is reported once, not by each rank.
            let mut ranks = (0..size).map(|rank| Task::of_own(rank, size));
            ranks.try_for_each(|task| match &args.cpus {
                Some(cpus) => cpus.cpu_of(Some(&task)).map(drop),
                None => Ok(()),
            })?;
            return own::start_ranks(size).map(ExitCode::from);
        }
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
    // `prepared` must live until then, so that the command inherits the affinity.
    wrapper::start(&prepared.command, |mut command| Err(command.exec()))
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
    wrapper::start(&command, |mut command| Err(command.exec()))
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
    let nodes = args.numa.as_ref().unwrap_or(&NodeChoice::Unsaid);
    let request =
        BindRequest { nodes, near: near.as_ref(), policy: args.policy, cpus: args.cpus.as_ref() };
    let bound = request.resolve(task, &machine, &of_devices)?;
    // Once for the ranks of a host.
    if task.is_none_or(|task| task.local_rank() == Some(0)) && !bound.isolated.is_empty() {
        note(format_args!(
            "--numa=auto leaves out nodes {0}, as their cpus are isolated: --numa={0} names them",
            bound.isolated
        ));
    }
    if task.and_then(Task::local_rank) == Some(0) && !bound.idle.is_empty() {
        note(format_args!(
            "cpus {} are on nodes without memory for this process: --cpus node gives them to no rank",
            bound.idle
        ));
    }
    let pinned = bound.cpu.map(pin).transpose().map_err(BindError::from)?;
    if !args.dry_run {
        set_process_policy(&bound.binding.policy)?;
    }
    if !output::quiet() {
        let look = |name: &str| std::env::var(name).ok();
        output::print(&request.lines(&bound, &command, task, args.dry_run, &look))?;
    }
    Ok(Prepared { command, home: bound.home, _pinned: pinned })
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
