//! `numalab profile`.

mod emulation;

use std::process::ExitCode;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args};
use numalab_guest::program::ThreadPlacement;
use numalab_host::{Interrupt, Root, SourceLines, note, read_machine};
use numalab_profile::{ProfileError, SourceChoice, Watched, choose, watch};
use numalab_record::profile::{Ended, Hindrance, SourceName};
use numalab_results::profile::page::{hindrance_words, remarks};

use crate::args::{EmulatedArgs, MachineArgs, MemoryCostArgs, ReportTo, value};
use crate::command::wrapper;
use crate::failure::{Code, Failure};
use crate::output::{self, Stream};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").required(true).args(["pid", "command"]), after_help = "\
Examples:
  numalab profile -- ./solver                     the best source on this machine
  numalab profile --pid 4242 --for 10s            a running process, and what it starts
  numalab profile --format html -o profile.html -- ./solver
  numalab profile -o profile.json -- ./solver     keep the figures
  numalab report profile.json                     ... and show them again, in any format
  numalab profile --source faults -- ./solver     first touches by thread and node
  numalab profile --source faults --for 60s --pid 4242
                                                  with numa_balancing=1: users of each page
  numalab profile --emulate 2 --cpus 8 -- ./solver
                                                  every access, as if on a two-node machine
  numalab profile --format callgrind -o callgrind.out.solver -- ./solver
                                                  for KCachegrind and callgrind_annotate
  numalab profile --dry-run -- ./solver           which source would be used, and why

Sources, best first. auto takes the first that works; the report says why those before it did
not, and what the chosen one cannot see:
  samples     loads and stores sampled by the processor, with latency (Intel PEBS, AMD IBS)
  emulation   every access: the program runs in QEMU's user mode (package qemu-user), 10 to
              100 times slower; on this machine, or on another (--emulate...)
  faults      page faults: first touches, and with NUMA balancing also later users of each page
  damon       pages that the kernel's data access monitor found accessed; needs root
  referenced  pages of each mapping used since the last scan; needs no root for your own
              processes, and clears the kernel's referenced bits
With samples, damon and referenced, page faults additionally show who touches memory first.
Compile with -g -fno-omit-frame-pointer so that the report names source lines and their callers.

With a command, the report goes to standard error, the exit code is the command's, and processes
that it leaves behind are terminated. If interrupted, the report covers what was seen so far.")]
pub(crate) struct ProfileArgs {
    /// A running process, with all its threads
    #[arg(long, value_name = "PID", conflicts_with_all = ["emulate", "emulate_like", "cpus"])]
    pub pid: Option<u32>,
    /// Time to observe, such as 10s; a command that is still running then is terminated
    #[arg(long = "for", value_name = "TIME", value_parser = value::duration)]
    pub for_: Option<Duration>,
    /// Source of the figures
    #[arg(long, value_name = "SOURCE", default_value = "auto", value_parser = source())]
    pub source: WantedSource,
    #[command(flatten)]
    pub emulated: EmulatedArgs,
    #[command(flatten)]
    pub costs: MemoryCostArgs,
    /// CPUs that emulated threads take in turn: spread (over the nodes), pack (node by node), or a
    /// list
    #[arg(long, value_name = "spread|pack|CPUS", default_value = "spread")]
    pub threads: ThreadPlacement,
    #[command(flatten)]
    pub report: ReportTo,
    /// Show which source would be used, and why not a better one; start and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The program, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// The choice of `--source`, `None` for `auto`; clap would take an `Option` for an optional argument.
type WantedSource = Option<SourceName>;

impl ProfileArgs {
    /// Returns the chosen source, if any; a machine to emulate implies emulation.
    pub fn wanted(&self) -> Option<SourceName> {
        self.source.or_else(|| self.names_machine().then_some(SourceName::Emulation))
    }

    fn names_machine(&self) -> bool {
        let EmulatedArgs { emulate_like, emulate, cpus, .. } = &self.emulated;
        emulate_like.is_some() || emulate.is_some() || cpus.is_some() || self.costs.are_given()
    }

