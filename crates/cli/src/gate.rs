//! The answer to `--fail-if`.

use crate::args::FailIf;
use crate::failure::{Code, Failure};

/// The reasons why `--fail-if` fails.
pub(crate) struct Gate {
    /// What is worse by more than the margin.
    pub worse: Option<String>,
    /// The tails that are.
    pub tails_worse: Option<String>,
    /// The reason why nothing at all could be decided; `None` if anything was.
    pub undecided: Option<String>,
}

impl Gate {
    /// Returns the gate of a comparison with a baseline: whether anything is worse, and whether a tail
    /// is.
    pub fn against(
        baseline: &str,
        margin_percent: f64,
        [is_worse, is_tail_worse]: [bool; 2],
        undecided: Option<&str>,
    ) -> Self {
        let worse = |what: &str| format!("{what} than {baseline} by more than {margin_percent} %");
        Self {
            worse: is_worse.then(|| worse("worse")),
            tails_worse: is_tail_worse.then(|| worse("tails worse")),
            undecided: undecided.map(|why| format!("not decided against {baseline}: {why}")),
        }
    }

    /// With `--fail-if`, fails with exit code 4 if anything, or a tail, is worse, and with 7 if nothing
    /// could be decided.
    pub fn fail_if(self, condition: Option<FailIf>) -> Result<(), Failure> {
        let Some(condition) = condition else { return Ok(()) };
        let tails_worse = self.tails_worse.filter(|_| condition == FailIf::Tails);
        match (self.worse.or(tails_worse), self.undecided) {
            (Some(worse), _) => Err(Failure::new(Code::Worse, worse)),
            (None, Some(undecided)) => Err(Failure::new(Code::Undecided, undecided)),
            (None, None) => Ok(()),
        }
    }
}
