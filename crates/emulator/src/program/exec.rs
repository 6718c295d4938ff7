//! Follows execve(2): QEMU's user mode would let the host run the new program natively, so the
//! plugin starts QEMU for it with this process's own options.

use std::ffi::CString;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use numalab_marks::libnuma::{FIRST_BYTES, is_used_by};
use numalab_memory_model::space::Placement;

use super::guest_memory;
use crate::target::Target;

/// Maximum number of words of a command line or an environment.
const MOST_WORDS: usize = 1 << 16;
/// Maximum number of nested script interpreters; a longer chain is a loop (execve(2)).
const MOST_INTERPRETERS: usize = 4;
/// Longest first line of a script.
const MOST_OF_LINE: u64 = 256;

/// State that a thread keeps across execve(2) (sched_setaffinity(2), set_mempolicy(2)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keeps {
    /// The cpus that the thread may use, if restricted.
    pub cpus: Option<Vec<usize>>,
    /// The memory policy, if set.
    pub policy: Option<Placement>,
}

/// Replaces this process by QEMU running the program that execve(2) names. Returns if there is no
/// such program, or none for this QEMU; the system's own answer is then correct.
pub fn follow(target: &Target, keeps: &Keeps, [path, arguments, environment]: [u64; 3]) {
    let arguments = guest_memory::strings(arguments, MOST_WORDS);
    let mut environment = guest_memory::strings(environment, MOST_WORDS);
    // QEMU itself must not load the program's preloads.
    let preloads = preloads();
    environment.retain(|variable| Some(variable) != preloads.as_ref());
    let path = guest_memory::path(path);
    let Some(words) = command_line(target, keeps, &path, arguments) else { return };
    let texts = |words: Vec<Vec<u8>>| -> Option<Vec<CString>> {
        words.into_iter().map(|word| CString::new(word).ok()).collect()
    };
    // A word with a NUL cannot be passed on; the kernel never gives one.
    let (Some(words), Some(environment)) = (texts(words), texts(environment)) else { return };
    let pointers = |words: &[CString]| -> Vec<*const libc::c_char> {
        words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(&words), pointers(&environment));
    // SAFETY: the path and the strings of both null-terminated lists live until the call returns;
    // it returns only on failure, which leaves this process unchanged.
    unsafe { libc::execve(c"/proc/self/exe".as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
}

/// Builds QEMU's command line for a program.
fn command_line(
    target: &Target,
    keeps: &Keeps,
    path: &str,
    arguments: Vec<Vec<u8>>,
) -> Option<Vec<Vec<u8>>> {
    let (path, arguments) = interpreted(target, path.to_owned(), arguments)?;
    let mut words = own_options(&fs::read("/proc/self/cmdline").ok()?, keeps)?;
    // The preload is this library, which is for the host's architecture.
    if target.name == std::env::consts::ARCH
        && is_used_by(&first_bytes(Path::new(&path), FIRST_BYTES)?)
    {
        words.extend([b"-E".to_vec(), preloads()?]);
    }
    let name = arguments.first().cloned().unwrap_or_else(|| path.clone().into_bytes());
    words.extend([b"-0".to_vec(), name, path.into_bytes()]);
    words.extend(arguments.into_iter().skip(1));
    Some(words)
}

/// Resolves scripts to the program that runs in the end, with its arguments.
fn interpreted(
    target: &Target,
    mut path: String,
    mut arguments: Vec<Vec<u8>>,
) -> Option<(String, Vec<Vec<u8>>)> {
    for _ in 0..MOST_INTERPRETERS {
        let head = executable_head(Path::new(&path))?;
        if is_program(&head, target.elf_machine) {
            return Some((path, arguments));
        }
        let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
        let line = String::from_utf8_lossy(line).trim().to_owned();
        let (interpreter, argument) = line.split_once(' ').unwrap_or((&line, ""));
        let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
        let mut before = vec![interpreter.as_bytes().to_vec()];
        before.extend(argument.map(|argument| argument.as_bytes().to_vec()));
        before.push(path.into_bytes());
        // execve(2) replaces a script's first argument by the interpreter, its argument and the
        // path.
        arguments.splice(0..arguments.len().min(1), before);
        path = interpreter.to_owned();
    }
    None
}

/// Returns the first bytes of an executable file.
fn executable_head(path: &Path) -> Option<Vec<u8>> {
    let about = fs::metadata(path).ok()?;
    let name = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: the name is a C string.
    let may_run = unsafe { libc::access(name.as_ptr(), libc::X_OK) } == 0;
    if !about.is_file() || about.permissions().mode() & 0o111 == 0 || !may_run {
        return None;
    }
    first_bytes(path, MOST_OF_LINE)
}

/// Returns up to `most` first bytes of a file.
fn first_bytes(path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut first = Vec::new();
    fs::File::open(path).ok()?.take(most).read_to_end(&mut first).ok()?;
    Some(first)
}

/// Returns the variable that preloads this plugin into a program.
fn preloads() -> Option<Vec<u8>> {
    Some([b"LD_PRELOAD=", own_file()?.as_slice()].concat())
}

/// Returns the path of this shared object (dladdr(3)).
fn own_file() -> Option<Vec<u8>> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let here = own_file as *const libc::c_void;
    // SAFETY: `found` is ours; its name, if any, is a C string that stays valid.
    unsafe {
        let known = libc::dladdr(here, found.as_mut_ptr()) != 0;
        let name = known.then(|| found.assume_init().dli_fname).filter(|name| !name.is_null())?;
        Some(std::ffi::CStr::from_ptr(name).to_bytes().to_vec())
    }
}

/// Returns true for a 64-bit program for a processor (elf(5): `e_machine`).
fn is_program(head: &[u8], elf_machine: u16) -> bool {
    // `e_machine` is at byte 18, which is 12 after the prefix.
    let machine = head.strip_prefix(b"\x7fELF\x02\x01").and_then(|rest| rest.get(12..14));
    machine == Some(elf_machine.to_le_bytes().as_slice())
}

/// Returns the path of the program that this QEMU runs.
pub fn running() -> Option<String> {
    program_of(&fs::read("/proc/self/cmdline").ok()?)
}

fn program_of(command_line: &[u8]) -> Option<String> {
    let program = CommandLine::of(command_line)?.program?;
    Some(String::from_utf8_lossy(program).into_owned())
}

/// A command line of QEMU, on which each option has a value.
struct CommandLine<'l> {
    /// QEMU's path.
    own: &'l [u8],
    options: Vec<[&'l [u8]; 2]>,
    /// The program's path, after which its arguments follow.
    program: Option<&'l [u8]>,
}

impl<'l> CommandLine<'l> {
    /// Splits it; `None` if an option has no value.
    fn of(line: &'l [u8]) -> Option<Self> {
        let mut words = line.split(|byte| *byte == 0);
        let (own, mut options) = (words.next()?, Vec::new());
        loop {
            match words.next() {
                Some(option) if option.starts_with(b"-") => options.push([option, words.next()?]),
                program => return Some(Self { own, options, program }),
            }
        }
    }
}

/// Returns the arguments on this process's command line that are for QEMU: its path and the options
/// for the plugin and the root, without the program's name and variables.
fn own_options(command_line: &[u8], keeps: &Keeps) -> Option<Vec<Vec<u8>>> {
    let line = CommandLine::of(command_line)?;
    let mut own = vec![line.own.to_vec()];
    for [option, value] in line.options {
        let mut value = value.to_vec();
        if option == b"-plugin" {
            value = keeping(String::from_utf8(value).ok()?, keeps).into_bytes();
        }
        if option != b"-0" && option != b"-E" {
            own.extend([option.to_vec(), value]);
        }
    }
    Some(own)
}

/// Returns the plugin's argument with the settings that a thread keeps.
fn keeping(mut plugin: String, keeps: &Keeps) -> String {
    let cpus = keeps.cpus.iter().map(|cpus| {
        let words: Vec<String> = cpus.iter().map(usize::to_string).collect();
        ("threads", words.join("."))
    });
    for (name, value) in
        cpus.chain(keeps.policy.iter().map(|policy| ("policy", policy.to_string())))
    {
        let name = format!(",{name}=");
        if let Some(begin) = plugin.find(&name) {
            let behind = begin + 1;
            let end = plugin[behind..].find(',').map_or(plugin.len(), |at| behind + at);
            plugin.replace_range(begin..end, "");
        }
        plugin = plugin + &name + &value;
    }
    plugin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<u8>> {
        text.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn the_next_program_runs_under_the_same_plugin() {
        let line = b"/bin/qemu-x86_64\0-plugin\0p.so,report=r\0-L\0/root\0-E\0A=b\0-0\0sh\0/bin/sh\0-c\0x\0";
        let expected = words("/bin/qemu-x86_64 -plugin p.so,report=r -L /root");
        let none = Keeps::default();
        assert_eq!(own_options(line, &none), Some(expected));
        assert_eq!(program_of(line).as_deref(), Some("/bin/sh"));
        let bare = own_options(b"/bin/qemu-x86_64\0prog\0-x\0", &none);
        assert_eq!(bare, Some(words("/bin/qemu-x86_64")));
    }

    #[test]
    fn the_next_program_has_the_cpus_and_the_policy_of_the_thread_that_becomes_it() {
        let keeps = Keeps { cpus: Some(vec![2, 3]), policy: Some(Placement::Bind(vec![1])) };
        let kept = |plugin: &str| keeping(plugin.to_owned(), &keeps);
        let expected = "p.so,report=r,threads=2.3,policy=bind.1";
        assert_eq!(kept("p.so,threads=0.2.1.3,report=r"), expected);
        assert_eq!(kept("p.so,policy=users,report=r,threads=0"), expected);
        assert_eq!(keeping(expected.to_owned(), &Keeps::default()), expected);
    }

    #[test]
    fn a_script_is_run_by_its_interpreter_under_the_script_s_name() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        fs::write(&script, "#!/bin/sh -e\n").unwrap();
        let path = script.to_string_lossy().into_owned();
        let target = Target::of(std::env::consts::ARCH).unwrap();
        assert!(interpreted(target, path.clone(), words("me 1")).is_none(), "it may not run");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let (program, arguments) = interpreted(target, path.clone(), words("me 1")).unwrap();
        assert_eq!(program, "/bin/sh");
        assert_eq!(arguments, words(&format!("/bin/sh -e {path} 1")));
        assert!(interpreted(target, "/bin/none".to_owned(), Vec::new()).is_none());
    }
}
