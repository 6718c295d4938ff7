//! The plan of a study, as far as known without fetching or booting anything.

use numalab_record::study::{PlannedLevel, PlannedStudy, PlannedWorkload, StudyTime};
use numalab_workload::Workload;

use crate::backend::{Backend, BackendError, Inspection};
use crate::definition::{Level, Study};
use crate::estimate::{decisions, too_few};
use crate::plan::Plan;

/// Describes the plan on a backend, with the expected `time`.
///
/// # Errors
/// [`BackendError::BadInput`] if the backend rejects the study. A study that cannot run here is not
/// an error but part of the answer.
pub fn foreseen(
    plan: &Plan,
    backend: &dyn Backend,
    time: StudyTime,
) -> Result<PlannedStudy, BackendError> {
    let (inspection, cannot_run) = match backend.inspect(&plan.scope()) {
        Ok(inspection) => (inspection, None),
        Err(error @ BackendError::BadInput { .. }) => return Err(error),
        Err(error) => (Inspection::default(), Some(error.to_string())),
    };
    let study = plan.study();
    let workload = |workload: &Workload| PlannedWorkload {
        name: workload.name.clone(),
        command: workload.command.clone(),
        service: workload.service.as_ref().map(|service| service.command.clone()),
    };
    let fewest = too_few(plan, backend.own_metrics());
    Ok(PlannedStudy {
        name: study.name.clone(),
        question: study.question.clone(),
        note: study.note.clone(),
        backend: backend.describe(),
        cannot_run,
        notices: inspection.notices,
        memory_bytes: inspection.memory_bytes,
        downloads: inspection.downloads,
        treatments: plan.treatments().iter().map(|treatment| treatment.name.clone()).collect(),
        levels: named_levels(study),
        workloads: plan.workloads().iter().map(workload).collect(),
        seed: plan.seed(),
        warm_ups: study.rules.warm_ups,
        blocks: (0..plan.blocks()).map(|block| plan.visits(block)).collect(),
        taken: 0,
        samples: plan.blocks() * plan.visits(0).len() * plan.workloads().len(),
        time,
        decisions: decisions(plan, backend.own_metrics()),
        fewest_blocks: fewest.map(|[at_once, _]| at_once),
        fewest_with_added: fewest.map(|[_, with_added]| with_added),
    })
}

fn named_levels(study: &Study) -> Vec<PlannedLevel> {
    let named = study.factors.iter().flat_map(|factor| {
        factor.levels.iter().filter_map(|level| match level {
            Level::Value(_) => None,
            Level::Named(named) => Some(PlannedLevel {
                factor: factor.name.clone(),
                level: named.name.clone(),
                set: named.set.clone(),
            }),
        })
    });
    named.collect()
}
