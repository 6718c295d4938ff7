//! The formats of results, and printing them.

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

/// Prints `text`; a reader that went away early is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(visible(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(Code::Failed, format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Colour on a terminal, unless `NO_COLOR` is set (<https://no-color.org>).
pub(crate) fn style() -> Style {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted && io::stdout().is_terminal() { Style::Colour } else { Style::Plain }
}

/// Whether pages are made to be sent to anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Redact {
    /// A hash stands for what is left out
    Yes,
    /// Everything is shown
    No,
}

/// What `--redact` said, for every page of this process.
static REDACT: OnceLock<Redact> = OnceLock::new();

/// Keeps what `--redact` says.
pub(crate) fn set_redact(said: Option<Redact>) {
    if let Some(said) = said {
        let _ = REDACT.set(said);
    }
}

/// What `--quiet` said.
static QUIET: OnceLock<()> = OnceLock::new();

/// Leaves progress and hints out from now on.
pub(crate) fn set_quiet() {
    let _ = QUIET.set(());
}

/// Returns true if the result alone is wanted, without progress and hints.
pub(crate) fn quiet() -> bool {
    QUIET.get().is_some()
}

/// The page for a file that may be sent to somebody: redacted unless the user says otherwise.
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

/// Whether a text is of a study that comes with numalab: everybody has it.
fn is_shipped(text: &str) -> bool {
    static SHIPPED: OnceLock<BTreeSet<String>> = OnceLock::new();
    SHIPPED.get_or_init(|| numalab_study::bundled_words(BACKENDS)).contains(text)
}

/// Who runs this, unless it is the one whom every machine has.
fn user() -> Option<Private> {
    let name = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    let text = name.filter(|name| name != "root")?;
    Some(Private { what: "user", text })
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for a terminal
    Text,
    /// Everything, with every raw sample
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
    /// What a program's memory costs by function, for KCachegrind (of emulate and profile)
    Callgrind,
}

/// A result in the wanted form: the one place where results get their format.
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

/// Writes the pages of a result into its directory, `report.md` and `report.html`.
pub(crate) fn write_pages(report: &dyn Report, directory: &Path) -> Result<[PathBuf; 2], Failure> {
    let page = shared_page(report);
    let written = [directory.join(file::REPORT_MARKDOWN), directory.join(file::REPORT_HTML)];
    for (path, text) in written.iter().zip([page.markdown(), page.html()]) {
        save(path, &text)?;
    }
    Ok(written)
}

/// Prints the names of files, a line each.
pub(crate) fn print_paths<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Failure> {
    let line = |path: &PathBuf| format!("{}\n", path.display());
    print(&paths.into_iter().map(line).collect::<String>())
}

/// A result without figures has no CSV.
fn no_table() -> Failure {
    Failure::bad_input("--format csv: this result is not a table: expected text, json, md or html")
}

/// A result without values has no gauges.
fn no_gauges() -> Failure {
    Failure::bad_input(
        "--format openmetrics: this result has no figures: expected text, json, csv, md or html",
    )
}

/// What is not of a program has no functions.
fn no_functions() -> Failure {
    Failure::bad_input(
        "--format callgrind: this result is not a program's memory: expected text, json, csv, md or \
         html",
    )
}

/// Keeps a program's figures in a file: as JSON where no other format is wanted.
pub(crate) fn keep(report: &dyn Report, format: Format, file: &Path) -> Result<(), Failure> {
    let format = if format == Format::Text { Format::Json } else { format };
    save(file, &render(report, format)?)
}

/// Writes a file, whole or not at all.
pub(crate) fn save(file: &Path, text: &str) -> Result<(), Failure> {
    write_atomically(file, text).map_err(|error| Failure::at(file, error))
}

/// Prints a result in the wanted form.
pub(crate) fn show(report: &dyn Report, format: Format) -> Result<(), Failure> {
    print(&render(report, format)?)
}

/// JSON with a line's end.
pub(crate) fn json_line(json: Result<String, serde_json::Error>) -> Result<String, Failure> {
    let mut text = json.map_err(|error| Failure::new(Code::Failed, error))?;
    text.push('\n');
    Ok(text)
}

/// A command line for a shell, an option and its values a line.
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
