//! What the emulator reported of the processes of a program.

use numalab_host::SourceLines;
use numalab_record::{CodePlace, MemoryReport, MemoryReportError};

/// Reads the reports of all processes.
///
/// # Errors
/// [`MemoryReportError`] of the first that is none.
pub fn read_reports(reports: &[String]) -> Result<Vec<MemoryReport>, MemoryReportError> {
    reports.iter().map(|text| MemoryReport::read(text)).collect()
}

/// The report of the process that took the most time, with the lines of its source; none without
/// reports.
///
/// # Errors
/// [`MemoryReportError`] of the first text that is no report.
pub fn longest_report(reports: &[String]) -> Result<Option<MemoryReport>, MemoryReportError> {
    let all = read_reports(reports)?.into_iter();
    let Some(mut longest) = all.max_by_key(MemoryReport::time_ns) else { return Ok(None) };
    let mut lines = SourceLines::default();
    let name = |place: &mut CodePlace| {
        let source = lines.of(&place.object, place.offset);
        (place.function, place.line) = (source.function, source.line);
    };
    longest.name_code(name).map_err(MemoryReportError::Json)?;
    Ok(Some(longest))
}
