//! `numalab compare`.

use std::path::Path;

use numalab_record::Document;
use numalab_report::{Comparison, Tolerance};

use crate::args::{CompareArgs, FailIf, Format};
use crate::failure::{Code, Failure};
use crate::output;

/// Compares two result directories and prints what changed.
pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let baseline = numalab_measure::read(&args.baseline)?;
    let candidate = numalab_measure::read(&args.candidate)?;
    let comparison = compare(&baseline, &candidate, args.margin)?;
    output::print(&render(&comparison, args.format)?)?;
    fail_if(args.fail_if, &comparison, &args.baseline)
}

/// Compares two documents with a margin in percent.
pub(crate) fn compare<'a>(
    baseline: &'a Document,
    candidate: &'a Document,
    margin_percent: f64,
) -> Result<Comparison, Failure> {
    let tolerance = Tolerance::percent(margin_percent)
        .map_err(|error| Failure::bad_input(format!("--margin {margin_percent}: {error}")))?;
    Ok(numalab_report::compare(baseline, candidate, &tolerance))
}

/// The comparison in the wanted form.
pub(crate) fn render(comparison: &Comparison, format: Format) -> Result<String, Failure> {
    match format {
        Format::Text => Ok(comparison.text(output::style())),
        Format::Md => Ok(comparison.markdown()),
        Format::Html => Ok(comparison.html()),
        Format::Json => output::json_line(comparison.json()),
        Format::Csv => Err(Failure::bad_input("--format csv: expected text, json, md or html")),
    }
}

/// Fails with exit code 4 if it was asked to and anything is worse.
pub(crate) fn fail_if(
    condition: Option<FailIf>,
    comparison: &Comparison,
    baseline: &Path,
) -> Result<(), Failure> {
    match condition {
        Some(FailIf::Worse) if comparison.any_worse() => {
            Err(Failure::new(Code::Worse, format!("worse than {}", baseline.display())))
        }
        _ => Ok(()),
    }
}
