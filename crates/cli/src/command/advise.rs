//! `numalab advise`.

mod watcher;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use numalab_advise::{Advisor, Request, Target, Tries, is_piped, redirected};
use numalab_host::{Interrupt, adopt_orphans, note};
use numalab_launch::identity::detect_own;
use numalab_page::number::count;
use numalab_results::advice::{Advice, TrialPlace, TrialsEnd};
use numalab_stats::{Confidence, Direction, least_pairs};
use numalab_workload::{Expression, MetricSpec};

use crate::args::{Format, MachineArgs, MemoryCostArgs, ReportTo, VERSION, value};
use crate::command::compare::metric_of_pattern;
use crate::failure::{Code, Failure};
use crate::output::{self, Stream};
use watcher::Watcher;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab advise -- ./solver                                 on this machine
  numalab advise --source results:results/measure-20261121-024500 -- ./solver
                                           predicted by what was measured on this machine
  numalab advise --trials-only --budget 10m -- ./solver      a program that runs for minutes
  numalab advise --emulate-like xeon-8360y-2s -- ./solver    a bundled machine file
  numalab advise --try-on guest --emulate-like x460 -- ./solver
  numalab advise --emulate 2 --cpus 8 --predict-only -- ./solver
  numalab advise --emulate 2 --cpus 8 --try all -- ./solver
  numalab advise --metric 'rate {x/s}' --better higher -- ./solver
  numalab advise --metric-regex 'took ([0-9.]+) s' --better lower -- ./solver
  numalab advise --format html -o advice.html -- ./solver
  srun -n1 -c8 numalab advise -- ./solver                    on the CPUs of the allocation
  numalab advise -- srun -n4 ./ranks                         within an allocation of one node

The program first runs under QEMU's user mode (package qemu-user), which follows every access
to its memory and predicts what each possible change would gain on the machine. The best
candidates that need no change to the program are then tried in random blocks, each of which
also runs the program unchanged twice: the difference between these two is the machine's noise.
A candidate that can no longer win is dropped; the chance of dropping the best one is at most 5 %.
Trials run on this machine, on the CPUs that this process may use; if a machine is described,
they run under emulation or in a Linux guest (--try-on guest). Kernel settings are restored, and
nothing is left running.
The program must exit by itself, and complete its work before it exits. It has no terminal; its
input is empty, or the file to which standard input is redirected (< FILE), read from the start
by every run; its output is not shown, and kept up to 8 MiB. Compile it with -g so that the
report can name source lines. Under emulation it takes 20 to 100 times as long.
Where trials are emulated, the number that --metric or --metric-regex reads should count work or
events: the program's own clock is then that of this host.
Without --emulate-cache and --emulate-stages, an emulated machine has caches of 32K, 1M and
16M, overlapping misses, lines that stores take from other caches, and TLBs.
Exit code 1 if the program fails or does not end, or if trials are interrupted.")]
pub(crate) struct AdviseArgs {
    #[command(flatten)]
    pub machine: MachineArgs,
    #[command(flatten)]
    pub costs: MemoryCostArgs,
    /// Place where candidates are tried [default: host; emulation if a machine is described]
    #[arg(long, value_name = "PLACE", value_parser = value::one_of([
        (TrialPlace::Host, "host", "This machine"),
        (TrialPlace::Guest, "guest", "A Linux guest of the machine that is described, its memory emulated"),
        (TrialPlace::Emulation, "emulation", "QEMU's user mode, on the machine that is described"),
    ]))]
    pub try_on: Option<TrialPlace>,
    /// Predict from one run; try nothing
    #[arg(long)]
    pub predict_only: bool,
    /// Try candidates without following the program first: for a program that would take too long
    /// under emulation, or cannot run there
    #[arg(long, conflicts_with = "predict_only")]
    pub trials_only: bool,
    /// Number of candidates to try, best prediction first, or all
    /// [default: 2, all with --trials-only]
    #[arg(long = "try", value_name = "N|all", value_parser = tries, conflicts_with = "predict_only")]
    pub tries: Option<Tries>,
    /// Number of blocks, 6 or more; each runs the program unchanged twice and once with each
    /// candidate. Raised if a verdict on that many candidates needs more
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = blocks, conflicts_with = "predict_only")]
    pub blocks: usize,
    /// Time limit for all trials, such as 10m; fewer blocks and candidates are run to meet it, or
    /// none if even one candidate takes longer
    #[arg(long, value_name = "TIME", value_parser = value::duration, conflicts_with = "predict_only")]
    pub budget: Option<Duration>,
    /// Run all blocks of every candidate, even of one that can no longer win
    #[arg(long, conflicts_with = "predict_only")]
    pub to_the_end: bool,
    /// Pattern of a number in the program's output that the trials compare instead of its run time:
    /// 'rate {x/s}'
    #[arg(long, value_name = "PATTERN", group = "number", conflicts_with = "predict_only")]
    pub metric: Option<String>,
    /// Regular expression with one group, the number: 'took ([0-9.]+) s'; needs --better
    #[arg(long, value_name = "REGEX", group = "number", conflicts_with = "predict_only")]
    pub metric_regex: Option<String>,
    /// Direction in which the number improves [default: that of a time, such as {us}, or of a rate,
    /// such as {GB/s} or {IOPS}, if the pattern names one]
    #[arg(long, value_parser = value::direction(), requires = "number")]
    pub better: Option<Direction>,
    /// With --try-on guest: other programs and files needed there, by name or path
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub with: Vec<String>,
    /// Keep the trials in a new directory under DIR, for `numalab report`
    #[arg(long, value_name = "DIR", conflicts_with = "predict_only")]
    pub keep: Option<PathBuf>,
    #[command(flatten)]
    pub report: ReportTo,
    /// Show the command line of QEMU and what would be tried; start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The program, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

