//! Extracts the commands shown in the README, docs and `--help`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command that a reader may type.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The file and line of the command.
    pub place: String,
    /// The command as written, on one line.
    pub line: String,
    /// The lines shown below it as its output; `...` for omitted ones.
    pub output: Vec<String>,
    /// True if the command is within a sentence, where a command's name may stand for the command.
    pub in_sentence: bool,
}

impl Shown {
    fn new(place: &str, line: String, in_sentence: bool) -> Self {
        Self { place: place.to_owned(), line, output: Vec::new(), in_sentence }
    }
}

/// Returns the commands in the project's documents: in code blocks and within sentences.
pub fn in_documents() -> Vec<Shown> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = ["README.md", "BENCHMARKS.md", "ARCHITECTURE.md", "integrations/README.md"]
        .map(PathBuf::from)
        .to_vec();
    files.extend(["crates/kernel/README.md", "crates/emulator/README.md"].map(PathBuf::from));
    let pages = fs::read_dir(root.join("docs")).expect("the documents are there");
    let pages = pages.map(|page| Path::new("docs").join(page.expect("readable").file_name()));
    files.extend(pages.filter(|page| page.extension().is_some_and(|extension| extension == "md")));
    // Pages run in order: the commands of one may read files made by another's.
    files.sort();
    let read = |file: &PathBuf| {
        let text = fs::read_to_string(root.join(file)).expect("a document");
        in_markdown(&file.to_string_lossy(), &text)
    };
    files.iter().flat_map(read).collect()
}

fn in_markdown(place: &str, text: &str) -> Vec<Shown> {
    let mut found = Vec::new();
    for (index, part) in text.split("```").enumerate() {
        match index % 2 {
            1 => found.extend(in_block(place, part)),
            _ => found.extend(part.split("\n\n").flat_map(|part| in_sentences(place, part))),
        }
    }
    found
}

/// Returns the commands in a block. In a block with prompts, lines without one are output;
/// otherwise every line that begins with numalab is a command.
fn in_block(place: &str, block: &str) -> Vec<Shown> {
    let prompts = block.lines().any(|line| line.starts_with("$ "));
    let prefix = if prompts { "$ " } else { "numalab " };
    let mut found: Vec<Shown> = Vec::new();
    let mut lines = block.lines();
    while let Some(line) = lines.next() {
        if !line.starts_with(prefix) {
            if let Some(last) = found.last_mut().filter(|_| prompts) {
                last.output.push(line.to_owned());
            }
            continue;
        }
        let mut typed = line.strip_prefix("$ ").unwrap_or(line).to_owned();
        while let Some(begun) = typed.strip_suffix('\\') {
            typed = format!("{}{}", begun, lines.next().unwrap_or_default().trim_start());
        }
        let line = without_comment(&typed);
        found.push(Shown::new(place, line, false));
    }
    found
}

/// Finds `numalab ...` between backticks.
fn in_sentences(place: &str, text: &str) -> Vec<Shown> {
    let code = text.split('`').enumerate().filter(|(index, _)| index % 2 == 1);
    code.map(|(_, code)| code.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|code| code.starts_with("numalab "))
        .flat_map(|line| alternatives(&line))
        .map(|line| Shown::new(place, line.replace(" ...", "").replace("...", ""), true))
        .collect()
}

/// Expands `numalab knobs list\|run` to two commands.
fn alternatives(line: &str) -> Vec<String> {
    let (before, after) = line.split_once("\\|").unwrap_or((line, ""));
    let (command, first) = before.rsplit_once(' ').unwrap_or(("", before));
    if after.is_empty() {
        return vec![line.to_owned()];
    }
    [first].into_iter().chain(after.split("\\|")).map(|word| format!("{command} {word}")).collect()
}

/// Returns the examples in every command's `--help`.
pub fn in_help() -> Vec<Shown> {
    let mut found = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(command) = open.pop() {
        let help = help(&command);
        let place = format!(
            "numalab {}--help",
            command.iter().map(|w| format!("{w} ")).collect::<String>()
        );
        found.extend(in_examples(&place, &help));
        let below = help.split("\nCommands:\n").nth(1).unwrap_or_default();
        for line in below.lines().take_while(|line| !line.is_empty()) {
            let name = line.strip_prefix("  ").filter(|line| !line.starts_with(' '));
            let name = name.and_then(|line| line.split(' ').next()).filter(|name| *name != "help");
            open.extend(name.map(|name| [command.clone(), vec![name.to_owned()]].concat()));
        }
    }
    found
}

fn help(command: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_numalab")).args(command).arg("--help").output();
    String::from_utf8(output.expect("numalab starts").stdout).expect("UTF-8")
}

/// Takes lines after `Examples:` that are indented by two; deeper ones are comments or
/// continuations.
fn in_examples(place: &str, help: &str) -> Vec<Shown> {
    let begins = |line: &&str| !["Examples:", "Example:", "Start here:"].contains(line);
    let mut found: Vec<Shown> = Vec::new();
    let mut goes_on = false;
    for line in help.lines().skip_while(begins).skip(1).take_while(|line| !line.is_empty()) {
        let line = line.strip_prefix("  ").unwrap_or(line);
        if goes_on {
            let last = found.last_mut().expect("a line before");
            let begun = last.line.trim_end_matches('\\').trim_end();
            last.line = format!("{begun} {}", without_comment(line.trim_start()));
        } else if !line.starts_with(' ') {
            let line = without_comment(line);
            found.push(Shown::new(place, line, false));
        }
        goes_on = line.ends_with('\\')
            || found.last().is_some_and(|last| last.line.matches('\'').count() % 2 == 1);
    }
    found
}

/// Returns the text before two spaces, which separate a command from remarks.
fn without_comment(line: &str) -> String {
    let line = line.split("  #").next().unwrap_or_default();
    line.split("   ").next().unwrap_or_default().trim_end().to_owned()
}
