//! Selects the candidates to try, and the number of blocks.

use std::time::Duration;

use numalab_places::runs_at_once;
use numalab_results::advice::{Advice, AdvisedOption, TrialPlace};

use crate::error::AdviseError;
use crate::extent::Extent;
use crate::request::{Request, Tries};
use crate::trials::Trying;
use crate::watch::{Remark, Watch};

/// The number of candidates that are tried unless another is given.
const USUAL: usize = 2;
/// The longest expected time of trials that only settle what predictions leave open.
const TO_SETTLE: Duration = Duration::from_secs(10);

/// Returns the indices of the options to try.
fn tried(advice: &Advice, tries: Tries) -> Vec<usize> {
    match tries {
        Tries::Best(count) => able(advice, advice.worth_a_trial(), count),
        Tries::All => able(advice, advice.options.iter(), usize::MAX),
    }
}

/// Returns the indices of the options to try: the number that was asked for or the usual one, or,
/// where none is promising, those about which predictions leave a doubt that trials of a few seconds
/// settle; `about` is the expected time of trials of a number of candidates.
fn chosen(
    advice: &Advice,
    asked: Option<Tries>,
    about: impl Fn(usize) -> Option<Duration>,
) -> Vec<usize> {
    let usual = if advice.profile.is_some() { Tries::Best(USUAL) } else { Tries::All };
    let found = tried(advice, asked.unwrap_or(usual));
    if !found.is_empty() || asked.is_some() {
        return found;
    }
    let undecided = able(advice, advice.undecided(), USUAL);
    let is_short = about(undecided.len()).is_some_and(|about| about <= TO_SETTLE);
    if is_short { undecided } else { found }
}

/// Returns the indices of the first of these options that can be tried.
fn able<'a>(
    advice: &Advice,
    options: impl Iterator<Item = &'a AdvisedOption>,
    count: usize,
) -> Vec<usize> {
    let position = |option: &AdvisedOption| {
        advice.options.iter().position(|other| other.candidate == option.candidate)
    };
    let able = options.filter(|option| option.untried.is_none());
    able.take(count).filter_map(position).collect()
}

/// Tries the promising candidates, within the time limit.
pub(super) fn attempt(
    advice: &mut Advice,
    mut trying: Trying<'_>,
    trial: Option<Duration>,
    watch: &mut dyn Watch,
) -> Result<(), AdviseError> {
    let about = |candidates: usize| {
        let whole = whole(trying.request, candidates, trying.rules.warm_ups).enough();
        trial.map(|trial| expected(advice.place, whole, trial, trying.runs.len()))
    };
    let mut tried = chosen(advice, trying.request.tries, about);
    let extent = extent(trying.request, tried.len(), trying.rules.warm_ups, trial, watch);
    tried.truncate(extent.candidates);
    if tried.is_empty() {
        if let Some(directory) = &trying.request.keep {
            watch.remark(&Remark::NothingKept(directory.clone()));
        }
        return Ok(());
    }
    trying.rules.blocks = extent.blocks;
    let candidates = tried.iter().map(|at| advice.options[*at].candidate.clone()).collect();
    let about = trial.map(|trial| expected(advice.place, extent, trial, trying.runs.len()));
    watch.remark(&Remark::Trying { candidates, blocks: extent.blocks, about });
    trying.prove(advice, &tried, watch)
}

/// Returns the expected time of trials that take `trial` each, `known` of which are already done under
/// emulation.
fn expected(place: TrialPlace, extent: Extent, trial: Duration, known: usize) -> Duration {
    match place {
        TrialPlace::Emulation => extent.time_if_repeated(trial, known, runs_at_once()),
        TrialPlace::Host | TrialPlace::Guest => extent.time(trial),
    }
}

/// Returns the requested extent.
fn whole(request: &Request, candidates: usize, warm_ups: usize) -> Extent {
    Extent { candidates, blocks: request.blocks, warm_ups }
}

/// Returns the number of candidates and blocks that the time of a trial allows; reports it to `watch`
/// if that differs from the request.
fn extent(
    request: &Request,
    candidates: usize,
    warm_ups: usize,
    trial: Option<Duration>,
    watch: &mut dyn Watch,
) -> Extent {
    let whole = whole(request, candidates, warm_ups);
    if candidates == 0 {
        return whole;
    }
    let enough = whole.enough();
    if enough != whole {
        let (asked, blocks) = (whole.blocks, enough.blocks);
        watch.remark(&Remark::MoreBlocks { asked, candidates, blocks });
    }
    let (Some(budget), Some(trial)) = (request.budget, trial) else { return enough };
    let Some(within) = enough.within(budget, trial) else {
        watch.remark(&Remark::NoTime { trial, trials: Extent::least(warm_ups).runs() });
        return Extent { candidates: 0, ..enough };
    };
    if within != enough {
        let Extent { candidates: most, blocks, .. } = within;
        watch.remark(&Remark::Less { candidates: most, of: candidates, blocks, trial });
    }
    within
}

