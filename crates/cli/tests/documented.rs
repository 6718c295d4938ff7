//! Runs every command shown in the README, docs and `--help`, as written.

#[path = "documented/extract.rs"]
mod extract;
#[path = "documented/rules.rs"]
mod rules;
#[path = "documented/sandbox.rs"]
mod sandbox;

use std::collections::BTreeSet;
use std::process::Output;

use extract::Shown;
use rules::{AS_SHOWN, Handling, RULES, Rule};
use sandbox::Sandbox;

/// Launchers, which are left out: their own tests run them.
const LAUNCHERS: [&str; 2] = ["srun ", "mpirun "];

/// Placeholders for the reader's own values, each with a stand-in.
const PLACEHOLDERS: [(&str, &str); 9] = [
    ("<time>", "20261121-024500"),
    (" NEW --baseline OLD", " results/new --baseline results/good"),
    ("--baseline DIR", "--baseline results/good"),
    (" DIR", " results/mine-1"),
    (" A B", " results/A results/B"),
    (" NAME", " noise"),
    (" COMMAND", " true"),
    ("HOST:PORT", "localhost:4444"),
    (" report results/mine-1", " report results/measure-20261121-024500"),
];

/// Returns true for a name that stands for all commands of its kind, as `numalab guest run` does in
/// a sentence, or `numalab guest run --emulate-latency` for one of its options.
fn is_name(shown: &Shown) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'2' || byte == b'-';
    shown.in_sentence && shown.line.split(' ').all(|word| word.bytes().all(letter))
}

/// Returns true if there is such a command with such an option.
fn is_known(sandbox: &Sandbox, name: &str) -> bool {
    let (command, options) = name.split_once(" --").unwrap_or((name, ""));
    let output = sandbox.run(&format!("{command} --help"));
    let help = String::from_utf8_lossy(&output.stdout);
    let known = |option: &str| help.contains(&format!("--{option}"));
    output.status.success() && options.split(" --").all(known)
}

fn rule_of(command: &str) -> Option<&'static Rule> {
    let fits = RULES.iter().filter(|rule| command.starts_with(rule.begins));
    fits.max_by_key(|rule| rule.begins.len())
}

/// Returns numalab's part of a line, after a launcher or another command.
fn command_of(line: &str) -> &str {
    let launched = LAUNCHERS.iter().any(|launcher| line.starts_with(launcher));
    if launched { line.find("numalab ").map_or(line, |at| &line[at..]) } else { line }
}

/// Returns the command as a dry run, with the option before the program that it runs, a redirection
/// or a pipe.
fn planned(command: &str) -> String {
    if command.contains(" --dry-run") {
        return command.to_owned();
    }
    let ends = [" -- ", " > ", " | "].into_iter().filter_map(|end| command.find(end)).min();
    let (first, rest) = command.split_at(ends.unwrap_or(command.len()));
    format!("{first} --dry-run{rest}")
}

/// Returns the first of `words` that is not in `text` after those before it.
fn missing<'a>(text: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut rest = text;
    for word in words {
        match rest.find(word) {
            Some(at) => rest = &rest[at + word.len()..],
            None => return Some(word),
        }
    }
    None
}

/// Replaces numbers by `#` and joins spaces, to compare the output of two runs.
fn alike(text: &str) -> String {
    let mut words = String::new();
    for letter in text.chars() {
        match letter {
            '0'..='9' if words.ends_with('#') => {}
            '0'..='9' => words.push('#'),
            letter if letter.is_whitespace() && words.ends_with(' ') => {}
            letter if letter.is_whitespace() => words.push(' '),
            letter => words.push(letter),
        }
    }
    words
}

/// Returns the fault in the output of a command that followed its rule.
fn fault(shown: &Shown, rule: &Rule, output: &Output) -> Option<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let message = String::from_utf8_lossy(&output.stderr);
    match (output.status.code(), rule.handling) {
        (Some(0), _) => {}
        (Some(2..=4 | 7 | 125), Handling::Needs(words) | Handling::May(words))
            if message.contains(words) =>
        {
            return None;
        }
        (code, _) => return Some(format!("ended with {code:?}: {message}{text}")),
    }
    let absent = match rule.shows {
        [AS_SHOWN] => {
            let lines = shown.output.iter().map(|line| alike(line));
            let lines: Vec<String> = lines.filter(|line| !line.trim().is_empty()).collect();
            let text = alike(&text);
            let parts = lines.iter().flat_map(|line| line.split("...")).map(str::trim);
            missing(&text, parts).map(str::to_owned)
        }
        words => missing(&text, words.iter().copied()).map(str::to_owned),
    };
    absent.map(|absent| format!("no `{absent}` in its turn in: {text}{message}"))
}

#[test]
fn every_documented_command_prints_the_documented_output() {
    let sandbox = Sandbox::new();
    let (mut faults, mut used, mut run) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let all = extract::in_documents().into_iter().chain(extract::in_help());
    for shown in all.filter(|shown| run.insert((shown.line.clone(), is_name(shown)))) {
        let fill = |line: String, (word, value): &(&str, &str)| line.replace(word, value);
        let command = PLACEHOLDERS.iter().fold(command_of(&shown.line).to_owned(), fill);
        let command = command.as_str();
        if is_name(&shown) {
            if !is_known(&sandbox, command) {
                faults.push(format!("{}: `{command}` is no command", shown.place));
            }
            continue;
        }
        let Some(rule) = rule_of(command) else {
            faults.push(format!("{}: no rule for `{}`", shown.place, shown.line));
            continue;
        };
        used.insert(rule.begins);
        let line = match rule.handling {
            Handling::Never(_) => continue,
            Handling::Runs | Handling::May(_) => command.to_owned(),
            Handling::Plans | Handling::Needs(_) => planned(command),
        };
        let output = sandbox.run(&line);
        faults
            .extend(fault(&shown, rule, &output).map(|f| format!("{}: `{line}` {f}", shown.place)));
    }
    let unused = RULES.iter().filter(|rule| !used.contains(rule.begins));
    faults.extend(unused.map(|rule| format!("the rule for `{}` is for nothing", rule.begins)));
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n\n"));
    assert!(run.len() > 150, "only {} commands were found", run.len());
}

#[test]
fn few_documented_commands_are_never_run_and_each_for_a_reason() {
    let never: Vec<_> = RULES
        .iter()
        .filter_map(|rule| match rule.handling {
            Handling::Never(reason) => Some((rule.begins, reason)),
            _ => None,
        })
        .collect();
    assert!(never.len() <= 12, "{} commands are never run", never.len());
    assert!(never.iter().all(|(_, reason)| reason.len() > 20), "{never:?}");
}
