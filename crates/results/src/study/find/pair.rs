//! Two runs of a study compared, such as on another machine, kernel or day.
//!
//! The unit of analysis is the session, because the blocks of one session say little about the next
//! one. A session's value is the median over its blocks, as a logarithm.

use std::collections::BTreeMap;

use numalab_record::study::{JournalEntry, StudyDocument};
use numalab_stats::{
    Confidence, Criteria, Direction, Interval, RunShift, Sample, Verdict, percent_change,
};

use super::{StudySummary, Subject};
use crate::compare::{Answer, FactDifference, Tolerance, answers, lasting_differences, tail_of};
use crate::shape::Tail;

/// Two runs of a study, compared.
#[derive(Clone, Debug)]
pub struct StudyPair<'a> {
    pub before: StudySummary<'a>,
    pub after: StudySummary<'a>,
    /// The tolerance that verdicts allow.
    pub tolerance: Tolerance,
    /// All metrics under all treatments that both runs have.
    pub rows: Vec<PairRow>,
    /// Facts that differ between the two systems.
    pub environment: Vec<FactDifference>,
}

/// One metric under one treatment that both runs have.
#[derive(Clone, Debug)]
pub struct PairRow {
    pub metric: String,
    pub unit: String,
    pub treatment: String,
    /// The medians of the first and the second run.
    pub medians: [f64; 2],
    /// Number of sessions with analysed blocks, in the first and the second run.
    pub sessions: [usize; 2],
    /// The change in percent; `None` if a value is not positive.
    pub change_percent: Option<f64>,
    /// The 95 % interval of the change in percent; `None` with one session per side.
    pub interval_percent: Option<Interval>,
    /// The answer from the variation between sessions, adjusted for all rows (Holm).
    pub answer: Answer,
    /// The difference of the tails of its blocks.
    pub tail: Option<Tail>,
}

impl<'a> StudyPair<'a> {
    /// Compares two runs by treatment and metric name; `None` if they share none.
    pub fn of(
        before: &'a StudyDocument,
        after: &'a StudyDocument,
        tolerance: &Tolerance,
    ) -> Option<Self> {
        let (before, after) = (StudySummary::of(before), StudySummary::of(after));
        let rows = rows(&before, &after, *tolerance);
        let environment = lasting_differences(&first(&before), &first(&after));
        let pair = Self { before, after, tolerance: *tolerance, rows, environment };
        (!pair.rows.is_empty()).then_some(pair)
    }

    /// Returns `true` if there are verdicts, which need several sessions per side.
    pub fn is_judged(&self) -> bool {
        self.rows.iter().any(|row| matches!(row.answer, Answer::Judged(_)))
    }

    /// Returns `true` if anything is shown: a change, or that there is none beyond the tolerance.
    pub fn is_decided(&self) -> bool {
        self.rows
            .iter()
            .any(|row| matches!(row.answer, Answer::Judged(verdict) if verdict.is_decided()))
    }

    /// Reports whether the tail of any metric is shown to be worse in the second run.
    pub fn any_tail_worse(&self) -> bool {
        self.rows.iter().any(|row| row.tail.as_ref().is_some_and(Tail::is_shown_worse))
    }

    /// Returns `true` if any metric of any treatment is worse in the second run, beyond the
    /// tolerance.
    pub fn any_worse(&self) -> bool {
        self.rows.iter().any(|row| row.answer == Answer::Judged(Verdict::Worse))
    }
}

fn first(summary: &StudySummary<'_>) -> numalab_record::Environment {
    let facts = summary.first_facts();
    numalab_record::Environment { facts }
}

