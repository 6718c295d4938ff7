//! Each mistake in a study's text, with the complete error message.

use numalab_study::{Backends, parse};

const HEAD: &str = "name = \"s\"\nquestion = \"q?\"\n";
const FACTOR: &str = "[[factor]]\nname = \"pages\"\nlevels = [\"4k\", \"2m\"]\n";
const WORKLOAD: &str = "[[workload]]\nname = \"w\"\ncommand = [\"true\"]\n\
                        metric = [{ name = \"t\", better = \"lower\", exit-time = true }]\n";

fn refused(text: &str) -> String {
    parse(text, "s.toml", Backends::NONE).expect_err(text).to_string()
}

fn with_rules(rules: &str) -> String {
    refused(&format!("{HEAD}[rules]\n{rules}\n{FACTOR}{WORKLOAD}"))
}

fn with_factor(factor: &str) -> String {
    refused(&format!("{HEAD}{factor}{WORKLOAD}"))
}

fn with_levels(levels: &str) -> String {
    with_factor(&format!("[[factor]]\nname = \"pages\"\nlevels = {levels}\n"))
}

#[test]
fn the_template_of_tests_is_a_study() {
    parse(&format!("{HEAD}{FACTOR}{WORKLOAD}"), "s.toml", Backends::NONE).unwrap();
}

#[test]
fn an_invalid_rule_is_refused_with_its_place_and_the_allowed_values() {
    for (rule, message) in [
        ("blocks = 0", "blocks: 0: expected 1 to 100000"),
        ("blocks = 100001", "blocks: 100001: expected 1 to 100000"),
        ("blocks = 3\nwarm-ups = 4", "warm-ups: 4: expected at most blocks"),
        ("repeats = 21", "repeats: 21: expected 0 to 20"),
        ("precision-percent = 0.0", "precision-percent: 0: expected more than 0"),
        ("precision-percent = -2.5", "precision-percent: -2.5: expected more than 0"),
        ("precision-percent = inf", "precision-percent: inf: expected more than 0"),
        ("precision-percent = nan", "precision-percent: NaN: expected more than 0"),
        ("margin-percent = -1.0", "margin-percent: -1: expected 0 to 1000"),
        ("margin-percent = 1000.5", "margin-percent: 1000.5: expected 0 to 1000"),
        ("margin-percent = nan", "margin-percent: NaN: expected 0 to 1000"),
        ("about-block-s = 0.0", "about-block-s: 0: expected more than 0"),
        ("budget-s = 0.0", "budget-s: 0: expected more than 0"),
        ("budget-s = -3.0", "budget-s: -3: expected more than 0"),
    ] {
        let line = 3 + rule.lines().count();
        assert_eq!(
            with_rules(rule),
            format!("s.toml, line {line}, column 1: rules.{message}"),
            "{rule}"
        );
    }
}

#[test]
fn a_negative_number_of_blocks_is_refused_in_words_and_not_by_a_type() {
    let message = with_rules("blocks = -1");
    assert!(message.contains("`-1`, expected a whole number, 0 or more"), "{message}");
    assert!(message.contains("line 4"), "{message}");
}

#[test]
fn rules_at_their_bounds_are_taken() {
    for rule in [
        "blocks = 1\nwarm-ups = 1",
        "blocks = 100000",
        "repeats = 0",
        "repeats = 20",
        "margin-percent = 0.0",
        "margin-percent = 1000.0",
        "precision-percent = 0.001",
        "budget-s = 0.5",
    ] {
        let text = format!("{HEAD}[rules]\n{rule}\n{FACTOR}{WORKLOAD}");
        parse(&text, "s.toml", Backends::NONE).unwrap_or_else(|error| panic!("{rule}: {error}"));
    }
}

