//! `numalab explore`.

use std::cell::RefCell;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::{Duration, Instant};

use numalab_explore::{ExploreError, Looker, Subject};
use numalab_host::{Interrupt, Root, note};
use numalab_page::Page;
use numalab_results::Report;
use numalab_results::explore::page::unmet_words;
use numalab_results::explore::{Expectation, Explored, unmet};
use serde_json::Value;

use crate::args::{ExploreArgs, Format};
use crate::failure::{Code, Failure};
use crate::output;

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
    let mut looker = Looker::new(subject, root, &which_rank);
    if let Some(time) = args.for_ {
        return keeps(args, &mut looker, time);
    }
    if !args.watch {
        let explored = Explored::of(looker.once(args.interval.unwrap_or(ONCE))?);
        output::show(&explored, args.format)?;
        return as_expected(args, &explored);
    }
    let interval = args.interval.unwrap_or(WATCHED);
    let interrupt = Interrupt::install()?;
    let on_terminal = match args.format {
        Format::Json => false,
        Format::Text if io::stdout().is_terminal() && io::stdin().is_terminal() => true,
        Format::Text => {
            let message = "--watch needs a terminal; for a pipe: --watch --format json";
            return Err(Failure::bad_input(message));
        }
        _ => return Err(Failure::bad_input("--watch: expected --format text or json")),
    };
    // A missing subject is an error at first; if it disappears while watched, watching ends.
    looker.again()?;
    let watched = if on_terminal {
        let style = output::style();
        let unexpected = RefCell::new(Ok(()));
        let text = || {
            let explored = Explored::of(looker.again()?);
            *unexpected.borrow_mut() = as_expected(args, &explored);
            let page = Page { whole: true, ..explored.page() };
            Ok(page.terminal(style))
        };
        let ends = || interrupt.requested() || unexpected.borrow().is_err();
        numalab_explore::watch(interval, ends, text)
            .map_err(Watch::Look)
            .and_then(|()| unexpected.into_inner().map_err(Watch::End))
    } else {
        lines(args, &mut looker, interval, &interrupt)
    };
    match watched {
        Err(Watch::Look(ExploreError::NoProcess { process })) => {
            note(format_args!("process {process} has ended"));
            Ok(())
        }
        Err(Watch::Look(error)) => Err(error.into()),
        Err(Watch::End(failure)) => Err(failure),
        Ok(()) => Ok(()),
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

/// The reason why watching ended early.
enum Watch {
    /// The subject can no longer be read.
    Look(ExploreError),
    /// Output failed, or an expectation does not hold.
    End(Failure),
}

/// Returns the rank and the number of ranks in a process's environment, if both make sense.
fn which_rank(look: numalab_explore::ranks::Look<'_>) -> Option<(usize, usize)> {
    let identity = numalab_launch::identity::detect(look).ok()??.identity().ok()?;
    Some((identity.rank, identity.size))
}

/// Prints a line for each look, until a signal arrives or the reader closes the pipe.
fn lines(
    args: &ExploreArgs,
    looker: &mut Looker<'_>,
    interval: Duration,
    interrupt: &Interrupt,
) -> Result<(), Watch> {
    while !interrupt.requested() {
        let explored = Explored::of(looker.again().map_err(Watch::Look)?);
        let json = explored.json();
        let value: Value = json
            .and_then(|json| serde_json::from_str(&json))
            .map_err(|error| Watch::End(Failure::new(Code::Failed, error)))?;
        let mut out = io::stdout().lock();
        match writeln!(out, "{value}").and_then(|()| out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => {
                let failure = Failure::new(Code::Failed, format!("standard output: {error}"));
                return Err(Watch::End(failure));
            }
            Ok(()) => {}
        }
        drop(out);
        as_expected(args, &explored).map_err(Watch::End)?;
        interrupt.wait(interval);
    }
    Ok(())
}

/// Looks repeatedly for a time, and prints the last look, or the first that is not as expected.
fn keeps(args: &ExploreArgs, looker: &mut Looker<'_>, time: Duration) -> Result<(), Failure> {
    let interrupt = Interrupt::install()?;
    let until = Instant::now() + time;
    let mut last = Explored::of(looker.again()?);
    loop {
        let found = as_expected(args, &last);
        let is_over = Instant::now() >= until || interrupt.requested();
        if found.is_err() || is_over {
            output::show(&last, args.format)?;
            return found;
        }
        let left = until.saturating_duration_since(Instant::now());
        interrupt.wait(args.interval.unwrap_or(WATCHED).min(left));
        last = match looker.again() {
            Err(ExploreError::NoProcess { process }) => {
                note(format_args!("process {process} has ended"));
                return Ok(());
            }
            view => Explored::of(view?),
        };
    }
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
