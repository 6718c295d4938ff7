//! Runs a program as on another machine: QEMU's user mode runs it on this host's kernel, and the
//! memory emulator keeps page tables as that machine would.

mod followed;
mod placed;
mod processes;
mod root;
mod turns;

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use numalab_formats::memory_emulator::{Alternative, EmulatedMachine, Policy};
use numalab_host::{
    Classed, CommandError, ErrorClass, Input, Interpreter, Interrupt, Ran, StartError,
    TemporaryDirectory, die_with_parent, loader_of, on_path, run_with_input, users_program,
};
use numalab_image::{Architecture, CompanionError};
use numalab_marks::libnuma::{FIRST_BYTES, is_used_by};

use crate::emulator::{MACHINE, PLUGIN, escaped};

pub use followed::{Followed, FollowedError};
pub use processes::Reports;
pub use turns::{ThreadPlacement, in_turn};

/// Depth limit of scripts with scripts as interpreters; deeper is a loop (execve(2)).
const MOST_INTERPRETERS: usize = 4;
/// Length of the part of an ELF file that names its processor.
const HEAD_BYTES: u64 = 20;
const REPORT: &str = "report";
/// Makes QEMU's C library request huge pages (malloc(3), glibc 2.35) for the model's tables:
/// programs that miss their caches take a tenth less time. The program gets its own settings.
const TUNABLES: &str = "GLIBC_TUNABLES";
const HUGE_TABLES: &str = "glibc.malloc.hugetlb=1";

/// A program and the machine to emulate for it.
#[derive(Clone, Debug)]
pub struct EmulatedProgram {
    pub plugin: PathBuf,
    /// The placement of memory and the cost of accesses.
    pub machine: EmulatedMachine,
    /// The cpus that threads take in turn, by position; all in order if empty.
    pub threads: Vec<usize>,
    /// The placement of pages for which the program sets no policy; `None` for first touch.
    pub policy: Option<Policy>,
    /// True if the kernel uses huge pages everywhere rather than only where the program requests
    /// them.
    pub huge_always: bool,
    /// Other placements for which the wait of threads is reported too.
    pub alternatives: Vec<Alternative>,
    /// True if the whole program is simulated in detail, not only a sample of a long one.
    pub exact: bool,
    pub command: Vec<String>,
}

/// The exit status of an emulated program, with the reports of its processes.
#[derive(Debug)]
pub struct ProgramOutcome {
    pub status: ExitStatus,
    /// The plugin's reports of the program's processes.
    pub reports: Reports,
}

/// Reason why a program cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("{0}: no such program, here or in PATH")]
    NotFound(String),
    /// The path is that of a directory, or of a file without permission to execute it.
    #[error("{0}: expected a program, a file that may be executed")]
    NotExecutable(String),
    /// The program cannot be read.
    #[error("{path}: {source}")]
    Unreadable { path: String, source: io::Error },
    /// The program is not for a processor that QEMU's user mode and the plugin support.
    #[error(
        "{0}: expected a Linux program for {known}, or a script",
        known = Architecture::NAMES.join(" or ")
    )]
    Foreign(String),
    /// The interpreter of the script, or the loader of the program, does not exist.
    #[error(transparent)]
    NotStartable(#[from] StartError),
    #[error(
        "{program} is missing, but needed to run programs on emulated machines: apt install \
         qemu-user"
    )]
    NoQemu { program: String },
    /// The program did not end by itself.
    #[error(transparent)]
    Run(#[from] CommandError),
    /// A file or a process could not be created.
    #[error("cannot start the program: {0}")]
    Start(#[from] io::Error),
}

impl Classed for ProgramError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::NotFound(_) => ErrorClass::NotFound,
            Self::NotExecutable(_)
            | Self::Unreadable { .. }
            | Self::Foreign(_)
            | Self::NotStartable(_) => ErrorClass::NotRunnable,
            Self::NoQemu { .. } => ErrorClass::Lacking,
            Self::Start(_) | Self::Run(_) => ErrorClass::Failed,
        }
    }
}

impl EmulatedProgram {
    /// Creates a program with pages placed by its own policies or first touch.
    ///
    /// # Errors
    /// [`CompanionError`] if the emulator's plugin is not installed.
    pub fn new(
        machine: EmulatedMachine,
        threads: Vec<usize>,
        command: Vec<String>,
    ) -> Result<Self, CompanionError> {
        let plugin = PLUGIN.find()?;
        let (policy, huge_always, alternatives, exact) = (None, false, Vec::new(), false);
        Ok(Self { plugin, machine, threads, policy, huge_always, alternatives, exact, command })
    }

