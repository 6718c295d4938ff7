//! The report files of a program's processes.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// The reports of a program's processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reports {
    /// The report of each process (JSON, `numalab-emulator/1`), starting with the first process's.
    /// A process that called exec left one for each program.
    pub texts: Vec<String>,
    /// Processes that started without leaving a report: they were killed.
    pub lost: Vec<u32>,
}

impl Reports {
    /// Reads the files in a directory: `report.PID` or `report.N.PID` of each process, and
    /// `report.PID.began` of those that were forked.
    pub(super) fn read(directory: &Path) -> io::Result<Self> {
        let (mut found, mut began) = (Vec::new(), BTreeSet::new());
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let number = |name: &str| name.rsplit('.').next()?.parse::<u32>().ok();
            if let Some(process) = name.strip_suffix(".began").and_then(number) {
                began.insert(process);
            } else if let Some(process) = number(&name) {
                // First the process's earlier programs in order, then the last one.
                found.push((process, order(&name), fs::read_to_string(&path)?));
            }
        }
        found.sort();
        for (process, ..) in &found {
            began.remove(process);
        }
        let texts = found.into_iter().map(|(.., text)| text).collect();
        Ok(Self { texts, lost: began.into_iter().collect() })
    }
}

/// Returns the position of a report among those of its process.
fn order(name: &str) -> u64 {
    match name.split('.').collect::<Vec<_>>()[..] {
        [_, number, _] => number.parse().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_a_report_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("report.20", "second"),
            ("report.9", "first"),
            ("report.10.20", "fourth"),
            ("report.2.20", "third"),
            ("report.20.began", "1 0"),
            ("report.20.ended", "5"),
            ("report.21.began", "2 0"),
            ("machine", "{}"),
        ] {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let reports = Reports::read(directory.path()).unwrap();
        assert_eq!(reports.texts, ["first", "second", "third", "fourth"]);
        assert_eq!(reports.lost, [21]);
    }
}
