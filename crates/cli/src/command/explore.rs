//! `numalab explore`.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use numalab_explore::ranks::VariableLookup;
use numalab_explore::{ExploreError, Looker, Subject, each, while_met};
use numalab_host::{Interrupt, Root, note};
use numalab_launch::identity::detect_of;
use numalab_page::Page;
use numalab_results::Report;
use numalab_results::explore::page::unmet_words;
use numalab_results::explore::{Expectation, Explored, unmet};
use serde_json::Value;

use crate::args::{Format, value};
use crate::failure::{Code, Failure};
use crate::output::{self, Stream};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab explore                          the nodes: use and fragmentation of memory
  numalab explore --pid 4242               where a process has its memory and threads
  numalab explore --pid 4242 --watch       the same, refreshed on the terminal; q quits
  numalab explore --guests                 vCPUs and memory of guests, QEMU and Xen
  numalab explore --pid 4242 --expect 'node1>=95%' --expect 'threads local>=90%'
                                           exit 4, with the reason, unless this holds
  numalab explore --guests --expect pinned --for 10m
                                           exit 4 as soon as a guest is not pinned
  numalab explore --ranks --job 4242       ranks and threads: their CPUs, and nodes of their memory
  numalab explore --heap console.log       a dump of numalab's kernel, or of Xen's keys u and H
  numalab explore --nodes --watch --format json | jq .nodes[0].rates
                                           a line of JSON every two seconds

Read-only. For each problem, the report gives the command that fixes it.")]
pub(crate) struct ExploreArgs {
    #[command(flatten)]
    pub subject: SubjectArgs,
    /// Only the ranks of this job, such as 4242, or step, such as 4242.0
    #[arg(long, value_name = "JOB", requires = "ranks")]
    pub job: Option<String>,
    /// Refresh the display until q is pressed
    #[arg(long, conflicts_with = "heap")]
    pub watch: bool,
    /// Sampling interval; rates are averages over it, per second [default: 1s, with --watch 2s]
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    pub interval: Option<Duration>,
    /// Exit 4 unless this holds: node1>=95% or node0,1>=95% (of the memory is on these nodes),
    /// threads local>=90% (of what threads or vCPUs touch), or pinned (each vCPU on one node with
    /// its memory)
    #[arg(long, value_name = "WHAT", conflicts_with = "heap")]
    pub expect: Vec<Expectation>,
    /// Check once per interval for this long; stop at the first check that fails
    #[arg(long = "for", value_name = "TIME", value_parser = value::duration, requires = "expect", conflicts_with = "watch")]
    pub for_: Option<Duration>,
    /// Read this directory (with sys/ and proc/) instead of this machine
    #[arg(long, value_name = "DIR", conflicts_with_all = ["watch", "heap"])]
    pub root: Option<PathBuf>,
    /// Output format; with --watch, text or json (one line per refresh)
    #[arg(long, default_value = "text", value_parser = value::format())]
    pub format: Format,
}

/// The subject to explore.
#[derive(Clone, Debug, Args)]
#[group(required = false, multiple = false)]
pub(crate) struct SubjectArgs {
    /// A process
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// The nodes (the default)
    #[arg(long)]
    pub nodes: bool,
    /// The guests on this host
    #[arg(long)]
    pub guests: bool,
    /// The ranks of parallel programs on this host, with their threads
    #[arg(long)]
    pub ranks: bool,
    /// A heap dump: heap.bin of `guest run --kernel numalab -o DIR -- dump=heap`, that kernel's
    /// console, or Xen's (`xl debug-keys uH; xl dmesg`)
    #[arg(long, value_name = "FILE")]
    pub heap: Option<PathBuf>,
}

/// Interval over which counters are compared for a single look.
const ONCE: Duration = Duration::from_secs(1);
const WATCHED: Duration = Duration::from_secs(2);

