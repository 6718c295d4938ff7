//! The studies that come with numalab, and a start for one's own.

use std::collections::BTreeSet;

use numalab_record::shell::command_line;

use crate::{Plan, parse};

/// A commented start for a study of one's own; `NAME` stands for its name.
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

/// Names and texts of the studies that come with numalab.
#[must_use]
pub fn bundled() -> &'static [(&'static str, &'static str)] {
    STUDIES
}

/// The text of a bundled study.
#[must_use]
pub fn bundled_text(name: &str) -> Option<&'static str> {
    STUDIES.iter().find(|(bundled, _)| *bundled == name).map(|(_, text)| *text)
}

/// The command lines of these studies, and what their levels fill into them: public, as everybody
/// has them.
#[must_use]
pub fn bundled_words() -> BTreeSet<String> {
    let studies = bundled().iter().filter_map(|(name, text)| parse(text, name).ok());
    let words = studies.flat_map(|study| {
        let workloads = study.resolved().unwrap_or_default();
        let commands = workloads.iter().map(|workload| command_line(&workload.command));
        let commands: Vec<String> = commands.collect();
        let treatments = Plan::new(study, 0).treatments().to_vec();
        let settings = treatments.into_iter().flat_map(|treatment| treatment.settings);
        commands.into_iter().chain(settings.map(|(_, value)| value.to_string())).collect::<Vec<_>>()
    });
    words.collect()
}

/// A commented start for a study of this name.
#[must_use]
pub fn start(name: &str) -> String {
    START.replace("NAME", name)
}

#[cfg(test)]
mod tests {
    use numalab_host::Interrupt;

    use super::*;

    #[test]
    fn every_bundled_study_can_be_read_and_says_how_long_it_takes() {
        for (name, text) in bundled() {
            let study = parse(text, name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(study.name, *name);
            assert!(study.question.ends_with('?'), "{name}: {}", study.question);
            assert!(study.rules.about_block_s.is_some(), "{name} does not say how long it takes");
            // What `noise` asks about is every metric alike.
            assert_eq!(study.rules.primary.is_none(), *name == "noise", "{name}");
        }
    }

    #[test]
    fn commands_of_bundled_studies_are_known_as_their_pages_have_them() {
        let words = bundled_words();
        assert!(
            words.contains("sysbench memory --memory-access-mode=rnd --threads=4 run"),
            "{words:?}"
        );
        assert!(!words.contains("./solver -n 8"));
    }

    #[test]
    fn every_bundled_study_has_blocks_enough_to_show_a_difference() {
        for (name, text) in bundled() {
            let study = parse(text, name).unwrap_or_else(|error| panic!("{error}"));
            let (blocks, workloads) = (study.rules.blocks, study.resolved().unwrap());
            // Our kernel need not have been built; its backend adds none.
            let backend = crate::open(&study, &Interrupt::never());
            let own = backend.map_or(0, |backend| backend.own_metrics());
            let fewest = crate::fewest_blocks(&Plan::new(study, 1), &workloads, own);
            assert!(blocks >= fewest, "{name}: {blocks} blocks, {fewest} are the least");
        }
        let begun = parse(&start("mine"), "mine").unwrap();
        let workloads = begun.resolved().unwrap();
        assert!(begun.rules.primary.is_some());
        assert!(begun.rules.blocks >= crate::fewest_blocks(&Plan::new(begun, 1), &workloads, 0));
    }

    #[test]
    fn the_start_is_a_study_as_it_stands() {
        let study = parse(&start("mine"), "mine.toml").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(study.name, "mine");
    }
}
