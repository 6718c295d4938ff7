//! `numalab guest run --kernel numalab`: numalab's own kernel, and its results.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use numalab_frames::Dump;
use numalab_guest::{Launch, Runtime};
use numalab_host::{Interrupt, UtcTime, note};
use numalab_image::own_kernel::iso;
use numalab_image::{BootFiles, own_kernel};
use numalab_kernel::command::Command;
use numalab_kernel::event::Event;
use numalab_kernel::results::{Context, Results};
use numalab_kernel::run;
use numalab_measure::RunRecorder;
use numalab_record::system::Described;
use numalab_record::{Document, Fact};
use numalab_results::Report;
use numalab_results::run::Summary;
use numalab_results::study::page::accelerator_reason;

use super::{boot, memory_emulator};
use crate::args::{Format, RunArgs};
use crate::command::measuring::write_reports;
use crate::failure::{Code, Failure};
use crate::output::{self, Stream};

/// Warning against conclusions from runs of `test_numa` under plain TCG.
const EQUAL_COSTS: &str = "\
Plain TCG: memory costs the same on every node, so these times do not distinguish
alloc=numa from alloc=blind; --emulate-latency 100 emulates memory costs.
";

/// Boots the kernel and converts its output to results.
pub(super) fn run_kernel(args: &RunArgs) -> Result<ExitCode, Failure> {
    let line = args.command.join(" ");
    let command = Command::parse(&line).map_err(Failure::bad_input)?;
    let launch = plan(args)?;
    if args.guest.dry_run {
        output::print(&output::shell_lines(&launch.bare_command_line()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let started_unix_ms = UtcTime::now().unix_ms;
    let (report, results) = listen(args, &launch)?;
    let context = Context {
        label: args.label.clone(),
        command: std::env::args().collect(),
        started_unix_ms,
        facts: facts(&launch),
    };
    memory_emulator::keep_report(
        args.guest.memory_emulator.emulate_report.as_deref(),
        report.as_deref(),
    )?;
    let document = results.document(&context);
    let format = args.format.unwrap_or(Format::Text);
    if let Some(parent) = &args.output {
        keep(&document, &results, parent)?;
    }
    match format {
        Format::Text => {
            let mut text = closing(&command, &results, &document)?;
            if !results.runs.is_empty() && launch.has_equal_costs() {
                text.push_str(EQUAL_COSTS);
            }
            output::print(&text)?;
        }
        _ => output::show(&Summary::of(&document), format)?,
    }
    match &results.failure {
        Some((work, message)) => Err(Failure::new(Code::Failed, format!("{work}: {message}"))),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn plan(args: &RunArgs) -> Result<Launch, Failure> {
    if !args.collect.is_empty() || !args.guest.contents.with.is_empty() {
        let message = "--collect, --with: numalab's kernel has no files, expected a Linux guest";
        return Err(Failure::bad_input(message));
    }
    let files = BootFiles { kernel: own_kernel::OWN_KERNEL.find()?, initramfs: None };
    let mut guest = boot::guest(&args.guest, args.timeout)?;
    guest.kernel_arguments.extend(args.command.iter().cloned());
    guest.own_kernel = true;
    boot::bare(&args.guest, guest, &files)
}

/// Returns the facts about a run that the kernel itself does not know.
fn facts(launch: &Launch) -> BTreeMap<String, Fact> {
    let accelerator = launch.accelerator();
    let facts = [
        ("accelerator", accelerator.kind.name().to_owned()),
        ("accelerator_reason", accelerator_reason(&accelerator.reason)),
        ("qemu", launch.qemu().version.to_string()),
        ("hostname", "numalab-kernel guest".to_owned()),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

/// Writes an image that boots the kernel with these words.
pub(super) fn write_image(file: &Path, words: &[String], dry_run: bool) -> Result<(), Failure> {
    let line = words.join(" ");
    Command::parse(&line).map_err(Failure::bad_input)?;
    let kernel = own_kernel::OWN_KERNEL.find()?;
    let shown = file.display();
    if dry_run {
        return output::print(&format!("would write {shown} with {}\n", kernel.display()));
    }
    iso::write(&kernel, &line, file)?;
    output::print(&format!("{shown}\n"))
}

/// Runs the kernel and reports its progress as the kernel prints it.
fn listen(args: &RunArgs, launch: &Launch) -> Result<(Option<String>, Results), Failure> {
    let runtime = Runtime::open()?;
    let interrupt = Interrupt::install()?;
    let is_printed = args.format.unwrap_or(Format::Text) == Format::Text;
    let mut printed = Ok(());
    let mut observe = |results: &Results, event: &Event| {
        if is_printed && printed.is_ok() {
            printed = output::print(&results.text_of(event));
        }
    };
    let ran = run::run(launch, &runtime, &mut observe, &|| interrupt.requested());
    printed?;
    Ok(ran?)
}

fn closing(command: &Command, results: &Results, document: &Document) -> Result<String, Failure> {
    let mut text = results.average();
    if command.show_topology {
        let machine = results.machine.clone();
        let described = Described { machine, findings: Vec::new() };
        text.push_str(&described.page().terminal(Stream::Output.style()));
    }
    if command.dump_heap {
        let dump = Dump::parse(&results.heap).map_err(|error| {
            Failure::new(Code::Failed, format!("cannot read the heap dump: {error}"))
        })?;
        text.push_str(&dump.to_string());
    }
    if !results.windows.is_empty() || !results.streams.is_empty() {
        text.push_str(&Summary::of(document).page().terminal(Stream::Output.style()));
    }
    Ok(text)
}

/// Writes a result directory, and the heap dump into it.
fn keep(document: &Document, results: &Results, parent: &Path) -> Result<(), Failure> {
    let recorder = RunRecorder::of(document, parent)?;
    let Some(directory) = recorder.directory() else { return Ok(()) };
    write_reports(document, directory)?;
    if !results.heap.is_empty() {
        let file = directory.join("heap.bin");
        fs::write(&file, &results.heap).map_err(|error| Failure::at(&file, error))?;
    }
    note(directory.display());
    Ok(())
}