    /// Returns QEMU's command line; files for it are created in `directory`.
    pub fn command_line(&self, directory: &Path) -> Result<Vec<String>, ProgramError> {
        let (architecture, command) = resolve(&self.command)?;
        let is_here = architecture.name() == std::env::consts::ARCH;
        let program = format!("qemu-{}", architecture.name());
        let qemu = on_path(&program).ok_or(ProgramError::NoQemu { program })?;
        let threads = match self.threads.is_empty() {
            true => String::new(),
            false => format!(",threads={}", joined(&self.threads, ".")),
        };
        let alternatives = match self.alternatives.is_empty() {
            true => String::new(),
            false => format!(",alternatives={}", joined(&self.alternatives, "+")),
        };
        let thp = if self.huge_always { ",thp=always" } else { "" };
        let exact = if self.exact { ",exact=on" } else { "" };
        let policy = self.policy.as_ref().map_or_else(String::new, |of| format!(",policy={of}"));
        let in_directory = |name: &str| escaped(&directory.join(name));
        let plugin = format!(
            "{},machine={},report={}{threads}{policy}{thp}{alternatives}{exact}",
            escaped(&self.plugin),
            in_directory(MACHINE),
            in_directory(REPORT),
        );
        let mut words = vec![qemu.to_string_lossy().into_owned(), "-plugin".to_owned(), plugin];
        // A program of this architecture sees the machine's nodes in place of those in /sys; one of
        // another architecture needs its own libraries.
        let root = match is_here {
            true => root::place(directory).to_string_lossy().into_owned(),
            false => architecture.cross_root(),
        };
        check_loader(&self.command, &command, &root)?;
        words.extend(["-L".to_owned(), root]);
        if is_here
            && head(Path::new(&command[0]), FIRST_BYTES).is_ok_and(|first| is_used_by(&first))
        {
            words.extend(["-E".to_owned(), format!("LD_PRELOAD={}", self.plugin.display())]);
        }
        words.extend(command);
        Ok(words)
    }

    /// Runs the program to its end with this process's standard streams.
    pub fn run(&self) -> Result<ProgramOutcome, ProgramError> {
        let directory = TemporaryDirectory::create()?;
        let mut command = self.command_in(directory.path())?;
        die_with_parent(&mut command);
        let status = command.status()?;
        Ok(ProgramOutcome { status, reports: Reports::read(directory.path())? })
    }

    /// Runs the program to its end with this input, keeps its output, and ends processes that it
    /// leaves running.
    ///
    /// # Errors
    /// [`ProgramError`]; a status other than 0 is not an error here.
    pub fn run_apart(
        &self,
        input: Input<'_>,
        limit: Duration,
        interrupt: &Interrupt,
    ) -> Result<(Ran, Reports), ProgramError> {
        let directory = TemporaryDirectory::create()?;
        let ran = run_with_input(self.command_in(directory.path())?, input, limit, interrupt)?;
        Ok((ran, Reports::read(directory.path())?))
    }

    /// Returns the command that starts QEMU with its files in a directory.
    fn command_in(&self, directory: &Path) -> Result<Command, ProgramError> {
        let words = self.command_line(directory)?;
        let machine = serde_json::to_vec(&self.machine).map_err(io::Error::from)?;
        fs::write(directory.join(MACHINE), machine)?;
        root::make(directory, &self.machine)?;
        let apart = match std::env::var(TUNABLES) {
            Ok(own) => ["-E".to_owned(), format!("{TUNABLES}={own}")],
            Err(_) => ["-U".to_owned(), TUNABLES.to_owned()],
        };
        let mut command = users_program(&words[0], [&apart, &words[1..]].concat());
        command.env(TUNABLES, HUGE_TABLES);
        Ok(command)
    }
}

fn joined(items: &[impl ToString], between: &str) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

