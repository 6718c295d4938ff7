//! Two runs of a study: another machine, another kernel, another day.

use std::path::Path;

use numalab_results::study::StudyPair;

use super::{Compared, MARGIN, tolerance};
use crate::args::CompareArgs;
use crate::failure::Failure;

/// Compares two runs of the same study, each metric under each treatment.
pub(super) fn compared(
    args: &CompareArgs,
    [first, second]: [&Path; 2],
) -> Result<Compared, Failure> {
    let margin_percent = args.margin.unwrap_or(MARGIN);
    let tolerance = tolerance(margin_percent)?;
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
    let judgement = pair.judgement(&first.display().to_string(), margin_percent);
    Ok((Box::new(pair.document()), judgement))
}
