//! Knobs from outside: listed, set for a command, and restored after a kill at any step.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::command::{NUMALAB, numalab, stderr, stdout};
use crate::schemas;

/// System calls at which a run is killed: all that involve files and processes.
const STEPS: &str = "openat,read,write,fsync,fdatasync,unlink,flock,mkdir,close,statx,\
                     clone3,waitid,rt_sigaction";
/// Number of the last steps of a run at which it is killed: loading the program takes the first half
/// of all and changes nothing.
const STEPS_KILLED: usize = 200;

/// Files of a small machine, with their initial contents.
const FILES: [(&str, &str); 7] = [
    ("proc/sys/kernel/numa_balancing", "1"),
    ("proc/sys/vm/swappiness", "60"),
    ("proc/sys/vm/zone_reclaim_mode", "0"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
    ("sys/kernel/mm/ksm/run", "0"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "ondemand"),
];
const SETTINGS: [&str; 7] = [
    "numa_balancing=0",
    "vm.swappiness=10",
    "zone_reclaim_mode=7",
    "thp_enabled=never",
    "/sys/kernel/mm/ksm/run=1",
    "governor=performance",
    "numa_balancing=2",
];

struct Lab {
    top: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        let lab = Self { top: tempfile::tempdir().expect("a directory") };
        for (file, value) in FILES {
            lab.write(file, &format!("{value}\n"));
        }
        lab
    }

    fn path(&self) -> &Path {
        self.top.path()
    }

    fn write(&self, file: &str, text: &str) {
        let file = self.path().join(file);
        fs::create_dir_all(file.parent().expect("a parent")).expect("made");
        fs::write(file, text).expect("written");
    }

    fn value(&self, file: &str) -> String {
        fs::read_to_string(self.path().join(file)).expect("readable").trim().to_owned()
    }

    /// Runs `numalab knobs <arguments>` on this machine of files.
    fn knobs(&self, arguments: &[&str]) -> Vec<String> {
        let (first, rest) = arguments.split_first().expect("a subcommand");
        let root = self.path().to_str().expect("UTF-8");
        let words = ["knobs", first, "--root", root].into_iter().chain(rest.iter().copied());
        words.map(str::to_owned).collect()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        numalab(&[]).args(self.knobs(arguments)).output().expect("numalab starts")
    }

    /// Runs a command with all settings, under strace with these arguments.
    fn traced_run(&self, strace: &[&str]) -> Output {
        let mut arguments = vec!["run", "--quiet"];
        arguments.extend(SETTINGS);
        arguments.extend(["--", "true"]);
        let mut command = Command::new("strace");
        command.args(strace).arg(NUMALAB).args(self.knobs(&arguments));
        command.stdin(Stdio::null()).output().expect("strace starts")
    }

    #[track_caller]
    fn assert_as_before(&self, when: &str) {
        for (file, value) in FILES {
            assert_eq!(self.value(file), value, "{file} {when}");
        }
    }
}

/// Checks for strace, without which a kill cannot be aimed at a step.
fn has_strace() -> bool {
    let there = Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_ok();
    let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|value| value != "0");
    assert!(there || !required, "strace is missing: apt-get install strace");
    if !there {
        eprintln!("NOT RUN: strace is missing");
    }
    there
}

/// Returns each system call of a whole run with the index of its occurrence.
fn steps(lab: &Lab) -> Vec<(String, usize)> {
    let trace = lab.path().join("trace");
    let trace_option = trace.to_str().expect("UTF-8").to_owned();
    let output = lab.traced_run(&["-qq", "-o", &trace_option, "-e", &format!("trace={STEPS}")]);
    assert!(output.status.success(), "{}", stderr(&output));
    let mut steps = Vec::new();
    let mut counts = std::collections::BTreeMap::new();
    for line in fs::read_to_string(trace).expect("a trace").lines() {
        let Some((call, _)) = line.split_once('(') else { continue };
        let count: &mut usize = counts.entry(call.to_owned()).or_default();
        *count += 1;
        steps.push((call.to_owned(), *count));
    }
    steps
}

/// Returns true if every step is tested, instead of every second one.
fn is_long() -> bool {
    std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1")
}

#[test]
fn a_run_killed_at_any_step_leaves_nothing_that_restore_does_not_put_back() {
    if !has_strace() {
        return;
    }
    let lab = Lab::new();
    let all = steps(&lab);
    lab.assert_as_before("after a whole run");
    let last = &all[all.len().saturating_sub(STEPS_KILLED)..];
    let every = if is_long() { 1 } else { 2 };
    let (mut killed, mut refused) = (0, 0);
    for (call, count) in last.iter().step_by(every) {
        let inject = format!("inject={call}:signal=KILL:when={count}");
        let output = lab.traced_run(&["-qq", "-o", "/dev/null", "-e", &inject]);
        let when = format!("after a kill at {call} {count}");
        assert!(!output.status.success(), "{when}: {}", stderr(&output));
        killed += 1;
        let changed = FILES.iter().any(|(file, value)| lab.value(file) != *value);
        if changed {
            let next = lab.run(&["run", "numa_balancing=0", "--", "true"]);
            assert_eq!(next.status.code(), Some(125), "{when}: {}", stderr(&next));
            assert!(stderr(&next).contains("numalab knobs restore"), "{when}");
            refused += 1;
        }
        let restored = lab.run(&["restore"]);
        assert!(restored.status.success(), "{when}: {}", stderr(&restored));
        lab.assert_as_before(&when);
    }
    assert_eq!(killed, last.len().div_ceil(every));
    assert!(refused > killed / 4, "only {refused} of {killed} kills came while knobs were set");
}

