//! Answers a request for advice.

use numalab_guest::program::EmulatedProgram;
use numalab_host::Interrupt;
use numalab_results::advice::{Advice, Candidate, TrialPlace, commands};

use crate::attempt::attempt;
use crate::error::AdviseError;
use crate::look::{KnownFacts, as_is_if_followed, first_run, look, profiled};
use crate::metric::Judged;
use crate::model::Target;
use crate::ranks;
use crate::request::Request;
use crate::settings::Abilities;
use crate::subject::Subject;
use crate::trials::{self, Trying};
use crate::watch::Watch;

/// A valid request for advice: the program, the machine, and the metric of the trials.
pub struct Advisor {
    request: Request,
    target: Target,
    judged: Judged,
    /// The unchanged program under emulation, if it is followed there.
    asis: Option<EmulatedProgram>,
    are_ranks: bool,
}

impl Advisor {
    /// Checks that the program can be followed and judged, without running anything.
    ///
    /// # Errors
    ///
    /// [`AdviseError`] if it cannot be.
    pub fn new(
        request: Request,
        target: Target,
        watch: &mut dyn Watch,
    ) -> Result<Self, AdviseError> {
        let are_ranks = ranks::are_started_by(&request.command);
        let is_not_followed = request.trials_only && target.place != TrialPlace::Emulation;
        let asis = match are_ranks || is_not_followed {
            true => None,
            false => as_is_if_followed(&request, &target, watch)?,
        };
        let judged = Judged::of(&request, target.place)?;
        Ok(Self { request, target, judged, asis, are_ranks })
    }

    /// Returns the program as it would be followed under emulation; `None` if it would not be.
    pub fn followed(&self) -> Option<EmulatedProgram> {
        let asis = self.asis.as_ref().filter(|_| !self.request.trials_only);
        asis.map(|asis| profiled(asis, &self.target.costs))
    }

    /// Follows the program, predicts the effect of other placements, and tries the most promising.
    ///
    /// # Errors
    ///
    /// [`AdviseError`] if the program or its trials fail.
    pub fn run(&self, interrupt: Interrupt, watch: &mut dyn Watch) -> Result<Advice, AdviseError> {
        let Self { request, target, judged, .. } = self;
        let (command, stdin) = (request.command.clone(), request.stdin.clone());
        let subject = Subject { command, stdin, interrupt };
        let has_nodes = target.costs.nodes.len() > 1;
        let KnownFacts { mut advice, trial, followed, runs } = match self.are_ranks {
            true => KnownFacts {
                advice: ranks::advice(&request.command, target.costs.clone(), target.place)?,
                trial: Some(first_run(&subject, judged, has_nodes, watch)?.trial),
                followed: None,
                runs: Vec::new(),
            },
            false => look(request, target, &subject, judged, self.asis.as_ref(), watch)?,
        };
        let openmp = subject.has_openmp(followed.as_ref());
        let abilities = Abilities::new(target, openmp);
        let trying = Trying {
            subject: &subject,
            judged,
            target,
            abilities: &abilities,
            rules: trials::rules(request.blocks, request.budget, target.place),
            request,
            runs,
        };
        complete(&mut advice, &trying);
        if !request.predict_only {
            attempt(&mut advice, trying, trial, watch)?;
        }
        Ok(advice)
    }
}

/// Adds the command line of each option, and the reason if it cannot be tried.
fn complete(advice: &mut Advice, trying: &Trying<'_>) {
    for at in 0..advice.options.len() {
        let candidate = &advice.options[at].candidate;
        let no_room = advice.options[at].untried.clone();
        let untried = no_room.or_else(|| trying.abilities.settings(candidate).err());
        let mut lines = commands(candidate, &advice.machine, &advice.command);
        // Tried candidates come first.
        if *candidate == Candidate::HugePages && trying.abilities.asks_for_huge_pages() {
            lines.sort_by_key(|line| line.tool != "glibc");
        }
        let option = &mut advice.options[at];
        (option.commands, option.untried) = (lines, untried);
    }
}
