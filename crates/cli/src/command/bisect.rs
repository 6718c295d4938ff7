//! `numalab study bisect`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use numalab_host::files::{create_unique_directory, read_text};
use numalab_host::{Interrupt, UtcTime, print_error};
use numalab_measure::Store;
use numalab_places::BACKENDS;
use numalab_record::bisect::{BisectAnswer, BisectDocument};
use numalab_record::{Kind, file};
use numalab_results::bisect::{foreseen_words, mail};
use numalab_stats::Confidence;
use numalab_study::bisect::{Bisect, BisectQuestion, Build, Repository, metric_of, treatment_of};
use numalab_study::{Plan, ReadyStudy, StudyChanges};

use crate::args::{Format, VERSION, value};
use crate::failure::{Code, Failure};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab study bisect --tree linux --good v6.12 --bad v6.13 tiering --treatment balancing=2
  numalab study bisect --tree linux --config my.config --good v6.12 --bad HEAD mine.toml
  numalab study bisect --tree . --good 1.0 --bad main --build ./build.sh mine.toml
  numalab study bisect --tree . --good 1.0 --bad main --build ./build.sh mine.toml --dry-run

Each commit is built in a separate working tree, booted for every sample, and compared with the
good and the bad commit until it is clear which of them it resembles. --build runs in the commit's
tree, may keep files in $NUMALAB_BUILD, and prints the name of the result as its last line: a Linux
image, a kernel package (.deb), your own kernel ([backend.kernel]), or a program that the study's
commands name as {kernel}. A commit is skipped if the script exits with 1 to 125 or if the commit
does not boot; 126 and above end the search. Exit 0 if a commit is named, 4 if none is.")]
pub(crate) struct BisectArgs {
    /// A bundled study, or a file
    pub study: String,
    /// The git repository
    #[arg(long, value_name = "DIR")]
    pub tree: PathBuf,
    /// A commit that is good
    #[arg(long, value_name = "REVISION")]
    pub good: String,
    /// A later commit that is bad
    #[arg(long, value_name = "REVISION")]
    pub bad: String,
    /// Metric that became worse, as WORKLOAD.METRIC [default: the study's primary one]
    #[arg(long, value_name = "METRIC")]
    pub metric: Option<String>,
    /// Treatment of the study under which commits are judged [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub treatment: Option<String>,
    /// Script that builds a commit [default: make a Linux image]
    #[arg(long, value_name = "SCRIPT", conflicts_with = "config")]
    pub build: Option<PathBuf>,
    /// Configuration of the Linux images [default: x86's, plus what guests need]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Probability that the search names a wrong commit
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = value::percent)]
    pub error: f64,
    /// Changes up to this percentage count as no change [default: the study's margin]
    #[arg(long, value_name = "PERCENT", value_parser = value::percent)]
    pub margin: Option<f64>,
    /// Maximum number of samples of one commit
    #[arg(long, value_name = "N", default_value_t = 32)]
    #[arg(value_parser = clap::value_parser!(u16).range(3..=1000))]
    pub samples: u16,
    /// Random seed [default: from the clock; always recorded]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Keep the results in a new directory under DIR
    #[arg(short, long, value_name = "DIR", default_value = "results")]
    pub output: PathBuf,
    /// Output format
    #[arg(long, default_value = "text", value_parser = value::format())]
    pub format: Format,
    /// Show what would be done; build and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

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
        let text = foreseen_words(foreseen.document(), foreseen.halvings());
        return output::print(&text).map(|()| ExitCode::SUCCESS);
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
    let found: BisectDocument = Kind::Bisect
        .read(&read_text(&path)?)
        .map_err(|error| Failure::bad_input(format!("{}: {error}", path.display())))?;
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
    let name = format!("bisect-{}", UtcTime::now().compact());
    create_unique_directory(parent, &name)
        .and_then(|made| made.canonicalize())
        .map_err(|error| Failure::at(parent, error))
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
