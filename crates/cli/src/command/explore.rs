//! `numalab explore`.

use std::cell::RefCell;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use numalab_explore::show::{self, ProcessRows};
use numalab_explore::{ExploreError, NodesView};
use numalab_host::{Interrupt, Root, note};
use numalab_report::Style;

use crate::args::{ExploreArgs, ExploreFormat};
use crate::failure::{Code, Failure};
use crate::output;

/// Counters are told over so long when looking once.
const ONCE: Duration = Duration::from_secs(1);
const WATCHED: Duration = Duration::from_secs(2);
/// On a watched terminal one can scroll.
const WATCHED_ROWS: ProcessRows = ProcessRows { threads: 64, mappings: 200 };
/// How long a signal may wait to be heeded.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Looks once, or until the user has seen enough.
pub(crate) fn run(args: &ExploreArgs) -> Result<(), Failure> {
    let root = args.root.as_ref().map_or_else(Root::live, Root::at);
    if !args.watch {
        let looking = Looking::new(args, root, output::style());
        return output::print(&looking.once(args.interval.unwrap_or(ONCE))?);
    }
    let interval = args.interval.unwrap_or(WATCHED);
    let interrupt = Interrupt::install().map_err(numalab_host::Error::from)?;
    let looking = match args.format {
        ExploreFormat::Json => Looking::new(args, root, Style::Plain),
        ExploreFormat::Text if io::stdout().is_terminal() && io::stdin().is_terminal() => {
            Looking::new(args, root, output::style())
        }
        ExploreFormat::Text => {
            let message = "--watch needs a terminal; for a pipe: --watch --format json";
            return Err(Failure::bad_input(message));
        }
    };
    // What is not there at all is an error; what ends while it is watched is an end.
    looking.again()?;
    let watched = match args.format {
        ExploreFormat::Json => lines(&looking, interval, &interrupt),
        ExploreFormat::Text => {
            let look = || looking.again();
            numalab_explore::watch(interval, || interrupt.requested(), look).map_err(Watch::Look)
        }
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
    style: Style,
    before: RefCell<Option<(NodesView, Instant)>>,
}

impl<'a> Looking<'a> {
    fn new(args: &'a ExploreArgs, root: Root, style: Style) -> Self {
        Self { args, root, style, before: RefCell::new(None) }
    }

    fn once(&self, interval: Duration) -> Result<String, ExploreError> {
        let subject = &self.args.subject;
        let is_nodes = subject.pid.is_none() && !subject.guests && subject.heap.is_none();
        match is_nodes {
            true => Ok(self.nodes(&numalab_explore::read_nodes(&self.root, interval)?)),
            false => self.other(ProcessRows::default()),
        }
    }

    /// As `once`, with rates since the last look in place of a wait.
    fn again(&self) -> Result<String, ExploreError> {
        let subject = &self.args.subject;
        if subject.pid.is_some() || subject.guests || subject.heap.is_some() {
            return self.other(WATCHED_ROWS);
        }
        let now = Instant::now();
        let view = match self.before.take() {
            None => numalab_explore::read_nodes(&self.root, Duration::ZERO)?,
            Some((before, at)) => numalab_explore::read_nodes_since(&self.root, &before, now - at)?,
        };
        let text = self.nodes(&view);
        self.before.replace(Some((view, now)));
        Ok(text)
    }

    fn nodes(&self, view: &NodesView) -> String {
        self.shown("nodes", view, |style| show::nodes(view, style))
    }

    fn other(&self, rows: ProcessRows) -> Result<String, ExploreError> {
        let subject = &self.args.subject;
        if let Some(pid) = subject.pid {
            let view = numalab_explore::read_process(&self.root, pid)?;
            return Ok(self.shown("process", &view, |style| show::process(&view, rows, style)));
        }
        if let Some(file) = &subject.heap {
            let view = numalab_explore::read_heap(file)?;
            return Ok(self.shown("heap", &view, |style| show::heap(&view, style)));
        }
        let view = numalab_explore::read_guests(&self.root)?;
        Ok(self.shown("guests", &view, |style| show::guests(&view, style)))
    }

    fn shown<T: serde::Serialize>(
        &self,
        kind: &str,
        view: &T,
        text: impl Fn(Style) -> String,
    ) -> String {
        match self.args.format {
            ExploreFormat::Text => text(self.style),
            // Views hold numbers, texts and maps with such keys: all of it is JSON.
            ExploreFormat::Json => show::json(kind, view).unwrap_or_default() + "\n",
        }
    }
}

/// A line each time, until a signal or until nobody reads any more.
fn lines(looking: &Looking<'_>, interval: Duration, interrupt: &Interrupt) -> Result<(), Watch> {
    while !interrupt.requested() {
        let line = looking.again().map_err(Watch::Look)?;
        let mut out = io::stdout().lock();
        match out.write_all(line.as_bytes()).and_then(|()| out.flush()) {
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
