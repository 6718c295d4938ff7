//! `numalab study bisect`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use numalab_host::bounded::{MOST_RESULT_BYTES, read_file_text};
use numalab_host::files::create_unique_directory;
use numalab_host::{Interrupt, UtcTime, print_error};
use numalab_measure::Store;
use numalab_places::BACKENDS;
use numalab_record::bisect::{BisectAnswer, BisectDocument};
use numalab_record::{Kind, file};
use numalab_results::bisect::mail;
use numalab_stats::Confidence;
use numalab_study::bisect::{Bisect, BisectQuestion, Build, Repository, metric_of, treatment_of};
use numalab_study::{Plan, ReadyStudy, StudyChanges};

use crate::args::{BisectArgs, Format, VERSION};
use crate::failure::{Code, Failure};
use crate::output;

/// Searches for a commit; exit 4 if none is found.
pub(crate) fn run(args: &BisectArgs) -> Result<ExitCode, Failure> {
    let changes = StudyChanges { seed: args.seed, ..StudyChanges::default() };
    let plan = ReadyStudy::named(&args.study, &changes, BACKENDS)?.plan;
    let question = question(args, &plan)?;
    let interrupt = Interrupt::install()?;
    // Errors in the revisions are reported before anything is written.
    let looked = Repository::open(&args.tree, PathBuf::new())?;
    let foreseen = Bisect::new(&plan, BACKENDS, &question, &looked, Path::new(""), &interrupt)?;
    if args.dry_run {
        return planned(&foreseen).map(|()| ExitCode::SUCCESS);
    }
    let directory = results(&args.output)?;
    let repository = Repository::open(&args.tree, directory.join("tree"))?;
    let bisect = Bisect::new(&plan, BACKENDS, &question, &repository, &directory, &interrupt)?;
    let found = bisect.run(&mut |step| {
        if !output::quiet() {
            print_error(format_args!("{step}\n"));
        }
    })?;
    write_reports(&found, &directory)?;
    output::show(&found, args.format)?;
    if args.format == Format::Text && !output::quiet() {
        output::print(&format!("\nReport: {}\n", directory.join(file::REPORT_HTML).display()))?;
    }
    Ok(match found.answer {
        Some(BisectAnswer::FirstBad { .. } | BisectAnswer::OneOf { .. }) => ExitCode::SUCCESS,
        _ => ExitCode::from(Code::Worse as u8),
    })
}

/// Regenerates the reports of a bisection, or prints one.
pub(crate) fn report(directory: &Path, format: Option<Format>) -> Result<(), Failure> {
    let path = directory.join(file::BISECT);
    let wrong =
        |error: &dyn std::fmt::Display| Failure::bad_input(format!("{}: {error}", path.display()));
    let text = read_file_text(&path, MOST_RESULT_BYTES).map_err(|error| wrong(&error))?;
    let found: BisectDocument = Kind::Bisect.read(&text).map_err(|error| wrong(&error))?;
    output::show_again(&found, format, || write_reports(&found, directory))
}

fn write_reports(found: &BisectDocument, directory: &Path) -> Result<[PathBuf; 2], Failure> {
    let written = output::write_pages(found, directory)?;
    if let Some(mail) = mail(found) {
        Store::write_file(directory, "mail.txt", &mail)?;
    }
    Ok(written)
}

/// Creates a result directory and returns its absolute path: builds run in other directories.
fn results(parent: &Path) -> Result<PathBuf, Failure> {
    let failed = |error: std::io::Error| Failure::at(parent, error);
    fs::create_dir_all(parent).map_err(failed)?;
    let parent = parent.canonicalize().map_err(failed)?;
    let name = format!("bisect-{}", UtcTime::now().compact());
    create_unique_directory(&parent, &name).map_err(failed)
}

fn question(args: &BisectArgs, plan: &Plan) -> Result<BisectQuestion, Failure> {
    let rules = &plan.study().rules;
    let (workload, metric) = metric_of(plan, args.metric.as_deref())?;
    let margin_percent = args.margin.map(|margin| 100.0 * margin);
    Ok(BisectQuestion {
        good: args.good.clone(),
        bad: args.bad.clone(),
        build: Build::of(args.build.as_deref(), args.config.as_deref())?,
        treatment: treatment_of(plan, args.treatment.as_deref())?,
        margin_percent: margin_percent.unwrap_or_else(|| rules.margin_of(&workload.name, &metric)),
        workload,
        metric,
        confidence: Confidence::new(1.0 - args.error).map_err(Failure::bad_input)?,
        most_samples: usize::from(args.samples),
        command: std::env::args().collect(),
        version: VERSION.to_owned(),
    })
}

fn planned(bisect: &Bisect<'_>) -> Result<(), Failure> {
    let plan = bisect.document();
    output::print(&format!(
        "{} of {}, {}, in {}\n{} commits after {} could be the first bad one: at most {} are \
         built in addition to {} and {} if all can be judged, with 3 to {} samples each and one \
         boot per sample\n",
        plan.quantity.metric,
        plan.workload,
        plan.treatment,
        plan.backend,
        plan.candidates,
        plan.good.commit.short(),
        bisect.halvings(),
        plan.good.commit.short(),
        plan.bad.commit.short(),
        plan.most_samples,
    ))
}