/// Returns the program that a command finally executes, and its arguments: QEMU does not read
/// scripts' first lines.
fn resolve(command: &[String]) -> Result<(Architecture, Vec<String>), ProgramError> {
    let mut words = command.to_vec();
    for _ in 0..MOST_INTERPRETERS {
        let name = words.first().cloned().unwrap_or_default();
        let path = on_path(&name).ok_or_else(|| not_run(&name))?;
        words[0] = path.to_string_lossy().into_owned();
        let unread = |source| ProgramError::Unreadable { path: words[0].clone(), source };
        if let Some(found) = Architecture::of_program(&head(&path, HEAD_BYTES).map_err(unread)?) {
            return Ok((found, words));
        }
        let Some(Interpreter { path: interpreter, argument }) =
            Interpreter::of(&path).map_err(unread)?
        else {
            return Err(ProgramError::Foreign(name));
        };
        if !Path::new(&interpreter).exists() {
            return Err(StartError::NoInterpreter { program: name, interpreter }.into());
        }
        words.splice(0..0, [Some(interpreter), argument].into_iter().flatten());
    }
    Err(ProgramError::Foreign(command.first().cloned().unwrap_or_default()))
}

/// Returns the reason why no program can be run by this name: a path may exist without being one.
fn not_run(name: &str) -> ProgramError {
    match name.contains('/') && Path::new(name).exists() {
        true => ProgramError::NotExecutable(name.to_owned()),
        false => ProgramError::NotFound(name.to_owned()),
    }
}

/// Checks that the loader of a program exists, in `root` or here: QEMU ends with status 255 if not.
fn check_loader(asked: &[String], command: &[String], root: &str) -> Result<(), ProgramError> {
    let Some(loader) = command.first().and_then(|program| loader_of(Path::new(program))) else {
        return Ok(());
    };
    let in_root = Path::new(root).join(loader.trim_start_matches('/'));
    if Path::new(&loader).exists() || in_root.exists() {
        return Ok(());
    }
    let program = asked.first().cloned().unwrap_or_default();
    Err(StartError::NoLoader { program, loader }.into())
}

/// Reads at most `most` bytes from the beginning of a file.
fn head(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    fs::File::open(path)?.take(most).read_to_end(&mut head)?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::slice::from_ref;

    use super::*;

    fn resolved(words: &[&str]) -> Result<(Architecture, Vec<String>), ProgramError> {
        resolve(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_script_is_run_by_the_program_that_its_first_line_names() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        fs::write(&script, "#! /bin/sh -e\necho\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let script = script.to_string_lossy();
        let (_, words) = resolved(&[&script, "x"]).unwrap();
        assert_eq!(words, ["/bin/sh", "-e", &script, "x"]);
    }

    #[test]
    fn a_file_that_is_not_a_program_is_refused_with_the_expected_kinds() {
        let message = |words: &[&str]| resolved(words).unwrap_err().to_string();
        assert!(message(&["no-such-program"]).contains("no-such-program: no such program"));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("data");
        let name = file.to_string_lossy();
        fs::write(&file, "data").unwrap();
        for path in [&*name, &*directory.path().to_string_lossy()] {
            let error = resolved(&[path]).unwrap_err();
            assert_eq!(error.class(), ErrorClass::NotRunnable, "{error}");
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(message(&[&name]).contains("x86_64 or aarch64"));
        fs::write(&file, format!("#!{name}\n")).unwrap();
        assert!(message(&[&name]).contains("x86_64 or aarch64"), "a circle of scripts");
    }

    #[test]
    fn a_missing_interpreter_or_loader_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("program");
        let name = file.to_string_lossy().into_owned();
        fs::write(&file, "#!/no/such/perl\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let error = resolved(&[&name]).unwrap_err();
        assert_eq!(error.class(), ErrorClass::NotRunnable);
        assert!(error.to_string().contains("interpreter \"/no/such/perl\""), "{error}");
        let own = std::env::current_exe().unwrap();
        let loader = loader_of(&own).expect("a dynamic program");
        let mut bytes = fs::read(&own).unwrap();
        let at = bytes.windows(loader.len()).position(|part| part == loader.as_bytes()).unwrap();
        bytes[at..at + 12].copy_from_slice(b"/no/ld.so.1\0");
        fs::write(&file, bytes).unwrap();
        let root = directory.path().to_str().unwrap();
        let check = || check_loader(from_ref(&name), from_ref(&name), root);
        let error = check().unwrap_err().to_string();
        assert!(error.contains(&format!("`{name}`")) && error.contains("/no/ld.so.1"), "{error}");
        fs::create_dir(directory.path().join("no")).unwrap();
        fs::write(directory.path().join("no/ld.so.1"), "").unwrap();
        check().unwrap();
    }
}
