//! Published figures recomputed.

use std::fs;
use std::path::Path;

use numalab_analysis::samples::Published;

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::output;

/// Prints the gains that follow from a table of published figures.
pub(super) fn run(args: &CompareArgs, path: &Path) -> Result<(), Failure> {
    let name = path.display();
    let text =
        fs::read_to_string(path).map_err(|error| Failure::bad_input(format!("{name}: {error}")))?;
    let published = Published::parse(&text, args.better)
        .map_err(|error| Failure::bad_input(format!("{name}: {error}")))?;
    output::show(&published, args.format)
}