fn rows(before: &StudySummary<'_>, after: &StudySummary<'_>, tolerance: Tolerance) -> Vec<PairRow> {
    let sessions = [before, after].map(|summary| sessions(summary.document));
    let mut rows: Vec<(PairRow, RunShift, Direction)> = Vec::new();
    for old in before.subjects.iter().filter(|subject| !subject.is_fact) {
        let same =
            |new: &&Subject| new.title() == old.title() && new.quantity.unit == old.quantity.unit;
        let Some(new) = after.subjects.iter().find(same) else { continue };
        for (at, treatment) in before.document.run.treatments.iter().enumerate() {
            let treatments = &after.document.run.treatments;
            let other = treatments.iter().position(|other| other.name == treatment.name);
            let Some(other) = other else { continue };
            let sides = [(old, at), (new, other)];
            let criteria =
                Criteria { margin: tolerance.margin(), ..Criteria::new(old.quantity.better) };
            let found = row(sides, &sessions, &treatment.name).map(|(row, shift)| {
                let has_sessions = row.sessions.iter().all(|&sessions| sessions > 1);
                let tail = tail(sides, &criteria, has_sessions);
                (PairRow { tail, ..row }, shift)
            });
            rows.extend(found.map(|(row, shift)| (row, shift, old.quantity.better)));
        }
    }
    let shifts: Vec<_> = rows.iter().map(|(_, shift, better)| (*shift, *better)).collect();
    let answers = answers(&shifts, tolerance, 1.0);
    rows.into_iter().zip(answers).map(|((row, ..), answer)| PairRow { answer, ..row }).collect()
}

/// Returns where the tails of two treatments' blocks differ. If a side has a single session, which
/// may have caused the difference, it counts as not shown.
fn tail(sides: [(&Subject, usize); 2], criteria: &Criteria, has_sessions: bool) -> Option<Tail> {
    let column =
        |(subject, at): (&Subject, usize)| Sample::new(&subject.cells.treatments.get(at)?[..]).ok();
    let found = tail_of([column(sides[0])?, column(sides[1])?], criteria)?;
    Some(Tail { is_shown: found.is_shown && has_sessions, ..found })
}

/// Returns the session in which each block ended.
fn sessions(document: &StudyDocument) -> BTreeMap<usize, usize> {
    let (mut session, mut of) = (0, BTreeMap::new());
    for entry in &document.journal {
        match entry {
            JournalEntry::Began { .. } => session += 1,
            JournalEntry::Sample(sample) => {
                of.insert(sample.block, session);
            }
            JournalEntry::Applied(_) | JournalEntry::Out { .. } | JournalEntry::Ended { .. } => {}
        }
    }
    of
}

fn row(
    sides: [(&Subject, usize); 2],
    sessions: &[BTreeMap<usize, usize>; 2],
    treatment: &str,
) -> Option<(PairRow, RunShift)> {
    let values = |side: usize| {
        let (subject, treatment) = sides[side];
        let values = subject.cells.treatments.get(treatment)?;
        let mut by_session: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (block, value) in subject.cells.blocks.iter().zip(values) {
            let session = sessions[side].get(block).copied().unwrap_or_default();
            by_session.entry(session).or_default().push(value.ln());
        }
        let median = |logs: Vec<f64>| Sample::new(logs).map_or(f64::NAN, |logs| logs.median());
        Some(by_session.into_values().map(median).collect::<Vec<f64>>())
    };
    let (before, after) = (values(0)?, values(1)?);
    // Values at or below zero have no logarithm, hence no figure.
    let shift = RunShift::of(&before, &after);
    let interval = shift.and_then(|shift| shift.interval(Confidence::P95));
    let row = PairRow {
        metric: sides[0].0.title(),
        unit: sides[0].0.quantity.unit.clone(),
        treatment: treatment.to_owned(),
        medians: [sides[0].0.median(sides[0].1)?, sides[1].0.median(sides[1].1)?],
        sessions: [before.len(), after.len()],
        change_percent: shift.map(|shift| percent_change(shift.effect)),
        interval_percent: interval.map(|interval| Interval {
            lo: percent_change(interval.lo),
            hi: percent_change(interval.hi),
        }),
        answer: Answer::NotJudged,
        tail: None,
    };
    Some((row, shift.or_else(|| RunShift::of(&[0.0], &[0.0]))?))
}