/// Looks once, or until the user quits.
pub(crate) fn run(args: &ExploreArgs) -> Result<(), Failure> {
    let root = args.root.as_ref().map_or_else(Root::live, Root::at);
    let subject = subject(args);
    if !args.expect.is_empty() && !matches!(subject, Subject::Process(_) | Subject::Guests) {
        return Err(Failure::bad_input("--expect: expected --pid PID, or --guests"));
    }
    if args.expect.contains(&Expectation::Pinned) && !matches!(subject, Subject::Guests) {
        return Err(Failure::bad_input("--expect pinned: expected --guests"));
    }
    let of_process = root.clone();
    let which_rank =
        |process: u32, look: VariableLookup<'_>| which_rank(&of_process, process, look);
    let mut looker = Looker::new(subject, root, &which_rank);
    if !args.watch && args.for_.is_none() {
        let explored = Explored::of(looker.once(args.interval.unwrap_or(ONCE))?);
        output::show_taken(&explored, args.format)?;
        return as_expected(args, &explored);
    }
    let on_terminal = args.watch && is_for_terminal(args.format)?;
    let interval = args.interval.unwrap_or(WATCHED);
    let interrupt = Interrupt::install()?;
    // A missing subject is an error at first; if it disappears while watched, watching ends.
    let first = Explored::of(looker.again()?);
    let mut next = || match looker.again() {
        Err(ExploreError::NoProcess { .. }) => Ok(None),
        view => Ok(Some(Explored::of(view?))),
    };
    let is_there = match args.for_ {
        Some(time) => keeps(args, first, &mut next, time, &interrupt)?,
        None if on_terminal => {
            let style = Stream::Output.style();
            numalab_explore::watch(
                interval,
                || interrupt.requested(),
                || {
                    let Some(explored) = next()? else { return Ok(None) };
                    as_expected(args, &explored)?;
                    Ok::<_, Failure>(Some(Page { whole: true, ..explored.page() }.terminal(style)))
                },
            )?
        }
        None => lines(args, &mut next, interval, &interrupt)?,
    };
    if let (false, Some(process)) = (is_there, args.subject.pid) {
        note(format_args!("process {process} has ended"));
    }
    Ok(())
}

/// Returns true for a view that refreshes itself, false for lines of JSON.
fn is_for_terminal(format: Format) -> Result<bool, Failure> {
    match format {
        Format::Json => Ok(false),
        Format::Text if io::stdout().is_terminal() && io::stdin().is_terminal() => Ok(true),
        Format::Text => {
            let message = "--watch needs a terminal; for a pipe: --watch --format json";
            Err(Failure::bad_input(message))
        }
        _ => Err(Failure::bad_input("--watch: expected --format text or json")),
    }
}

fn subject(args: &ExploreArgs) -> Subject {
    let given = &args.subject;
    match (given.pid, &given.heap) {
        (Some(pid), _) => Subject::Process(pid),
        (None, Some(file)) => Subject::Heap(file.clone()),
        (None, None) if given.guests => Subject::Guests,
        (None, None) if given.ranks => Subject::Ranks { job: args.job.clone() },
        (None, None) => Subject::Nodes,
    }
}

/// Looks again; `None` if the process has ended.
type Next<'a> = &'a mut dyn FnMut() -> Result<Option<Explored>, Failure>;

/// Returns the rank in a process's environment, and the number of ranks, if the variables make sense.
fn which_rank(
    root: &Root,
    process: u32,
    look: VariableLookup<'_>,
) -> Option<(usize, Option<usize>)> {
    let task = detect_of(root, process, look).ok()??;
    Some((task.rank(), task.size()))
}

/// Prints a line for each look, until a signal arrives or the reader closes the pipe; returns false if
/// the process has ended.
fn lines(
    args: &ExploreArgs,
    next: Next<'_>,
    interval: Duration,
    interrupt: &Interrupt,
) -> Result<bool, Failure> {
    each(interval, interrupt, next, |explored| {
        let value: serde_json::Result<Value> =
            explored.json().and_then(|json| serde_json::from_str(&json));
        let value = value.map_err(|error| Failure::new(Code::Failed, error))?;
        let mut out = io::stdout().lock();
        match writeln!(out, "{value}").and_then(|()| out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(false),
            Err(error) => {
                return Err(Failure::new(Code::Failed, format!("standard output: {error}")));
            }
            Ok(()) => {}
        }
        as_expected(args, &explored).map(|()| true)
    })
}

/// Looks repeatedly for a time, and prints the last look, or the first that is not as expected;
/// returns false if the process has ended.
fn keeps(
    args: &ExploreArgs,
    first: Explored,
    next: Next<'_>,
    time: Duration,
    interrupt: &Interrupt,
) -> Result<bool, Failure> {
    let interval = args.interval.unwrap_or(WATCHED);
    let is_met = |explored: &Explored| unmet(&explored.view, &args.expect).is_empty();
    let Some(last) = while_met(first, (interval, time), interrupt, next, is_met)? else {
        return Ok(false);
    };
    output::show_taken(&last, args.format)?;
    as_expected(args, &last).map(|()| true)
}

/// Fails with exit code 4 and the reasons if memory is not where `--expect` requires it.
fn as_expected(args: &ExploreArgs, explored: &Explored) -> Result<(), Failure> {
    let found = unmet(&explored.view, &args.expect);
    if found.is_empty() {
        return Ok(());
    }
    let reasons: Vec<String> = found.iter().map(unmet_words).collect();
    Err(Failure::new(Code::Worse, format!("not as expected: {}", reasons.join("; "))))
}
