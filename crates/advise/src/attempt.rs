//! Selects the candidates to try, and the number of blocks.

use std::time::Duration;

use numalab_places::runs_at_once;
use numalab_results::advice::{Advice, Candidate, TrialPlace};

use crate::error::AdviseError;
use crate::extent::Extent;
use crate::request::{Request, Tries};
use crate::trials::Trying;
use crate::watch::{Remark, Watch};

/// The candidates that are tried unless a number is given.
const USUAL_TRIES: Tries = Tries::Best(2);

/// Returns the indices of the options to try.
fn tried(advice: &Advice, tries: Tries) -> Vec<usize> {
    let position = |candidate: &Candidate| {
        advice.options.iter().position(|option| option.candidate == *candidate)
    };
    match tries {
        Tries::Best(count) => {
            let able = advice.worth_a_trial().filter(|option| option.untried.is_none());
            able.take(count).filter_map(|option| position(&option.candidate)).collect()
        }
        Tries::All => {
            let all = advice.options.iter().enumerate();
            all.filter(|(_, option)| option.untried.is_none()).map(|(at, _)| at).collect()
        }
    }
}

/// Tries the promising candidates, within the time limit.
pub(super) fn attempt(
    advice: &mut Advice,
    mut trying: Trying<'_>,
    took: Option<Duration>,
    watch: &mut dyn Watch,
) -> Result<(), AdviseError> {
    let usual = if advice.profile.is_some() { USUAL_TRIES } else { Tries::All };
    let mut tried = tried(advice, trying.request.tries.unwrap_or(usual));
    let extent = extent(trying.request, tried.len(), trying.rules.warm_ups, took, watch);
    tried.truncate(extent.candidates);
    if tried.is_empty() {
        return Ok(());
    }
    trying.rules.blocks = extent.blocks;
    let candidates = tried.iter().map(|at| advice.options[*at].candidate.clone()).collect();
    let about = took.map(|run| match advice.place {
        TrialPlace::Emulation => extent.time_if_repeated(run, trying.runs.len(), runs_at_once()),
        TrialPlace::Host | TrialPlace::Guest => extent.time(run),
    });
    watch.remark(&Remark::Trying { candidates, blocks: extent.blocks, about });
    trying.prove(advice, &tried, watch)
}

/// Returns the number of candidates and blocks that the time of a run allows; reports it to `watch`
/// if that differs from the request.
fn extent(
    request: &Request,
    candidates: usize,
    warm_ups: usize,
    run: Option<Duration>,
    watch: &mut dyn Watch,
) -> Extent {
    let whole = Extent { candidates, blocks: request.blocks, warm_ups };
    if candidates == 0 {
        return whole;
    }
    let enough = whole.enough();
    if enough != whole {
        let (asked, blocks) = (whole.blocks, enough.blocks);
        watch.remark(&Remark::MoreBlocks { asked, candidates, blocks });
    }
    let (Some(budget), Some(run)) = (request.budget, run) else { return enough };
    let Some(within) = enough.within(budget, run) else {
        watch.remark(&Remark::NoTime { run, runs: Extent::least(warm_ups).runs() });
        return Extent { candidates: 0, ..enough };
    };
    if within != enough {
        let Extent { candidates: most, blocks, .. } = within;
        watch.remark(&Remark::Less { candidates: most, of: candidates, blocks, run });
    }
    within
}
