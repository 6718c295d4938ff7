mod bundled;
mod set;

use numalab_host::Interrupt;
use numalab_study::{SettingKind, parse};
use serde_json::{Map, Value};

use super::*;

fn opened(kind: &str, settings: &[(&str, Value)]) -> Result<String, String> {
    let text = "name = \"s\"\nquestion = \"q?\"\n[[factor]]\nname = \"v\"\nlevels = [1, 2]\n\
                [[workload]]\nname = \"w\"\ncommand = [\"true\"]\n\
                metric = [{ name = \"t\", better = \"lower\", exit-time = true }]\n";
    let mut study = parse(text, "s.toml", BACKENDS).unwrap();
    study.backend.kind = kind.to_owned();
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    study.backend.settings = settings.collect::<Map<_, _>>();
    let backend = BACKENDS.open(&study, &Interrupt::never());
    backend.map(|backend| backend.describe()).map_err(|error| error.to_string())
}

#[test]
fn every_backend_opens_with_its_defaults_and_describes_itself() {
    let names: Vec<&str> = BACKENDS.kinds().map(|kind| kind.name).collect();
    assert_eq!(names, ["host", "linux-guest", "guests", "kernel", "emulation"]);
    for name in names {
        let described = opened(name, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!described.is_empty(), "{name}");
    }
}

#[test]
fn an_unknown_backend_is_refused_with_the_known_ones() {
    assert_eq!(
        opened("cloud", &[]).unwrap_err(),
        "backend: cloud: expected host, linux-guest, guests, kernel, emulation"
    );
}

#[test]
fn defaults_are_allowed_values() {
    for kind in BACKENDS.kinds() {
        for spec in kind.settings.iter().chain(kind.levels) {
            let name = format!("{}.{}", kind.name, spec.name);
            if !spec.default.is_empty() {
                assert!(spec.kind.value_of(spec.default).is_some(), "{name}: {}", spec.default);
            }
            assert!(!spec.about.is_empty() && !spec.kind.expected().is_empty(), "{name}");
        }
    }
}

#[test]
fn no_setting_occurs_twice() {
    for kind in BACKENDS.kinds() {
        for specs in [kind.settings, kind.levels] {
            let mut names: Vec<&str> = specs.iter().map(|spec| spec.name).collect();
            names.sort_unstable();
            let all = names.len();
            names.dedup();
            assert_eq!(names.len(), all, "{}", kind.name);
        }
    }
}

/// Tries values of the wrong kind for each setting of each backend.
#[test]
fn every_setting_refuses_a_value_of_the_wrong_kind_with_the_allowed_ones() {
    for kind in BACKENDS.kinds() {
        for spec in kind.settings {
            let wrong = match spec.kind {
                SettingKind::Flag => vec![Value::from("yes"), Value::from(1)],
                SettingKind::Count(most) => {
                    vec![Value::from(0), Value::from(most + 1), Value::from("1"), Value::from(-1)]
                }
                SettingKind::OneOf(_) => vec![Value::from("no such word"), Value::from(1)],
                SettingKind::Text(_) => vec![Value::from(1), Value::from(true)],
                SettingKind::List(_) => vec![Value::from("one"), Value::from(vec![1])],
            };
            for value in wrong {
                let message = opened(kind.name, &[(spec.name, value.clone())]).unwrap_err();
                let expected = format!(
                    "backend.{}.{}: {value}: expected {}",
                    kind.name,
                    spec.name,
                    spec.kind.expected()
                );
                assert_eq!(message, expected);
            }
        }
    }
}

#[test]
fn words_are_listed_as_in_a_sentence() {
    let expected = |words: &'static [&'static str]| SettingKind::OneOf(words).expected();
    assert_eq!(expected(&["a"]), "a");
    assert_eq!(expected(&["a", "b"]), "a or b");
    assert_eq!(expected(&["a", "b", "c"]), "a, b or c");
    assert_eq!(SettingKind::List("names").expected(), "a list of names");
    assert_eq!(SettingKind::Flag.expected(), "true or false");
}

#[test]
fn a_word_of_the_command_line_is_a_value_of_its_kind_or_none() {
    let value = |kind: SettingKind, word: &str| kind.value_of(word);
    assert_eq!(value(SettingKind::Count(4), "4"), Some(Value::from(4)));
    for word in ["0", "5", "-1", "1.0", "", "four"] {
        assert_eq!(value(SettingKind::Count(4), word), None, "{word}");
    }
    assert_eq!(value(SettingKind::OneOf(&["a", "b"]), "c"), None);
    assert_eq!(value(SettingKind::Text("a form"), ""), Some(Value::from("")));
    assert_eq!(value(SettingKind::List("names"), "a"), Some(Value::from(vec!["a"])));
    assert_eq!(value(SettingKind::Flag, "TRUE"), None);
}
