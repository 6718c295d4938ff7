//! Joins the emulator's reports of all processes of a command into one program.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;

use numalab_host::{Classed, ErrorClass, SourceLines};
use numalab_record::profile::Ended;
use numalab_record::{MemoryReport, MemoryReportError, ProgramMemory};

use super::{ProgramOutcome, Reports};

/// Maximum number of unseen processes that are named.
const MOST_NAMED: usize = 4;

/// A command that ran under emulation.
#[derive(Debug)]
pub struct Followed {
    /// Everything that was seen, with the source lines of the code.
    pub report: MemoryReport,
    /// The reports of each process, beginning with the first process.
    pub processes: Vec<ProgramMemory>,
    /// Processes that were not seen, in words.
    lost: Vec<String>,
}

/// Reason why a command ran, but the cost of its memory is unknown.
#[derive(Debug, thiserror::Error)]
pub enum FollowedError {
    #[error(
        "signal {signal} ended the program: the cost of its memory is unknown, because the memory \
         emulator reports only when a program exits by itself"
    )]
    Signalled { signal: i32 },
    #[error("the memory emulator wrote no report")]
    NoReport,
    /// The figures do not describe the program.
    #[error("{0}")]
    Misleading(String),
    #[error(transparent)]
    Report(#[from] MemoryReportError),
}

impl Classed for FollowedError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Misleading(_) => ErrorClass::Lacking,
            Self::Signalled { .. } | Self::NoReport | Self::Report(_) => ErrorClass::Failed,
        }
    }
}

impl Followed {
    /// Joins the reports of a program that has ended.
    ///
    /// # Errors
    /// [`FollowedError`], which names the signal that ended a program without a report.
    pub fn of(outcome: &ProgramOutcome) -> Result<Self, FollowedError> {
        let (status, signal) = (outcome.status, outcome.status.signal());
        let mut followed = match (Self::read(&outcome.reports), signal) {
            (Err(FollowedError::NoReport), Some(signal)) => {
                return Err(FollowedError::Signalled { signal });
            }
            (read, _) => read?,
        };
        let code = status.code().filter(|code| *code != 0).map(Ended::Exited);
        if let Some(failed) = code.or(signal.map(Ended::Signalled)) {
            followed.report.failed = Some(failed);
        }
        Ok(followed)
    }

    /// Joins the reports of a command's processes.
    ///
    /// # Errors
    /// [`FollowedError`] without a report, or if one cannot be read.
    pub fn read(reports: &Reports) -> Result<Self, FollowedError> {
        let read = reports.texts.iter().map(|text| MemoryReport::read(text));
        let read: Vec<MemoryReport> = read.collect::<Result<_, _>>()?;
        let processes: Vec<ProgramMemory> =
            read.iter().filter_map(|report| report.program.clone()).collect();
        let mut joined = ProgramMemory::joined(processes.clone());
        let mut lines = SourceLines::default();
        joined.name_code(|place| lines.frames(place));
        let report = MemoryReport::of_processes(read, joined).ok_or(FollowedError::NoReport)?;
        let lost = lost(&processes, &reports.lost);
        Ok(Self { report, processes, lost })
    }

    /// Returns remarks for readers of the figures: which processes were not followed, and that
    /// several processes count as one.
    pub fn remarks(&self) -> Vec<String> {
        let number = self.number();
        let several = (number > 1).then(|| {
            format!(
                "{number} processes are followed as one program; each has the machine's caches and \
                 bandwidth to itself"
            )
        });
        self.not_followed().into_iter().chain(several).collect()
    }

    /// Refuses figures that do not describe the program: the processes that were not followed outnumber
    /// those that were, or its memory is more than the machine's.
    pub fn expect_most(&self) -> Result<(), FollowedError> {
        let lost = self.not_followed().filter(|_| self.lost.len() > self.number());
        match lost.or_else(|| unplaced(&self.processes)) {
            Some(why) => Err(FollowedError::Misleading(why)),
            None => Ok(()),
        }
    }

    /// Returns the processes that were not followed, in a sentence.
    fn not_followed(&self) -> Option<String> {
        let named = self.lost[..self.lost.len().min(MOST_NAMED)].join(", ");
        let more = self.lost.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let what = match self.lost.len() {
            0 => return None,
            1 => "1 process was".to_owned(),
            many => format!("{many} processes were"),
        };
        Some(format!("{what} not followed: {named}{more}"))
    }

    /// Returns the number of processes that were seen.
    fn number(&self) -> usize {
        let mut numbers: Vec<u32> = self.processes.iter().map(|of| of.process).collect();
        numbers.dedup();
        numbers.len()
    }
}

/// Returns a sentence about accesses to pages for which the machine had no memory left.
fn unplaced(processes: &[ProgramMemory]) -> Option<String> {
    let accesses: u64 = processes.iter().map(|of| of.unplaced).sum();
    (accesses > 0).then(|| {
        format!(
            "the emulated machine has too little memory for this program: {accesses} accesses are \
             left out, because the nodes that may hold their pages were full; on such a machine \
             the kernel would kill it"
        )
    })
}

/// Returns the processes that executed a program without emulation, and those that were killed.
fn lost(processes: &[ProgramMemory], killed: &[u32]) -> Vec<String> {
    // A process that executed several programs has a report of each, in order: the last one counts.
    let last: BTreeMap<u32, &ProgramMemory> = processes.iter().map(|of| (of.process, of)).collect();
    let went = last.values().filter_map(|of| {
        let program = of.became.as_ref()?;
        Some(format!("{program} ({}), which this QEMU cannot run or a signal ended", of.process))
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
    fn the_signal_that_ended_a_program_without_a_report_is_named() {
        let ended = |status| {
            let status = std::process::ExitStatus::from_raw(status);
            Followed::of(&ProgramOutcome { status, reports: Reports::default() }).unwrap_err()
        };
        assert!(matches!(ended(9), FollowedError::Signalled { signal: 9 }));
        assert!(matches!(ended(0), FollowedError::NoReport));
    }

    #[test]
    fn figures_without_the_pages_that_found_no_memory_do_not_describe_the_program() {
        let with = |unplaced| {
            super::unplaced(&[ProgramMemory { unplaced, ..process(1, None) }, process(2, None)])
        };
        assert_eq!(with(0), None);
        let said = with(9287).unwrap();
        assert!(said.contains("9287 accesses are left out"), "{said}");
    }

    #[test]
    fn a_process_that_went_on_as_a_program_without_a_report_is_lost() {
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
