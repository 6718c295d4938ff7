//! The guest's console: kept for diagnostics, separate from results.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::thread::JoinHandle;

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat, open};
use rustix::pipe::fcntl_setpipe_size;

use super::lines::Lines;
use super::serial::SerialWriter;

/// Size of the console's pipe: more than a guest prints while this process waits for a cpu, and the
/// kernel's limit without privileges (`/proc/sys/fs/pipe-max-size`, pipe(7)).
const PIPE_BYTES: usize = 1 << 20;

const KEPT_LINES: usize = 40;
const PANIC: &str = "Kernel panic - not syncing";
/// The kernel's message when its memory is too small for the image; it continues without one.
const NO_ROOM: &str = "Initramfs unpacking failed: write error";
const OUT_OF_MEMORY: [&str; 2] =
    ["Out of memory: Killed process", "System is deadlocked on memory"];

/// The last lines of a guest's console.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsoleTail(pub Vec<String>);

/// Reads the console of one guest.
#[derive(Debug)]
pub struct Console {
    /// Keeps the pipe open until QEMU has opened it.
    writer: Option<File>,
    seen: Arc<Mutex<ConsoleOutput>>,
    copy: Option<SerialWriter>,
    thread: Option<JoinHandle<()>>,
}

/// The relevant output so far.
#[derive(Debug, Default)]
struct ConsoleOutput {
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
    /// Creates a named pipe at `path` for QEMU to write to; all output is also added to `copy`.
    ///
    /// A socket would account some 800 bytes for each character written by a serial port and be
    /// full after a few lines. The guest's port would then wait for this process, and virtual time
    /// would depend on the host's load.
    pub fn listen(path: &Path, copy: Option<SerialWriter>) -> io::Result<Self> {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        // Opening a pipe for reading blocks until there is a writer, unless it is O_NONBLOCK. The
        // writer opened here then prevents an end of file before QEMU has opened its end.
        let reader =
            open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
        let writer = File::options().write(true).open(path)?;
        // If this fails, the guest may have to wait for this process, which costs only time.
        let _ = fcntl_setpipe_size(&reader, PIPE_BYTES);
        // From here on the thread reads in blocking mode.
        fcntl_setfl(&reader, OFlags::empty())?;
        let seen = Arc::new(Mutex::new(ConsoleOutput::default()));
        let (shared, to) = (Arc::clone(&seen), copy.clone());
        let thread = thread::spawn(move || follow(File::from(reader), &shared, to.as_ref()));
        Ok(Self { writer: Some(writer), seen, copy, thread: Some(thread) })
    }

    /// Closes the pipe's own writer after QEMU has opened it, so that QEMU's end closes the
    /// console.
    pub fn opened(&mut self) {
        self.writer = None;
    }

    /// Returns the last lines so far.
    pub fn tail(&self) -> ConsoleTail {
        let seen = self.lock();
        let partial = Some(seen.lines.partial()).filter(|line| !line.is_empty());
        ConsoleTail(seen.kept.iter().cloned().chain(partial).collect())
    }

    /// Reports whether waiting is pointless: the kernel has panicked, or has no image.
    pub fn is_lost(&self) -> bool {
        let seen = self.lock();
        seen.panic.is_some() || seen.no_room
    }

    /// Reports whether the image did not fit into the guest's memory.
    pub fn has_no_room(&self) -> bool {
        self.lock().no_room
    }

    /// Returns the line with the kernel's panic.
    pub fn panic(&self) -> Option<String> {
        self.lock().panic.clone()
    }

    /// Returns the line in which the kernel reports that memory ran out.
    pub fn out_of_memory(&self) -> Option<String> {
        self.lock().out_of_memory.clone()
    }

