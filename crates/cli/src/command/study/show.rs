//! Prints and writes a study's answers.

use std::path::{Path, PathBuf};

use numalab_record::file;
use numalab_record::study::{EndReason, StudyDocument};
use numalab_results::Report;
use numalab_results::study::StudySummary;
use numalab_study::{Journal, read};

use super::StudyShow;
use crate::args::{FailIf, Format};
use crate::failure::{Code, Failure};
use crate::output::{self, Stream};

/// Regenerates the reports of a study, or prints one; fails if `fail_if` is given and anything is
/// worse.
pub(crate) fn report(
    directory: &Path,
    format: Option<Format>,
    condition: Option<FailIf>,
) -> Result<(), Failure> {
    let document = read(directory)?;
    let summary = StudySummary::of(&document);
    output::show_again(&summary, format, || write_reports(&summary, directory))?;
    FailIf::check(condition, &summary.judgement())
}

/// Writes the reports of a session, and prints the answers.
pub(super) fn deliver(journal: &Journal, end: &EndReason, show: &StudyShow) -> Result<(), Failure> {
    let document: &StudyDocument = journal.document();
    let summary = StudySummary::of(document);
    let written = write_reports(&summary, journal.directory())?;
    let mut text = output::render(&summary, show.format, Stream::Output.style())?;
    if show.format == Format::Text && !output::quiet() {
        text.extend(written.iter().map(|path| format!("{}\n", path.display())));
    }
    output::print(&text)?;
    if *end == EndReason::Interrupted {
        return Err(interrupted(journal));
    }
    FailIf::check(show.fail_if, &summary.judgement())
}

/// Explains how to continue a study that did not finish.
fn interrupted(journal: &Journal) -> Failure {
    let directory = journal.directory().display();
    Failure::new(
        Code::Failed,
        format!("interrupted; continue with:\n  numalab study resume {directory}"),
    )
}

fn write_reports(summary: &StudySummary<'_>, directory: &Path) -> Result<[PathBuf; 3], Failure> {
    let [markdown, html] = output::write_pages(summary, directory)?;
    let samples = directory.join(file::SAMPLES);
    output::save(&samples, &summary.exported(Format::Csv).unwrap_or_default())?;
    Ok([markdown, samples, html])
}
