//! The metric and the treatment by which commits are judged, by name.

use numalab_record::study::Treatment;
use numalab_workload::Workload;

use super::error::BisectError;
use super::sampler::KERNEL;
use crate::plan::Plan;

/// Finds a metric, named `WORKLOAD.METRIC`; without a name the study's primary one.
///
/// # Errors
/// [`BisectError::NoMetric`] if the study has no such metric, or no primary one.
pub fn metric_of(plan: &Plan, wanted: Option<&str>) -> Result<(Workload, String), BisectError> {
    let wanted = wanted.or(plan.study().rules.primary.as_deref()).unwrap_or_default();
    let of = plan.workloads().iter().find_map(|workload| {
        let metric = wanted.strip_prefix(&workload.name)?.strip_prefix('.')?;
        Some((workload.clone(), metric.to_owned()))
    });
    of.ok_or_else(|| {
        let names: Vec<&str> = plan.workloads().iter().map(|workload| &*workload.name).collect();
        let known = format!("WORKLOAD.METRIC, of workload {}", names.join(", "));
        BisectError::NoMetric { wanted: wanted.to_owned(), known }
    })
}

/// Finds a treatment by its name; without one the only one, since each has the commit's own kernel.
///
/// # Errors
/// [`BisectError::NoTreatment`] if there is none, or several.
pub fn treatment_of(plan: &Plan, wanted: Option<&str>) -> Result<Treatment, BisectError> {
    let all = plan.treatments();
    let others = |treatment: &Treatment| {
        let mut settings = treatment.settings.clone();
        settings.remove(KERNEL);
        settings
    };
    let is_only = all.windows(2).all(|pair| others(&pair[0]) == others(&pair[1]));
    let found = match wanted {
        Some(name) => all.iter().find(|treatment| treatment.name == name),
        None => all.first().filter(|_| is_only),
    };
    found.cloned().ok_or_else(|| BisectError::NoTreatment {
        wanted: wanted.map_or_else(String::new, |wanted| format!(" {wanted}")),
        known: all.iter().map(|treatment| treatment.name.clone()).collect::<Vec<_>>().join(", "),
    })
}
