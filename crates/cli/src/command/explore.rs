//! `numalab explore`.

use std::cell::RefCell;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use numalab_explore::ExploreError;
use numalab_host::{Interrupt, Root, note};
use numalab_page::Page;
use numalab_record::explore::{NodesView, View};
use numalab_results::Report;
use numalab_results::explore::page::unmet_words;
use numalab_results::explore::{Explored, unmet};
use serde_json::Value;

use crate::args::{ExploreArgs, Format};
use crate::failure::{Code, Failure};
use crate::output;

/// Interval over which counters are compared for a single look.
const ONCE: Duration = Duration::from_secs(1);
const WATCHED: Duration = Duration::from_secs(2);
/// Longest time until a signal takes effect.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Looks once, or until the user quits.
pub(crate) fn run(args: &ExploreArgs) -> Result<(), Failure> {
    let root = args.root.as_ref().map_or_else(Root::live, Root::at);
    let looking = Looking { args, root, before: RefCell::new(None) };
    let subject = &args.subject;
    if !args.expect.is_empty() && subject.pid.is_none() && !subject.guests {
        return Err(Failure::bad_input("--expect: expected --pid PID, or --guests"));
    }
    if let Some(time) = args.for_ {
        return keeps(&looking, time);
    }
    if !args.watch {
        let explored = looking.once(args.interval.unwrap_or(ONCE))?;
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
    looking.again()?;
    let watched = if on_terminal {
        let style = output::style();
        let unexpected = RefCell::new(Ok(()));
        let text = || {
            let explored = looking.again()?;
            *unexpected.borrow_mut() = as_expected(args, &explored);
            let page = Page { whole: true, ..explored.page() };
            Ok(page.terminal(style))
        };
        let ends = || interrupt.requested() || unexpected.borrow().is_err();
        numalab_explore::watch(interval, ends, text)
            .map_err(Watch::Look)
            .and_then(|()| unexpected.into_inner().map_err(Watch::End))
    } else {
        lines(&looking, interval, &interrupt)
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

/// The reason why watching ended early.
enum Watch {
    /// The subject can no longer be read.
    Look(ExploreError),
    /// Output failed, or an expectation does not hold.
    End(Failure),
}

/// The subject, and the previous state of the nodes for rates.
struct Looking<'a> {
    args: &'a ExploreArgs,
    root: Root,
    before: RefCell<Option<(NodesView, Instant)>>,
}

impl Looking<'_> {
    fn once(&self, interval: Duration) -> Result<Explored, ExploreError> {
        let view = match self.other()? {
            Some(view) => view,
            None => View::Nodes(numalab_explore::read_nodes(&self.root, interval)?),
        };
        Ok(Explored::of(view))
    }

    /// Looks like `once`, but with rates since the last look instead of a wait.
    fn again(&self) -> Result<Explored, ExploreError> {
        if let Some(view) = self.other()? {
            return Ok(Explored::of(view));
        }
        let now = Instant::now();
        let view = match self.before.take() {
            None => numalab_explore::read_nodes(&self.root, Duration::ZERO)?,
            Some((before, at)) => numalab_explore::read_nodes_since(&self.root, &before, now - at)?,
        };
        self.before.replace(Some((view.clone(), now)));
        Ok(Explored::of(View::Nodes(view)))
    }

    /// Looks at the subject, unless it is the nodes.
    fn other(&self) -> Result<Option<View>, ExploreError> {
        let subject = &self.args.subject;
        Ok(match (subject.pid, &subject.heap) {
            (Some(pid), _) => Some(View::Process(numalab_explore::read_process(&self.root, pid)?)),
            (None, Some(file)) => Some(View::Heap(numalab_explore::read_heap(file)?)),
            (None, None) if subject.guests => {
                Some(View::Guests(numalab_explore::read_guests(&self.root)?))
            }
            (None, None) if subject.ranks => {
                let job = self.args.job.as_deref();
                Some(View::Ranks(numalab_explore::read_ranks(&self.root, &which_rank, job)?))
            }
            (None, None) => None,
        })
    }
}

/// Returns the rank and the number of ranks in a process's environment, if both make sense.
fn which_rank(look: numalab_explore::ranks::Look<'_>) -> Option<(usize, usize)> {
    let identity = numalab_launch::identity::detect(look).ok()??.identity().ok()?;
    Some((identity.rank, identity.size))
}

/// Prints a line for each look, until a signal arrives or the reader closes the pipe.
fn lines(looking: &Looking<'_>, interval: Duration, interrupt: &Interrupt) -> Result<(), Watch> {
    while !interrupt.requested() {
        let explored = looking.again().map_err(Watch::Look)?;
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
        as_expected(looking.args, &explored).map_err(Watch::End)?;
        wait(interval, interrupt);
    }
    Ok(())
}

fn wait(interval: Duration, interrupt: &Interrupt) {
    let until = Instant::now() + interval;
    while Instant::now() < until && !interrupt.requested() {
        thread::sleep(LOOK_EVERY.min(until.saturating_duration_since(Instant::now())));
    }
}

/// Looks repeatedly for a time, and prints the last look, or the first that is not as expected.
fn keeps(looking: &Looking<'_>, time: Duration) -> Result<(), Failure> {
    let interrupt = Interrupt::install()?;
    let until = Instant::now() + time;
    let mut last = looking.again()?;
    loop {
        let found = as_expected(looking.args, &last);
        let is_over = Instant::now() >= until || interrupt.requested();
        if found.is_err() || is_over {
            output::show(&last, looking.args.format)?;
            return found;
        }
        let left = until.saturating_duration_since(Instant::now());
        wait(looking.args.interval.unwrap_or(WATCHED).min(left), &interrupt);
        last = match looking.again() {
            Err(ExploreError::NoProcess { process }) => {
                note(format_args!("process {process} has ended"));
                return Ok(());
            }
            look => look?,
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