#[test]
fn unknown_metrics_of_rules_are_refused_with_the_known_ones() {
    for (rule, message) in [
        (
            "primary = \"w.u\"",
            "primary: w.u: expected workload.metric, one of w.t; did you mean `w.t`?",
        ),
        ("primary = \"t\"", "primary: t: expected workload.metric, one of w.t"),
        ("primary = \"other.t\"", "primary: other.t: expected workload.metric, one of w.t"),
        (
            "facts = [\"w.t\", \"w.u\"]",
            "facts: w.u: expected workload.metric, one of w.t; did you mean `w.t`?",
        ),
        (
            "facts = [\"w.t\"]\nprimary = \"w.t\"",
            "facts: w.t, the primary metric: expected metrics that are not tested",
        ),
        ("margins.\"w.t\" = -1.0", "margins.\"w.t\": -1: expected 0 to 1000 percent"),
        ("margins.\"w.t\" = 1001.0", "margins.\"w.t\": 1001: expected 0 to 1000 percent"),
        (
            "margins.\"nothing.at.all\" = 1.0",
            "margins.\"nothing.at.all\": nothing.at.all: expected workload.metric, one of w.t",
        ),
    ] {
        let found = with_rules(rule);
        assert!(found.starts_with("s.toml, line 4, column "), "{found}");
        assert!(found.ends_with(&format!(": rules.{message}")), "{rule}: {found}");
    }
}

#[test]
fn a_name_is_of_letters_digits_dashes_underscores_and_dots() {
    let long = "x".repeat(81);
    for name in ["", ".hidden", "a b", "a/b", "ü", long.as_str()] {
        let text = format!("name = \"{name}\"\nquestion = \"q?\"\n{FACTOR}{WORKLOAD}");
        let expected = "expected letters, digits, `-`, `_` and `.`";
        assert_eq!(refused(&text), format!("s.toml, line 1, column 1: name: {name}: {expected}"));
        let factor = format!("[[factor]]\nname = \"{name}\"\nlevels = [1, 2]\n");
        assert_eq!(
            with_factor(&factor),
            format!("s.toml, line 4, column 8: factor {name}: {name}: {expected}")
        );
    }
    for name in ["a", "A-b_c.9", &"x".repeat(80)] {
        let text = format!("name = \"{name}\"\nquestion = \"q?\"\n{FACTOR}{WORKLOAD}");
        assert_eq!(parse(&text, "s.toml", Backends::NONE).unwrap().name, name);
    }
}

#[test]
fn indistinguishable_or_incomparable_levels_are_refused() {
    let place = "s.toml, line 4, column 8: factor pages: ";
    for (levels, message) in [
        ("[]", "0 levels: expected two levels or more, the baseline first"),
        ("[1]", "1 level: expected two levels or more, the baseline first"),
        ("[1, 2, 1]", "level 1 twice: expected each level once"),
        ("[1, \"1\"]", "level 1 twice: expected each level once"),
        ("[\"\", \"a\"]", "a level without a name: expected a name for each level"),
        ("[{ name = \"\" }, \"a\"]", "a level without a name: expected a name for each level"),
        ("[true, { name = \"true\", set = {} }]", "level true twice: expected each level once"),
    ] {
        assert_eq!(with_levels(levels), format!("{place}{message}"), "{levels}");
    }
}

#[test]
fn a_scale_has_increasing_positive_numbers() {
    let place = "s.toml, line 4, column 8: factor pages: ";
    let expected = ": expected increasing positive numbers, for kind = \"scale\"";
    for (levels, found) in [
        ("[0, 1]", "0, 1"),
        ("[-1, 1]", "-1, 1"),
        ("[2, 1]", "2, 1"),
        ("[1, 2.5, 2]", "1, 2.5, 2"),
        ("[1, \"two\"]", "1, two"),
        ("[1, true]", "1, true"),
        ("[1, { name = \"big\", set = { pages = 2 } }]", "1, big"),
    ] {
        let factor = format!("[[factor]]\nname = \"pages\"\nkind = \"scale\"\nlevels = {levels}\n");
        assert_eq!(with_factor(&factor), format!("{place}{found}{expected}"), "{levels}");
    }
    let named = "[[factor]]\nname = \"pages\"\nkind = \"scale\"\n\
                 levels = [0.5, 1, { name = \"2\", set = { pages = 9 } }]\n";
    let study = parse(&format!("{HEAD}{named}{WORKLOAD}"), "s.toml", Backends::NONE).unwrap();
    let numbers: Vec<_> = study.factors[0].levels.iter().map(|level| level.number()).collect();
    assert_eq!(numbers, [Some(0.5), Some(1.0), Some(2.0)]);
}

#[test]
fn there_is_at_least_one_factor_and_no_setting_has_two() {
    assert_eq!(
        refused(&format!("factor = []\n{HEAD}{WORKLOAD}")),
        "s.toml, line 1, column 1: factor: none: expected at least one [[factor]]"
    );
    assert_eq!(
        with_factor(&format!("{FACTOR}{FACTOR}")),
        "s.toml, line 4, column 8: factor pages: twice: expected each factor once"
    );
    let other = "[[factor]]\nname = \"b\"\nlevels = [{ name = \"x\", set = { pages = 1 } }, 2]\n";
    assert_eq!(
        with_factor(&format!("{FACTOR}{other}")),
        "s.toml, line 7, column 8: factor b: pages, which factor pages sets too: \
         expected each setting in one factor"
    );
}

