//! `numalab study bisect`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use numalab_host::bounded::{MOST_RESULT_BYTES, read_file_text};
use numalab_host::files::create_unique_directory;
use numalab_host::{Interrupt, UtcTime, on_path, print_error};
use numalab_measure::Store;
use numalab_places::BACKENDS;
use numalab_record::bisect::{BisectAnswer, BisectDocument, CommitSide};
use numalab_record::study::Treatment;
use numalab_record::{Kind, file};
use numalab_results::bisect::mail;
use numalab_stats::Confidence;
use numalab_study::bisect::{Bisect, BisectQuestion, BisectStep, Build, Repository};
use numalab_study::{Plan, parse};
use numalab_workload::Workload;

use super::study::source;
use crate::args::{BisectArgs, Format, VERSION};
use crate::failure::{Code, Failure};
use crate::output;

/// Searches for a commit; exit 4 if none is found.
pub(crate) fn run(args: &BisectArgs) -> Result<ExitCode, Failure> {
    let study =
        parse(&source::text(&args.study)?, &args.study, BACKENDS).map_err(Failure::bad_input)?;
    let workloads = study.resolved().map_err(Failure::bad_input)?;
    let seed = args.seed.or(study.rules.seed).unwrap_or_else(|| UtcTime::now().unix_ms);
    let plan = Plan::new(study, seed);
    let question = question(args, &plan, &workloads)?;
    let interrupt = Interrupt::install()?;
    if args.dry_run {
        let repository = Repository::open(&args.tree, PathBuf::new())?;
        let bisect =
            Bisect::new(&plan, BACKENDS, &question, &repository, Path::new(""), &interrupt)?;
        return planned(&bisect).map(|()| ExitCode::SUCCESS);
    }
    // What is wrong with the revisions is said before anything is written.
    let looked = Repository::open(&args.tree, PathBuf::new())?;
    Bisect::new(&plan, BACKENDS, &question, &looked, Path::new(""), &interrupt)?;
    let directory = results(&args.output)?;
    let repository = Repository::open(&args.tree, directory.join("tree"))?;
    let bisect = Bisect::new(&plan, BACKENDS, &question, &repository, &directory, &interrupt)?;
    let mut watch = |step: BisectStep<'_>| {
        if !output::quiet() {
            print_error(format_args!("{}\n", words(step)));
        }
    };
    let found = bisect.run(&mut watch)?;
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

/// Makes the reports of a bisection again, or prints one.
pub(crate) fn report(directory: &Path, format: Option<Format>) -> Result<(), Failure> {
    let path = directory.join(file::BISECT);
    let wrong =
        |error: &dyn std::fmt::Display| Failure::bad_input(format!("{}: {error}", path.display()));
    let text = read_file_text(&path, MOST_RESULT_BYTES).map_err(|error| wrong(&error))?;
    let found: BisectDocument = Kind::Bisect.read(&text).map_err(|error| wrong(&error))?;
    match format {
        Some(format) => output::show(&found, format),
        None => {
            write_reports(&found, directory)?;
            let directory = directory.display();
            output::print(&format!("{directory}/report.md\n{directory}/report.html\n"))
        }
    }
}

fn write_reports(found: &BisectDocument, directory: &Path) -> Result<(), Failure> {
    let page = output::shared_page(found);
    Store::write_file(directory, file::REPORT_MARKDOWN, &page.markdown())?;
    Store::write_file(directory, file::REPORT_HTML, &page.html())?;
    if let Some(mail) = mail(found) {
        Store::write_file(directory, "mail.txt", &mail)?;
    }
    Ok(())
}

/// A directory of its own, by its whole path: builds run elsewhere.
fn results(parent: &Path) -> Result<PathBuf, Failure> {
    let failed = |error: std::io::Error| Failure::at(parent, error);
    fs::create_dir_all(parent).map_err(failed)?;
    let parent = parent.canonicalize().map_err(failed)?;
    let name = format!("bisect-{}", UtcTime::now().compact());
    create_unique_directory(&parent, &name).map_err(failed)
}

