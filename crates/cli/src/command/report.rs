//! `numalab report`.

use std::io::ErrorKind;
use std::path::Path;

use numalab_host::bounded::{MOST_RESULT_BYTES, read_input_text};
use numalab_launch::scale::{is_scaling, read_scaling};
use numalab_record::{Kind, file};
use numalab_results::run::Summary;
use numalab_results::scaling::ScalingSummary;
use numalab_results::with_report;

use crate::args::{Format, ReportArgs};
use crate::failure::{Code, Failure};
use crate::output;

use super::measuring::write_reports;

/// Regenerates the reports of a result directory, or prints one.
pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    if !args.place.exists() {
        return Err(Failure::bad_input(format!(
            "{}: does not exist; expected a result directory, or a file of numalab",
            args.place.display()
        )));
    }
    if let Some(directory) = result_around(&args.place) {
        // A document may have the same name as a part of a result.
        return report_file(&args.place, args.format.unwrap_or(Format::Text)).map_err(|_| {
            Failure::bad_input(format!(
                "{}: is a part of the result in {}; expected the directory: `numalab report {}`",
                args.place.display(),
                directory.display(),
                directory.display()
            ))
        });
    }
    if numalab_study::is_study(&args.place) {
        return super::study::report(&args.place, args.format, args.fail_if);
    }
    if args.fail_if.is_some() {
        return Err(Failure::bad_input("--fail-if: expected the result directory of a study"));
    }
    if is_scaling(&args.place) {
        let scaling = read_scaling(&args.place)?;
        let report = ScalingSummary::of(&scaling);
        let format = args.format.or_else(|| args.place.is_file().then_some(Format::Text));
        return output::show_again(&report, format, || output::write_pages(&report, &args.place));
    }
    if !args.place.is_dir() {
        return report_file(&args.place, args.format.unwrap_or(Format::Text));
    }
    if args.place.join(file::BISECT).is_file() {
        return super::bisect::report(&args.place, args.format);
    }
    let document = numalab_measure::read(&args.place)?;
    let write = || write_reports(&document, &args.place);
    output::show_again(&Summary::of(&document), args.format, write)
}

/// Returns the result directory that a file is a part of.
fn result_around(place: &Path) -> Option<&Path> {
    const PARTS: [&str; 6] =
        [file::RUN, file::CELLS, file::SAMPLES, file::STUDY, file::JOURNAL, file::SCALE];
    let is_part = PARTS.iter().any(|part| place.ends_with(part)) && place.is_file();
    let directory = place.parent().filter(|_| is_part)?;
    Kind::of_directory(|name| directory.join(name).is_file())?;
    // The parent of `run.json` alone is "".
    Some(if directory == Path::new("") { Path::new(".") } else { directory })
}

/// Prints a document of any kind, including reports of the memory emulator.
fn report_file(file: &Path, format: Format) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let code = match error.kind() {
            ErrorKind::InvalidInput | ErrorKind::InvalidData => Code::BadInput,
            _ => Code::Failed,
        };
        Failure::new(code, format!("{}: {error}", file.display()))
    };
    let text = read_input_text(file, MOST_RESULT_BYTES).map_err(failed)?;
    let name = file.display().to_string();
    let shown = with_report(&name, &text, |report| output::show(report, format));
    shown.map_err(|error| Failure::bad_input(format!("{name}: {error}")))?
}
