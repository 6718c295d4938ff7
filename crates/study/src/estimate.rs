//! How long a study takes.

use std::time::{Duration, Instant};

use numalab_record::study::{FactorKind, StudyDocument};
use numalab_stats::Confidence;
use numalab_workload::Workload;

use crate::backend::{Backend, BackendError, Preparation, Prepared, SampleRequest, Scope};
use crate::plan::Plan;
use crate::session::{SessionError, restored, time_spent};

/// The time for all blocks, as far as the author said how long one takes.
#[must_use]
pub fn stated_time(plan: &Plan) -> Option<Duration> {
    seconds(plan.study().rules.about_block_s? * plan.blocks() as f64)
}

/// The longest that all blocks can take if nothing is disturbed: every workload may use up
/// the time that it is allowed.
#[must_use]
pub fn longest_time(plan: &Plan, workloads: &[Workload]) -> Duration {
    let allowed_s: u64 = workloads.iter().map(|workload| workload.timeout_s).sum();
    let visits = plan.visits(0).len() * plan.blocks();
    seconds(allowed_s as f64 * visits as f64).unwrap_or(Duration::MAX)
}

/// The fewest blocks with which a difference can be shown at the first look: in the primary
/// metric where the study names one, else in any answer, all answers of the study allowed for:
/// every metric of every workload that is no fact, and as many of the backend's own beside them
/// ([`Backend::own_metrics`]), for every level but the first of each factor. Values that do not
/// vary need fewer.
#[must_use]
pub fn fewest_blocks(plan: &Plan, workloads: &[Workload], own_metrics: usize) -> usize {
    numalab_stats::least_pairs(first_level(plan, workloads, own_metrics).alpha())
}

/// The confidence at which the first of all answers is judged at the first look.
#[must_use]
pub fn first_level(plan: &Plan, workloads: &[Workload], own_metrics: usize) -> Confidence {
    let rules = &plan.study().rules;
    // A tool whose metrics depend on what it finds has one at least.
    let known = |workload: &Workload| workload.metrics().map_or(1, |m| m.len().max(1));
    let metrics: usize = workloads.iter().map(|workload| own_metrics + known(workload)).sum();
    let metrics = match rules.primary {
        Some(_) => 1,
        None => metrics.saturating_sub(rules.facts.len()).max(1),
    };
    let choices = plan.study().factors.iter().filter(|factor| factor.kind == FactorKind::Choice);
    let changes: usize = choices.map(|factor| factor.levels.len() - 1).sum();
    let answers = metrics * changes.max(1);
    let first = Confidence::P95.at_look(1);
    Confidence::new(1.0 - first.alpha() / answers as f64).unwrap_or(first)
}

/// The time for all blocks, by running every workload once under the baseline.
///
/// # Errors
/// [`SessionError`] as it comes; what was there before is put back.
pub fn pilot(
    plan: &Plan,
    workloads: &[Workload],
    backend: Box<dyn Backend>,
) -> Result<Duration, SessionError> {
    let Preparation { mut backend, .. } =
        backend.prepare(&Scope { treatments: plan.treatments(), workloads })?;
    let begun = Instant::now();
    let tried = try_out(plan, workloads, backend.as_mut());
    let took = begun.elapsed();
    restored(backend, tried.map_err(SessionError::from))?;
    let visits = (plan.visits(0).len() * plan.blocks()) as f64;
    Ok(seconds(took.as_secs_f64() * visits).unwrap_or(Duration::MAX))
}

fn try_out(
    plan: &Plan,
    workloads: &[Workload],
    backend: &mut dyn Prepared,
) -> Result<(), BackendError> {
    let treatment = &plan.treatments()[0];
    backend.apply(treatment)?;
    for (index, workload) in workloads.iter().enumerate() {
        let seed = plan.sample_seed(0, index);
        backend.sample(&SampleRequest { treatment, workload, seed })?;
    }
    Ok(())
}

/// The time that the samples still to be taken need, by those taken so far.
#[must_use]
pub fn remaining_time(document: &StudyDocument, done: usize, in_all: usize) -> Option<Duration> {
    let left = in_all.checked_sub(done)?;
    if done == 0 {
        return None;
    }
    seconds(time_spent(document).as_secs_f64() / done as f64 * left as f64)
}

fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}
