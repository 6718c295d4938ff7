//! Checks a program that the user named before it is started: the kernel's error for a missing
//! interpreter is that of a missing file, and execvp(3) gives a program for another processor to the
//! shell as if it were a script.

use std::env::consts::ARCH;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut};

use elf::ElfStream;
use elf::abi::{EM_386, EM_AARCH64, EM_ARM, EM_X86_64, PT_INTERP};
use elf::endian::AnyEndian;
use elf::to_str::e_machine_to_human_str;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};

use super::search::on_path;
use crate::error_class::{Classed, ErrorClass};

/// Limit of a script's first line in bytes, as the kernel has it (`BINPRM_BUF_SIZE`).
const MOST_OF_LINE: u64 = 256;
/// Depth limit of scripts with scripts as interpreters; deeper is a loop (execve(2)).
const MOST_INTERPRETERS: usize = 4;

/// Reason why a program that exists cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error(
        "cannot run `{program}`: its first line names the interpreter {interpreter:?}, which does \
         not exist here"
    )]
    NoInterpreter { program: String, interpreter: String },
    #[error(
        "cannot run `{program}`: its ELF interpreter {loader} does not exist here: install the C \
         library that it was built for"
    )]
    NoLoader { program: String, loader: String },
    #[error(
        "cannot run `{program}`: it is a program for another processor ({processor}), and this \
         one is {ARCH}"
    )]
    Foreign {
        program: String,
        /// The processor's name, or its number in elf(5).
        processor: String,
    },
}

impl Classed for StartError {
    fn class(&self) -> ErrorClass {
        ErrorClass::NotRunnable
    }
}

/// The interpreter of a script, and the argument for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    pub path: String,
    pub argument: Option<String>,
}

impl Interpreter {
    /// Returns the interpreter in a file's first line, as the kernel reads it; `None` if the file
    /// is not a script.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(script: &Path) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        File::open(script)?.take(MOST_OF_LINE).read_to_end(&mut head)?;
        let Some(line) = head.strip_prefix(b"#!") else { return Ok(None) };
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let line = line.trim_matches([' ', '\t']);
        let (path, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let argument = Some(argument.trim_start_matches([' ', '\t']).to_owned());
        let argument = argument.filter(|argument| !argument.is_empty());
        Ok(Some(Self { path: path.to_owned(), argument }))
    }
}

/// Checks for the reasons that the system's error does not name. A program that is missing, or may
/// not be run, passes.
pub fn check_startable(program: &str) -> Result<(), StartError> {
    let Some(mut path) = on_path(program) else { return Ok(()) };
    let program = || program.to_owned();
    for _ in 0..MOST_INTERPRETERS {
        let Ok(Some(Interpreter { path: interpreter, .. })) = Interpreter::of(&path) else {
            return check_elf(program(), &path);
        };
        path = PathBuf::from(&interpreter);
        if !path.exists() {
            return Err(StartError::NoInterpreter { program: program(), interpreter });
        }
    }
    Ok(())
}

fn check_elf(program: String, path: &Path) -> Result<(), StartError> {
    let Some((processor, loader)) = processor_and_loader(path) else { return Ok(()) };
    if !is_native(processor) {
        return match kernel_runs(path) {
            true => Ok(()),
            false => {
                let named = e_machine_to_human_str(processor).map(str::to_owned);
                let processor = named.unwrap_or_else(|| format!("number {processor}"));
                Err(StartError::Foreign { program, processor })
            }
        };
    }
    match loader {
        Some(loader) if !Path::new(&loader).exists() => {
            Err(StartError::NoLoader { program, loader })
        }
        _ => Ok(()),
    }
}

/// Returns the loader (`PT_INTERP`) that an ELF file names; `None` for other files and static
/// programs.
pub fn loader_of(path: &Path) -> Option<String> {
    processor_and_loader(path)?.1
}

/// Returns the processor (elf(5), `e_machine`) and the loader of an ELF file.
fn processor_and_loader(path: &Path) -> Option<(u16, Option<String>)> {
    let mut file = ElfStream::<AnyEndian, _>::open_stream(File::open(path).ok()?).ok()?;
    let part = file.segments().iter().find(|part| part.p_type == PT_INTERP).copied();
    let loader = part.and_then(|part| {
        let name = file.segment_data(&part).ok()?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned())
    });
    Some((file.ehdr.e_machine, loader))
}

