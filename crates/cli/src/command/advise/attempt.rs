//! Which candidates are tried, and in how many blocks.

use std::time::Duration;

use numalab_host::note;
use numalab_results::advice::page::what;
use numalab_results::advice::{Advice, Candidate};

use super::extent::Extent;
use super::trials::Trying;
use crate::args::{AdviseArgs, Tries};
use crate::failure::Failure;
use crate::output;

/// Candidates that are tried unless a number is given.
const USUAL_TRIES: Tries = Tries::Best(2);

/// Which options are to be tried, by their positions.
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

/// Tries what is worth it, as far as there is time.
pub(super) fn attempt(
    args: &AdviseArgs,
    advice: &mut Advice,
    mut trying: Trying<'_>,
    took: Option<Duration>,
) -> Result<(), Failure> {
    let usual = if advice.profile.is_some() { USUAL_TRIES } else { Tries::All };
    let mut tried = tried(advice, args.tries.unwrap_or(usual));
    let extent = extent(args, tried.len(), trying.rules.warm_ups, took);
    tried.truncate(extent.candidates);
    if tried.is_empty() {
        return Ok(());
    }
    trying.rules.blocks = extent.blocks;
    let names = tried.iter().map(|at| what(&advice.options[*at].candidate));
    if !output::quiet() {
        let names = names.collect::<Vec<_>>().join(", ");
        note(format!("trying in {} blocks: {names}", extent.blocks));
    }
    trying.prove(advice, &tried)
}

/// How many of so many candidates are tried in how many blocks, by how long a run takes; says where
/// that is not what was asked for.
fn extent(args: &AdviseArgs, candidates: usize, warm_ups: usize, run: Option<Duration>) -> Extent {
    let asked = Extent { candidates, blocks: args.blocks, warm_ups };
    if candidates == 0 {
        return asked;
    }
    let enough = asked.enough();
    if enough != asked {
        let Extent { blocks, .. } = enough;
        note(format!(
            "{} blocks are too few for a verdict on {candidates} candidates: running {blocks}",
            asked.blocks
        ));
    }
    let (Some(budget), Some(run)) = (args.budget, run) else { return enough };
    let took = run.as_secs_f64();
    let Some(within) = enough.within(budget, run) else {
        note(format!(
            "the budget is too short for trials: a run takes {took:.1} s, and one candidate needs \
             {} runs; the results are predictions only",
            Extent::least(warm_ups).runs()
        ));
        return Extent { candidates: 0, ..enough };
    };
    if within != enough {
        let Extent { candidates, blocks, .. } = within;
        note(format!(
            "to meet the budget, {candidates} of {} candidates run in {blocks} blocks: a run takes \
             {took:.1} s",
            asked.candidates
        ));
    }
    within
}
