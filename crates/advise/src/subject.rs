//! Runs the program that the advice is for.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use numalab_guest::program::{EmulatedProgram, Followed};
use numalab_host::{
    CommandError, Input, Interrupt, Ran, children_cpu_ns, on_path, run_with_input, users_program,
};
use numalab_record::ProgramMemory;

use crate::error::AdviseError;

pub(super) const LONGEST_RUN: Duration = Duration::from_secs(3600);
/// Names of OpenMP's runtimes: GCC's, LLVM's and Intel's.
const OPENMP: [&str; 3] = ["libgomp", "libomp", "libiomp5"];
/// The largest part of a file that is searched, in bytes: an executable names its libraries near
/// its beginning or end.
const MOST_PROGRAM_BYTES: u64 = 256 << 20;

/// The command line and the input of the program.
#[derive(Clone)]
pub(super) struct Subject {
    pub command: Vec<String>,
    pub stdin: Option<PathBuf>,
    pub interrupt: Interrupt,
}

impl Subject {
    pub(super) fn input(&self) -> Input<'_> {
        self.stdin.as_deref().map_or(Input::Empty, Input::File)
    }

    /// Runs the unchanged program on this machine; returns the CPU time of all its threads, too.
    pub(super) fn run(&self) -> Result<(Ran, Duration), AdviseError> {
        let before_ns = children_cpu_ns();
        let (program, arguments) = self.command.split_first().ok_or(AdviseError::NothingToRun)?;
        let command = users_program(program, arguments);
        let ran = run_with_input(command, self.input(), LONGEST_RUN, &self.interrupt);
        let ran = ran.map_err(|error| not_run(program, error))?;
        has_worked(program, &ran)?;
        let used_ns = children_cpu_ns().saturating_sub(before_ns);
        Ok((ran, Duration::from_nanos(used_ns)))
    }

    /// Runs the program under emulation, and returns the emulator's record of it.
    pub(super) fn follow(&self, program: &EmulatedProgram) -> Result<(Ran, Followed), AdviseError> {
        let (ran, reports) = program.run_apart(self.input(), LONGEST_RUN, &self.interrupt)?;
        has_worked(&program.command[0], &ran)?;
        let followed = Followed::read(&reports)?;
        followed.expect_most()?;
        Ok((ran, followed))
    }

    /// Returns true if the program uses OpenMP, which places threads by environment variables.
    pub(super) fn has_openmp(&self, followed: Option<&ProgramMemory>) -> bool {
        let is_runtime = |name: &str| OPENMP.iter().any(|runtime| name.contains(runtime));
        match followed {
            Some(program) => program.regions.iter().any(|region| is_runtime(&region.name)),
            None => {
                self.command.first().and_then(|name| on_path(name)).is_some_and(|path| names(&path))
            }
        }
    }
}

/// Returns true if a program's file names an OpenMP runtime among its libraries.
fn names(path: &Path) -> bool {
    let is_small = fs::metadata(path).is_ok_and(|meta| meta.len() <= MOST_PROGRAM_BYTES);
    let bytes = if is_small { fs::read(path).unwrap_or_default() } else { Vec::new() };
    let has = |name: &str| {
        let library = format!("{name}.so");
        bytes.windows(library.len()).any(|window| window == library.as_bytes())
    };
    OPENMP.iter().any(|name| has(name))
}

fn not_run(program: &str, error: CommandError) -> AdviseError {
    match error {
        CommandError::NotFound { .. } => AdviseError::NotFound(program.to_owned()),
        error => AdviseError::Command(error),
    }
}

/// Rejects a run that failed, or exited with processes still running.
fn has_worked(program: &str, ran: &Ran) -> Result<(), AdviseError> {
    let program = program.to_owned();
    if !ran.status.success() {
        let message = ran.stderr.trim().lines().last().unwrap_or_default();
        let message = if message.is_empty() { String::new() } else { format!(": {message}") };
        return Err(AdviseError::Ended { program, status: ran.status, message });
    }
    match ran.left.first() {
        Some(left) => Err(AdviseError::Left { program, left: left.to_string() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use numalab_record::Region;

    use super::*;

    fn ran(code: i32, stderr: &str, left: &[&str]) -> Ran {
        Ran {
            command: "./program".to_owned(),
            status: ExitStatus::from_raw(code << 8),
            stdout: String::new(),
            stderr: stderr.to_owned(),
            dropped_bytes: 0,
            took: Duration::ZERO,
            left: left.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn a_run_that_failed_or_left_processes_is_rejected_with_its_last_line() {
        let said = |ran: &Ran| has_worked("./program", ran).map_err(|error| error.to_string());
        assert_eq!(said(&ran(0, "a warning\n", &[])), Ok(()));
        let failed = said(&ran(3, "first\nno such table\n\n", &[])).unwrap_err();
        assert!(failed.contains("./program") && failed.ends_with(": no such table"), "{failed}");
        let silent = said(&ran(3, "", &[])).unwrap_err();
        assert!(silent.contains('3') && !silent.ends_with(": "), "{silent}");
        let left = said(&ran(0, "", &["sleep (1234)", "sleep (1235)"])).unwrap_err();
        assert!(left.contains("sleep (1234)"), "{left}");
    }

    #[test]
    fn openmp_is_seen_in_a_programs_file_and_in_its_followed_memory() {
        let directory = numalab_host::TemporaryDirectory::create().unwrap();
        let program = directory.path().join("program");
        let subject = Subject {
            command: vec![program.display().to_string()],
            stdin: None,
            interrupt: Interrupt::never(),
        };
        for (content, uses) in [("\x7fELF libgomp.so.1", true), ("\x7fELF libgomp's text", false)] {
            fs::write(&program, content).unwrap();
            assert_eq!(names(&program), uses, "{content}");
        }
        let mut memory = ProgramMemory::default();
        assert!(!subject.has_openmp(Some(&memory)));
        memory.regions =
            vec![Region { name: "/usr/lib/libomp.so.5".to_owned(), ..Region::default() }];
        assert!(subject.has_openmp(Some(&memory)));
    }
}
