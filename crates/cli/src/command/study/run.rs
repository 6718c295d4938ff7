//! Plans studies, and runs them from their beginning or from an interruption.

use std::path::Path;

use numalab_host::{Interrupt, print_error};
use numalab_page::number::count;
use numalab_places::BACKENDS;
use numalab_record::study::{EndReason, JournalEntry, StudyDocument};
use numalab_results::study::plan::{time_words, too_few_blocks};
use numalab_study::{
    Journal, ReadyStudy, Session, SessionError, StudyChanges, read, stated_time, too_few,
};

use super::show::deliver;
use super::{StudyResumeArgs, StudyRunArgs, StudyShow};
use crate::args::{Format, VERSION};
use crate::failure::Failure;
use crate::output;
use crate::progress::SampleProgress;

/// Runs `numalab study run`.
pub(super) fn run(args: &StudyRunArgs) -> Result<(), Failure> {
    let change = &args.change;
    let changes = StudyChanges {
        blocks: change.blocks,
        budget: change.budget,
        precision_percent: change.precision.map(|ratio| 100.0 * ratio),
        seed: change.seed,
        set: change.set.clone(),
    };
    let ready = ReadyStudy::named(&args.study, &changes, BACKENDS)?;
    begin(&ready, &args.output, args.dry_run, &args.show, None)
}

/// Prints what would be run, and the number of samples already taken; starts and writes nothing.
fn print(ready: &ReadyStudy, taken: usize, format: Format) -> Result<(), Failure> {
    let mut planned = ready.foreseen()?;
    planned.taken = taken;
    output::show(&planned, format)
}

/// Creates the text printed before a study's answers, from its results.
pub(crate) type Lead = fn(&StudyDocument) -> String;

/// Runs a study from its beginning; `lead` is printed before its answers.
pub(crate) fn begin(
    ready: &ReadyStudy,
    results: &Path,
    dry_run: bool,
    show: &StudyShow,
    lead: Option<Lead>,
) -> Result<(), Failure> {
    if dry_run {
        return print(ready, 0, show.format);
    }
    let interrupt = Interrupt::install()?;
    let backend = ready.backend(&interrupt)?;
    let plan = &ready.plan;
    if !output::quiet() {
        let time = time_words(&stated_time(plan));
        let blocks = count(plan.blocks(), "block");
        print_error(format_args!("{} in {blocks}, {time}\n", plan.study().name));
        if let Some(fewest) = too_few(plan, backend.own_metrics()) {
            print_error(format_args!("{}\n", too_few_blocks(fewest)));
        }
    }
    let mut progress = SampleProgress::new(plan.study().rules.precision_percent);
    let place = (results, ready.text.as_str());
    let ended = Session::new(plan, &interrupt).begin(backend, place, VERSION, &mut progress);
    finish(progress, ended, show, lead)
}

/// Runs `numalab study resume`.
pub(super) fn resume(args: &StudyResumeArgs) -> Result<(), Failure> {
    let changes =
        StudyChanges { blocks: args.blocks, budget: args.budget, ..StudyChanges::default() };
    let resumed = |document: &StudyDocument| {
        ReadyStudy::resumed(&args.directory, document, &changes, BACKENDS)
    };
    if args.dry_run {
        let document = read(&args.directory)?;
        let taken =
            document.journal.iter().filter(|entry| matches!(entry, JournalEntry::Sample(_)));
        return print(&resumed(&document)?, taken.count(), args.show.format);
    }
    let journal = Journal::resume(&args.directory)?;
    let plan = resumed(journal.document())?.plan;
    let interrupt = Interrupt::install()?;
    let backend = BACKENDS.open(plan.study(), &interrupt)?;
    let mut progress = SampleProgress::new(plan.study().rules.precision_percent);
    let ended = Session::new(&plan, &interrupt).resume(backend, journal, &mut progress);
    finish(progress, ended, &args.show, None)
}

fn finish(
    progress: SampleProgress,
    ended: Result<(Journal, EndReason), SessionError>,
    show: &StudyShow,
    lead: Option<Lead>,
) -> Result<(), Failure> {
    drop(progress);
    let (journal, end) = ended?;
    if let (Format::Text, Some(lead)) = (show.format, lead) {
        output::print(&lead(journal.document()))?;
    }
    deliver(&journal, &end, show)
}