    /// Waits until everything that QEMU wrote has been read; to be called after QEMU has ended.
    pub fn finish(&mut self) {
        // While our own writer is open, the thread never sees the end of the pipe.
        self.opened();
        // The copy has no reader while this waits.
        self.copy.iter().for_each(SerialWriter::is_last);
        if let Some(thread) = self.thread.take() {
            // The thread does not panic; if it did, the lines read so far are still here.
            let _ = thread.join();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ConsoleOutput> {
        // A poisoned lock still holds the lines that a diagnosis needs.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.finish();
    }
}

fn follow(mut pipe: File, seen: &Mutex<ConsoleOutput>, copy: Option<&SerialWriter>) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = pipe.read(&mut bytes) {
        let part = &bytes[..count];
        seen.lock().unwrap_or_else(PoisonError::into_inner).add(part);
        if let Some(copy) = copy {
            copy.add(part);
        }
    }
    copy.into_iter().for_each(SerialWriter::close);
}

impl ConsoleOutput {
    fn add(&mut self, bytes: &[u8]) {
        for line in self.lines.add(bytes) {
            self.keep(line);
        }
    }

    fn keep(&mut self, line: String) {
        // Only the first panic counts: later ones are its consequences.
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
    use super::super::serial::{MOST_BYTES, serial};
    use super::*;
    use std::io::Write;

    fn console_of(text: &str) -> (Console, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("console");
        let mut console = Console::listen(&path, None).unwrap();
        std::fs::write(&path, text).unwrap();
        console.finish();
        (console, directory)
    }

    #[test]
    fn a_guest_that_prints_does_not_wait_until_we_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("console");
        let mut console = Console::listen(&path, None).unwrap();
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        let mut qemu = File::from(open(&path, flags, Mode::empty()).unwrap());
        let nobody_reads = console.lock();
        // QEMU's serial ports write one character at a time, and never wait.
        for _ in 0..100_000 {
            qemu.write_all(b".").unwrap();
        }
        drop((nobody_reads, qemu));
        console.finish();
        assert!(!console.tail().0.is_empty());
    }

    #[test]
    fn a_guest_that_prints_faster_than_it_is_shown_waits_and_nothing_is_lost() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("console");
        let (copy, shown) = serial();
        let mut console = Console::listen(&path, Some(copy)).unwrap();
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        let mut qemu = File::from(open(&path, flags, Mode::empty()).unwrap());
        let (mut written, mut refused) = (0, 0);
        // More than this would mean that there is no limit.
        while refused < 100 && written < 4 * MOST_BYTES {
            match qemu.write(&[b'.'; 4096]) {
                Ok(count) => (written, refused) = (written + count, 0),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    refused += 1;
                    thread::sleep(std::time::Duration::from_millis(5));
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(written <= MOST_BYTES + PIPE_BYTES + 8192, "{written} bytes wait");
        drop(qemu);
        // The end of the console does not depend on a reader.
        console.finish();
        assert_eq!(shown.rest().map(|part| part.len()).sum::<usize>(), written);
    }

    #[test]
    fn a_console_ends_though_its_copy_has_no_reader() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("console");
        let (copy, shown) = serial();
        let mut console = Console::listen(&path, Some(copy)).unwrap();
        drop(shown);
        std::fs::write(&path, vec![b'.'; MOST_BYTES + PIPE_BYTES]).unwrap();
        console.finish();
        assert_eq!(console.tail().0.len(), 1);
    }

    #[test]
    fn the_last_lines_are_kept_without_terminal_control_sequences() {
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
    fn an_image_that_did_not_fit_ends_the_guest_though_the_kernel_continues() {
        let (console, _directory) = console_of(
            "[ 2.942024] Initramfs unpacking failed: write error\n\
             [ 4.724801] Failed to execute /init (error -2)\n",
        );
        assert!(console.is_lost() && console.has_no_room());
    }

    #[test]
    fn a_qemu_that_never_connects_does_not_delay_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let mut console = Console::listen(&directory.path().join("console"), None).unwrap();
        console.finish();
        assert_eq!(console.tail().to_string(), "; its console showed nothing");
    }
}
