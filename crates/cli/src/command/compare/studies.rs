//! Two runs of a study: another machine, another kernel, another day.

use std::path::Path;

use numalab_results::study::StudyPair;

use super::{MARGIN, fail_if, tolerance};
use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::output;

/// Compares two runs of the same study, each metric under each treatment.
pub(super) fn run(args: &CompareArgs, [first, second]: [&Path; 2]) -> Result<(), Failure> {
    let margin = args.margin.unwrap_or(MARGIN);
    let tolerance = tolerance(margin)?;
    let (before, after) = (numalab_study::read(first)?, numalab_study::read(second)?);
    let pair = StudyPair::of(&before, &after, &tolerance).ok_or_else(|| {
        Failure::bad_input(format!(
            "{} holds study {}, {} study {}: they have no metric of the same treatment in \
             common; expected two runs of the same study",
            first.display(),
            before.run.name,
            second.display(),
            after.run.name
        ))
    })?;
    output::show(&pair, args.format)?;
    fail_if(
        args.fail_if,
        [pair.any_worse(), pair.any_far_end_worse()],
        margin,
        &first.display().to_string(),
    )
}
