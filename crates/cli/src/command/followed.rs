//! What the memory emulator reported of all processes of a command, as one program.

use std::collections::BTreeMap;

use numalab_analysis::program::mapped_files;
use numalab_formats::size::format_bytes;
use numalab_guest::program::Reports;
use numalab_host::{SourceLines, note};
use numalab_record::{CodePlace, MemoryReport, ProgramMemory};

use crate::failure::{Code, Failure};

/// Processes that are named.
const MOST_NAMED: usize = 4;
/// Pages of the emulated machine, and so many of files that placement matters for them.
const PAGE_BYTES: u64 = 4096;
const MANY_PAGES: u64 = 256;

/// A command under emulation.
#[derive(Debug)]
pub(super) struct Followed {
    /// All that was seen.
    pub report: MemoryReport,
    /// What was seen of each process, the first one's first.
    pub processes: Vec<ProgramMemory>,
    /// Processes that were not seen, in words.
    lost: Vec<String>,
}

impl Followed {
    /// Joins the reports of its processes.
    pub(super) fn read(reports: &Reports) -> Result<Self, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::new(Code::Failed, error.to_string());
        let texts = reports.texts.iter();
        let read = texts.map(|text| MemoryReport::read(text).map_err(|error| failed(&error)));
        let read: Vec<MemoryReport> = read.collect::<Result<_, _>>()?;
        let processes: Vec<ProgramMemory> =
            read.iter().filter_map(|report| report.program.clone()).collect();
        let whole = MemoryReport::of_processes(&read, &ProgramMemory::joined(processes.clone()));
        let whole = whole.map_err(|error| failed(&error))?;
        let mut report = whole.ok_or_else(|| failed(&"the memory emulator left no report"))?;
        let mut lines = SourceLines::default();
        let name = |place: &mut CodePlace| {
            let source = lines.of(&place.object, place.offset);
            (place.function, place.line) = (source.function, source.line);
        };
        report.name_code(name).map_err(|error| failed(&error))?;
        let lost = lost(&processes, &reports.lost);
        Ok(Self { report, processes, lost })
    }

    /// Tells what was not followed, and that the figures are of several processes.
    pub(super) fn tell(&self) {
        if !self.lost.is_empty() {
            note(self.not_followed());
        }
        let numbers = self.numbers();
        if numbers > 1 {
            note(format!(
                "{numbers} processes are followed as one program; each has the machine's caches and \
                 bandwidth to itself"
            ));
        }
    }

    /// Refuses what is known of the smaller part only.
    pub(super) fn has_most(&self) -> Result<(), Failure> {
        if self.lost.len() > self.numbers() {
            return Err(Failure::new(Code::Lacking, self.not_followed()));
        }
        Ok(())
    }

    /// Tells that trials on this machine share the page cache.
    pub(super) fn tell_files(&self) {
        let Some(program) = self.report.program() else { return };
        let files = mapped_files(program);
        let most = files.iter().max_by_key(|(_, pages)| **pages);
        let Some((name, _)) = most.filter(|(_, pages)| **pages >= MANY_PAGES) else { return };
        let size = format_bytes(files.values().sum::<u64>() * PAGE_BYTES);
        note(format!(
            "{size} of what it accesses are pages of files, as of {name}: they are in the page cache \
             where they were read first, all trials share them, and verdicts hold for them as they are"
        ));
    }

    /// How many processes were seen.
    fn numbers(&self) -> usize {
        let mut numbers: Vec<u32> = self.processes.iter().map(|of| of.process).collect();
        numbers.dedup();
        numbers.len()
    }

    fn not_followed(&self) -> String {
        let named = self.lost[..self.lost.len().min(MOST_NAMED)].join(", ");
        let more = self.lost.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let (count, what) = match self.lost.len() {
            1 => ("1 process".to_owned(), "was"),
            many => (format!("{many} processes"), "were"),
        };
        format!("{count} {what} not followed: {named}{more}")
    }
}

/// Processes that went on as a program which is not emulated, and those that were killed.
fn lost(processes: &[ProgramMemory], killed: &[u32]) -> Vec<String> {
    // In order: of each process what it was last.
    let last: BTreeMap<u32, &ProgramMemory> = processes.iter().map(|of| (of.process, of)).collect();
    let went = last.values().filter_map(|of| {
        let program = of.became.as_ref()?;
        Some(format!("{program} ({}), which is no program for this QEMU", of.process))
    });
    let killed = killed.iter().map(|process| format!("process {process}, which was killed"));
    went.chain(killed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(number: u32, became: Option<&str>) -> ProgramMemory {
        let became = became.map(str::to_owned);
        ProgramMemory { process: number, became, ..ProgramMemory::default() }
    }

    #[test]
    fn who_went_on_as_a_program_without_a_report_is_lost() {
        let followed = [process(1, Some("/bin/a")), process(1, None), process(2, None)];
        assert_eq!(lost(&followed, &[]), Vec::<String>::new());
        let off = [process(1, None), process(2, Some("/bin/arm"))];
        let words = lost(&off, &[3]);
        assert!(
            words[0].starts_with("/bin/arm (2)") && words[1].contains("process 3"),
            "{words:?}"
        );
    }
}