fn blocks(text: &str) -> Result<usize, String> {
    let count = value::blocks(text)?;
    let least = least_pairs(Confidence::P95.at_look(1).alpha());
    let enough = || format!("expected {least} or more: fewer give no interval");
    (count >= least).then_some(count).ok_or_else(enough)
}

fn tries(text: &str) -> Result<Tries, String> {
    if text == "all" {
        return Ok(Tries::All);
    }
    let count = text.parse().ok().filter(|count| (1..=16).contains(count));
    count.map(Tries::Best).ok_or_else(|| "expected 1 to 16, or all".to_owned())
}

/// Profiles the program, predicts and tries candidates, and recommends one.
pub(crate) fn run(args: &AdviseArgs) -> Result<(), Failure> {
    check_alone()?;
    if args.try_on != Some(TrialPlace::Guest) && !args.with.is_empty() {
        return Err(Failure::bad_input("--with: expected --try-on guest as well"));
    }
    if args.report.format == Some(Format::Callgrind) {
        return Err(Failure::bad_input("--format callgrind: expected emulate or profile"));
    }
    if is_piped() {
        note(
            "standard input is a pipe, which only one run could read: every run gets empty input; redirect a file (< FILE)",
        );
    }
    let (machine, costs) = (args.machine.request(), args.costs.given());
    let (target, findings) = Target::of(&machine, costs, args.try_on, &args.with)?;
    findings.iter().for_each(note);
    let place = target.place;
    let mut watcher = Watcher::default();
    let advisor = Advisor::new(request(args)?, target, &mut watcher)?;
    if args.dry_run {
        return show(args, place, &advisor);
    }
    let interrupt = Interrupt::install()?;
    adopt_orphans().map_err(|error| Failure::new(Code::Failed, error))?;
    let advice = advisor.run(interrupt, &mut watcher)?;
    deliver(args, &advice)?;
    ended(&advice)
}

fn request(args: &AdviseArgs) -> Result<Request, Failure> {
    Ok(Request {
        command: args.command.clone(),
        stdin: redirected(),
        metric: metric(args)?,
        predict_only: args.predict_only,
        trials_only: args.trials_only,
        tries: args.tries,
        blocks: args.blocks,
        budget: args.budget,
        to_the_end: args.to_the_end,
        keep: args.keep.clone(),
        version: VERSION.to_owned(),
    })
}

fn metric(args: &AdviseArgs) -> Result<MetricSpec, Failure> {
    let Some(regex) = &args.metric_regex else {
        let pattern = args.metric.as_ref();
        let metric = pattern.map(|pattern| metric_of_pattern(pattern, args.better));
        return metric.unwrap_or_else(|| Ok(MetricSpec::of_time()));
    };
    let checked = Expression::parse(regex);
    checked.map_err(|error| Failure::bad_input(format!("--metric-regex: {error}")))?;
    let better = args.better.ok_or_else(|| {
        Failure::bad_input("--metric-regex: expected --better lower or --better higher with it")
    })?;
    Ok(MetricSpec::of_regex(regex.clone(), better))
}

/// Refuses to run as one of several ranks: advice is for one process, which starts the ranks
/// itself.
fn check_alone() -> Result<(), Failure> {
    match detect_own()?.map(|task| task.identity()).transpose()? {
        Some(identity) if identity.size > 1 => Err(Failure::bad_input(format!(
            "{} tasks run this command: expected one, as with srun -n1; start ranks after `--`: \
             numalab advise -- srun ...",
            identity.size
        ))),
        _ => Ok(()),
    }
}

fn show(args: &AdviseArgs, place: TrialPlace, advisor: &Advisor) -> Result<(), Failure> {
    let mut text = String::new();
    if let Some(followed) = advisor.followed() {
        let words = followed.command_line(Path::new("DIRECTORY"))?;
        text.push_str(&output::shell_lines(&words));
    }
    if !args.predict_only {
        let place = match place {
            TrialPlace::Host => "on this machine",
            TrialPlace::Guest => "in a Linux guest",
            TrialPlace::Emulation => "under emulation",
        };
        let then = if text.is_empty() { "" } else { "then " };
        text.push_str(&format!("{then}trials {place}, in {}\n", count(args.blocks, "block")));
    }
    output::print(&text)
}

fn deliver(args: &AdviseArgs, advice: &Advice) -> Result<(), Failure> {
    args.report.deliver(advice, Stream::Output.style(), |text| match output::quiet() {
        true => Ok(()),
        false => output::print(text),
    })?;
    if output::quiet() {
        let best = advice.best().and_then(|option| option.commands.first());
        let asis = || output::shell_lines(&args.command).trim_end().to_owned();
        let line = best.map_or_else(asis, |best| best.command.clone());
        return output::print(&format!("{line}\n"));
    }
    Ok(())
}

/// Fails if trials were interrupted: their advice is incomplete.
fn ended(advice: &Advice) -> Result<(), Failure> {
    let Some(trials) = &advice.trials else { return Ok(()) };
    if trials.end == TrialsEnd::Interrupted {
        let message = format!("interrupted after {} of trials", count(trials.blocks, "block"));
        return Err(Failure::new(Code::Failed, message));
    }
    Ok(())
}
