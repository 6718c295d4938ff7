//! Trials of candidates: a study with one factor, the placement, in any backend.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use numalab_host::{Ran, TemporaryDirectory, UtcTime};
use numalab_knobs::HUGE_PAGES;
use numalab_places::{
    BACKENDS, Failures, OUTPUT, REPEATED, Tolerant, WATCH_OUTPUT, emulation_after, emulation_of,
};
use numalab_record::study::{EndReason, FactorKind, Rules, Setting, StudyDocument};
use numalab_results::advice::{Advice, Measured, RaceEnd, TrialPlace, Trials, TrialsEnd, Untried};
use numalab_results::study::{StudyObservation, StudySummary};
use numalab_stats::Out;
use numalab_study::{
    Backend, BackendSpec, Factor, Journal, Level, NamedLevel, Plan, Session, Study,
};

use crate::error::AdviseError;
use crate::judge::Judge;
use crate::level::id;
use crate::metric::Judged;
use crate::model::Target;
use crate::request::Request;
use crate::settings::{Abilities, Settings};
use crate::subject::Subject;
use crate::watch::{Remark, Watch};

/// The largest change that counts as none, in percent.
const MARGIN_PERCENT: f64 = 2.0;
/// The level that changes nothing.
const AS_IS: &str = "as it is";

pub(super) struct Trying<'a> {
    pub subject: &'a Subject,
    pub judged: &'a Judged,
    pub target: &'a Target,
    pub abilities: &'a Abilities<'a>,
    pub rules: Rules,
    pub request: &'a Request,
    /// Runs of the unchanged program under emulation, with their times on the emulated machine.
    pub runs: Vec<Ran>,
}

/// Returns the rules for this number of blocks within the time limit.
pub(super) fn rules(blocks: usize, budget: Option<Duration>, place: TrialPlace) -> Rules {
    Rules {
        blocks,
        warm_ups: warm_ups(place),
        margin_percent: MARGIN_PERCENT,
        budget_s: budget.map(|budget| budget.as_secs_f64()),
        ..Rules::default()
    }
}

/// Returns the number of warm-up blocks; emulated runs need none.
pub(super) fn warm_ups(place: TrialPlace) -> usize {
    usize::from(place != TrialPlace::Emulation)
}

