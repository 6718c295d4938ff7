//! Conventions of every command: sizes, lists, exit codes, versions, completions.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::command::{ends, numalab, prints, refuses, stderr, stdout};
use crate::schemas;
use crate::study::with_probe;

#[test]
fn a_size_is_typed_the_same_way_everywhere() {
    for size in ["64", "64M", "64MB", "64MiB", "65536K", "0.0625G", "64M,64"] {
        let plan = prints(&["latency", "--size", size, "--cpus", "0", "--dry-run"]);
        assert!(plan.contains("/64M\n1 cell,"), "{size}: {plan}");
    }
    for memory in ["2048", "2G", "2048MiB"] {
        let toml = prints(&[
            "topology",
            "--emulate",
            "2",
            "--cpus",
            "2",
            "--memory",
            memory,
            "--format",
            "toml",
        ]);
        assert_eq!(toml.matches("memory = \"1G\"").count(), 2, "{memory}: {toml}");
        // A bare number is a count of nodes here, so it is refused as a size.
        let sizes = format!("{},0", if memory == "2048" { "2048M" } else { memory });
        let toml = prints(&["topology", "--emulate", &sizes, "--cpus", "2", "--format", "toml"]);
        assert!(toml.contains("memory = \"2G\""), "{sizes}: {toml}");
    }
}

#[test]
fn cpus_and_nodes_are_chosen_as_numactl_takes_them() {
    let all = prints(&["c2c", "--dry-run"]);
    assert_eq!(prints(&["c2c", "--cpus", "all", "--nodes", "all", "--dry-run"]), all);
    let plan = prints(&["latency", "--size", "4K", "--cpus", "!0", "--dry-run"]);
    assert!(!plan.contains("cpu0/") && plan.contains("cpu1/"), "{plan}");
    refuses(&["latency", "--cpus", "!x", "--dry-run"], 2, &["expected"]);
}

#[test]
fn one_cpu_where_two_are_needed_is_the_users_choice_and_exit_2() {
    refuses(&["loaded", "--cpus", "0", "--dry-run"], 2, &["two cores"]);
    refuses(&["c2c", "--cpus", "0", "--dry-run"], 2, &["two cpus"]);
}

#[test]
fn no_blocks_is_an_error_about_blocks() {
    let commands = ["--commands", "true", "false"];
    refuses(&[&["compare"], &commands[..], &["--blocks", "0"]].concat(), 2, &["--blocks"]);
    refuses(&["study", "run", "--dry-run", "noise", "--blocks", "0"], 2, &["expected 1 to 100000"]);
}

#[test]
fn a_comparison_of_commands_begins_with_their_times_and_names_the_one_that_fails() {
    let directory = tempfile::tempdir().expect("a directory");
    let compared = |commands: [&str; 2]| {
        let words = ["compare", "--blocks", "2", "--commands", commands[0], commands[1]];
        numalab(&words).current_dir(directory.path()).output().expect("numalab starts")
    };
    let output = compared(["true", "sleep 0.02"]);
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().take(2).collect();
    assert_eq!(lines.len(), 2, "{text}");
    for (line, command) in lines.iter().zip(["true: ", "sleep 0.02: "]) {
        let (_, figures) = line.split_once(command).unwrap_or_else(|| panic!("{command}: {text}"));
        let (seconds, _) = figures.split_once(" s, half of ").expect(&text);
        assert!(seconds.parse::<f64>().is_ok_and(|seconds| seconds > 0.0), "{text}");
    }
    let output = compared(["true", "exit 7"]);
    let said = stderr(&output);
    assert!(said.contains("exit 7") && said.contains("exit code 7"), "{said}");
}

#[test]
fn completions_know_studies_knobs_patterns_pages_and_kernels() {
    let script = prints(&["completions", "bash"]);
    for value in [
        "guest-scaling",
        "numa_balancing",
        "page-local",
        "thp",
        "write-nt",
        "backports",
        "epyc-7763-nps4",
    ] {
        assert!(script.contains(value), "{value}");
    }
}

