//! The answer of a comparison to the question whether anything became worse.

use crate::label::change_words;
use crate::study::StudySummary;

/// The answer of a comparison about its candidate, in words.
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
    /// Returns the judgement of a comparison with this baseline: whether anything is worse, and a
    /// tail, and why nothing is decided.
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
