//! The guest's console: kept for diagnostics, apart from results.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::thread::JoinHandle;

use super::lines::Lines;

/// Lines that are kept.
const KEPT_LINES: usize = 40;
const PANIC: &str = "Kernel panic - not syncing";
/// What the kernel says when its memory is too small for the image; it goes on without.
const NO_ROOM: &str = "Initramfs unpacking failed: write error";
const OUT_OF_MEMORY: [&str; 2] =
    ["Out of memory: Killed process", "System is deadlocked on memory"];

/// The last lines of a guest's console.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsoleTail(pub Vec<String>);

/// Listens to the console of one guest.
#[derive(Debug)]
pub struct Console {
    path: PathBuf,
    seen: Arc<Mutex<Seen>>,
    thread: Option<JoinHandle<()>>,
}

/// What has come over the console.
#[derive(Debug, Default)]
struct Seen {
    kept: VecDeque<String>,
    lines: Lines,
    panic: Option<String>,
    out_of_memory: Option<String>,
    no_room: bool,
}

impl fmt::Display for ConsoleTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("; its console showed nothing");
        }
        f.write_str("; the last lines of its console:")?;
        self.0.iter().try_for_each(|line| write!(f, "\n  | {line}"))
    }
}

impl Console {
    /// Listens on a socket at `path` for QEMU to connect; all that comes is also
    /// sent to `copy`.
    pub fn listen(path: &Path, copy: Option<Sender<Vec<u8>>>) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = Arc::clone(&seen);
        let thread = thread::spawn(move || {
            // Without a connection there is nothing to show, which is shown.
            if let Ok((stream, _)) = listener.accept() {
                follow(stream, &shared, copy.as_ref());
            }
        });
        Ok(Self { path: path.to_path_buf(), seen, thread: Some(thread) })
    }

    /// The last lines so far.
    pub fn tail(&self) -> ConsoleTail {
        let seen = self.lock();
        let partial = Some(seen.lines.partial()).filter(|line| !line.is_empty());
        ConsoleTail(seen.kept.iter().cloned().chain(partial).collect())
    }

    /// Whether there is nothing more to wait for: the kernel has panicked, or has no image.
    pub fn is_lost(&self) -> bool {
        let seen = self.lock();
        seen.panic.is_some() || seen.no_room
    }

    /// Whether the image did not fit into the guest's memory.
    pub fn has_no_room(&self) -> bool {
        self.lock().no_room
    }

    /// The line with the kernel's panic.
    pub fn panic(&self) -> Option<String> {
        self.lock().panic.clone()
    }

    /// The line in which the kernel says that memory ran out.
    pub fn out_of_memory(&self) -> Option<String> {
        self.lock().out_of_memory.clone()
    }

    /// Waits until all that QEMU sent has been read; call when QEMU has ended.
    pub fn finish(&mut self) {
        // A QEMU that never connected leaves the thread waiting for this.
        drop(UnixStream::connect(&self.path));
        if let Some(thread) = self.thread.take() {
            // The thread does not panic; if it did, what it saw is still here.
            let _ = thread.join();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.finish();
    }
}

fn follow(mut stream: UnixStream, seen: &Mutex<Seen>, copy: Option<&Sender<Vec<u8>>>) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        let part = &bytes[..count];
        seen.lock().unwrap_or_else(PoisonError::into_inner).add(part);
        if let Some(copy) = copy {
            // Whoever listened has lost interest; diagnostics go on.
            let _ = copy.send(part.to_vec());
        }
    }
}

impl Seen {
    fn add(&mut self, bytes: &[u8]) {
        for line in self.lines.add(bytes) {
            self.keep(line);
        }
    }

    fn keep(&mut self, line: String) {
        if line.contains(PANIC) {
            self.panic.get_or_insert_with(|| line.clone());
        }
        if OUT_OF_MEMORY.iter().any(|words| line.contains(words)) {
            self.out_of_memory.get_or_insert_with(|| line.clone());
        }
        self.no_room |= line.contains(NO_ROOM);
        if self.kept.len() == KEPT_LINES {
            self.kept.pop_front();
        }
        self.kept.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn console_of(text: &str) -> (Console, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("console");
        let mut console = Console::listen(&path, None).unwrap();
        UnixStream::connect(&path).unwrap().write_all(text.as_bytes()).unwrap();
        console.finish();
        (console, directory)
    }

    #[test]
    fn the_last_lines_are_kept_without_what_only_terminals_read() {
        let many: String = (0..100).map(|n| format!("line {n}\r\n")).collect();
        let (console, _directory) = console_of(&format!("{many}\x1b[2J\x1b[01;01Hend"));
        let ConsoleTail(lines) = console.tail();
        assert_eq!(lines.first().map(String::as_str), Some("line 60"));
        assert_eq!(lines.last().map(String::as_str), Some("end"));
    }

    #[test]
    fn panics_and_lack_of_memory_are_recognised() {
        let (console, _directory) = console_of(
            "[ 1.0] Out of memory: Killed process 71 (eater) total-vm:9kB\n\
             [ 2.0] Kernel panic - not syncing: sysrq triggered crash\n\
             [ 2.1] Kernel panic - not syncing: again\n",
        );
        assert!(console.is_lost() && !console.has_no_room());
        assert!(console.out_of_memory().unwrap().contains("(eater)"));
        assert!(console.panic().unwrap().ends_with("sysrq triggered crash"));
    }

    #[test]
    fn an_image_that_did_not_fit_is_the_end_though_the_kernel_goes_on() {
        let (console, _directory) = console_of(
            "[ 2.942024] Initramfs unpacking failed: write error\n\
             [ 4.724801] Failed to execute /init (error -2)\n",
        );
        assert!(console.is_lost() && console.has_no_room());
    }

    #[test]
    fn a_qemu_that_never_connects_does_not_hold_the_end_up() {
        let directory = tempfile::tempdir().unwrap();
        let mut console = Console::listen(&directory.path().join("console"), None).unwrap();
        console.finish();
        assert_eq!(console.tail().to_string(), "; its console showed nothing");
    }
}