#[test]
fn every_machine_that_is_listed_is_shown_and_can_be_read_again() {
    let directory = tempfile::tempdir().expect("a directory");
    for line in prints(&["machine", "list"]).lines() {
        let (name, title) = line.split_once(' ').expect("a name and a title");
        let text = prints(&["machine", "show", name]);
        assert_eq!(text.lines().next(), Some(&*format!("# {}", title.trim())));
        let file = directory.path().join(name);
        std::fs::write(&file, text).expect("the file is written");
        let shown = prints(&["topology", "--topology", file.to_str().expect("UTF-8")]);
        assert!(shown.contains("node 0"), "{shown}");
    }
    refuses(&["machine", "show", "cray-1"], 2, &["cray-1: expected one of epyc-7452-cxl"]);
}

#[test]
fn a_version_names_the_build() {
    let long = prints(&["--version"]);
    let (version, built) = long.split_once('\n').expect("two lines");
    assert_eq!(prints(&["-V"]).trim(), version);
    let linked = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
    let expected = format!("built for {}-", std::env::consts::ARCH);
    assert!(built.starts_with(&expected) && built.contains(linked), "{built}");
    assert!(built.contains("rustc 1."), "{built}");
    let build = if cfg!(debug_assertions) { "(debug build)" } else { "(commit " };
    assert!(version.contains(build), "{version}");
    let directory = tempfile::tempdir().expect("a directory");
    let words = ["latency", "--size", "4K", "--cpus", "0", "--budget", "50ms", "--format", "json"];
    let output = numalab(&words).current_dir(directory.path()).output().expect("numalab starts");
    let json = schemas::document(&output.stdout);
    let version = version.trim().trim_start_matches("numalab ");
    assert_eq!(json["version"], version);
}

#[test]
fn watching_a_process_until_it_ends_is_not_a_failure() {
    let mut process = Command::new("sleep").arg("600").spawn().expect("sleep starts");
    let pid = process.id().to_string();
    let watch = ["explore", "--pid", &pid, "--watch", "--interval", "200ms", "--format", "json"];
    let mut watching = numalab(&watch);
    let watching = watching.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watching = watching.spawn().expect("numalab starts");
    let mut shown = BufReader::new(watching.stdout.take().expect("piped"));
    assert_ne!(shown.read_line(&mut String::new()).expect("readable"), 0);
    process.kill().and_then(|()| process.wait()).expect("ended");
    std::io::copy(&mut shown, &mut std::io::sink()).expect("readable");
    let output = watching.wait_with_output().expect("it ends");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("has ended"), "{said}");
    refuses(&watch, 2, &["does not exist"]);
}

#[test]
fn pages_to_be_sent_leave_out_command_lines_and_say_so_unless_asked_not_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let page_of = |more: &[&str]| {
        let words = ["latency", "--size", "4K", "--cpus", "0", "--budget", "50ms"];
        let output = numalab(&[&words[..], more].concat()).current_dir(directory.path()).output();
        String::from_utf8(output.expect("numalab starts").stdout).expect("UTF-8")
    };
    let page = page_of(&["--format", "md"]);
    assert!(
        page.contains("left out, hash ") && page.contains("Left out of this page: command"),
        "{page}"
    );
    assert!(!page.contains("--budget 50ms"), "{page}");
    let page = page_of(&["--format", "md", "--redact", "no"]);
    assert!(page.contains("--budget 50ms") && !page.contains("left out, hash"), "{page}");
}

#[test]
fn kept_reports_of_studies_carry_no_kernel_command_line() {
    let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/studies");
    let files = std::fs::read_dir(kept).expect("kept reports").map(|file| file.expect("a file"));
    for file in files.filter(|file| file.path().extension().is_some_and(|end| end == "md")) {
        let text = std::fs::read_to_string(file.path()).expect("UTF-8");
        let lines = text.lines().filter(|line| line.starts_with("| kernel\\_command\\_line"));
        for line in lines {
            assert!(line.contains("| left out, hash "), "{}: {line}", file.path().display());
        }
    }
}

#[test]
fn a_dry_run_states_the_time_and_the_most_that_it_may_be_and_a_budget_holds() {
    let plan = prints(&["latency", "--size", "4K", "--cpus", "0", "--dry-run"]);
    assert!(plan.contains("where nothing disturbs them, at most 20 s"), "{plan}");
    // Each cell takes 60 ms at least, on any machine.
    let sizes: Vec<String> = (64..104).map(|size| format!("{size}M")).collect();
    let sizes = sizes.join(",");
    let said = prints(&["latency", "--cpus", "0", "--size", &sizes, "--budget", "2s", "-q"]);
    assert!(said.contains("the run ended early: "), "{said}");
}