#[test]
fn knobs_hold_while_the_command_runs_and_its_exit_code_is_passed_on() {
    let lab = Lab::new();
    let seen = lab.path().join("seen");
    let from = lab.path().join("proc/sys/kernel/numa_balancing");
    let script = format!("cat {} > {}; exit 7", from.display(), seen.display());
    let output =
        lab.run(&["run", "numa_balancing=0", "governor=performance", "--", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(seen).expect("the command ran").trim(), "0");
    assert!(stderr(&output).contains("numa_balancing: 0 (was 1)"), "{}", stderr(&output));
    lab.assert_as_before("after the command");
}

#[test]
fn a_signal_ends_the_command_and_puts_the_knobs_back() {
    let lab = Lab::new();
    let up = lab.path().join("up");
    let script = format!("touch {}; exec sleep 600", up.display());
    let words = lab.knobs(&["run", "vm.swappiness=10", "--", "sh", "-c", &script]);
    let mut child = numalab(&[]).args(words).stderr(Stdio::null()).spawn().expect("numalab starts");
    while !up.exists() {
        assert!(child.try_wait().expect("waited").is_none(), "it ended early");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(lab.value("proc/sys/vm/swappiness"), "10");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill starts").success());
    let status = child.wait().expect("waited");
    assert_eq!(status.code(), Some(143));
    lab.assert_as_before("after the signal");
}

#[test]
fn a_dry_run_writes_nothing() {
    let lab = Lab::new();
    let output = lab.run(&["run", "--dry-run", "numa_balancing=0", "--", "touch", "nothing"]);
    assert!(output.status.success());
    assert!(stdout(&output).contains("numa_balancing: 1 would be 0"), "{}", stdout(&output));
    lab.assert_as_before("after a dry run");
    assert!(!lab.path().join("var").exists());
    assert_eq!(stdout(&lab.run(&["restore", "--dry-run"])), "nothing to restore\n");
}

#[test]
fn nonsense_and_missing_files_have_different_exit_codes() {
    let lab = Lab::new();
    let refused = |arguments: &[&str], code: i32, words: &[&str]| {
        let output = lab.run(arguments);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        for word in words {
            assert!(message.contains(word), "{arguments:?}: no {word:?} in: {message}");
        }
    };
    refused(&["run", "numa_balancing", "--", "true"], 125, &["numa_balancing", "KNOB=VALUE"]);
    refused(&["run", "nonsense=1", "--", "true"], 125, &["nonsense", "numalab knobs list"]);
    refused(&["run", "/etc/passwd=1", "--", "true"], 125, &["/etc/passwd"]);
    refused(&["run", "smt=off", "--", "true"], 125, &["smt", "this kernel has no"]);
    refused(&["run", "vm.swappiness=1", "--", "/no/such/program"], 127, &["/no/such/program"]);
    lab.assert_as_before("after what was refused");
}

#[test]
fn the_list_says_which_knobs_work_here_and_why_others_do_not() {
    let lab = Lab::new();
    lab.write("sys/devices/system/node/has_memory", "0\n");
    let listed = stdout(&lab.run(&["list"]));
    let (can, cannot) = listed.split_once("Cannot act here").expect("both sections");
    assert!(can.contains("thp_enabled") && can.contains("madvise"), "{listed}");
    assert!(cannot.contains("memory is on one node"), "{listed}");
    let json = stdout(&lab.run(&["list", "numa_balancing", "vm.swappiness", "--format", "json"]));
    let json = schemas::document(&json);
    assert_eq!(json["knobs"][0]["value"], "1");
    assert_eq!(json["knobs"][0]["acts"], false);
    assert_eq!(json["knobs"][1]["files"][0], "/proc/sys/vm/swappiness");
}

#[test]
fn a_dry_run_refuses_a_value_that_the_files_rule_out() {
    let lab = Lab::new();
    lab.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    for (setting, words) in [
        ("thp_enabled=foo", "\"foo\", expected one of always, madvise, never"),
        ("swappiness=abc", "\"abc\", expected a number"),
        ("swappiness=999", "\"999\", expected a number from 0 to 200"),
        ("vm.swappiness=-1", "expected a number from 0 to 200"),
        ("zone_reclaim_mode=1.5", "expected a number from 0 to 7"),
        ("ksm_run=3", "expected a number from 0 to 2"),
        ("compact_memory=2", "expected 1"),
        ("huge_2m_pages=many", "expected a number, from 0"),
    ] {
        let output = lab.run(&["run", setting, "--dry-run", "--", "true"]);
        assert_ne!(output.status.code(), Some(0), "{}", stdout(&output));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    for setting in
        ["thp_enabled=never", "swappiness=10", "zone_reclaim_mode=0x3", "compact_memory=1"]
    {
        let output = lab.run(&["run", setting, "--dry-run", "--", "true"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

#[test]
fn a_root_without_sys_and_proc_is_refused() {
    let lab = Lab::new();
    lab.write("file", "");
    for root in [lab.path().join("nowhere"), lab.path().join("file")] {
        let output = numalab(&["knobs", "list", "--root"]).arg(&root).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        assert!(stderr(&output).contains("expected a directory with sys/"), "{}", stderr(&output));
    }
}
