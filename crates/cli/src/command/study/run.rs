//! Running a study, from its beginning or from where it was interrupted.

use std::env;
use std::path::Path;
use std::time::Duration;

use numalab_host::bounded::{MOST_STUDY_BYTES, read_file_text};
use numalab_host::{Interrupt, UtcTime, print_error};
use numalab_page::number::seconds_words;
use numalab_places::BACKENDS;
use numalab_record::study::{EndReason, Entry, Notice, StudyDocument};
use numalab_results::study::StudySummary;
use numalab_results::study::plan::{time_words, too_few_blocks};
use numalab_study::{
    Journal, Observer, Plan, Session, SessionError, Started, parse, read, stated_time, too_few,
};

use super::plan::{Ready, given, print, ready};
use super::show::deliver;
use crate::args::{Format, StudyResumeArgs, StudyRunArgs, StudyShow, VERSION};
use crate::failure::Failure;
use crate::output;
use crate::progress::SampleProgress;

/// `numalab study run`.
pub(super) fn run(args: &StudyRunArgs) -> Result<(), Failure> {
    let ready = ready(&args.study, &args.change)?;
    go(ready, &args.output, args.dry_run, &args.show, no_lead)
}

/// What a study's answers are led by, from its results.
pub(crate) type Lead = fn(&StudyDocument) -> String;

/// A study's page says all.
fn no_lead(_: &StudyDocument) -> String {
    String::new()
}

/// Runs a study that was made here, from its text; `lead` is printed before its answers.
pub(crate) fn run_given(
    text: &str,
    results: &Path,
    dry_run: bool,
    show: &StudyShow,
    lead: Lead,
) -> Result<(), Failure> {
    go(given(text)?, results, dry_run, show, lead)
}

fn go(
    ready: Ready,
    results: &Path,
    dry_run: bool,
    show: &StudyShow,
    lead: Lead,
) -> Result<(), Failure> {
    if dry_run {
        return print(&ready, 0, show.format);
    }
    let interrupt = Interrupt::install()?;
    let backend = ready.backend(&interrupt)?;
    // What is wrong in the study's text is said with its place in it.
    backend.inspect(&ready.scope()).map_err(|error| ready.refused(error))?;
    let Ready { plan, workloads, text, .. } = ready;
    if !output::quiet() {
        let time = time_words(&stated_time(&plan, &workloads));
        print_error(format_args!("{} in {} blocks, {time}\n", plan.study().name, plan.blocks()));
        if let Some(fewest) = too_few(&plan, &workloads, backend.own_metrics()) {
            print_error(format_args!("{}\n", too_few_blocks(fewest)));
        }
    }
    let version = VERSION.to_owned();
    let command = env::args().collect();
    let started = Started { version, command, unix_ms: UtcTime::now().unix_ms };
    let run = plan.run(&workloads, backend.describe(), started);
    let mut watcher = Watcher::new(&plan);
    let session = Session::new(&plan, &workloads, &interrupt);
    let ended = session.run(backend, || Journal::create(results, run, &text), &mut watcher);
    finish(&watcher, ended, show, lead)
}

/// `numalab study resume`.
pub(super) fn resume(args: &StudyResumeArgs) -> Result<(), Failure> {
    if args.dry_run {
        let document = read(&args.directory)?;
        let taken = document.journal.iter().filter(|entry| matches!(entry, Entry::Sample(_)));
        return print(&resumed(&document, args)?, taken.count(), args.show.format);
    }
    let mut journal = Journal::resume(&args.directory)?;
    let Ready { plan, workloads, .. } = resumed(journal.document(), args)?;
    let interrupt = Interrupt::install()?;
    let backend = BACKENDS.open(plan.study(), &interrupt)?;
    let mut run = journal.document().run.clone();
    run.rules = plan.study().rules.clone();
    let mut watcher = Watcher::new(&plan);
    let session = Session::new(&plan, &workloads, &interrupt);
    let go_on = move || journal.replace_run(run).map(|()| journal);
    let ended = session.run(backend, go_on, &mut watcher);
    finish(&watcher, ended, &args.show, no_lead)
}

/// The plan of a run that was begun, with more blocks or another budget where asked.
fn resumed(document: &StudyDocument, args: &StudyResumeArgs) -> Result<Ready, Failure> {
    let path = args.directory.join(numalab_record::file::STUDY);
    let origin = path.display().to_string();
    let text = read_file_text(&path, MOST_STUDY_BYTES)
        .map_err(|error| Failure::bad_input(format!("{origin}: {error}")))?;
    let mut study = parse(&text, &origin, BACKENDS).map_err(Failure::bad_input)?;
    let run = &document.run;
    study.rules = run.rules.clone();
    study.rules.blocks = args.blocks.unwrap_or(study.rules.blocks);
    study.rules.budget_s = args.budget.map(|b| b.as_secs_f64()).or(study.rules.budget_s);
    let workloads = study.resolved().map_err(Failure::bad_input)?;
    let plan = Plan::new(study, run.seed);
    if plan.hash() != run.plan {
        return Err(Failure::bad_input(format!(
            "{origin}: makes the plan {}, but the study was begun with {}: it was changed since, \
             or by another version of numalab; run it anew",
            plan.hash(),
            run.plan
        )));
    }
    Ok(Ready { plan, workloads, text, origin })
}

fn finish(
    watcher: &Watcher,
    ended: Result<(Journal, EndReason), SessionError>,
    show: &StudyShow,
    lead: Lead,
) -> Result<(), Failure> {
    watcher.progress.finish();
    let (journal, end) = ended?;
    if show.format == Format::Text {
        output::print(&lead(journal.document()))?;
    }
    deliver(&journal, &end, show)
}

/// Shows how far the study is on standard error.
struct Watcher {
    progress: SampleProgress,
    precision_percent: Option<f64>,
}

impl Watcher {
    fn new(plan: &Plan) -> Self {
        let precision_percent = plan.study().rules.precision_percent;
        Self { progress: SampleProgress::new(), precision_percent }
    }
}

impl Observer for Watcher {
    fn starting(&mut self, notices: &[Notice]) {
        self.progress.starting(notices);
    }

    fn sampled(&mut self, done: usize, in_all: usize) {
        self.progress.sampled(done, in_all);
    }

    fn machine_is_shared(&mut self) {
        self.progress.say(format_args!(
            "this machine is shared: other load disturbs most samples; none is taken again, and \
             intervals are as wide as the baseline against itself shows\n"
        ));
    }

    fn first_block(&mut self, rest: Duration) {
        let rest = seconds_words(rest.as_secs_f64());
        self.progress.say(format_args!("by the first block, about {rest} more\n"));
    }

    fn is_precise(&mut self, document: &StudyDocument) -> bool {
        let precise = |percent| StudySummary::of(document).is_precise(percent);
        self.precision_percent.is_some_and(precise)
    }
}
