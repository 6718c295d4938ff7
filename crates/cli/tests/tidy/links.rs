//! Checks the links between documents, and that they form the book.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{read, root};

/// Returns every Markdown file of the project for readers, below the root.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for place in ["", "docs", "docs/examples", "docs/studies", "integrations", "python"] {
        found.extend(markdown_in(Path::new(place)));
    }
    for entry in fs::read_dir(root().join("crates")).expect("the crates are there") {
        found.extend(markdown_in(&Path::new("crates").join(entry.expect("readable").file_name())));
    }
    found.sort();
    found
}

fn markdown_in(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(place)).into_iter().flatten();
    let names = entries.map(|entry| PathBuf::from(entry.expect("readable").file_name()));
    let is_markdown = |name: &PathBuf| name.extension().is_some_and(|extension| extension == "md");
    names.filter(is_markdown).map(|name| place.join(name)).collect()
}

/// Returns the targets of a document's links outside code.
fn links(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2).flat_map(|part| part.split('`').step_by(2));
    let prose: String = prose.collect::<Vec<_>>().join(" ");
    let ends = prose.split("](").skip(1);
    ends.filter_map(|rest| rest.split_once(')')).map(|(link, _)| link.to_owned()).collect()
}

/// Returns the anchor of a heading, by GitHub's rules.
fn anchor(heading: &str) -> String {
    let letters = heading.trim_start_matches('#').trim().chars();
    let kept = letters.filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Prefix of links from the book, which has only `docs/`, to the project's other files.
const ELSEWHERE_IN_THE_PROJECT: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

/// Returns the file below the root that a document links to; `None` for other targets.
fn target(document: &Path, file: &str) -> Option<PathBuf> {
    if let Some(file) = file.strip_prefix(ELSEWHERE_IN_THE_PROJECT) {
        return Some(root().join(file));
    }
    let is_foreign = file.contains("://") || file.starts_with("mailto:");
    let beside = || match file {
        "" => root().join(document),
        file => root().join(document.parent().expect("below the root")).join(file),
    };
    (!is_foreign).then(beside)
}

#[test]
fn links_of_documents_lead_somewhere() {
    let book = root().join("docs").canonicalize().expect("the book is there");
    for document in documents() {
        let text = read(&root().join(&document));
        for link in links(&text) {
            let (file, wanted) = link.split_once('#').unwrap_or((&link, ""));
            let Some(target) = target(&document, file) else { continue };
            assert!(target.exists(), "{}: no such file: {link}", document.display());
            let leaves_the_book = document.starts_with("docs")
                && !file.contains("://")
                && !target.canonicalize().is_ok_and(|target| target.starts_with(&book));
            assert!(!leaves_the_book, "{}: outside the book: {link}", document.display());
            let has = || {
                read(&target).lines().any(|line| line.starts_with('#') && anchor(line) == wanted)
            };
            assert!(wanted.is_empty() || has(), "{}: no such heading: {link}", document.display());
        }
    }
}

#[test]
fn every_page_of_docs_is_in_the_books_summary() {
    let summary = read(&root().join("docs/SUMMARY.md"));
    let listed: BTreeSet<PathBuf> =
        links(&summary).iter().map(|link| Path::new("docs").join(link)).collect();
    let pages = documents().into_iter().filter(|page| page.starts_with("docs"));
    let pages: BTreeSet<PathBuf> = pages.filter(|page| !page.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed, pages);
}
