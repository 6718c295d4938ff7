//! `numalab man`.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use super::Cli;
use crate::failure::{EXIT_STATUS, Failure};

/// Date of the last change to the pages' contents.
const DATE: &str = "2026-11-30";
/// Longest line of a page's source.
const WIDTH: usize = 79;

/// Writes a manual page for the command and for each subcommand.
pub(crate) fn run(directory: &Path) -> Result<(), Failure> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    fs::create_dir_all(directory)
        .and_then(|()| write_pages(&command, directory))
        .map_err(|error| Failure::at(directory, error))
}

fn write_pages(command: &Command, directory: &Path) -> io::Result<()> {
    let mut shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.try_for_each(|command| write_pages(command, directory))?;
    let name = command.get_display_name().unwrap_or(command.get_name());
    fs::write(directory.join(format!("{name}.1")), page(command, name)?)
}

fn page(command: &Command, name: &str) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .section("1")
        .date(DATE)
        .source(concat!("numalab ", env!("CARGO_PKG_VERSION")))
        .manual("numalab manual");
    let mut roff = Vec::new();
    man.render_title(&mut roff)?;
    man.render_name_section(&mut roff)?;
    roff.extend(synopsis(&man, command)?.bytes());
    man.render_description_section(&mut roff)?;
    if command.get_arguments().next().is_some() {
        man.render_options_section(&mut roff)?;
    }
    if command.get_subcommands().next().is_some() {
        man.render_subcommands_section(&mut roff)?;
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    after_help(&mut roff, &after)?;
    exit_status(&mut roff)?;
    Ok(tidied(&String::from_utf8_lossy(&roff)).into_bytes())
}

/// Returns clap's synopsis with the `--` that it omits before a command.
fn synopsis(man: &Man, command: &Command) -> io::Result<String> {
    let mut roff = Vec::new();
    man.render_synopsis_section(&mut roff)?;
    let roff = String::from_utf8_lossy(&roff).into_owned();
    let Some(last) = command.get_positionals().find(|argument| argument.is_last_set()) else {
        return Ok(roff);
    };
    let name = last.get_value_names().unwrap_or_default().join(" ");
    let (shown, separated) = (format!("\\fI{name}\\fR"), format!("\\-\\- \\fI{name}\\fR..."));
    let required = roff.replace(&format!("<{shown}>"), &separated);
    let optional = required.replace(&format!("[{shown}]"), &format!("[{separated}]"));
    Ok(optional.replace(&format!("|{shown}>"), &format!("|{separated}>")))
}

/// Removes from clap's page what mandoc warns about: trailing spaces, breaks next to empty lines,
/// and long lines, which are folded where text is filled anyway.
fn tidied(roff: &str) -> String {
    let lines: Vec<&str> = roff.lines().map(str::trim_end).collect();
    let is_empty =
        |at: Option<usize>| at.and_then(|at| lines.get(at)).is_some_and(|l| l.is_empty());
    let mut filled = true;
    let mut page = String::new();
    for (at, line) in lines.iter().enumerate() {
        filled = if *line == ".nf" { false } else { filled || *line == ".fi" };
        let needless = *line == ".br" && (is_empty(at.checked_sub(1)) || is_empty(Some(at + 1)));
        match (needless, filled && !line.starts_with('.')) {
            (true, _) => continue,
            (_, true) => page.push_str(&folded(line)),
            (_, false) => page.push_str(line),
        }
        page.push('\n');
    }
    page
}

fn folded(line: &str) -> String {
    let mut text = String::new();
    let mut width = 0;
    for word in line.split(' ') {
        let fits = width + 1 + word.len() <= WIDTH;
        // A word that roff would read as a request must not begin a line.
        if width > 0 {
            let breaks = !fits && !word.starts_with(['.', '\'']) && !word.is_empty();
            text.push(if breaks { '\n' } else { ' ' });
            width = if breaks { 0 } else { width + 1 };
        }
        text.push_str(word);
        width += word.len();
    }
    text
}

/// Writes the text below the options of `--help`: blocks of indented lines keep their lines under
/// their heading, other text is filled.
fn after_help(roff: &mut Vec<u8>, text: &str) -> io::Result<()> {
    let (blocks, prose): (Vec<&str>, Vec<&str>) =
        text.split("\n\n").filter(|part| !part.is_empty()).partition(|part| is_block(part));
    for block in blocks {
        let (heading, lines) = block.split_once('\n').unwrap_or((block, ""));
        if heading == "Exit codes:" {
            continue;
        }
        let heading = heading.trim_end_matches(':').to_uppercase();
        let heading = if heading == "EXAMPLE" { "EXAMPLES".to_owned() } else { heading };
        writeln!(roff, ".SH {heading}\n.nf\n{}\n.fi", escaped(lines))?;
    }
    for (position, paragraph) in prose.iter().enumerate() {
        let macro_before = if position == 0 { ".SH NOTES" } else { ".PP" };
        writeln!(roff, "{macro_before}\n{}", escaped(paragraph))?;
    }
    Ok(())
}

/// Returns true if a part of the help is a heading followed by indented lines.
fn is_block(part: &str) -> bool {
    let (heading, lines) = part.split_once('\n').unwrap_or((part, ""));
    heading.ends_with(':') && lines.starts_with("  ")
}

fn exit_status(roff: &mut Vec<u8>) -> io::Result<()> {
    writeln!(roff, ".SH \"EXIT STATUS\"")?;
    EXIT_STATUS
        .iter()
        .try_for_each(|(code, meaning)| writeln!(roff, ".TP\n\\fB{code}\\fR\n{}", escaped(meaning)))
}

/// Escapes text so that roff finds no requests in it.
fn escaped(text: &str) -> String {
    let line = |line: &str| {
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        format!("{guard}{}", line.replace('\\', "\\e").replace('-', "\\-"))
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}