impl Trying<'_> {
    /// Tries these options, and records the measured effect next to the predicted one.
    pub(super) fn prove(
        mut self,
        advice: &mut Advice,
        tried: &[usize],
        watch: &mut dyn Watch,
    ) -> Result<(), AdviseError> {
        let study = self.study(advice, tried)?;
        let failures = Failures::default();
        let (runs, interrupt) = (std::mem::take(&mut self.runs), &self.subject.interrupt);
        let inner = match self.target.place {
            TrialPlace::Emulation => emulation_after(runs, &study.backend, interrupt)?,
            TrialPlace::Host | TrialPlace::Guest => BACKENDS.open(&study, interrupt)?,
        };
        let backend = Tolerant { inner, failures: Rc::clone(&failures) };
        let metric = &self.judged.spec.metric[0];
        let race = (!self.request.to_the_end)
            .then(|| Judge::race(tried.len(), &self.rules, metric.better));
        let mut judge =
            Judge::new(metric.name.clone(), race.flatten(), Rc::clone(&failures), watch);
        let taken = self.take(study, Box::new(backend), &mut judge);
        let out = std::mem::take(&mut judge.out);
        watch.tried();
        let (journal, end) = taken?;
        let document = journal.document();
        for (at, reason) in failures.borrow().iter() {
            advice.options[tried[at - 1]].untried = Some(Untried::Failed(reason.clone()));
        }
        let summary = StudySummary::of(document);
        for (at, option) in tried.iter().enumerate() {
            let out = out.get(&(at + 1)).map(|(blocks, why)| RaceEnd {
                blocks: *blocks,
                behind: match why {
                    Out::NoGain => None,
                    Out::Behind(other) => tried.get(other - 1).copied(),
                },
            });
            advice.options[*option].measured = measured(&summary, at + 1, out);
        }
        remark_on_files(&summary, watch);
        let directory =
            self.request.keep.as_ref().map(|_| journal.directory().display().to_string());
        advice.trials = Some(trials(document, &summary, &end, directory));
        if !self.judged.is_printed() && prints_otherwise(document) {
            watch.remark(&Remark::OutputDiffers);
        }
        Ok(())
    }

    fn study(&self, advice: &Advice, tried: &[usize]) -> Result<Study, AdviseError> {
        let mut levels = vec![level(AS_IS.to_owned(), self.as_is())];
        for option in tried {
            let candidate = &advice.options[*option].candidate;
            let mut settings = self.as_is();
            settings.extend(self.abilities.settings(candidate).map_err(AdviseError::Untried)?);
            levels.push(level(id(candidate), settings));
        }
        Ok(Study {
            name: "advise".to_owned(),
            question: format!("Which placement is best for {}?", self.subject.command.join(" ")),
            note: None,
            backend: self.spec()?,
            rules: self.rules.clone(),
            factors: vec![Factor {
                name: "placement".to_owned(),
                kind: FactorKind::Choice,
                levels,
            }],
            workloads: vec![self.judged.spec.clone()],
            published: Vec::new(),
        })
    }

    /// Returns the settings of the unchanged program: under emulation, huge pages are `always` on if
    /// this machine's kernel has that mode.
    fn as_is(&self) -> Settings {
        let Target { place, costs, .. } = self.target;
        let is_always = *place == TrialPlace::Emulation && costs.kernel.huge_always;
        let always = (HUGE_PAGES.to_owned(), Setting::Text("always".to_owned()));
        is_always.then_some(always).into_iter().collect()
    }

    fn spec(&self) -> Result<BackendSpec, AdviseError> {
        let mut spec = match self.target.place {
            TrialPlace::Emulation => emulation_of(&self.target.machine)?,
            TrialPlace::Host | TrialPlace::Guest => self.target.guest.clone().unwrap_or_default(),
        };
        spec.settings.insert(WATCH_OUTPUT.name.to_owned(), true.into());
        Ok(spec)
    }

    fn take(
        &self,
        study: Study,
        backend: Box<dyn Backend>,
        judge: &mut Judge<'_>,
    ) -> Result<(Journal, EndReason), AdviseError> {
        let text = study.to_toml()?;
        let plan = Plan::new(study, UtcTime::now().unix_ms)?;
        let scratch = TemporaryDirectory::create().map_err(AdviseError::Scratch)?;
        let parent = self.request.keep.as_deref().unwrap_or(scratch.path());
        let session = Session::new(&plan, &self.subject.interrupt);
        Ok(session.begin(backend, (parent, &text), &self.request.version, judge)?)
    }
}

fn level(name: String, set: Settings) -> Level {
    Level::Named(NamedLevel { name, set })
}

/// Returns the measured effect of a treatment relative to the first one.
fn measured(
    summary: &StudySummary<'_>,
    treatment: usize,
    out: Option<RaceEnd>,
) -> Option<Measured> {
    let (_, effect) = summary.answers().find(|(_, of)| of.sides == Some((0, treatment)))?;
    let interval = effect.found.percent_interval();
    Some(Measured {
        change_percent: effect.found.percent()?,
        interval_percent: interval.map(|interval| (interval.lo, interval.hi)),
        verdict: effect.found.verdict.into(),
        out,
    })
}

fn trials(
    document: &StudyDocument,
    summary: &StudySummary<'_>,
    end: &EndReason,
    directory: Option<String>,
) -> Trials {
    let mut evidence = document.samples().flat_map(|sample| &sample.observation.evidence);
    let subject = summary.subjects.first();
    let again = subject.and_then(|subject| subject.aa.as_ref());
    let again = again.and_then(|again| again.found.percent_interval());
    Trials {
        blocks: subject.map_or(0, |subject| subject.blocks()),
        repeats: evidence.any(|one| one.what == REPEATED),
        again_percent: again.map(|interval| (interval.lo, interval.hi)),
        end: match end {
            EndReason::NoneLeft => TrialsEnd::NoneLeft,
            EndReason::BudgetSpent => TrialsEnd::BudgetSpent,
            EndReason::Interrupted => TrialsEnd::Interrupted,
            EndReason::Done | EndReason::Precise | EndReason::Failed(_) => TrialsEnd::Done,
        },
        directory,
    }
}

/// Remarks on the files that the trials read.
fn remark_on_files(summary: &StudySummary<'_>, watch: &mut dyn Watch) {
    for finding in summary.findings() {
        if let StudyObservation::Files { renewed_bytes, kept_bytes, kept } = finding.what {
            if renewed_bytes > 0 {
                watch.remark(&Remark::FilesRenewed(renewed_bytes));
            }
            if let Some(name) = kept {
                watch.remark(&Remark::SharedFiles { name, bytes: kept_bytes });
            }
        }
    }
}

