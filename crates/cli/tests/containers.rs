//! Installed container runtimes: each command works in them, or reports in one line what is missing
//! and how to provide it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The container's view of the kernel's file systems.
#[derive(Clone, Copy, PartialEq)]
enum View {
    /// Both.
    Whole,
    /// An empty `/sys`.
    WithoutSys,
    /// Empty `/sys` and `/proc`.
    WithoutBoth,
}

/// A runtime, with the command that runs a program in a view.
struct Runtime {
    name: &'static str,
    views: &'static [View],
    command: fn(View, &Path) -> Command,
}

const ALL: &[View] = &[View::Whole, View::WithoutSys, View::WithoutBoth];

const RUNTIMES: [Runtime; 5] = [
    Runtime { name: "unshare", views: ALL, command: unshare },
    Runtime { name: "bwrap", views: ALL, command: bubblewrap },
    Runtime { name: "podman with runc", views: &[View::Whole], command: podman },
    Runtime { name: "systemd-nspawn", views: &[View::Whole], command: nspawn },
    Runtime { name: "charliecloud", views: &[View::Whole], command: charliecloud },
];

fn unshare(view: View, _directory: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"]);
    let hide = match view {
        View::Whole => "",
        View::WithoutSys => "mount -t tmpfs none /sys && ",
        View::WithoutBoth => "mount -t tmpfs none /sys && mount -t tmpfs none /proc && ",
    };
    command.args(["sh", "-c", &format!("{hide}exec \"$@\""), "sh"]);
    command
}

fn bubblewrap(view: View, directory: &Path) -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--bind"]);
    command.args([directory, directory]);
    command.args(match view {
        View::Whole => &["--proc", "/proc"][..],
        View::WithoutSys => &["--proc", "/proc", "--tmpfs", "/sys"],
        View::WithoutBoth => &["--tmpfs", "/proc", "--tmpfs", "/sys"],
    });
    command
}

/// Runs Podman on the machine's own files. crun does not start with mixed control group versions,
/// and Podman's default limits may exceed our own.
fn podman(_view: View, directory: &Path) -> Command {
    let mut command = Command::new("podman");
    command.args(["--runtime", "runc", "--cgroup-manager", "cgroupfs", "run", "--rm"]);
    command.args(["--network", "none", "--ulimit", "nofile=1024:1024"]);
    let volume = format!("{0}:{0}", directory.display());
    command.args(["--ulimit", "nproc=1024:1024", "--volume", &volume, "--workdir"]);
    command.arg(directory).args(["--rootfs", "/:O"]);
    command
}

/// Makes the root of a container that gets the machine's `/usr`, as neither runtime accepts `/` itself.
fn root_with_usr(directory: &Path) -> PathBuf {
    let root = directory.join("root");
    for name in ["usr", "etc", "proc", "sys", "dev", "tmp", "run", "root", "home"] {
        fs::create_dir_all(root.join(name)).expect("made");
    }
    for name in ["bin", "sbin", "lib", "lib64"] {
        let link = root.join(name);
        // Its target is there only in the container.
        if fs::symlink_metadata(&link).is_err() {
            symlink(Path::new("usr").join(name), link).expect("made");
        }
    }
    for name in ["passwd", "group", "hosts", "resolv.conf", "os-release"] {
        fs::write(root.join("etc").join(name), "").expect("written");
    }
    root
}

/// Returns the directory with the programs under test.
fn programs() -> &'static str {
    let program = Path::new(env!("CARGO_BIN_EXE_numalab"));
    program.parent().and_then(Path::to_str).expect("UTF-8")
}

fn nspawn(_view: View, directory: &Path) -> Command {
    let mut command = Command::new("systemd-nspawn");
    // Without systemd there is no machine or unit to register.
    command.args(["-q", "--register=no", "--keep-unit", "--bind-ro=/usr"]);
    command.arg(format!("--bind-ro={}", programs()));
    command.arg(format!("--bind={}", directory.display()));
    command.arg(format!("--chdir={}", directory.display()));
    command.arg("-D").arg(root_with_usr(directory));
    command
}

