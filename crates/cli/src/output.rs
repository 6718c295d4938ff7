//! Formats and prints results.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::ValueEnum;
use numalab_host::files::write_atomically;
use numalab_host::visible;
use numalab_page::{Page, Private, Style};
use numalab_places::BACKENDS;
use numalab_record::file;
use numalab_record::shell::quoted;
use numalab_results::Report;

use crate::failure::{Code, Failure};

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

/// Returns colours for a terminal, unless `NO_COLOR` is set (<https://no-color.org>).
pub(crate) fn style() -> Style {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted && io::stdout().is_terminal() { Style::Colour } else { Style::Plain }
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

/// Returns true if a text is that of a bundled study, which is not a secret.
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

/// Formats of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for a terminal
    Text,
    /// All results, with every raw sample
    Json,
    /// A row per measurement
    Csv,
    /// Markdown
    Md,
    /// One self-contained page
    Html,
    /// Gauges for Prometheus, in the OpenMetrics text format
    #[value(name = "openmetrics")]
    OpenMetrics,
    /// Cost of a program's memory by function, for KCachegrind (emulate and profile)
    Callgrind,
}

/// Renders a result in this format: the only place where results get one.
pub(crate) fn render(report: &dyn Report, format: Format) -> Result<String, Failure> {
    Ok(match format {
        Format::Text if REDACT.get() == Some(&Redact::Yes) => shared_page(report).terminal(style()),
        Format::Text => report.terminal(style()),
        Format::Md => shared_page(report).markdown(),
        Format::Html => shared_page(report).html(),
        Format::Csv => report.csv().ok_or_else(no_table)?,
        Format::Json => json_line(report.json())?,
        Format::OpenMetrics => {
            report.rows().and_then(|rows| rows.openmetrics()).ok_or_else(no_gauges)?
        }
        Format::Callgrind => report.callgrind().ok_or_else(no_functions)?,
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

/// Prints the names of files, one per line.
pub(crate) fn print_paths<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Failure> {
    let line = |path: &PathBuf| format!("{}\n", path.display());
    print(&paths.into_iter().map(line).collect::<String>())
}

/// Refuses CSV for a result without figures.
fn no_table() -> Failure {
    Failure::bad_input("--format csv: this result is not a table: expected text, json, md or html")
}

/// Refuses OpenMetrics for a result without values.
fn no_gauges() -> Failure {
    Failure::bad_input(
        "--format openmetrics: this result has no figures: expected text, json, csv, md or html",
    )
}

/// Refuses callgrind for a result that is not about a program.
fn no_functions() -> Failure {
    Failure::bad_input(
        "--format callgrind: this result is not a program's memory: expected text, json, csv, md or \
         html",
    )
}

/// Writes a program's figures to a file: as JSON unless another format is given.
pub(crate) fn keep(report: &dyn Report, format: Format, file: &Path) -> Result<(), Failure> {
    let format = if format == Format::Text { Format::Json } else { format };
    save(file, &render(report, format)?)
}

/// Writes a file completely or not at all.
pub(crate) fn save(file: &Path, text: &str) -> Result<(), Failure> {
    write_atomically(file, text).map_err(|error| Failure::at(file, error))
}

/// Prints a result in this format.
pub(crate) fn show(report: &dyn Report, format: Format) -> Result<(), Failure> {
    print(&render(report, format)?)
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
    fn a_command_line_is_ready_for_a_shell() {
        let words = ["/usr/bin/qemu", "-m", "1G", "-append", "a b=it's", "-S"].map(str::to_owned);
        let lines = "/usr/bin/qemu \\\n  -m 1G \\\n  -append 'a b=it'\\''s' \\\n  -S\n";
        assert_eq!(shell_lines(&words), lines);
    }
}
