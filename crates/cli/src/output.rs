//! Formats and prints results.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::ValueEnum;
use numalab_host::files::{remove_drafts_of, write_atomically};
use numalab_host::{UtcTime, host_name, note, print_error, visible};
use numalab_page::{Format, Page, Private, Source, Style};
use numalab_places::BACKENDS;
use numalab_record::Taken;
use numalab_record::file;
use numalab_record::shell::quoted;
use numalab_results::{Report, TakenReport};

use crate::failure::{Code, Failure};

/// The standard stream that a result goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Output,
    /// Standard error, apart from the output of a program.
    Error,
}

impl Stream {
    /// Prints `text`; a closed pipe is not an error.
    pub fn print(self, text: &str) -> Result<(), Failure> {
        match self {
            Self::Output => print(text),
            Self::Error => {
                print_error(text);
                Ok(())
            }
        }
    }

    /// Returns colours for a terminal that has them, unless `NO_COLOR` is set
    /// (<https://no-color.org>).
    pub fn style(self) -> Style {
        let variable = |name| std::env::var_os(name).unwrap_or_default();
        let is_terminal = match self {
            Self::Output => io::stdout().is_terminal(),
            Self::Error => io::stderr().is_terminal(),
        };
        let wanted = wants_colours(&variable("NO_COLOR"), &variable("TERM"));
        if wanted && is_terminal { Style::Colour } else { Style::Plain }
    }
}

/// Prints `text`; a closed pipe is not an error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(visible(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(Code::Failed, format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

fn wants_colours(no_color: &OsStr, term: &OsStr) -> bool {
    no_color.is_empty() && term != "dumb"
}

/// The choice of `--redact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Redact {
    /// Replace them by hashes
    Yes,
    /// Show them
    No,
}

/// The value of `--redact`, for every page of this process.
static REDACT: OnceLock<Redact> = OnceLock::new();

/// Stores the value of `--redact`.
pub(crate) fn set_redact(said: Option<Redact>) {
    if let Some(said) = said {
        let _ = REDACT.set(said);
    }
}

/// Set if `--quiet` is given.
static QUIET: OnceLock<()> = OnceLock::new();

/// Turns progress and hints off.
pub(crate) fn set_quiet() {
    let _ = QUIET.set(());
}

/// Returns true if only the result is wanted, without progress and hints.
pub(crate) fn quiet() -> bool {
    QUIET.get().is_some()
}

/// Prints a hint on standard error, unless quiet.
pub(crate) fn hint(text: impl Display) {
    if !quiet() {
        note(text);
    }
}

/// Returns the page for a file that may be shared: redacted unless the user asks otherwise.
pub(crate) fn shared_page(report: &dyn Report) -> Page {
    match REDACT.get() {
        Some(Redact::No) => report.page(),
        Some(Redact::Yes) | None => {
            let mut page = report.page();
            page.private.retain(|private| !is_shipped(&private.text));
            page.private.extend(user());
            page.redacted()
        }
    }
}

/// Returns true for the content of a bundled study, which is not a secret.
fn is_shipped(text: &str) -> bool {
    static SHIPPED: OnceLock<BTreeSet<String>> = OnceLock::new();
    SHIPPED.get_or_init(|| numalab_study::bundled_words(BACKENDS)).contains(text)
}

/// Returns the name of the user, unless it is root, which every machine has.
fn user() -> Option<Private> {
    let name = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    let text = name.filter(|name| name != "root")?;
    Some(Private { what: "user", text })
}

