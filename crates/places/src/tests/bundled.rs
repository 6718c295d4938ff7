//! The bundled studies: each can be read and opened, and shows a difference.

use numalab_host::Interrupt;
use numalab_study::{Plan, bundled, bundled_words, fewest_blocks, parse, start};

use crate::BACKENDS;

#[test]
fn every_bundled_study_can_be_read_and_estimates_its_time() {
    for (name, text) in bundled() {
        let study = parse(text, name, BACKENDS).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(study.name, *name);
        assert!(study.question.ends_with('?'), "{name}: {}", study.question);
        assert!(study.rules.about_block_s.is_some(), "{name} does not say how long it takes");
        // `noise` asks about every metric equally.
        assert_eq!(study.rules.primary.is_none(), *name == "noise", "{name}");
    }
}

#[test]
fn commands_of_bundled_studies_are_known_as_their_pages_have_them() {
    let words = bundled_words(BACKENDS);
    assert!(
        words.contains("sysbench memory --memory-access-mode=rnd --threads=4 run"),
        "{words:?}"
    );
    assert!(!words.contains("./solver -n 8"));
}

#[test]
fn every_bundled_study_has_enough_blocks_to_show_a_difference() {
    for (name, text) in bundled() {
        let study = parse(text, name, BACKENDS).unwrap_or_else(|error| panic!("{error}"));
        let blocks = study.rules.blocks;
        // numalab's kernel need not have been built; its backend adds none.
        let backend = BACKENDS.open(&study, &Interrupt::never());
        let own = backend.map_or(0, |backend| backend.own_metrics());
        let fewest = fewest_blocks(&Plan::new(study, 1).unwrap(), own, 1);
        assert!(blocks >= fewest, "{name}: {blocks} blocks, {fewest} are the least");
    }
    let begun = parse(&start("mine"), "mine", BACKENDS).unwrap();
    assert!(begun.rules.primary.is_some());
    assert!(begun.rules.blocks >= fewest_blocks(&Plan::new(begun, 1).unwrap(), 0, 1));
}

#[test]
fn the_template_is_a_valid_study() {
    let study =
        parse(&start("mine"), "mine.toml", BACKENDS).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(study.name, "mine");
}

#[test]
fn a_bundled_study_can_be_written_and_read_again() {
    for (name, text) in bundled() {
        let study = parse(text, name, BACKENDS).unwrap();
        let written = study.to_toml().unwrap();
        let again = parse(&written, name, BACKENDS);
        assert_eq!(again.unwrap_or_else(|error| panic!("{error}\n{written}")), study);
    }
}

#[test]
fn every_bundled_study_is_opened_by_its_backend() {
    for (name, text) in bundled() {
        let study = parse(text, name, BACKENDS).unwrap();
        let kind = BACKENDS.kind(&study.backend.kind).unwrap();
        assert!(study.backend.settings.keys().all(|name| kind.setting(name).is_some()), "{name}");
        if let Err(error) = BACKENDS.open(&study, &Interrupt::never()) {
            panic!("{name}: {error}");
        }
    }
}
