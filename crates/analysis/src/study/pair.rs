//! Two runs of a study compared: another machine, another kernel, another day.

use numalab_record::study::StudyDocument;
use numalab_stats::{Comparison, Criteria, Sample, Verdict, adjust_verdicts};

use super::{StudySummary, Subject};
use crate::compare::{FactDifference, Tolerance, beyond, lasting_differences};

/// Two runs of a study.
#[derive(Clone, Debug)]
pub struct StudyPair<'a> {
    /// The first run.
    pub before: StudySummary<'a>,
    /// The second run.
    pub after: StudySummary<'a>,
    /// The tolerance applied.
    pub tolerance: Tolerance,
    /// Every metric under every treatment that both runs have.
    pub rows: Vec<PairRow>,
    /// What differs between the two systems.
    pub environment: Vec<FactDifference>,
}

/// A metric under a treatment that both runs have.
#[derive(Clone, Debug)]
pub struct PairRow {
    /// Workload and metric.
    pub metric: String,
    /// The treatment.
    pub treatment: String,
    /// The medians of the first and the second run.
    pub medians: [f64; 2],
    /// What was found, after Holm's adjustment over all rows.
    pub found: Comparison,
    /// The answer: better or worse only beyond the tolerance.
    pub verdict: Verdict,
}

impl<'a> StudyPair<'a> {
    /// Sets two runs side by side, treatments and metrics by name; `None` where they have
    /// none in common.
    #[must_use]
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

    /// Whether any metric of any treatment is worse in the second run, beyond the tolerance.
    #[must_use]
    pub fn any_worse(&self) -> bool {
        self.rows.iter().any(|row| row.verdict == Verdict::Worse)
    }
}

/// The environment in which a run began.
fn first(summary: &StudySummary<'_>) -> numalab_record::Environment {
    let facts = summary.first_facts();
    numalab_record::Environment { facts }
}

fn rows(before: &StudySummary<'_>, after: &StudySummary<'_>, tolerance: Tolerance) -> Vec<PairRow> {
    let mut rows = Vec::new();
    for old in before.subjects.iter().filter(|subject| !subject.is_fact) {
        let same =
            |new: &&Subject| new.title() == old.title() && new.quantity.unit == old.quantity.unit;
        let Some(new) = after.subjects.iter().find(same) else { continue };
        for (at, treatment) in before.document.run.treatments.iter().enumerate() {
            let treatments = &after.document.run.treatments;
            let other = treatments.iter().position(|other| other.name == treatment.name);
            let Some(other) = other else { continue };
            rows.extend(row(old, new, [at, other], &treatment.name, tolerance));
        }
    }
    let mut found: Vec<Comparison> = rows.iter().map(|row: &PairRow| row.found.clone()).collect();
    adjust_verdicts(&mut found);
    for (row, found) in rows.iter_mut().zip(found) {
        row.verdict = beyond(found.verdict, found.percent_interval(), tolerance);
        row.found = found;
    }
    rows
}

fn row(
    old: &Subject,
    new: &Subject,
    treatments: [usize; 2],
    treatment: &str,
    tolerance: Tolerance,
) -> Option<PairRow> {
    let before = Sample::new(old.cells.treatments.get(treatments[0])?.clone()).ok()?;
    let after = Sample::new(new.cells.treatments.get(treatments[1])?.clone()).ok()?;
    let criteria = Criteria { margin: tolerance.margin(), ..Criteria::new(old.quantity.better) };
    let found = numalab_stats::compare(&before, &after, &criteria);
    Some(PairRow {
        metric: old.title(),
        treatment: treatment.to_owned(),
        medians: [before.median(), after.median()],
        verdict: found.verdict,
        found,
    })
}
