//! Published figures recomputed.

use std::path::Path;

use numalab_results::samples::Published;

use numalab_host::bounded::read_input_text;

use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::input::MOST_TEXT_BYTES;
use crate::output;

/// Prints the gains that follow from a table of published figures.
pub(super) fn run(args: &CompareArgs, path: &Path) -> Result<(), Failure> {
    let name = path.display();
    let text = read_input_text(path, MOST_TEXT_BYTES)
        .map_err(|error| Failure::bad_input(format!("{name}: {error}")))?;
    let published = Published::parse(&text, args.better)
        .map_err(|error| Failure::bad_input(format!("{name}: {error}")))?;
    output::show(&published, args.format)
}
