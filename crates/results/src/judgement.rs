//! The answer of a comparison to the question whether anything became worse.

use crate::compare::Comparison;
use crate::label::change_words;
use crate::samples::SampleComparison;
use crate::study::{StudyPair, StudySummary};

/// A comparison's answer about its candidate, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Figures that are worse by more than the margin.
    pub worse: Option<String>,
    /// Tails that are worse by more than the margin.
    pub worse_tails: Option<String>,
    /// Reason why nothing at all could be decided; `None` if anything was.
    pub undecided: Option<String>,
}

impl Judgement {
    /// Returns the judgement of a comparison with this baseline: whether a figure or a tail is
    /// worse, or why nothing is decided.
    pub fn against(
        baseline: &str,
        margin_percent: f64,
        [is_worse, is_tail_worse]: [bool; 2],
        undecided: Option<&str>,
    ) -> Self {
        let worse = format!("worse than {baseline} by more than {margin_percent} %");
        Self {
            worse_tails: is_tail_worse.then(|| format!("tails {worse}")),
            worse: is_worse.then_some(worse),
            undecided: undecided.map(|why| format!("not decided against {baseline}: {why}")),
        }
    }
}

impl Comparison {
    /// Returns the judgement of runs against those of the baseline.
    pub fn judgement(&self, margin_percent: f64) -> Judgement {
        let undecided = if !self.is_judged() {
            Some(
                "expected runs from four or more occasions at least half an hour apart, on both sides \
                 together",
            )
        } else if self.any_worse_once() {
            Some(
                "a figure is out of line in the only run of a side; measure again, or use --repeat 2",
            )
        } else if self.is_decided() {
            None
        } else {
            Some("every figure varies more than the margin from run to run; take more runs")
        };
        let worse = [self.any_worse(), self.any_tail_worse()];
        Judgement::against(&self.baseline.join(", "), margin_percent, worse, undecided)
    }
}

impl StudyPair<'_> {
    /// Returns the judgement of a study's run against another one with this name.
    pub fn judgement(&self, baseline: &str, margin_percent: f64) -> Judgement {
        let undecided = match (self.is_judged(), self.is_decided()) {
            (false, _) => Some(
                "one session per side does not show how much sessions vary; `numalab study resume \
                 DIR --blocks N` adds one",
            ),
            (true, false) => Some("sessions are too few, or differ too much"),
            (true, true) => None,
        };
        let worse = [self.any_worse(), self.any_tail_worse()];
        Judgement::against(baseline, margin_percent, worse, undecided)
    }
}

impl SampleComparison {
    /// Returns the judgement of the second file against the first one.
    pub fn judgement(&self, margin_percent: f64) -> Judgement {
        let undecided = (!self.found.verdict.is_decided())
            .then_some("there are too few values, they differ too much, or they drift");
        let worse = [self.is_worse(), self.is_tail_worse()];
        Judgement::against(&self.names[0], margin_percent, worse, undecided)
    }
}

impl StudySummary<'_> {
    /// Returns the judgement of the study's answers.
    pub fn judgement(&self) -> Judgement {
        let margin = self.document.run.rules.margin_percent;
        let answers = self.worse().map(|(subject, effect)| {
            format!("{} ({})", subject.title(), change_words(effect.kind, &effect.change))
        });
        let answers: Vec<String> = answers.collect();
        let why = match self.subjects.iter().map(|subject| subject.blocks()).max() {
            None | Some(0) => "no block is finished",
            Some(_) => "the blocks are too few, or differ too much",
        };
        let worse = format!("worse by more than {margin} %");
        Judgement {
            worse_tails: self.any_tail_worse().then(|| format!("tails {worse}")),
            worse: (!answers.is_empty()).then(|| format!("{worse}: {}", answers.join(", "))),
            undecided: (!self.any_decided()).then(|| format!("not decided: {why}")),
        }
    }
}