/// `-q` suppresses progress and hints, but not the result.
#[test]
fn a_quiet_command_prints_its_result_and_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let latency = ["latency", "--size", "64K", "--cpus", "0", "--budget", "1s", "-q"];
    let compare = ["compare", "--commands", "true", "true", "--blocks", "1", "-q"];
    for (words, result) in [(&latency[..], "ns"), (&compare, "Is `true` better than `true`?")] {
        let output = numalab(words).current_dir(directory.path()).output().expect("it starts");
        let [out, err] = [output.stdout, output.stderr].map(String::from_utf8);
        assert!(out.as_ref().is_ok_and(|text| text.contains(result)), "{words:?}: {out:?}");
        assert_eq!(err.as_deref(), Ok(""), "{words:?}");
    }
}

#[test]
fn endless_files_are_refused_by_every_command_that_reads_files() {
    for words in [
        &["compare", "/dev/zero", "/dev/zero"][..],
        &["study", "show", "/dev/zero"],
        &["study", "run", "--dry-run", "/dev/zero"],
        &["explore", "--heap", "/dev/zero"],
        &["report", "/dev/zero"],
        &["topology", "--topology", "/dev/zero"],
        &["scale", "--arch", "/dev/zero", "--sequential", "0", "--dry-run"],
    ] {
        refuses(words, 2, &["is a device, expected a file"]);
    }
}

#[test]
fn an_input_cannot_steer_the_terminal_and_is_quoted_in_part() {
    let directory = tempfile::tempdir().expect("made");
    let file = directory.path().join("numbers");
    let long = format!("\u{1b}[2J\u{7}{}", "x".repeat(1_000_000));
    std::fs::write(&file, long).expect("written");
    let file = file.to_str().expect("UTF-8");
    let output = Command::new(env!("CARGO_BIN_EXE_numalab")).args(["compare", file, file]).output();
    let output = output.expect("it starts");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{}", said.len());
    assert!(!said.contains('\u{1b}') && !said.contains('\u{7}'), "{}", &said[..100]);
    assert!(said.len() < 10_000 && said.contains("characters)"), "{}", said.len());
}

#[test]
fn help_that_cannot_be_written_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let help = Command::new(env!("CARGO_BIN_EXE_numalab")).arg("--help").stdout(full).output();
    let output = help.expect("it starts");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("standard output"), "{output:?}");
}

#[test]
fn a_file_beyond_the_limit_of_sizes_is_an_error_that_names_it() {
    let place = tempfile::tempdir().expect("made");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 0; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_numalab")]);
    let words = ["latency", "--size", "4K", "--cpus", "0", "--budget", "1s", "-o"];
    command.args(words).arg(place.path().join("run"));
    let (_, said) = ends(&mut command, 1);
    assert!(said.contains("File too large") && said.contains("/run"), "{said}");
}

/// Others must not decide what root runs, and the program that a user names is no exception.
#[test]
fn root_runs_no_typed_command_that_anyone_may_have_put_on_the_path() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT RUN: the path of root, without being root");
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let open = with_probe(place.path(), "open", 0o777, "bad");
    let good = with_probe(place.path(), "good", 0o755, "good");
    let path = format!("{open}:{good}:{}", std::env::var("PATH").expect("a path"));
    let root = place.path().to_str().expect("UTF-8");
    let knob = place.path().join("proc/sys/vm/swappiness");
    std::fs::create_dir_all(knob.parent().expect("a parent")).expect("made");
    std::fs::write(&knob, "60\n").expect("written");
    for words in [
        &["bind", "--numa=auto"][..],
        &["mark"],
        &["knobs", "run", "--root", root, "vm.swappiness=10"],
        &["profile", "--source", "referenced"],
    ] {
        let mut command = numalab(&[words, &["--", "probe"]].concat());
        let (out, _) = ends(command.env("PATH", &path), 0);
        assert!(out.lines().any(|line| line == "good"), "{words:?}: {out}");
    }
}