/// Reports whether processors of this kind run such programs, 32-bit ones included.
fn is_native(processor: u16) -> bool {
    match ARCH {
        "x86_64" => matches!(processor, EM_X86_64 | EM_386),
        "aarch64" => matches!(processor, EM_AARCH64 | EM_ARM),
        _ => true,
    }
}

/// Asks the kernel whether it runs this file, by an emulator that is registered for it
/// (`binfmt_misc`) for example. The process that tries is ended before the first instruction.
fn kernel_runs(path: &Path) -> bool {
    let Ok(file) = CString::new(path.as_os_str().as_bytes()) else { return true };
    let mut trial = Command::new(path);
    trial.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: between fork and exec the closure makes two system calls, with strings that it owns and
    // arrays that end in a null pointer as execve(2) requires; it allocates nothing and takes no
    // lock. A traced process stops in execve, before the program's first instruction.
    unsafe {
        trial.pre_exec(move || {
            let (words, none) = ([file.as_ptr(), null()], [null()]);
            if libc::ptrace(libc::PTRACE_TRACEME, 0, null_mut::<u8>(), null_mut::<u8>()) == 0 {
                libc::execve(file.as_ptr(), words.as_ptr(), none.as_ptr());
            }
            Err(io::Error::last_os_error())
        });
    }
    match trial.spawn() {
        Ok(mut child) => {
            let _ = child.kill();
            // Its stop is reported before its end.
            let process = Pid::from_child(&child);
            let has_ended = || match waitpid(Some(process), WaitOptions::empty()) {
                Ok(Some((_, status))) => !status.stopped(),
                Ok(None) | Err(Errno::INTR) => false,
                Err(_) => true,
            };
            while !has_ended() {}
            true
        }
        Err(error) => Errno::from_io_error(&error) != Some(Errno::NOEXEC),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Creates a program with this content and returns the reason why it cannot be started.
    fn refused(content: impl AsRef<[u8]>) -> Option<String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("program");
        fs::write(&file, content).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let refused = check_startable(file.to_str().unwrap()).err()?;
        assert_eq!(refused.class(), ErrorClass::NotRunnable);
        Some(refused.to_string())
    }

    /// Returns this program's image, changed to the processor with this number and another loader.
    fn changed(processor: u16, loader: Option<&str>) -> Vec<u8> {
        let own = std::env::current_exe().unwrap();
        let mut bytes = fs::read(&own).unwrap();
        bytes[18..20].copy_from_slice(&processor.to_le_bytes());
        if let Some(other) = loader {
            let own = loader_of(&own).expect("a dynamic program");
            let at = bytes.windows(own.len()).position(|part| part == own.as_bytes()).unwrap();
            bytes[at..at + other.len()].copy_from_slice(other.as_bytes());
            bytes[at + other.len()] = 0;
        }
        bytes
    }

    #[test]
    fn a_script_with_a_missing_interpreter_is_refused_by_its_name() {
        let said = refused("#! /no/such/perl -w\nprint 1;\n").unwrap();
        assert!(said.contains("\"/no/such/perl\", which does not exist here"), "{said}");
        // The kernel takes a carriage return as part of the name.
        let said = refused("#!/bin/sh\r\ntrue\r\n").unwrap();
        assert!(said.contains(r#""/bin/sh\r""#), "{said}");
        assert_eq!(refused("#!/bin/sh -e\ntrue\n"), None);
        assert_eq!(refused("true\n"), None, "the shell runs it");
    }

    #[test]
    fn a_program_with_a_missing_loader_is_refused_with_the_loaders_name() {
        let own = if cfg!(target_arch = "x86_64") { EM_X86_64 } else { EM_AARCH64 };
        let said = refused(changed(own, Some("/no/ld.so.1"))).unwrap();
        assert!(said.contains("ELF interpreter /no/ld.so.1 does not exist here"), "{said}");
        assert_eq!(refused(changed(own, None)), None);
    }

    #[test]
    fn a_program_for_another_processor_is_refused_unless_the_kernel_runs_it() {
        // A number that no emulator is registered for.
        let said = refused(changed(4242, None)).unwrap();
        assert!(said.contains("for another processor (number 4242)"), "{said}");
        assert!(kernel_runs(&std::env::current_exe().unwrap()));
    }

    #[test]
    fn missing_programs_are_left_to_the_system() {
        assert_eq!(check_startable("/no/such/program"), Ok(()));
        assert_eq!(check_startable("sh"), Ok(()));
    }
}