#[test]
fn at_most_256_combinations_of_levels_are_taken() {
    let factor = |name: &str, levels: usize| {
        let levels: Vec<String> = (1..=levels).map(|level| level.to_string()).collect();
        format!("[[factor]]\nname = \"{name}\"\nlevels = [{}]\n", levels.join(", "))
    };
    let most = format!("{HEAD}{}{}{WORKLOAD}", factor("a", 16), factor("b", 16));
    parse(&most, "s.toml", Backends::NONE).unwrap();
    let message = with_factor(&format!("{}{}", factor("a", 16), factor("b", 17)));
    let end = "factor: too many combinations: expected at most 256 of them";
    assert!(message.ends_with(end), "{message}");
    let many: String = (0..70).map(|at| factor(&format!("f{at}"), 2)).collect();
    assert!(with_factor(&many).ends_with(end), "more than a number can count");
}

#[test]
fn a_study_has_at_least_one_workload_each_with_a_name_and_existing_settings() {
    assert_eq!(
        refused(&format!("workload = []\n{HEAD}{FACTOR}")),
        "s.toml, line 1, column 1: workload: none: expected at least one [[workload]]"
    );
    assert_eq!(
        refused(&format!("{HEAD}{FACTOR}{WORKLOAD}{WORKLOAD}")),
        "s.toml, line 7, column 8: workload w: twice: expected a separate `name` for each"
    );
    let uses = |word: &str| {
        let workload = WORKLOAD.replace("[\"true\"]", &format!("[\"echo\", \"{word}\"]"));
        let read = parse(&format!("{HEAD}{FACTOR}{workload}"), "s.toml", Backends::NONE);
        read.map(drop).map_err(|error| error.to_string())
    };
    let expected = "expected a setting of every level of a factor";
    assert_eq!(
        uses("--x={cpus}").unwrap_err(),
        format!("s.toml, line 7, column 8: workload w: {{cpus}} in the command: {expected}")
    );
    for word in ["{pages}", "a{pages}b{pages}", "{scratch}/x", "${HOME} x", "{a b}", "{}", "{open"]
    {
        let found = uses(word);
        let is_shell = word == "${HOME} x";
        assert_eq!(found.is_err(), is_shell, "{word}: {found:?}");
    }
}

#[test]
fn a_setting_that_only_some_levels_have_cannot_be_used() {
    let factor = "[[factor]]\nname = \"p\"\nlevels = [{ name = \"a\", set = { k = 1 } }, \
                  { name = \"b\", set = { l = 1 } }]\n";
    let workload = WORKLOAD.replace("[\"true\"]", "[\"echo\", \"{k}\"]");
    let message = refused(&format!("{HEAD}{factor}{workload}"));
    assert_eq!(
        message,
        "s.toml, line 7, column 8: workload w: {k} in the command: expected a setting of every \
         level of a factor"
    );
}

#[test]
fn published_figures_are_of_a_metric_and_of_treatments_of_the_study() {
    let with = |metric: &str, values: &str| {
        let published =
            format!("[[published]]\nmetric = \"{metric}\"\nsource = \"a lab\"\nunit = \"s\"\n");
        format!("{HEAD}{FACTOR}{WORKLOAD}{published}values = {{ {values} }}\n")
    };
    parse(&with("w.t", "\"pages=4k\" = 2, \"pages=2m\" = 1.5"), "s.toml", Backends::NONE).unwrap();
    for (metric, values, message) in [
        (
            "w.u",
            "\"pages=4k\" = 2",
            "w.u: expected workload.metric, one of w.t; did you mean `w.t`?",
        ),
        (
            "w.t",
            "\"pages=4K\" = 2",
            "pages=4K: expected a treatment, one of pages=4k, pages=2m; did you mean `pages=4k`?",
        ),
        ("w.t", "\"pages=4k\" = 0", "0 for pages=4k: expected more than 0"),
    ] {
        let found = refused(&with(metric, values));
        assert_eq!(found, format!("s.toml, line 10, column 3: published: {message}"));
    }
}