fn question(
    args: &BisectArgs,
    plan: &Plan,
    workloads: &[Workload],
) -> Result<BisectQuestion, Failure> {
    let rules = &plan.study().rules;
    let (workload, metric) = metric(args, plan, workloads)?;
    let margin_percent = args.margin.map(|margin| 100.0 * margin);
    Ok(BisectQuestion {
        good: args.good.clone(),
        bad: args.bad.clone(),
        build: build(args)?,
        treatment: treatment(args, plan)?,
        margin_percent: margin_percent.unwrap_or_else(|| rules.margin_of(&workload.name, &metric)),
        workload,
        metric,
        confidence: Confidence::new(1.0 - args.error).map_err(Failure::bad_input)?,
        most_samples: usize::from(args.samples),
        command: std::env::args().collect(),
        version: VERSION.to_owned(),
    })
}

/// The workload and its metric by name.
fn metric(
    args: &BisectArgs,
    plan: &Plan,
    workloads: &[Workload],
) -> Result<(Workload, String), Failure> {
    let wanted = args.metric.as_ref().or(plan.study().rules.primary.as_ref());
    let names: Vec<&str> = workloads.iter().map(|workload| workload.name.as_str()).collect();
    let Some(wanted) = wanted else {
        return Err(Failure::bad_input(format!(
            "--metric: {} has no primary metric: expected WORKLOAD.METRIC, of workload {}",
            args.study,
            names.join(", ")
        )));
    };
    let of = workloads.iter().find_map(|workload| {
        let metric = wanted.strip_prefix(&workload.name)?.strip_prefix('.')?;
        Some((workload.clone(), metric.to_owned()))
    });
    of.ok_or_else(|| {
        Failure::bad_input(format!(
            "--metric {wanted}: expected WORKLOAD.METRIC, of workload {}",
            names.join(", ")
        ))
    })
}

/// The treatment of this name, or the only one, since each has the commit's own kernel.
fn treatment(args: &BisectArgs, plan: &Plan) -> Result<Treatment, Failure> {
    let all = plan.treatments();
    let others = |treatment: &Treatment| {
        let mut settings = treatment.settings.clone();
        settings.remove("kernel");
        settings
    };
    let is_only = all.windows(2).all(|pair| others(&pair[0]) == others(&pair[1]));
    let found = match &args.treatment {
        Some(name) => all.iter().find(|treatment| treatment.name == *name),
        None => all.first().filter(|_| is_only),
    };
    found.cloned().ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|treatment| treatment.name.as_str()).collect();
        let wanted = args.treatment.as_deref().map_or_else(String::new, |name| format!(" {name}"));
        Failure::bad_input(format!("--treatment{wanted}: expected one of {}", names.join(", ")))
    })
}

/// How commits are built; a script is named by its whole path, since it runs in their tree.
fn build(args: &BisectArgs) -> Result<Build, Failure> {
    let whole = |path: &PathBuf| {
        let wrong = |error| Failure::bad_input(format!("{}: {error}", path.display()));
        path.canonicalize().map_err(wrong)
    };
    match &args.build {
        None => Ok(Build::Linux(args.config.as_ref().map(whole).transpose()?)),
        Some(script) => {
            let path = whole(script)?;
            match on_path(&path.to_string_lossy()) {
                Some(path) => Ok(Build::Script(path)),
                None => Err(Failure::bad_input(format!(
                    "--build {}: expected a program; chmod +x makes a script one",
                    script.display()
                ))),
            }
        }
    }
}

fn planned(bisect: &Bisect<'_>) -> Result<(), Failure> {
    let plan = bisect.document();
    output::print(&format!(
        "{} of {}, {}, in {}\n{} commits after {} could be the first bad one: at most {} are built \
         beside {} and {} if all can be judged, with 3 to {} samples each, a boot a sample\n",
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

/// How far it is.
fn words(step: BisectStep<'_>) -> String {
    match step {
        BisectStep::Building(commit, left) => {
            format!("building {} ({}), 1 of {left} commits", commit.short(), commit.subject)
        }
        BisectStep::Judged(judged) => {
            let side = match &judged.side {
                CommitSide::Good => "good".to_owned(),
                CommitSide::Bad => "bad".to_owned(),
                CommitSide::NotBuilt(reason) | CommitSide::NotRun(reason) => {
                    format!("passed over: {reason}")
                }
                CommitSide::Open | CommitSide::Undecided => "passed over: undecided".to_owned(),
            };
            format!("{}: {side} after {} samples", judged.commit.short(), judged.samples.len())
        }
    }
}