/// Renders a result in this format, text in this style; every command's results pass through here.
pub(crate) fn render(report: &dyn Report, format: Format, style: Style) -> Result<String, Failure> {
    let text = match format.source() {
        Source::Terminal if REDACT.get() == Some(&Redact::Yes) => {
            Some(shared_page(report).terminal(style))
        }
        Source::Terminal => Some(report.terminal(style)),
        Source::Document => Some(json_line(report.json())?),
        Source::Page(render) => Some(render(&shared_page(report))),
        Source::Rows(_) | Source::Program => report.exported(format),
    };
    text.ok_or_else(|| {
        let name = format.name();
        let why = match format.source() {
            Source::Program => "is not a program's memory",
            _ => "has no figures for it",
        };
        let csv = if report.rows().is_some() { "csv, " } else { "" };
        let expected = format!("expected text, json, {csv}md or html");
        Failure::bad_input(format!("--format {name}: this result {why}: {expected}"))
    })
}

/// Writes the pages of a result into its directory: `report.md` and `report.html`.
pub(crate) fn write_pages(report: &dyn Report, directory: &Path) -> Result<[PathBuf; 2], Failure> {
    let page = shared_page(report);
    let written = [directory.join(file::REPORT_MARKDOWN), directory.join(file::REPORT_HTML)];
    for (path, text) in written.iter().zip([page.markdown(), page.html()]) {
        save(path, &text)?;
    }
    Ok(written)
}

/// Prints a kept result in this format; without one, writes its files again and prints their names.
pub(crate) fn show_again<const N: usize>(
    report: &dyn Report,
    format: Option<Format>,
    write: impl FnOnce() -> Result<[PathBuf; N], Failure>,
) -> Result<(), Failure> {
    match format {
        Some(format) => show(report, format),
        None => print(&write()?.map(|path| format!("{}\n", path.display())).concat()),
    }
}

/// Writes a file completely or not at all.
pub(crate) fn save(file: &Path, text: &str) -> Result<(), Failure> {
    // A killed command may have left one.
    remove_drafts_of(file);
    write_atomically(file, text).map_err(|error| {
        let advice = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                "; free some space, then run it again"
            }
            _ => "",
        };
        Failure::at(file, format!("{error}{advice}"))
    })
}

/// Returns the origin of a result of this process.
pub(crate) fn taken() -> Taken {
    Taken {
        version: env!("NUMALAB_VERSION").to_owned(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        unix_ms: UtcTime::now().unix_ms,
        hostname: host_name(),
    }
}

/// Prints a new result with its origin, in this format.
pub(crate) fn show_taken(report: &dyn Report, format: Format) -> Result<(), Failure> {
    show(&TakenReport { taken: &taken(), report }, format)
}

/// Prints a result in this format.
pub(crate) fn show(report: &dyn Report, format: Format) -> Result<(), Failure> {
    print(&render(report, format, Stream::Output.style())?)
}

/// Returns JSON with a trailing newline.
pub(crate) fn json_line(json: Result<String, serde_json::Error>) -> Result<String, Failure> {
    let mut text = json.map_err(|error| Failure::new(Code::Failed, error))?;
    text.push('\n');
    Ok(text)
}

/// Formats a command line for a shell, with an option and its values on each line.
pub(crate) fn shell_lines(words: &[String]) -> String {
    let mut text = String::new();
    for word in words {
        if !text.is_empty() {
            text.push_str(if word.starts_with('-') { " \\\n  " } else { " " });
        }
        text.push_str(&quoted(word));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_no_color_nor_a_dumb_terminal_gets_colours() {
        let wanted = |no_color: &str, term: &str| wants_colours(no_color.as_ref(), term.as_ref());
        assert!(wanted("", "xterm-256color") && wanted("", ""));
        assert!(!wanted("1", "xterm-256color") && !wanted("", "dumb"));
    }

    #[test]
    fn a_command_line_is_ready_for_a_shell() {
        let words = ["/usr/bin/qemu", "-m", "1G", "-append", "a b=it's", "-S"].map(str::to_owned);
        let lines = "/usr/bin/qemu \\\n  -m 1G \\\n  -append 'a b=it'\\''s' \\\n  -S\n";
        assert_eq!(shell_lines(&words), lines);
    }
}
