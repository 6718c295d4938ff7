//! Chooses the commits to judge, and decides each.

use numalab_record::bisect::{BisectAnswer, Commit, CommitSide, JudgedCommit};
use numalab_stats::{Direction, LookResult, ThresholdSide, ThresholdTest, score};

use super::error::BisectError;
use super::sampler::is_of_the_commit;
use super::{Bisect, BisectStep, Candidate};
use crate::backend::BackendError;

/// The two commits that others are compared with.
struct Ends {
    good: Candidate,
    bad: Candidate,
}

impl Bisect<'_> {
    pub(super) fn search(
        &mut self,
        watch: &mut dyn FnMut(BisectStep<'_>),
    ) -> Result<BisectAnswer, BisectError> {
        let candidates = self.document.candidates;
        watch(BisectStep::Building(&self.document.good.commit, candidates));
        let good = self.end(self.document.good.clone())?;
        watch(BisectStep::Building(&self.document.bad.commit, candidates));
        let bad = self.end(self.document.bad.clone())?;
        let mut ends = Ends { good, bad };
        let decided = self.compare_ends(&mut ends);
        // Samples are kept even if comparing them failed.
        self.copy_ends(&ends);
        self.keep()?;
        match decided? {
            LookResult::Decided(ThresholdSide::Above) => {}
            LookResult::Decided(ThresholdSide::Below) => return Ok(BisectAnswer::NotWorse),
            _ => return Ok(BisectAnswer::EndsUndecided),
        }
        watch(BisectStep::Judged(&self.document.good));
        watch(BisectStep::Judged(&self.document.bad));
        self.halve(&mut ends, watch)
    }

    /// Judges the commit that halves the rest best, until one is left or none can be judged.
    fn halve(
        &mut self,
        ends: &mut Ends,
        watch: &mut dyn FnMut(BisectStep<'_>),
    ) -> Result<BisectAnswer, BisectError> {
        let mut goods = vec![ends.good.judged.commit.hash.clone()];
        let mut bad = ends.bad.judged.commit.hash.clone();
        let (mut passed_over, mut decisions) = (Vec::new(), 0);
        loop {
            let candidates = self.repository.candidates(&bad, &goods)?;
            // Git's order is kept, so that the next best commit follows one that was passed over.
            let is_open = |hash: &&String| **hash != bad && !passed_over.contains(*hash);
            let next = candidates.iter().find(is_open).cloned();
            let Some(next) = next.filter(|_| decisions < self.bisection.most_judged()) else {
                return self.answer(&candidates);
            };
            let commit = self.repository.commit(&next)?;
            watch(BisectStep::Building(&commit, candidates.len()));
            let judged = JudgedCommit { commit, ..JudgedCommit::default() };
            let judged = self.judge(judged, ends)?;
            match &judged.side {
                CommitSide::Good => goods.push(next),
                CommitSide::Bad => bad = next,
                _ => passed_over.push(next),
            }
            // Commits that do not build or boot use up no error probability.
            let is_decision =
                matches!(judged.side, CommitSide::Good | CommitSide::Bad | CommitSide::Undecided);
            decisions += usize::from(is_decision);
            watch(BisectStep::Judged(&judged));
            self.document.judged.push(judged);
            self.copy_ends(ends);
            self.keep()?;
        }
    }

    fn answer(&self, candidates: &[String]) -> Result<BisectAnswer, BisectError> {
        let commits = candidates.iter().map(|hash| self.repository.commit(hash));
        let mut commits = commits.collect::<Result<Vec<Commit>, _>>()?;
        Ok(match (commits.pop(), commits.is_empty()) {
            (Some(commit), true) => BisectAnswer::FirstBad { commit },
            (last, _) => {
                commits.extend(last);
                BisectAnswer::OneOf { commits }
            }
        })
    }

    /// Builds one of the two end commits, which must succeed.
    fn end(&self, mut judged: JudgedCommit) -> Result<Candidate, BisectError> {
        let file = self.built(&mut judged)?;
        let commit = judged.commit.short().to_owned();
        match (file, &judged.side) {
            (Some(file), _) => Ok(Candidate { judged, file }),
            (None, CommitSide::NotBuilt(reason)) => {
                Err(BisectError::EndNotBuilt { commit, reason: reason.clone() })
            }
            (None, _) => Err(BisectError::EndNotBuilt { commit, reason: String::new() }),
        }
    }

    /// Tests whether the bad end is worse than the good one by more than the margin.
    fn compare_ends(&mut self, ends: &mut Ends) -> Result<LookResult, BisectError> {
        // Costs are compared as ratios, hence in logarithms.
        let margin = (1.0 + self.question.margin_percent / 100.0).ln();
        let test = self.bisection.ends(margin).map_err(BisectError::Rules)?;
        self.decide(test, |bisect, nth| {
            bisect.sample_ends(ends, nth)?;
            let of = |end: &Candidate| bisect.cost(end.judged.samples[nth]);
            Ok((of(&ends.bad) / of(&ends.good)).ln())
        })
    }

    /// Builds a commit and samples it until its side is decided.
    fn judge(
        &mut self,
        mut judged: JudgedCommit,
        ends: &mut Ends,
    ) -> Result<JudgedCommit, BisectError> {
        let Some(file) = self.built(&mut judged)? else { return Ok(judged) };
        let mut candidate = Candidate { judged, file };
        let test = self.bisection.state().map_err(BisectError::Rules)?;
        // In real time the machine's state has changed since the earlier samples, so both ends are
        // sampled again.
        let first = if self.sampler.is_virtual() { 0 } else { ends.good.judged.samples.len() };
        let decided = self.decide(test, |bisect, nth| {
            let at = first + nth;
            bisect.sample_ends(ends, at)?;
            bisect.sample(&mut candidate, nth, at)?;
            let of = |one: &Candidate, at: usize| bisect.cost(one.judged.samples[at]);
            Ok(score(of(&ends.good, at), of(&candidate, nth), of(&ends.bad, at)))
        });
        candidate.judged.side = match decided {
            Ok(LookResult::Decided(ThresholdSide::Above)) => CommitSide::Bad,
            Ok(LookResult::Decided(ThresholdSide::Below)) => CommitSide::Good,
            Ok(_) => CommitSide::Undecided,
            // A kernel that does not boot says nothing about the metric.
            Err(error) if is_of_the_commit(&error) => CommitSide::NotRun(error.to_string()),
            Err(error) => return Err(error),
        };
        candidate.judged.change_percent = change_percent(&candidate.judged, &ends.good.judged);
        Ok(candidate.judged)
    }

    /// Takes values until a test has decided.
    fn decide(
        &mut self,
        test: ThresholdTest,
        mut value: impl FnMut(&mut Self, usize) -> Result<f64, BisectError>,
    ) -> Result<LookResult, BisectError> {
        let mut values = Vec::new();
        let mut wanted = test.first_look();
        loop {
            while values.len() < wanted {
                let next = value(self, values.len())?;
                values.push(next);
            }
            match test.look(&values) {
                LookResult::Continue { look_at } => wanted = look_at,
                decided => return Ok(decided),
            }
        }
    }

    /// Samples both ends up to this number, if they have fewer.
    fn sample_ends(&mut self, ends: &mut Ends, number: usize) -> Result<(), BisectError> {
        for end in [&mut ends.good, &mut ends.bad] {
            let commit = end.judged.commit.short().to_owned();
            match self.sample(end, number, number) {
                Err(BisectError::Backend(source @ BackendError::Failed { .. })) => {
                    return Err(BisectError::EndNotRun { commit, source });
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// Takes a commit's sample of this number, unless it exists.
    fn sample(
        &mut self,
        candidate: &mut Candidate,
        place: usize,
        number: usize,
    ) -> Result<(), BisectError> {
        if candidate.judged.samples.len() > place {
            return Ok(());
        }
        if self.interrupt.requested() {
            return Err(BackendError::Interrupted.into());
        }
        let (quantity, value) = self.sampler.sample(&candidate.file, number)?;
        self.document.quantity = quantity;
        candidate.judged.samples.push(value);
        Ok(())
    }

    /// Converts a value so that larger is worse.
    fn cost(&self, value: f64) -> f64 {
        match self.document.quantity.better {
            Direction::LowerIsBetter => value,
            Direction::HigherIsBetter => value.recip(),
        }
    }

    /// Copies the state of the ends into the document.
    fn copy_ends(&mut self, ends: &Ends) {
        let (mut good, mut bad) = (ends.good.judged.clone(), ends.bad.judged.clone());
        bad.change_percent = change_percent(&bad, &good);
        good.change_percent = Some(0.0);
        (good.side, bad.side) = (CommitSide::Good, CommitSide::Bad);
        (self.document.good, self.document.bad) = (good, bad);
    }
}

/// Returns the change of the metric from the good commit, in percent, by the means of logarithms.
fn change_percent(commit: &JudgedCommit, good: &JudgedCommit) -> Option<f64> {
    let mean = |judged: &JudgedCommit| {
        let logs = judged.samples.iter().map(|value| value.ln());
        (!judged.samples.is_empty()).then(|| logs.sum::<f64>() / judged.samples.len() as f64)
    };
    Some(100.0 * (mean(commit)? - mean(good)?).exp_m1())
}

#[cfg(test)]
mod tests;
