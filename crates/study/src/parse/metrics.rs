//! Checks metrics named by a study's rules and published figures: its workloads or its backend must
//! measure them.

use numalab_workload::{Reader, Workload};

use super::{Fault, require, rule};
use crate::definition::Study;
use crate::nearest::nearest;
use crate::study_place::StudyPlace;

/// Rejects metrics that cannot exist.
///
/// `of_backend` are the metrics that the study's backend adds to those of each workload.
pub(super) fn check(
    study: &Study,
    workloads: &[Workload],
    of_backend: &[&str],
) -> Result<(), Fault> {
    let rules = &study.rules;
    let known = KnownMetrics { workloads, of_backend };
    if let Some(primary) = &rules.primary {
        known.check(&rule("primary"), primary)?;
    }
    for fact in &rules.facts {
        known.check(&rule("facts"), fact)?;
        let is_primary = rules.primary.as_ref() == Some(fact);
        let found = format!("{fact}, the primary metric");
        require(!is_primary, &rule("facts"), found, "metrics that are not tested")?;
    }
    for (name, margin) in &rules.margins {
        let place = StudyPlace::keys(["rules", "margins", name]);
        known.check(&place, name)?;
        require((0.0..=1000.0).contains(margin), &place, margin, "0 to 1000 percent")?;
    }
    for published in &study.published {
        known.check(&StudyPlace::keys(["published"]), &published.metric)?;
    }
    Ok(())
}

struct KnownMetrics<'a> {
    workloads: &'a [Workload],
    of_backend: &'a [&'a str],
}

impl KnownMetrics<'_> {
    fn check(&self, place: &StudyPlace, name: &str) -> Result<(), Fault> {
        // A misspelled primary metric would be noticed only after the last block.
        let is_given = name.split_once('.').is_some_and(|(workload, metric)| {
            let mut workloads = self.workloads.iter().filter(|own| own.name == workload);
            workloads.any(|workload| self.gives(workload, metric))
        });
        let names = self.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let meant = nearest(name, &names).map(|name| format!("; did you mean `{name}`?"));
        let expected =
            format!("workload.metric, one of {}{}", names.join(", "), meant.unwrap_or_default());
        require(is_given, place, name, &expected)
    }

    fn gives(&self, workload: &Workload, metric: &str) -> bool {
        let is_wanted =
            workload.wanted.is_empty() || workload.wanted.iter().any(|wanted| wanted == metric);
        let of_workload = is_wanted && workload.reader.metric(metric).is_some();
        of_workload || self.of_backend.contains(&metric)
    }

    /// Returns the names that are known before the first run.
    fn names(&self) -> Vec<String> {
        let of = |workload: &Workload| -> Vec<String> {
            let own: Vec<&str> = match &workload.reader {
                Reader::Own(metrics) => {
                    metrics.iter().map(|own| own.quantity.metric.as_str()).collect()
                }
                Reader::Tool(_) => workload.wanted.iter().map(String::as_str).collect(),
            };
            // Such a tool's metrics depend on its findings; its name begins each of them.
            let own = if own.is_empty() { vec![workload.name.as_str()] } else { own };
            let all = own.into_iter().chain(self.of_backend.iter().copied());
            all.map(|metric| format!("{}.{metric}", workload.name)).collect()
        };
        self.workloads.iter().flat_map(of).collect()
    }
}
