//! Placeholders in a command, filled by treatments: `{pages}`.

use numalab_record::study::{StudyRun, Treatment, Workload};

/// Returns one sentence per placeholder with its values by treatment: `{hugetlb} is off in
/// pages=4k; on in pages=2m, pages=1g`.
pub(super) fn sentences(run: &StudyRun, workload: &Workload) -> Vec<String> {
    let mut names: Vec<&String> = run.treatments.iter().flat_map(|t| t.settings.keys()).collect();
    names.sort();
    names.dedup();
    let placeholder = |name: &str| format!("{{{name}}}");
    names.retain(|name| workload.command.iter().any(|word| word.contains(&placeholder(name))));
    names.into_iter().map(|name| sentence(run, name)).collect()
}

fn sentence(run: &StudyRun, name: &str) -> String {
    let mut values: Vec<(String, Vec<&str>)> = Vec::new();
    for Treatment { name: treatment, settings, .. } in &run.treatments {
        let Some(value) = settings.get(name).map(ToString::to_string) else { continue };
        match values.iter_mut().find(|(known, _)| *known == value) {
            Some((_, treatments)) => treatments.push(treatment.as_str()),
            None => values.push((value, vec![treatment.as_str()])),
        }
    }
    let parts: Vec<String> = values
        .iter()
        .map(|(value, treatments)| format!("{value} in {}", treatments.join(", ")))
        .collect();
    format!("{{{name}}} is {}.", parts.join("; "))
}
