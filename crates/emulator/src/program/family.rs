//! Links the processes of one program. Each writes a separate report; information for another
//! process goes through a file next to the report, since fork(2) copies the emulator and execve(2)
//! loads it again.

use std::fs;

/// The origin of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Began {
    /// Position of the process's first thread among the program's threads: 0 for the first process.
    pub place: usize,
    /// In ps of the program's time.
    pub at_ps: u64,
}

impl Began {
    /// Reads what this process left before execve(2), or returns the default for the first one.
    pub fn read(report: Option<&str>) -> Self {
        let read = || {
            let text = fs::read_to_string(file(report?, std::process::id(), "began")).ok()?;
            let (place, at_ps) = text.split_once(' ')?;
            Some(Self { place: place.parse().ok()?, at_ps: at_ps.parse().ok()? })
        };
        read().unwrap_or_default()
    }

    /// Writes the state to a file for this process after execve(2), and for counting processes.
    pub fn write(self, report: Option<&str>) {
        write(report, "began", &format!("{} {}", self.place, self.at_ps));
    }
}

/// Writes this process's time to a file for the parent that waits for its end.
pub fn has_come_to(report: Option<&str>, now_ps: u64) {
    write(report, "ended", &now_ps.to_string());
}

/// Returns the time of a child's end.
pub fn ended_ps(report: Option<&str>, child: i64) -> Option<u64> {
    let child = u32::try_from(child).ok()?;
    fs::read_to_string(file(report?, child, "ended")).ok()?.parse().ok()
}

/// Fails silently for a program that changed its root or user: its times are unknown then.
fn write(report: Option<&str>, what: &str, text: &str) {
    let Some(report) = report else { return };
    let _ = fs::write(file(report, std::process::id(), what), text);
}

fn file(report: &str, process: u32, what: &str) -> String {
    format!("{report}.{process}.{what}")
}

/// A process's children, by their positions after its own.
#[derive(Debug, Default)]
pub struct Children {
    /// Process ids; 0 is free, -1 is being created.
    processes: Vec<i64>,
}

impl Children {
    /// Reserves a position for a new child.
    pub fn makes(&mut self) {
        match self.processes.iter_mut().find(|process| **process == 0) {
            Some(free) => *free = -1,
            None => self.processes.push(-1),
        }
    }

    /// Records the new child's id, or that creating it failed.
    pub fn made(&mut self, process: i64) {
        // Negative if the call failed, which frees the position.
        self.replace(-1, process.max(0));
    }

    /// Removes a child that was waited for.
    pub fn ended(&mut self, process: i64) {
        self.replace(process, 0);
    }

    /// Returns true if there are children.
    pub fn are_any(&self) -> bool {
        self.processes.iter().any(|process| *process != 0)
    }

    /// Enters a child that is being created: forgets its siblings, and returns its position after
    /// its parent's.
    pub fn born(&mut self) -> usize {
        let own = self.processes.iter().position(|process| *process == -1).unwrap_or(0);
        self.processes.clear();
        own + 1
    }

    fn replace(&mut self, old: i64, new: i64) {
        if let Some(process) = self.processes.iter_mut().find(|process| **process == old) {
            *process = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_children_have_different_positions_and_successive_ones_the_same() {
        let mut parent = Children::default();
        let mut forks = |ended: i64, process: i64| {
            parent.ended(ended);
            parent.makes();
            let mut child = Children { processes: parent.processes.clone() };
            parent.made(process);
            child.born()
        };
        assert_eq!([forks(-2, 10), forks(-2, 11), forks(-2, -11)], [1, 2, 3]);
        assert_eq!(forks(-2, 12), 3, "there was none before");
        assert_eq!([forks(10, 13), forks(13, 14), forks(11, 15)], [1, 1, 2]);
    }

    #[test]
    fn a_process_finds_its_files_again_after_execve() {
        let directory = tempfile::tempdir().unwrap();
        let report = directory.path().join("report").to_string_lossy().into_owned();
        let own = i64::from(std::process::id());
        assert_eq!(Began::read(Some(&report)), Began::default());
        assert_eq!(ended_ps(Some(&report), own), None);
        let began = Began { place: 3, at_ps: 70_000 };
        began.write(Some(&report));
        has_come_to(Some(&report), 90_000);
        assert_eq!(Began::read(Some(&report)), began);
        assert_eq!(ended_ps(Some(&report), own), Some(90_000));
    }
}
