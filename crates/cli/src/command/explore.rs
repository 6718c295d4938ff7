//! `numalab explore`.

use std::cell::RefCell;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use numalab_analysis::explore::Explored;
use numalab_explore::ExploreError;
use numalab_host::{Interrupt, Root, note};
use numalab_record::explore::{NodesView, View};
use numalab_report::{Page, Report};
use serde_json::Value;

use crate::args::{ExploreArgs, Format};
use crate::failure::{Code, Failure};
use crate::output;

/// Counters are told over so long when looking once.
const ONCE: Duration = Duration::from_secs(1);
const WATCHED: Duration = Duration::from_secs(2);
/// How long a signal may wait to be heeded.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Looks once, or until the user has seen enough.
pub(crate) fn run(args: &ExploreArgs) -> Result<(), Failure> {
    let root = args.root.as_ref().map_or_else(Root::live, Root::at);
    let looking = Looking { args, root, before: RefCell::new(None) };
    if !args.watch {
        return output::show(&looking.once(args.interval.unwrap_or(ONCE))?, args.format);
    }
    let interval = args.interval.unwrap_or(WATCHED);
    let interrupt = Interrupt::install().map_err(numalab_host::Error::from)?;
    let on_terminal = match args.format {
        Format::Json => false,
        Format::Text if io::stdout().is_terminal() && io::stdin().is_terminal() => true,
        Format::Text => {
            let message = "--watch needs a terminal; for a pipe: --watch --format json";
            return Err(Failure::bad_input(message));
        }
        _ => return Err(Failure::bad_input("--watch: expected --format text or json")),
    };
    // What is not there at all is an error; what ends while it is watched is an end.
    looking.again()?;
    let watched = if on_terminal {
        let style = output::style();
        let text = || {
            let page = Page { whole: true, ..looking.again()?.page() };
            Ok(page.terminal(style))
        };
        numalab_explore::watch(interval, || interrupt.requested(), text).map_err(Watch::Look)
    } else {
        lines(&looking, interval, &interrupt)
    };
    match watched {
        Err(Watch::Look(ExploreError::NoProcess { process })) => {
            note(format_args!("process {process} has ended"));
            Ok(())
        }
        Err(Watch::Look(error)) => Err(error.into()),
        Err(Watch::Print(failure)) => Err(failure),
        Ok(()) => Ok(()),
    }
}

/// Why watching ended early.
enum Watch {
    /// Nothing can be seen.
    Look(ExploreError),
    /// Nothing can be printed.
    Print(Failure),
}

/// What is looked at, and the nodes as they were before, for rates.
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

    /// As `once`, with rates since the last look in place of a wait.
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

    /// What is looked at, unless it is the nodes.
    fn other(&self) -> Result<Option<View>, ExploreError> {
        let subject = &self.args.subject;
        Ok(match (subject.pid, &subject.heap) {
            (Some(pid), _) => Some(View::Process(numalab_explore::read_process(&self.root, pid)?)),
            (None, Some(file)) => Some(View::Heap(numalab_explore::read_heap(file)?)),
            (None, None) if subject.guests => {
                Some(View::Guests(numalab_explore::read_guests(&self.root)?))
            }
            (None, None) => None,
        })
    }
}

/// A line each time, until a signal or until nobody reads any more.
fn lines(looking: &Looking<'_>, interval: Duration, interrupt: &Interrupt) -> Result<(), Watch> {
    while !interrupt.requested() {
        let json = looking.again().map_err(Watch::Look)?.json();
        let value: Value = json
            .and_then(|json| serde_json::from_str(&json))
            .map_err(|error| Watch::Print(Failure::new(Code::Failed, error)))?;
        let mut out = io::stdout().lock();
        match writeln!(out, "{value}").and_then(|()| out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => {
                let failure = Failure::new(Code::Failed, format!("standard output: {error}"));
                return Err(Watch::Print(failure));
            }
            Ok(()) => {}
        }
        drop(out);
        let until = Instant::now() + interval;
        while Instant::now() < until && !interrupt.requested() {
            thread::sleep(LOOK_EVERY.min(until.saturating_duration_since(Instant::now())));
        }
    }
    Ok(())
}
