//! `numalab emulate`.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use numalab_guest::program::{
    EmulatedProgram, Followed, FollowedError, ProgramOutcome, ThreadPlacement,
};
use numalab_host::note;

use crate::args::{MachineArgs, MemoryCostArgs, ReportTo};
use crate::command::wrapper;
use crate::failure::Failure;
use crate::output::{self, Stream};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab emulate --emulate 2 --cpus 8 -- ./solver         two nodes of four CPUs
  numalab emulate --emulate 2 --cpus 8 --threads pack -- ./solver
  numalab emulate --emulate 4 --cpus 16 --emulate-cache 32K,1M,16M \\
    --emulate-latency 90 -- ./solver
  numalab emulate --emulate 2 -o m.json -- ./solver        keep the figures
  numalab report m.json
  numalab emulate --emulate 2 --format callgrind -o callgrind.out.solver -- ./solver
                                                           for KCachegrind

The program runs on this machine's kernel under QEMU's user mode (package qemu-user; no
root, no guest), 10 to 100 times slower than natively. numalab keeps its page tables: 4 KiB
pages, placed by first touch, mbind, set_mempolicy and affinity, as on the emulated machine.
The program sees that machine's CPUs, nodes (through libnuma, as numactl does) and time; other
files in /proc and /sys are this machine's. Programs that it starts are emulated as well, and
the report covers all processes as one program. With debug information (-g), it names the lines
that allocate and first touch memory, and those that store to contended cache lines (x86_64).
The report goes to standard error; the exit code is the program's.")]
pub(crate) struct EmulateArgs {
    #[command(flatten)]
    pub machine: MachineArgs,
    #[command(flatten)]
    pub costs: MemoryCostArgs,
    /// CPUs that threads take in turn: spread (over the nodes), pack (node by node), or a list
    #[arg(long, value_name = "spread|pack|CPUS", default_value = "spread")]
    pub threads: ThreadPlacement,
    /// Simulate all of a long program in detail, not only a sample: several times slower
    #[arg(long)]
    pub exact: bool,
    #[command(flatten)]
    pub report: ReportTo,
    /// Show the command line of QEMU; start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The program, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Runs a program on an emulated machine, reports the cost of its memory, and exits with its code.
pub(crate) fn run(args: &EmulateArgs) -> Result<ExitCode, Failure> {
    let described = args.machine.request().describe_for_program()?;
    described.findings.iter().for_each(note);
    let memory = described.followed_memory(args.costs.given())?;
    let threads = args.threads.cpus(&described.machine);
    let threads = threads.map_err(|error| Failure::bad_input(format!("--threads: {error}")))?;
    let program = EmulatedProgram::new(memory, threads, args.command.clone())?;
    let program = EmulatedProgram { exact: args.exact, ..program };
    if args.dry_run {
        let words = program.command_line(Path::new("DIRECTORY"))?;
        output::print(&output::shell_lines(&words))?;
        return Ok(ExitCode::SUCCESS);
    }
    let outcome = program.run()?;
    if let Some(followed) = followed(&outcome)? {
        followed.remarks().into_iter().for_each(note);
        args.report
            .deliver(&followed.report, Stream::Error.style(), |text| Stream::Error.print(text))?;
        followed.expect_most()?;
    }
    Ok(wrapper::exit_code(outcome.status))
}

/// Returns the emulator's record of a program that has ended; `None`, with a note, if a signal ended
/// it before there was one.
pub(super) fn followed(outcome: &ProgramOutcome) -> Result<Option<Followed>, Failure> {
    match Followed::of(outcome) {
        Err(signalled @ FollowedError::Signalled { .. }) => {
            note(signalled);
            Ok(None)
        }
        followed => Ok(Some(followed?)),
    }
}
