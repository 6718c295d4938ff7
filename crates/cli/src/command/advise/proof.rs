//! Candidates tried: a study whose samples are runs of the program under emulation.

use std::time::Duration;

use numalab_analysis::advice::{Advice, Candidate, Measured};
use numalab_analysis::study::StudySummary;
use numalab_guest::program::EmulatedProgram;
use numalab_host::{Interrupt, UtcTime, note};
use numalab_record::Environment;
use numalab_record::study::{
    EndReason, Evidence, FactorKind, Observation, Rules, Setting, StudyDocument, Treatment,
};
use numalab_study::{
    Backend, BackendError, BackendSpec, Factor, Inspection, Journal, Level, NamedLevel, Observer,
    Plan, Preparation, PrepareError, Prepared, SampleRequest, Scope, Session, Started, Study,
};

use super::metric::Judged;
use super::placements::placement;
use super::sample;
use crate::args::VERSION;
use crate::failure::{Code, Failure};

const AS_IS: &str = "as it is";
/// A change of this size is none.
const MARGIN_PERCENT: f64 = 2.0;

/// The program under emulation, as it is and as each candidate would have it.
#[derive(Clone)]
struct Trials {
    placements: Vec<(String, EmulatedProgram)>,
    /// What the program printed as it is.
    expected: String,
    judged: Judged,
    interrupt: Interrupt,
    told_of_output: bool,
}

/// Tries candidates, and puts what they brought beside what was predicted.
pub(super) fn prove(
    advice: &mut Advice,
    asis: &EmulatedProgram,
    tried: &[Candidate],
    (rules, judged, expected): (Rules, Judged, String),
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let mut placements = vec![(AS_IS.to_owned(), asis.clone())];
    for (at, candidate) in tried.iter().enumerate() {
        placements
            .extend(placement(candidate, &advice.machine, asis).map(|of| (at.to_string(), of)));
    }
    let trials = Trials {
        placements,
        // A program that prints what it measures prints something else each time.
        told_of_output: judged.is_printed(),
        expected,
        judged,
        interrupt: interrupt.clone(),
    };
    let document = take(study(&trials, rules), trials, interrupt)?;
    let summary = StudySummary::of(&document);
    for (at, candidate) in tried.iter().enumerate() {
        let measured = measured(&summary, at + 1);
        let option = advice.options.iter_mut().find(|option| option.candidate == *candidate);
        if let Some(option) = option {
            option.measured = measured;
        }
    }
    Ok(())
}

/// What a treatment brought against the first one.
fn measured(summary: &StudySummary<'_>, treatment: usize) -> Option<Measured> {
    let (_, effect) = summary.answers().find(|(_, of)| of.sides == Some((0, treatment)))?;
    let interval = effect.found.percent_interval()?;
    Some(Measured {
        change_percent: effect.found.percent()?,
        interval_percent: (interval.lo, interval.hi),
        verdict: effect.found.verdict.into(),
    })
}

/// So many blocks, in so much time at most.
pub(super) fn rules(blocks: usize, budget: Option<Duration>) -> Rules {
    Rules {
        blocks,
        warm_ups: 0,
        margin_percent: MARGIN_PERCENT,
        budget_s: budget.map(|budget| budget.as_secs_f64()),
        ..Rules::default()
    }
}

fn study(trials: &Trials, rules: Rules) -> Study {
    let level = |(name, _): &(String, EmulatedProgram)| {
        let set = [("placement".to_owned(), Setting::Text(name.clone()))].into();
        Level::Named(NamedLevel { name: name.clone(), set })
    };
    Study {
        name: "advise".to_owned(),
        question: "Which placement is best?".to_owned(),
        note: None,
        backend: BackendSpec::default(),
        rules,
        factors: vec![Factor {
            name: "placement".to_owned(),
            kind: FactorKind::Choice,
            levels: trials.placements.iter().map(level).collect(),
        }],
        workloads: vec![trials.judged.spec.clone()],
    }
}

fn take(study: Study, trials: Trials, interrupt: &Interrupt) -> Result<StudyDocument, Failure> {
    let text = study.to_toml().map_err(Failure::bad_input)?;
    let workloads = study.resolved().map_err(Failure::bad_input)?;
    let started_ms = UtcTime::now().unix_ms;
    let plan = Plan::new(study, started_ms);
    let started = Started {
        version: VERSION.to_owned(),
        command: std::env::args().collect(),
        unix_ms: started_ms,
    };
    let run = plan.run(&workloads, trials.describe(), started);
    let kept = tempfile::tempdir().map_err(|error| Failure::new(Code::Failed, error))?;
    let session = Session::new(&plan, &workloads, interrupt);
    let journal = || Journal::create(kept.path(), run, &text);
    let (journal, end) = session.run(Box::new(trials), journal, &mut Silent)?;
    if end == EndReason::BudgetSpent {
        note("the budget ran out before all blocks had run");
    }
    Ok(journal.document().clone())
}

/// A study of seconds, whose page is the advice.
struct Silent;

impl Observer for Silent {}

impl Backend for Trials {
    fn describe(&self) -> String {
        "the program under emulation".to_owned()
    }

    fn inspect(&self, _: &Scope<'_>) -> Result<Inspection, BackendError> {
        Ok(Inspection::default())
    }

    fn prepare(self: Box<Self>, _: &Scope<'_>) -> Result<Preparation, PrepareError> {
        let environment = Environment { facts: Default::default() };
        Ok(Preparation { environment, notices: Vec::new(), backend: self })
    }
}

impl Prepared for Trials {
    fn apply(&mut self, _: &Treatment) -> Result<Vec<Evidence>, BackendError> {
        Ok(Vec::new())
    }

    fn sample(&mut self, request: &SampleRequest<'_>) -> Result<Observation, BackendError> {
        let failed = |reason: String| BackendError::Failed { doing: "a trial".to_owned(), reason };
        let named = request.treatment.settings.get("placement").map(ToString::to_string);
        let program = self.placements.iter().find(|(name, _)| Some(name) == named.as_ref());
        let (_, program) = program.ok_or_else(|| failed("no such placement".to_owned()))?;
        let (ran, report) =
            sample(program, &self.interrupt).map_err(|error| failed(error.message().to_owned()))?;
        if ran.stdout != self.expected && !self.told_of_output {
            note("the program's output is not the same in every run");
            self.told_of_output = true;
        }
        let elapsed_ns = report.program().map_or(0, |program| program.elapsed_ns);
        let readings = self.judged.read(&ran, elapsed_ns);
        let readings = readings.map_err(|error| failed(error.to_string()))?;
        Ok(Observation { readings, ..Observation::default() })
    }

    fn restore(self: Box<Self>) -> Result<(), BackendError> {
        Ok(())
    }
}
