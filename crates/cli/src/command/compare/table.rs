//! Published figures recomputed.

use std::fs;
use std::path::Path;

use numalab_analysis::samples::Published;
use numalab_report::PublishedPage;

use crate::args::{CompareArgs, Format};
use crate::failure::Failure;
use crate::output;

/// Prints the gains that follow from a table of published figures.
pub(super) fn run(args: &CompareArgs, path: &Path) -> Result<(), Failure> {
    let name = path.display();
    let text =
        fs::read_to_string(path).map_err(|error| Failure::bad_input(format!("{name}: {error}")))?;
    let published = Published::parse(&text, args.better.into())
        .map_err(|error| Failure::bad_input(format!("{name}: {error}")))?;
    match args.format {
        Format::Text => output::print(&PublishedPage(&published).text(output::style())),
        Format::Md => output::print(&PublishedPage(&published).markdown()),
        _ => Err(Failure::bad_input("--format: expected text or md for --table")),
    }
}
