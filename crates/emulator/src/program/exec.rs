//! Programs that a process goes on as: QEMU's user mode would let the host run them, so that we
//! start QEMU for them, as we were started.

use std::ffi::CString;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::guest_memory;

/// Words of a command line or an environment at most.
const MOST_WORDS: usize = 1 << 16;
/// Scripts that name scripts that name scripts: more is a circle (execve(2)).
const MOST_INTERPRETERS: usize = 4;

/// Goes on as another program under the QEMU that this is, with what execve(2) was given. Comes
/// back if there is no such program, or none for this QEMU: the system's own answer is the right
/// one then.
pub fn follow(target: &str, [path, arguments, environment]: [u64; 3]) {
    let arguments = guest_memory::strings(arguments, MOST_WORDS);
    let environment = guest_memory::strings(environment, MOST_WORDS);
    let Some(words) = command_line(target, &guest_memory::path(path), arguments) else { return };
    let texts = |words: Vec<Vec<u8>>| -> Option<Vec<CString>> {
        words.into_iter().map(|word| CString::new(word).ok()).collect()
    };
    let (Some(words), Some(environment)) = (texts(words), texts(environment)) else { return };
    let pointers = |words: &[CString]| -> Vec<*const libc::c_char> {
        words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(&words), pointers(&environment));
    // SAFETY: the path and both lists are C strings that live until the call returns, the lists
    // ended by null; it returns only if it failed, which leaves this process as it was.
    unsafe { libc::execve(c"/proc/self/exe".as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
}

/// QEMU's command line for a program.
fn command_line(target: &str, path: &str, arguments: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
    let (path, arguments) = interpreted(target, path.to_owned(), arguments)?;
    let mut words = own_options(&fs::read("/proc/self/cmdline").ok()?)?;
    let name = arguments.first().cloned().unwrap_or_else(|| path.clone().into_bytes());
    words.extend([b"-0".to_vec(), name, path.into_bytes()]);
    words.extend(arguments.into_iter().skip(1));
    Some(words)
}

/// The program that runs in the end, and its arguments.
fn interpreted(
    target: &str,
    mut path: String,
    mut arguments: Vec<Vec<u8>>,
) -> Option<(String, Vec<Vec<u8>>)> {
    for _ in 0..MOST_INTERPRETERS {
        let head = executable_head(Path::new(&path))?;
        if is_program(&head, target) {
            return Some((path, arguments));
        }
        let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
        let line = String::from_utf8_lossy(line).trim().to_owned();
        let (interpreter, argument) = line.split_once(' ').unwrap_or((&line, ""));
        let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
        let mut before = vec![interpreter.as_bytes().to_vec()];
        before.extend(argument.map(|argument| argument.as_bytes().to_vec()));
        before.push(path.into_bytes());
        arguments.splice(0..arguments.len().min(1), before);
        path = interpreter.to_owned();
    }
    None
}

/// The first bytes of a file that may be run.
fn executable_head(path: &Path) -> Option<Vec<u8>> {
    let file = fs::File::open(path).ok()?;
    let about = file.metadata().ok()?;
    let name = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: the name is a C string.
    let may_run = unsafe { libc::access(name.as_ptr(), libc::X_OK) } == 0;
    if !about.is_file() || about.permissions().mode() & 0o111 == 0 || !may_run {
        return None;
    }
    let mut head = Vec::new();
    file.take(256).read_to_end(&mut head).ok()?;
    Some(head)
}

/// Whether a file is a program of 64 bits for QEMU's target (elf(5): `e_machine`).
fn is_program(head: &[u8], target: &str) -> bool {
    let number = if target == "aarch64" { 0xb7 } else { 0x3e };
    let machine = head.strip_prefix(b"\x7fELF\x02\x01").and_then(|rest| rest.get(12..14));
    machine == Some(&[number, 0])
}

/// QEMU's own words of the command line of this process: itself, and its options that name the
/// plugin and the root.
fn own_options(command_line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = command_line.split(|byte| *byte == 0).map(<[u8]>::to_vec);
    let mut own = vec![words.next()?];
    while let Some(option) = words.next().filter(|word| word.starts_with(b"-")) {
        let value = words.next()?;
        if option != b"-0" {
            own.extend([option, value]);
        }
    }
    Some(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<u8>> {
        text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn the_next_program_runs_under_the_same_plugin() {
        let line = b"/bin/qemu-x86_64\0-plugin\0p.so,report=r\0-L\0/root\0-0\0sh\0/bin/sh\0-c\0x\0";
        let expected = words("/bin/qemu-x86_64 -plugin p.so,report=r -L /root");
        assert_eq!(own_options(line), Some(expected));
        assert_eq!(own_options(b"/bin/qemu-x86_64\0prog\0-x\0"), Some(words("/bin/qemu-x86_64")));
    }

    #[test]
    fn a_script_is_run_by_its_interpreter_under_the_script_s_name() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        fs::write(&script, "#!/bin/sh -e\n").unwrap();
        let path = script.to_string_lossy().into_owned();
        let target = std::env::consts::ARCH;
        assert!(interpreted(target, path.clone(), words("me 1")).is_none(), "it may not run");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let (program, arguments) = interpreted(target, path.clone(), words("me 1")).unwrap();
        assert_eq!(program, "/bin/sh");
        assert_eq!(arguments, words(&format!("/bin/sh -e {path} 1")));
        assert!(interpreted("riscv64", "/bin/none".to_owned(), Vec::new()).is_none());
    }
}
