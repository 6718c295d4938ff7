//! `numalab explore` from outside.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::command::{numalab, run, stderr, stdout};
use crate::schemas;

#[test]
fn nodes_and_a_process_are_shown_within_80_columns() {
    let own = std::process::id().to_string();
    for arguments in [&["explore", "--interval", "10ms"][..], &["explore", "--pid", &own]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = stdout(&output);
        assert!(text.contains("node 0"), "{text}");
        let commands = |line: &&str| !line.trim_start().starts_with("numactl");
        let widest = text.lines().filter(commands).map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{text}");
    }
}

#[test]
fn json_names_its_schema_and_the_explored_subject() {
    let own = std::process::id().to_string();
    for (arguments, kind) in [
        (&["--nodes", "--interval", "10ms"][..], "nodes"),
        (&["--pid", &own], "process"),
        (&["--guests"], "guests"),
    ] {
        let output = run(&[&["explore", "--format", "json"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let json = schemas::document(&output.stdout);
        assert_eq!(
            (&json["schema"], &json["explore"]),
            (&"numalab/explore-2".into(), &kind.into())
        );
    }
    let console = tempfile::NamedTempFile::new().expect("made");
    let keys = "(XEN) NODE0 start->0 size->99 free->1\n(XEN) Domain 1 (total: 8):\n    Node 0: 8\n";
    std::fs::write(console.path(), keys).expect("written");
    let file = console.path().to_str().expect("UTF-8");
    let output = run(&["explore", "--format", "json", "--heap", file]);
    let json = schemas::document(&output.stdout);
    assert_eq!(json["xen"]["domains"][0]["pages_by_node"]["0"], 8);
}

#[test]
fn missing_subjects_are_exit_2_and_named() {
    let refuses = |arguments: &[&str], words: &str| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    };
    refuses(&["explore", "--pid", "4194305"], "process 4194305");
    refuses(&["explore", "--heap", "/nonexistent"], "/nonexistent");
    refuses(
        &["explore", "--heap", env!("CARGO_MANIFEST_PATH")],
        "contains no heap; expected heap.bin of",
    );
    refuses(&["explore", "--pid", "1", "--nodes"], "cannot be used with");
    refuses(&["explore", "--watch"], "--watch needs a terminal");
}

/// Only root may see a process of root: the message names the user. Users may see their own
/// processes.
#[test]
fn another_users_process_ends_with_3_and_the_callers_own_is_shown() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT RUN: only root can become somebody else");
        return;
    }
    // The program is copied to a place that an unprivileged user can read.
    let directory = tempfile::tempdir().expect("made");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).expect("opened");
    let program = directory.path().join("numalab");
    std::fs::copy(env!("CARGO_BIN_EXE_numalab"), &program).expect("copied");
    let as_nobody = |process: u32| {
        let mut command = Command::new(&program);
        command.args(["explore", "--pid", &process.to_string()]).uid(65_534).gid(65_534);
        command.output().expect("numalab starts")
    };
    let output = as_nobody(std::process::id());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("sudo numalab explore --pid"), "{}", stderr(&output));
    let mut own = Command::new("sleep").arg("60").uid(65_534).gid(65_534).spawn().expect("started");
    // Until exec is complete, the process is still ours.
    let name = format!("/proc/{}/comm", own.id());
    while std::fs::read_to_string(&name).is_ok_and(|name| name != "sleep\n") {
        thread::sleep(Duration::from_millis(5));
    }
    let output = as_nobody(own.id());
    own.kill().and_then(|()| own.wait()).expect("ended");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("sleep 60"), "{}", stdout(&output));
}

