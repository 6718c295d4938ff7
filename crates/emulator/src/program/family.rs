//! Processes of one program. Each reports what it did by itself; what one has to know of another is in
//! a file next to the report, since fork(2) copies the emulator and execve(2) loads it anew.

use std::fs;

/// Where and when a process begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Began {
    /// The place of its first thread among those of the program: 0 of the first process.
    pub place: usize,
    /// In ps of the program's time.
    pub at_ps: u64,
}

impl Began {
    /// What this process left for the program that it goes on as, or the default for the first one.
    pub fn read(report: Option<&str>) -> Self {
        let read = || {
            let text = fs::read_to_string(file(report?, std::process::id(), "began")).ok()?;
            let (place, at_ps) = text.split_once(' ')?;
            Some(Self { place: place.parse().ok()?, at_ps: at_ps.parse().ok()? })
        };
        read().unwrap_or_default()
    }

    /// Leaves it, for this process after execve(2) and for who counts the processes.
    pub fn write(self, report: Option<&str>) {
        write(report, "began", &format!("{} {}", self.place, self.at_ps));
    }
}

/// This process has come that far, for the parent that waits for its end.
pub fn has_come_to(report: Option<&str>, now_ps: u64) {
    write(report, "ended", &now_ps.to_string());
}

/// How far a child had come when it ended.
pub fn ended_ps(report: Option<&str>, child: i64) -> Option<u64> {
    let child = u32::try_from(child).ok()?;
    fs::read_to_string(file(report?, child, "ended")).ok()?.parse().ok()
}

/// A program that changed its root or its user cannot leave a file: its times are not known then.
fn write(report: Option<&str>, what: &str, text: &str) {
    let Some(report) = report else { return };
    let _ = fs::write(file(report, std::process::id(), what), text);
}

fn file(report: &str, process: u32, what: &str) -> String {
    format!("{report}.{process}.{what}")
}

/// The children that a process has, by their places behind its own.
#[derive(Debug, Default)]
pub struct Children {
    /// 0 where none is, -1 for the one that is being made.
    processes: Vec<i64>,
}

impl Children {
    /// One is being made.
    pub fn makes(&mut self) {
        match self.processes.iter_mut().find(|process| **process == 0) {
            Some(free) => *free = -1,
            None => self.processes.push(-1),
        }
    }

    /// It was made with this number, or it was not.
    pub fn made(&mut self, process: i64) {
        self.replace(-1, process.max(0));
    }

    /// One has ended and was waited for.
    pub fn ended(&mut self, process: i64) {
        self.replace(process, 0);
    }

    /// In the child that was being made: its place behind its parent's, and it has none itself.
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
    fn children_at_a_time_have_places_of_their_own_and_one_after_the_other_the_same() {
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
    fn what_a_process_leaves_is_there_after_it_becomes_another_program() {
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