#[cfg(test)]
mod tests {
    use numalab_results::advice::{Candidate, MachineCosts, Prediction, Profile};

    use super::*;
    use crate::test_study::{self, KeptRemarks};

    const SECOND: Duration = Duration::from_secs(1);

    /// A request for blocks of trials within a budget.
    fn request(blocks: usize, budget: Option<Duration>) -> Request {
        Request { blocks, budget, ..test_study::request() }
    }

    /// Returns the extent of trials of candidates in a program that takes a second, with remarks.
    fn remarked(request: &Request, candidates: usize) -> (Extent, Vec<Remark>) {
        let mut kept = KeptRemarks::default();
        let found = extent(request, candidates, 0, Some(SECOND), &mut kept);
        (found, kept.0)
    }

    #[test]
    fn an_extent_that_was_not_asked_for_is_remarked_on() {
        let whole = |candidates, blocks| Extent { candidates, blocks, warm_ups: 0 };
        assert_eq!(remarked(&request(8, None), 2), (whole(2, 8), Vec::new()));
        let more = Remark::MoreBlocks { asked: 3, candidates: 2, blocks: 7 };
        assert_eq!(remarked(&request(3, None), 2), (whole(2, 7), vec![more]));
        let less = Remark::Less { candidates: 1, of: 2, blocks: 6, trial: SECOND };
        let short = request(8, Some(18 * SECOND));
        assert_eq!(remarked(&short, 2), (whole(1, 6), vec![less]));
        let none = Remark::NoTime { trial: SECOND, trials: 18 };
        let shorter = request(8, Some(17 * SECOND));
        assert_eq!(remarked(&shorter, 2), (whole(0, 8), vec![none]));
        assert_eq!(remarked(&shorter, 0), (whole(0, 8), Vec::new()), "nothing to try");
    }

    #[test]
    fn trials_under_emulation_take_a_run_of_each_candidate() {
        let extent = Extent { candidates: 3, blocks: 8, warm_ups: 0 };
        let turns = u32::try_from(5_usize.div_ceil(runs_at_once())).unwrap();
        assert_eq!(expected(TrialPlace::Emulation, extent, SECOND, 0), turns * SECOND);
        assert_eq!(expected(TrialPlace::Host, extent, SECOND, 0), 40 * SECOND);
        assert_eq!(expected(TrialPlace::Guest, extent, SECOND, 2), 40 * SECOND);
    }

    #[test]
    fn trials_settle_what_predictions_leave_open_if_they_take_seconds() {
        let binds = [0, 1].map(|node| Candidate::Bind { node });
        let candidates = binds.into_iter().chain([Candidate::HugePages, Candidate::Pack]).collect();
        let machine = MachineCosts { nodes: vec![0, 1], ..MachineCosts::default() };
        let mut advice = Advice::unprofiled(&[], candidates, machine, TrialPlace::Emulation);
        advice.profile = Some(Profile { elapsed_ns: 3_000_000, memory_share: 0.2, threads: 5 });
        let predicted = [(-0.6, -11.9), (-0.6, -11.9), (-0.2, -2.2), (9.0, 4.0)];
        for (option, (change_percent, low)) in advice.options.iter_mut().zip(predicted) {
            let interval_percent = (low, change_percent + 2.0);
            option.predicted = Some(Prediction { change_percent, interval_percent });
        }
        let in_seconds = |seconds: u64| move |_| Some(Duration::from_secs(seconds));
        assert_eq!(
            chosen(&advice, None, in_seconds(10)),
            [0, 2],
            "one of two nodes that are alike"
        );
        assert_eq!(chosen(&advice, None, in_seconds(11)), Vec::<usize>::new());
        assert_eq!(chosen(&advice, None, |_| None), Vec::<usize>::new());
        let mut computes = advice.clone();
        computes.profile.as_mut().unwrap().memory_share = 0.01;
        assert_eq!(
            chosen(&computes, None, in_seconds(1)),
            Vec::<usize>::new(),
            "it hardly waits for memory"
        );
        assert_eq!(
            chosen(&advice, Some(Tries::Best(2)), in_seconds(1)),
            Vec::<usize>::new(),
            "as asked"
        );
        advice.options[2].predicted = None;
        assert_eq!(chosen(&advice, None, in_seconds(1)), [2], "it may gain much");
    }
}