#[test]
fn a_line_of_json_comes_each_time_until_the_reader_leaves() {
    let arguments = ["explore", "--watch", "--format", "json", "--interval", "50ms"];
    let mut watch = numalab(&arguments).stdout(Stdio::piped()).spawn().expect("started");
    let mut text = String::new();
    let mut out = watch.stdout.take().expect("piped");
    let mut piece = [0; 4096];
    while text.matches('\n').count() < 3 {
        let read = out.read(&mut piece).expect("readable");
        assert!(read > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    drop(out);
    assert_eq!(watch.wait().expect("ended").code(), Some(0));
    let last = text.lines().nth(1).expect("a second line");
    let json = schemas::document(last);
    assert!(json["nodes"][0]["rates"]["hit"].is_number(), "{json}");
}

/// A pseudoterminal that runs the program.
struct Watched {
    child: Child,
    terminal: File,
    shown: String,
}

impl Watched {
    fn start() -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("a terminal");
        grantpt(&terminal).expect("granted");
        unlockpt(&terminal).expect("unlocked");
        let size = Winsize { ws_row: 50, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).expect("sized");
        let name = ptsname(&terminal, Vec::new()).expect("named");
        let open = || {
            let path = name.to_str().expect("UTF-8");
            File::options().read(true).write(true).open(path).expect("opened")
        };
        let mut command = numalab(&["explore", "--watch", "--interval", "300ms"]);
        command.env("TERM", "xterm").stdin(OwnedFd::from(open()));
        command.stdout(OwnedFd::from(open())).stderr(OwnedFd::from(open()));
        let child = command.spawn().expect("started");
        Self { child, terminal: File::from(terminal), shown: String::new() }
    }

    /// Reads until `wanted` has been shown `times`.
    fn until(&mut self, wanted: &str, times: usize) {
        let begun = Instant::now();
        let mut piece = [0; 8192];
        while self.shown.matches(wanted).count() < times {
            let read = self.terminal.read(&mut piece).expect("readable");
            self.shown.push_str(&String::from_utf8_lossy(&piece[..read]));
            assert!(begun.elapsed() < Duration::from_secs(60), "{wanted:?} is not shown");
        }
    }

    /// Ends the view, which must restore the terminal.
    fn ends(mut self) {
        self.until("\u{1b}[?1049l", 1);
        assert!(self.shown.contains("\u{1b}[?25h"), "the cursor is shown again");
        let cooked = rustix::termios::LocalModes::ICANON | rustix::termios::LocalModes::ECHO;
        assert_eq!(self.child.wait().expect("ended").code(), Some(0));
        let modes = rustix::termios::tcgetattr(&self.terminal).expect("modes");
        assert!(modes.local_modes.contains(cooked), "the terminal is as it was");
    }
}

impl Drop for Watched {
    /// Cleans up after a test that failed.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_watched_view_renews_itself_and_gives_the_terminal_back_on_q() {
    use std::io::Write;
    let mut watched = Watched::start();
    watched.until("per second, now", 1);
    watched.terminal.write_all(b"q").expect("typed");
    watched.ends();
}

#[test]
fn a_signal_ends_a_watched_view_and_gives_the_terminal_back() {
    let mut watched = Watched::start();
    watched.until("Used for", 1);
    let number = i32::try_from(watched.child.id()).expect("a pid");
    kill_process(Pid::from_raw(number).expect("a pid"), Signal::TERM).expect("sent");
    watched.ends();
}

#[test]
fn memory_elsewhere_than_expected_is_exit_4_with_where_it_is() {
    let own = std::process::id().to_string();
    let expect = |what: &str, more: &[&str]| {
        run(&[&["explore", "--pid", &own, "--expect", what], more].concat())
    };
    let elsewhere = "of its memory on node 63, expected 95.0 % or more; most is on node ";
    for more in [&[][..], &["--watch", "--format", "json"], &["--for", "1m"]] {
        let output = expect("node63>=95%", more);
        assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
        assert!(stderr(&output).contains(elsewhere), "{}", stderr(&output));
        assert!(!stdout(&output).is_empty(), "it shows what it found");
    }
    let begun = Instant::now();
    let output = expect("node0-63>=100%", &["--for", "700ms", "--interval", "200ms"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(begun.elapsed() >= Duration::from_millis(700), "it looked once only");
    assert!(stdout(&output).contains("node 0"), "{}", stdout(&output));
    // The test waits for the command, on the node of its memory or on another.
    let code = expect("threads local>=0%", &[]).status.code();
    assert_eq!(code, Some(0));
    for (arguments, message) in [
        (&["explore", "--expect", "pinned"][..], "expected --pid PID, or --guests"),
        (&["explore", "--guests", "--expect", "node1>95"], "expected node1>=95%, threads local"),
        (&["explore", "--guests", "--for", "1s"], "--expect"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(message), "{arguments:?}: {}", stderr(&output));
    }
}

/// A guest with a vCPU that may run on every node counts as pinned only on a machine with one.
#[test]
fn guests_are_expected_to_be_pinned_and_no_guests_is_a_failure() {
    let mut qemu = Command::new("qemu-system-x86_64")
        .args("-S -display none -nodefaults -m 64 -name gated".split(' '))
        .stdin(Stdio::null())
        .spawn()
        .expect("QEMU starts");
    let until = Instant::now() + Duration::from_secs(120);
    let mut said = String::new();
    while Instant::now() < until && !said.contains("gated") {
        said = stdout(&run(&["explore", "--guests"]));
    }
    let output = run(&["explore", "--guests", "--expect", "node63>=95%"]);
    qemu.kill().expect("it ran");
    qemu.wait().expect("it ended");
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("guest gated: "), "{}", stderr(&output));
    let nowhere = tempfile::tempdir().expect("made");
    std::fs::create_dir_all(nowhere.path().join("proc")).expect("made");
    let cpu = nowhere.path().join("sys/devices/system/cpu/cpu0");
    std::fs::create_dir_all(cpu).expect("made");
    let root = nowhere.path().to_str().expect("UTF-8");
    let output = run(&["explore", "--guests", "--root", root, "--expect", "pinned"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("no guest runs here"), "{}", stderr(&output));
}
