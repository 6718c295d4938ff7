//! Two runs of a study: another machine, another kernel, another day.

use std::path::Path;

use numalab_results::Judgement;
use numalab_results::study::StudyPair;

use super::{Compared, MARGIN, tolerance};
use crate::args::CompareArgs;
use crate::failure::Failure;

const ONE_SESSION: &str = "one session per side does not show how much sessions vary; \
                           `numalab study resume DIR --blocks N` adds one";

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
    let worse = [pair.any_worse(), pair.any_tail_worse()];
    let undecided = match (pair.is_judged(), pair.is_decided()) {
        (false, _) => Some(ONE_SESSION),
        (true, false) => Some("sessions are too few, or differ too much"),
        (true, true) => None,
    };
    let baseline = first.display().to_string();
    let judgement = Judgement::against(&baseline, margin_percent, worse, undecided);
    Ok((Box::new(pair.document()), judgement))
}
