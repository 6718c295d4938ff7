//! Checks that idioms which the glossary of CONTRIBUTING.md replaces do not come back.

use std::path::Path;

use super::{read, root, sources};

/// Phrases to replace, in lower case, each with its replacement; a dot stands for any mark that
/// ends a phrase, so that "of its own node" is allowed.
const IDIOMS: [(&str, &str); 27] = [
    ("so many", "this number, several"),
    ("as many as", "up to, the same number"),
    ("nobody", "no one, none, or name who"),
    ("anybody", "anyone, or name who"),
    ("is told", "gets, knows"),
    ("are told", "get, know"),
    ("was told", "got, knew"),
    ("were told", "got, knew"),
    ("be told", "get, know"),
    ("tells of", "reports, shows"),
    ("tell of", "report, show"),
    ("befall", "happen to"),
    ("befalls", "happens to"),
    ("befell", "happened to"),
    ("of its own .", "separate"),
    ("of their own .", "separate"),
    ("heed", "respect, follow"),
    ("heeds", "respects, follows"),
    ("heeded", "respected, followed"),
    ("dear", "expensive"),
    ("dearer", "more expensive"),
    ("borne", "carried, tolerated"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("hands out", "returns"),
    ("handed out", "returned"),
    ("lies on", "is on"),
];

/// Words that open a noun clause where a doc comment begins with a verb.
const OPENINGS: [&str; 6] = ["What", "Whether", "Where", "How", "Why", "Which"];

/// Crates that are clean; a crate gets its line when its last idiom is gone.
const CLEAN: [&str; 28] = [
    "acpi",
    "advise",
    "cli",
    "emulator",
    "explore",
    "fleet",
    "formats",
    "frames",
    "guest",
    "guest-agent",
    "host",
    "image",
    "kernel",
    "knobs",
    "launch",
    "measure",
    "marks",
    "membench",
    "memory-model",
    "page",
    "places",
    "profile",
    "record",
    "results",
    "stats",
    "study",
    "topology",
    "workload",
];

/// Documents that are clean.
const DOCUMENTS: [&str; 20] = [
    "README.md",
    "ARCHITECTURE.md",
    "BENCHMARKS.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/admin.md",
    "docs/belief.md",
    "docs/commands.md",
    "docs/descriptions.md",
    "docs/hypervisors.md",
    "docs/kernels.md",
    "docs/laptop.md",
    "docs/memory-models.md",
    "docs/metrics.md",
    "docs/program.md",
    "docs/start.md",
    "docs/statistics.md",
    "docs/studies.md",
    "docs/tiering.md",
];

/// Returns the text in lower case with one space between words, and a dot for marks that end a phrase.
fn words(text: &str) -> String {
    let text = text.replace([',', ';', ':', '.', ')'], " . ");
    let parts = text.split(|c: char| !c.is_alphanumeric() && !"'_.".contains(c));
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    format!(" {} ", parts.join(" ").to_lowercase())
}

/// Returns what the text has of the idioms, with the replacement.
fn idioms(text: &str) -> Vec<String> {
    let words = words(text);
    let found = IDIOMS.iter().filter(|(idiom, _)| words.contains(&format!(" {idiom} ")));
    found.map(|(idiom, instead)| format!("`{idiom}`, better: {instead}")).collect()
}

/// Returns what each comment of a source has of the idioms, with the number of its first line.
fn of_comments(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut comment: Option<(usize, String)> = None;
    for (index, line) in source.lines().map(Some).chain([None]).enumerate() {
        let text = line.map(str::trim_start).filter(|line| line.starts_with("//"));
        match (text, &mut comment) {
            (Some(text), Some((_, whole))) => {
                whole.push(' ');
                whole.push_str(text.trim_start_matches(['/', '!']));
            }
            (Some(text), None) => {
                let body = text.trim_start_matches(['/', '!']).trim_start();
                let is_doc = text.starts_with("///") || text.starts_with("//!");
                let opening = OPENINGS.iter().find(|word| body.split(' ').next() == Some(**word));
                if let (true, Some(word)) = (is_doc, opening) {
                    found.push((index + 1, format!("begins with `{word}`, better: a verb")));
                }
                comment = Some((index + 1, body.to_owned()));
            }
            (None, Some((line, whole))) => {
                found.extend(idioms(whole).into_iter().map(|idiom| (*line, idiom)));
                comment = None;
            }
            (None, None) => {}
        }
    }
    found
}

fn in_sources(name: &str) -> Vec<String> {
    let files = sources(&root().join("crates").join(name)).into_iter();
    let of_file = |path: &Path| {
        of_comments(&read(path))
            .into_iter()
            .map(|(line, idiom)| format!("{}:{line}: {idiom}", path.display()))
            .collect::<Vec<_>>()
    };
    files.flat_map(|path| of_file(&path)).collect()
}

#[test]
fn idioms_of_the_glossary_stay_away_from_comments() {
    let found: Vec<_> = CLEAN.iter().flat_map(|name| in_sources(name)).collect();
    assert!(found.is_empty(), "{} (CONTRIBUTING.md, Glossary):\n{}", found.len(), found.join("\n"));
}

#[test]
fn idioms_of_the_glossary_stay_away_from_documents() {
    for name in DOCUMENTS {
        let text = read(&root().join(name));
        // The glossary itself contains them.
        let prose = text.lines().filter(|line| !line.starts_with('|'));
        let mut fenced = false;
        let prose = prose.filter(|line| {
            fenced ^= line.starts_with("```");
            !fenced
        });
        let found = idioms(&prose.collect::<Vec<_>>().join(" "));
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

#[test]
fn finds_idioms_across_lines_and_openings_of_doc_comments() {
    let source = "/// What it has of\n/// its own.\nfn f() {}\n// Where.\nlet is_told = 1;\n";
    let found: Vec<_> = of_comments(source).into_iter().map(|(line, _)| line).collect();
    assert_eq!(found, [1, 1]);
    assert!(idioms("a cpu of its own node, `mends_it`, borneo").is_empty());
    assert_eq!(idioms("Nobody.").len(), 1);
}