    /// Returns the machine to emulate: this one unless another is named.
    pub fn machine(&self) -> MachineArgs {
        MachineArgs { emulated: self.emulated.clone(), ..MachineArgs::default() }
    }
}

fn source() -> impl TypedValueParser<Value = WantedSource> {
    let all = SourceName::ALL.map(|source| PossibleValue::new(source.name()));
    let values = [PossibleValue::new("auto")].into_iter().chain(all);
    PossibleValuesParser::new(values)
        .map(|text| SourceName::ALL.into_iter().find(|source| source.name() == text))
}

/// Profiles a command, or a running process.
pub(crate) fn run(args: &ProfileArgs) -> Result<ExitCode, Failure> {
    let done = profile(args);
    // The command's exit code is passed on, so numalab's own failures must differ from it.
    if args.pid.is_none() { done.map_err(Failure::of_wrapper) } else { done }
}

fn profile(args: &ProfileArgs) -> Result<ExitCode, Failure> {
    let root = Root::live();
    let machine = read_machine(&root)?.machine;
    let emulated = emulation::prepare(args);
    let hindrance = emulated.as_ref().err().cloned();
    let choice = choose(&root, &machine, args.wanted(), hindrance);
    let first = choice.sources.first().copied();
    if args.dry_run {
        return intention(&choice, emulated.ok().filter(|_| first == Some(SourceName::Emulation)));
    }
    if first.is_none() {
        let Some(over) = choice.passed_over.first() else { return Ok(ExitCode::SUCCESS) };
        return Err(hindered(over.source, &over.why));
    }
    let interrupt = Interrupt::install()?;
    let mut profile = match emulated {
        Ok(emulated) if first == Some(SourceName::Emulation) => {
            match emulation::run(emulated, choice.passed_over, args.wanted().is_none())? {
                Ok(profile) => profile,
                Err(status) => return Ok(wrapper::exit_code(status)),
            }
        }
        _ => {
            let watched = match args.pid {
                Some(process) => Watched::Process(process),
                None => Watched::Command(&args.command),
            };
            watch(&machine, watched, choice, args.for_, &interrupt).map_err(
                |error| match error {
                    ProfileError::Hindered { source_name, why } => hindered(source_name, &why),
                    error @ ProfileError::NoProcess { .. } => Failure::of_option("--pid", error),
                    error => error.into(),
                },
            )?
        }
    };
    let mut lines = SourceLines::default();
    profile.program.name_code(|place| lines.frames(place));
    remarks(&profile).iter().for_each(note);
    // The report about a command goes to another stream than its output.
    let stream = if args.pid.is_some() { Stream::Output } else { Stream::Error };
    args.report.deliver(&profile, stream.style(), |text| stream.print(text))?;
    Ok(exit_code(profile.ended))
}

/// Describes what would be done.
fn intention(
    choice: &SourceChoice,
    emulated: Option<emulation::Prepared>,
) -> Result<ExitCode, Failure> {
    let over = choice
        .passed_over
        .iter()
        .map(|over| format!("not {}: {}\n", over.source, hindrance_words(&over.why)));
    let mut text: String = over.collect();
    match choice.sources.first() {
        Some(source) => text.push_str(&format!("source: {source}\n")),
        None => text.push_str("source: none\n"),
    }
    if let Some(emulated) = emulated {
        text.push_str(&output::shell_lines(&emulated.command_line()?));
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn hindered(source: SourceName, why: &Hindrance) -> Failure {
    let message = format!("--source {source}: {}", hindrance_words(why));
    Failure::new(Code::Lacking, message)
}

/// Returns the command's exit code as a shell would.
fn exit_code(ended: Ended) -> ExitCode {
    let code = match ended {
        Ended::Exited(code) => code & 0xff,
        Ended::Signalled(signal) => 128 + (signal & 0x7f),
        Ended::ProcessEnded | Ended::TimeOver | Ended::Interrupted => 0,
    };
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}
