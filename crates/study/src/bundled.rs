//! The bundled studies, and a template for new ones.

use std::collections::BTreeSet;

use numalab_record::shell::command_line;

use crate::{Backends, Plan, parse};

/// The commented template of a study; `NAME` is replaced by the study's name.
const START: &str = include_str!("../studies/start.toml");

/// Name and text of every bundled study.
const STUDIES: &[(&str, &str)] = &[
    ("damon", include_str!("../studies/damon.toml")),
    ("demotion", include_str!("../studies/demotion.toml")),
    ("frame-allocator", include_str!("../studies/frame-allocator.toml")),
    ("frame-allocator-backends", include_str!("../studies/frame-allocator-backends.toml")),
    ("frame-allocator-flat", include_str!("../studies/frame-allocator-flat.toml")),
    ("guest-scaling", include_str!("../studies/guest-scaling.toml")),
    ("hugepages", include_str!("../studies/hugepages.toml")),
    ("hugepages-emulated", include_str!("../studies/hugepages-emulated.toml")),
    ("hugepages-host", include_str!("../studies/hugepages-host.toml")),
    ("memory-policy", include_str!("../studies/memory-policy.toml")),
    ("noise", include_str!("../studies/noise.toml")),
    ("numa-balancing", include_str!("../studies/numa-balancing.toml")),
    ("numa-balancing-emulated", include_str!("../studies/numa-balancing-emulated.toml")),
    ("numa-balancing-guest", include_str!("../studies/numa-balancing-guest.toml")),
    ("tiering", include_str!("../studies/tiering.toml")),
    ("tiering-kernels", include_str!("../studies/tiering-kernels.toml")),
    ("weights", include_str!("../studies/weights.toml")),
];

/// Returns the names and contents of the bundled studies.
pub fn bundled() -> &'static [(&'static str, &'static str)] {
    STUDIES
}

/// Returns the text of a bundled study.
pub fn bundled_text(name: &str) -> Option<&'static str> {
    STUDIES.iter().find(|(bundled, _)| *bundled == name).map(|(_, text)| *text)
}

/// Returns the command lines of these studies with their levels filled in; they are public and need
/// no redaction.
pub fn bundled_words(backends: Backends) -> BTreeSet<String> {
    let studies = bundled().iter().filter_map(|(name, text)| parse(text, name, backends).ok());
    let words = studies.filter_map(|study| Plan::new(study, 0).ok()).flat_map(|plan| {
        let commands = plan.workloads().iter().map(|workload| command_line(&workload.command));
        let commands: Vec<String> = commands.collect();
        let treatments = plan.treatments().to_vec();
        let settings = treatments.into_iter().flat_map(|treatment| treatment.settings);
        commands.into_iter().chain(settings.map(|(_, value)| value.to_string())).collect::<Vec<_>>()
    });
    words.collect()
}

/// Returns a commented template for a study of this name.
pub fn start(name: &str) -> String {
    START.replace("NAME", name)
}