/// Returns true if any two runs had different output.
fn prints_otherwise(document: &StudyDocument) -> bool {
    let evidence = document.samples().flat_map(|sample| &sample.observation.evidence);
    let outputs = evidence.filter(|one| one.what == OUTPUT).map(|one| one.found.as_str());
    outputs.collect::<BTreeSet<_>>().len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_study::{KeptRemarks, kept_study as kept};
    use numalab_record::study::{Evidence, JournalEntry};
    use numalab_results::VerdictWord;

    /// Adds this evidence to the first samples, one each.
    fn with(mut document: StudyDocument, evidence: &[Evidence]) -> StudyDocument {
        let samples = document.journal.iter_mut().filter_map(|entry| match entry {
            JournalEntry::Sample(sample) => Some(sample),
            _ => None,
        });
        for (sample, evidence) in samples.zip(evidence) {
            sample.observation.evidence.push(evidence.clone());
        }
        document
    }

    #[test]
    fn a_candidates_effect_is_that_of_its_treatment_against_the_first() {
        let document = kept();
        let summary = StudySummary::of(&document);
        let rounded = |value: f64| (100.0 * value).round() / 100.0;
        let of = |treatment| {
            let Measured { change_percent, interval_percent, verdict, .. } =
                measured(&summary, treatment, None)?;
            let (lo, hi) = interval_percent.expect("8 blocks");
            Some(([change_percent, lo, hi].map(rounded), verdict))
        };
        assert_eq!(of(1), Some(([0.72, 0.42, 1.04], VerdictWord::Equivalent)));
        assert_eq!(of(2), Some(([48.62, 47.99, 49.2], VerdictWord::Better)));
        assert_eq!(of(9), None);
        let out = Some(RaceEnd { blocks: 3, behind: Some(0) });
        assert_eq!(measured(&summary, 1, out).expect("an effect").out, out);
    }

    #[test]
    fn the_end_of_trials_says_why_and_where_they_are_kept() {
        let document = kept();
        let summary = StudySummary::of(&document);
        let ended = |end: EndReason| trials(&document, &summary, &end, None).end;
        assert_eq!(ended(EndReason::Done), TrialsEnd::Done);
        assert_eq!(ended(EndReason::NoneLeft), TrialsEnd::NoneLeft);
        assert_eq!(ended(EndReason::BudgetSpent), TrialsEnd::BudgetSpent);
        assert_eq!(ended(EndReason::Interrupted), TrialsEnd::Interrupted);
        let kept = trials(&document, &summary, &EndReason::Done, Some("here".to_owned()));
        assert_eq!((kept.blocks, kept.repeats), (8, false));
        assert_eq!((kept.again_percent, kept.directory.as_deref()), (None, Some("here")));
        let document = with(document, &[Evidence::fact(REPEATED, "as before")]);
        let summary = StudySummary::of(&document);
        assert!(trials(&document, &summary, &EndReason::Done, None).repeats);
    }

    #[test]
    fn output_that_differs_between_any_two_runs_is_found() {
        let printed = |outputs: &[&str]| {
            let outputs: Vec<_> = outputs.iter().map(|of| Evidence::fact(OUTPUT, *of)).collect();
            prints_otherwise(&with(kept(), &outputs))
        };
        assert!(!printed(&[]) && !printed(&["a", "a", "a"]));
        assert!(printed(&["a", "a", "b"]));
    }

    #[test]
    fn files_that_trials_do_not_read_are_not_remarked_on() {
        let mut watch = KeptRemarks::default();
        remark_on_files(&StudySummary::of(&kept()), &mut watch);
        assert_eq!(watch.0, []);
    }

    #[test]
    fn only_runs_on_a_real_machine_need_a_warm_up() {
        let rules = |place| rules(8, Some(Duration::from_secs(90)), place);
        assert_eq!(rules(TrialPlace::Emulation).warm_ups, 0);
        let host = rules(TrialPlace::Host);
        assert_eq!((host.warm_ups, host.blocks, host.budget_s), (1, 8, Some(90.0)));
        assert_eq!((host.margin_percent, warm_ups(TrialPlace::Guest)), (2.0, 1));
    }
}
