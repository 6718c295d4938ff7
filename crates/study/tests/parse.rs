//! Invalid studies are rejected with the place of the error; valid ones can be written and read
//! again.

use numalab_record::study::{FactorKind, Setting};
use numalab_study::{Backends, Level, parse, start};

const GOOD: &str = r#"name = "s"
question = "q?"

[[factor]]
name = "pages"
levels = ["4k", "2m"]

[[workload]]
name = "w"
command = ["true", "{pages}"]
metric = [{ name = "t", better = "lower", exit-time = true }]
"#;

fn refused(text: &str) -> String {
    parse(text, "s.toml", Backends::NONE).expect_err(text).to_string()
}

fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replacen(from, to, 1)
}

#[test]
fn an_unknown_key_is_refused_with_line_and_column() {
    for (text, line, key) in [
        (with("question", "answer = 42\nquestion"), "line 2", "answer"),
        (format!("{GOOD}\n[rules]\nblock = 3\n"), "line 14", "block"),
        (with("levels = [\"4k\"", "levels = [{ name = \"4k\", sets = {} }"), "line 6", "sets"),
        (with("better", "beter = 1, better"), "line 11", "beter"),
        (with("name = \"pages\"", "name = \"pages\"\nlevel = 1"), "line 6", "level"),
    ] {
        let message = refused(&text);
        assert!(message.starts_with("s.toml: "), "{message}");
        assert!(message.contains(line) && message.contains(key), "{line} {key}: {message}");
    }
}

#[test]
fn a_value_of_another_kind_is_refused_with_the_allowed_ones() {
    let message = refused(&with("\"4k\", \"2m\"", "[1], \"2m\""));
    assert!(message.contains("line 6") && message.contains("a value, or a table"), "{message}");
    let message = refused(&with("question", "backend = 3\nquestion"));
    assert!(message.contains("[backend.linux-guest]"), "{message}");
    let message = refused(&with("question", "world = \"host\"\nquestion"));
    let renamed = ["s.toml, line 2, column 1: world: ", "`backend`"];
    assert!(renamed.iter().all(|words| message.contains(words)), "{message}");
    let message = refused(&with("question", "backend = { a = {}, b = {} }\nquestion"));
    assert!(message.contains("one table"), "{message}");
}

#[test]
fn impossible_studies_are_refused_by_name() {
    for (text, words) in [
        (with("[\"4k\", \"2m\"]", "[\"4k\"]"), ["factor pages", "two levels or more"]),
        (with("\"4k\", \"2m\"", "\"4k\", \"4k\""), ["factor pages", "each level once"]),
        (with("name = \"s\"", "name = \"../s\""), ["../s", "letters"]),
        (with("{pages}", "{page}"), ["{page}", "a setting"]),
        (with("levels", "kind = \"scale\"\nlevels"), ["4k, 2m", "positive numbers"]),
        (format!("{GOOD}[rules]\nblocks = 0\n"), ["rules.blocks", "1 to 100000"]),
        (format!("{GOOD}[rules]\nmargins.\"x.t\" = 2\n"), ["x.t", "workload.metric"]),
        (format!("{GOOD}[rules]\nfacts = [\"x.t\"]\n"), ["rules.facts", "did you mean `w.t`?"]),
        (format!("{GOOD}[rules]\nprimary = \"w.tt\"\n"), ["rules.primary: w.tt", "one of w.t;"]),
        (
            format!(
                "{GOOD}[[workload]]\ntool = \"sysbench-memory\"\n[rules]\nprimary = \"sysbench-memory.speed\"\n"
            ),
            ["sysbench-memory.speed", "one of w.t, sysbench-memory.throughput"],
        ),
        (
            format!("{GOOD}[rules]\nprimary = \"w.t\"\nfacts = [\"w.t\"]\n"),
            ["w.t, the primary metric", "not tested"],
        ),
        (format!("{GOOD}[rules]\nbudget-s = -1\n"), ["rules.budget-s", "more than 0"]),
        (with("exit-time = true", "pattern = \"x\""), ["w", "x"]),
        (
            format!("{GOOD}[[factor]]\nname = \"pages\"\nlevels = [1, 2]\n"),
            ["factor pages", "each factor once"],
        ),
        (
            format!(
                "{GOOD}[[factor]]\nname = \"b\"\nlevels = [{{ name = \"x\", set = {{ pages = 1 }} }}, 2]\n"
            ),
            ["pages, which factor pages sets too", "one factor"],
        ),
    ] {
        let message = refused(&text);
        for word in words {
            assert!(message.contains(word), "no `{word}` in: {message}");
        }
    }
}

#[test]
fn defaults_are_filled_in_and_the_whole_can_be_read_again() {
    let study = parse(GOOD, "s.toml", Backends::NONE).unwrap();
    assert_eq!(
        (study.rules.blocks, study.rules.aa, study.backend.kind.as_str()),
        (12, true, "host")
    );
    assert_eq!(study.factors[0].kind, FactorKind::Choice);
    assert_eq!(study.factors[0].levels[1], Level::Value(Setting::Text("2m".to_owned())));
    for text in [GOOD, &start("x")] {
        let study = parse(text, "a", Backends::NONE).unwrap();
        let written = study.to_toml().unwrap();
        assert_eq!(
            parse(&written, "b", Backends::NONE).unwrap_or_else(|e| panic!("{e}\n{written}")),
            study
        );
    }
}

#[test]
fn no_cut_or_changed_byte_makes_it_panic() {
    for end in 0..GOOD.len() {
        let _ = parse(&GOOD[..end], "cut", Backends::NONE);
    }
    for at in 0..GOOD.len() {
        for with in ["\"", "[", "0", "{", "-"] {
            let changed = format!("{}{with}{}", &GOOD[..at], &GOOD[at + 1..]);
            let _ = parse(&changed, "changed", Backends::NONE);
        }
    }
}