fn charliecloud(_view: View, directory: &Path) -> Command {
    let mut command = Command::new("ch-run");
    // It needs both, and makes places in a root that it may write to.
    command.env("USER", "root").env("HOME", "/root").args(["--write", "--bind", "/usr"]);
    command.args(["--bind", programs(), "--bind"]).arg(directory).arg("--cd").arg(directory);
    command.arg(root_with_usr(directory)).arg("--");
    command
}

/// Returns the runtimes that work here with this view; reports the others.
fn working(view: View) -> Vec<&'static Runtime> {
    let directory = tempfile::tempdir().expect("a directory");
    let works = |runtime: &&Runtime| {
        let mut command = (runtime.command)(view, directory.path());
        let is_working = command.arg("true").output().is_ok_and(|output| output.status.success());
        if !is_working {
            eprintln!("NOT RUN: {} is not installed here or may not start", runtime.name);
        }
        is_working
    };
    RUNTIMES.iter().filter(|runtime| runtime.views.contains(&view)).filter(works).collect()
}

fn run(runtime: &Runtime, view: View, directory: &Path, words: &[&str]) -> Output {
    let mut command = (runtime.command)(view, directory);
    command.arg(env!("CARGO_BIN_EXE_numalab")).args(words).current_dir(directory);
    command.stdin(Stdio::null()).output().expect("the runtime starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_container_with_proc_measures_looks_binds_and_checks_its_health() {
    for runtime in working(View::Whole) {
        let directory = tempfile::tempdir().expect("a directory");
        let here = directory.path();
        let views = [View::Whole, View::WithoutSys];
        for view in views.into_iter().filter(|view| runtime.views.contains(view)) {
            for words in [&["explore", "--nodes"][..], &["bind", "--numa=0", "--", "true"]] {
                let output = run(runtime, view, here, words);
                assert_eq!(
                    output.status.code(),
                    Some(0),
                    "{} {words:?}: {}",
                    runtime.name,
                    said(&output)
                );
            }
        }
        let measure =
            ["measure", "--quick", "--repeat", "3", "--budget", "3s", "-q", "-o", "measured"];
        let output = run(runtime, View::Whole, here, &measure);
        assert_eq!(output.status.code(), Some(0), "{}: {}", runtime.name, said(&output));
        let runs = fs::read_dir(here.join("measured")).expect("runs").map(|run| {
            let path = run.expect("a run").path();
            path.to_str().expect("UTF-8").to_owned()
        });
        let runs: Vec<String> = runs.collect();
        let mut health = vec!["fleet", "health", "-q", "--budget", "3s", "-o", "health"];
        health.extend(runs.iter().flat_map(|run| ["--baseline", run.as_str()]));
        let output = run(runtime, View::Whole, here, &health);
        let code = output.status.code();
        // Another program on the machine may have slowed it down, or kept it uncertain.
        assert!(matches!(code, Some(0 | 4 | 6)), "{} {code:?}: {}", runtime.name, said(&output));
    }
}

#[test]
fn without_proc_and_sys_commands_name_the_mount_that_is_missing() {
    for runtime in working(View::WithoutBoth) {
        let directory = tempfile::tempdir().expect("a directory");
        let commands: [(&[&str], i32); 4] = [
            (&["explore", "--nodes"], 3),
            (&["latency", "--size", "64K", "-q"], 3),
            (&["measure", "--quick", "-q"], 3),
            (&["bind", "--numa=0", "--", "true"], 125),
        ];
        for (words, code) in commands {
            let output = run(runtime, View::WithoutBoth, directory.path(), words);
            let said = said(&output);
            let what = format!("{} {words:?}: {said}", runtime.name);
            assert_eq!(output.status.code(), Some(code), "{what}");
            assert!(output.stdout.is_empty(), "{what}");
            assert!(said.contains("/proc/meminfo") && said.contains("mount -t proc"), "{what}");
        }
    }
}
