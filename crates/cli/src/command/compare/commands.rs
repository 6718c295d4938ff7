//! Two commands run alternately as a study.

use std::fmt::Display;

use numalab_advise::is_piped;
use numalab_host::note;
use numalab_places::BACKENDS;
use numalab_record::study::Rules;
use numalab_results::study::page::command_times;
use numalab_study::{ReadyStudy, Study};
use numalab_workload::{Direction, MetricSpec, Pattern, SampleError};

use super::MARGIN;
use crate::args::CompareArgs;
use crate::command::study::{StudyShow, begin};
use crate::failure::Failure;

/// Runs both commands in random blocks, and reports which is better.
pub(super) fn run(args: &CompareArgs, words: &[String]) -> Result<(), Failure> {
    if is_piped() {
        note(
            "standard input is a pipe, which the commands do not receive: redirect a file within each command (< FILE)",
        );
    }
    let better = args.better.unwrap_or(Direction::LowerIsBetter);
    let metric = match &args.metric {
        Some(pattern) => metric_of_pattern(pattern, args.better)?,
        None => MetricSpec { better, ..MetricSpec::of_time() },
    };
    let rules = Rules {
        blocks: args.blocks,
        margin_percent: args.margin.unwrap_or(MARGIN),
        seed: args.seed,
        ..Rules::default()
    };
    let study = Study::of_commands([&words[0], &words[1]], metric, rules);
    let ready = ReadyStudy::of(&study, "compare", BACKENDS)?;
    let show = StudyShow { fail_if: args.fail_if, format: args.format };
    begin(&ready, &args.output, args.dry_run, &show, Some(command_times))
}

/// Returns the metric that a pattern finds in a command's output, with the direction that is given or
/// that its words imply.
pub(crate) fn metric_of_pattern(
    pattern: &str,
    better: Option<Direction>,
) -> Result<MetricSpec, Failure> {
    let parsed = Pattern::parse(pattern).map_err(of_metric)?;
    let better =
        better.or_else(|| parsed.usual_direction()).ok_or_else(|| no_direction(pattern))?;
    Ok(MetricSpec::of_pattern(pattern.to_owned(), better))
}

/// Reports an error of the pattern.
pub(super) fn of_metric(error: impl Display) -> Failure {
    Failure::bad_input(format!("--metric: {error}"))
}

/// Reports a pattern whose values may be times or rates.
pub(super) fn no_direction(pattern: &str) -> Failure {
    let error = SampleError::Direction { pattern: pattern.to_owned() };
    of_metric(format_args!("{error}, or --better lower or --better higher"))
}
