//! `numalab report`.

use crate::args::ReportArgs;
use crate::failure::Failure;
use crate::output;

use super::measuring::write_reports;

/// Makes the reports of a result directory again, or prints one.
pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    if numalab_study::is_study(&args.directory) {
        return super::study::report(&args.directory, args.format);
    }
    let document = numalab_measure::read(&args.directory)?;
    match args.format {
        Some(format) => output::print(&output::render(&document, format)?),
        None => {
            write_reports(&document, &args.directory)?;
            let directory = args.directory.display();
            output::print(&format!("{directory}/report.md\n{directory}/report.html\n"))
        }
    }
}
