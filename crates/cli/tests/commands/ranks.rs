//! Ranks and their binding, from outside and without a cluster.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use numalab_topology::CpuSet;

use crate::command::{self, numalab, stdout};
use crate::schemas;

/// Returns the output of a command that must end with `code`, or the message of its failure.
fn ends(command: &mut Command, code: i32) -> String {
    let (out, err) = command::ends(command, code);
    if code == 0 { out } else { err }
}

/// Returns the first node with memory, by the kernel's number.
fn a_node() -> String {
    let listed = fs::read_to_string("/sys/devices/system/node/has_memory");
    let listed = listed.unwrap_or_else(|_| "0".to_owned());
    listed.trim().split([',', '-']).next().expect("a node").to_owned()
}

/// Returns the cpus on which this process may run.
fn usable_cpus() -> CpuSet {
    numalab_host::current_affinity().expect("readable")
}

#[test]
fn a_bound_command_runs_under_the_policy_of_its_rank() {
    let option = format!("--numa={}", a_node());
    for (policy, word) in [("bind", "bind"), ("preferred", "prefer"), ("interleave", "interleave")]
    {
        let show = format!("grep -m1 -o '{word}:{}' /proc/self/numa_maps", a_node());
        let shown = ends(
            &mut numalab(&["bind", &option, "--policy", policy, "-q", "--", "sh", "-c", &show]),
            0,
        );
        assert!(shown.starts_with(word), "{policy}: {shown}");
    }
}

#[test]
fn binding_prints_the_suites_lines_and_passes_the_exit_code_on() {
    let option = format!("--numa={}", a_node());
    // The suite's scripts ask for the lines with --verbose.
    let said = |words: &[&str]| {
        let command = [&["bind", &option], words, &["--", "sh", "-c", "exit 7"]].concat();
        let output = numalab(&command).env("NUMALAB_RANK", "1").env("NUMALAB_RANKS", "2").output();
        let output = output.expect("numalab starts");
        assert_eq!(output.status.code(), Some(7));
        stdout(&output)
    };
    let expected = format!(
        "[Rank 1] Binding to NUMA domain {0}\n[Rank 1] Executing sh -c 'exit 7', equivalent to: numactl --membind={0} sh -c 'exit 7'\n",
        a_node()
    );
    assert_eq!(said(&[]), expected);
    assert_eq!(said(&["--verbose"]), expected);
}

/// Checks the properties of a command of systemd-run(1) with systemd itself, as those of a unit.
fn verify(properties: &str, unit: &str, section: &str) {
    let place = tempfile::tempdir().expect("made");
    let file = place.path().join(unit);
    let lines = properties.split_whitespace().filter(|word| word.contains('='));
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    let command = if section == "Service" { "ExecStart=/bin/true\n" } else { "" };
    fs::write(&file, format!("[{section}]\n{command}{lines}")).expect("written");
    let mut analyze = Command::new("systemd-analyze");
    let output = analyze.args(["verify", "--man=no"]).arg(&file).output();
    let output = output.expect("scripts/setup test installs systemd");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*errors), (Some(0), ""), "{lines}");
}

#[test]
fn a_dry_run_shows_the_binding_for_other_tools_which_they_take() {
    let option = format!("--numa={}", a_node());
    let bind = ["bind", &option, "--cpus", "node", "--dry-run", "--", "true"];
    let shown = ends(&mut numalab(&bind), 0);
    let (_, numactl) = shown.split_once("equivalent to: ").expect("numactl's options");
    let of = |tool: &str| {
        let mut lines =
            shown.lines().filter_map(|line| line.strip_prefix(tool)?.strip_prefix(": "));
        lines.next().unwrap_or_else(|| panic!("no {tool} in {shown}"))
    };
    for line in [numactl.lines().next().expect("a line"), of("taskset"), of("OpenMP")] {
        let status = Command::new("sh").args(["-c", line]).status().expect("sh is there");
        assert!(status.success(), "{line}");
    }
    verify(of("cgroup"), "numalab.slice", "Slice");
    verify(of("systemd"), "numalab.service", "Service");
    assert!(of("torchrun").contains("--no-python numactl --cpunodebind="), "{shown}");
    assert!(of("Kubernetes").contains("--topology-manager-policy=single-numa-node"), "{shown}");
    assert!(of("Kubernetes").contains("--cpu-manager-policy=static"), "{shown}");
    let as_rank = ends(numalab(&bind).env("NUMALAB_RANK", "0").env("NUMALAB_RANKS", "1"), 0);
    assert!(!as_rank.contains("taskset"), "ranks print two lines: {as_rank}");
}

#[test]
fn a_listed_cpu_is_in_the_lines_for_other_tools_and_an_unusable_one_is_refused() {
    let (option, cpu) = (format!("--numa={}", a_node()), usable_cpus().first().expect("a cpu").0);
    let bind = |cpus: &str, more: &[&str]| {
        let cpus = format!("--cpus={cpus}");
        numalab(&[&["bind", &option, &cpus], more, &["--", "true"]].concat())
    };
    let shown = ends(&mut bind(&cpu.to_string(), &["--dry-run"]), 0);
    for line in [
        format!("numactl --physcpubind={cpu} --membind={} true", a_node()),
        format!("taskset: taskset -c {cpu} true"),
        format!("srun: srun -n1 --cpu-bind=mask_cpu:0x{:x} ", 1 << cpu),
        format!("-p CPUAffinity={cpu} -p NUMAPolicy=bind"),
    ] {
        assert!(shown.contains(&line), "{line} in {shown}");
    }
    for more in [&["--dry-run"][..], &[]] {
        let error = ends(&mut bind("4000", more), 125);
        let expected = format!("expected one of cpus {}", usable_cpus());
        assert!(error.contains("--cpus: cpu 4000 ") && error.contains(&expected), "{error}");
    }
    let ranks = ["--dry-run", "--ranks", "2"];
    let error = ends(&mut bind(&format!("{cpu},4000"), &ranks), 125);
    assert!(error.contains("cpu 4000"), "{error}");
}

#[test]
fn a_command_with_a_missing_interpreter_or_for_another_processor_is_explained() {
    let place = tempfile::tempdir().expect("made");
    let file = place.path().join("program");
    let name = file.to_str().expect("UTF-8");
    fs::write(&file, "#!/no/such/perl -w\n").expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("set");
    let option = format!("--numa={}", a_node());
    let bind = ["bind", "-q", &option, "--", name];
    for command in [&bind[..], &["mark", "--", name], &["profile", "--", name]] {
        let error = ends(&mut numalab(command), 126);
        assert!(error.contains("interpreter \"/no/such/perl\""), "{command:?}: {error}");
    }
    // The kernel's name for an architecture that has no processors any more.
    let mut program = fs::read(command::NUMALAB).expect("readable");
    program[18..20].copy_from_slice(&[0x50, 0]);
    fs::write(&file, program).expect("written");
    let error = ends(&mut numalab(&bind), 126);
    assert!(error.contains("for another processor"), "{error}");
}

#[test]
fn options_alone_are_those_of_latency_and_a_dry_run_starts_nothing() {
    let shown = ends(&mut numalab(&["bind", "--dry-run", "--", "--size=2048"]), 0);
    assert!(shown.contains("No --numa given: binding to node 0"), "{shown}");
    let command = shown.lines().find(|line| line.contains("equivalent to"));
    assert!(command.is_some_and(|line| line.ends_with("latency --size=2048")), "{shown}");
    let shown =
        ends(&mut numalab(&["bind", "--dry-run", "--executable", "/no/such", "--", "--csv=x"]), 0);
    assert!(shown.contains("/no/such --csv=x"), "{shown}");
    assert!(!Path::new("x").exists());
}

#[test]
fn impossible_bindings_are_refused_with_possible_ones() {
    let two = format!("--numa={0},{0}", a_node());
    let error = ends(&mut numalab(&["bind", &two, "--", "true"]), 125);
    assert!(error.contains("srun or mpirun"), "{error}");
    let mut of_three = numalab(&["bind", &two, "--", "true"]);
    let error = ends(of_three.env("NUMALAB_RANK", "0").env("NUMALAB_RANKS", "3"), 125);
    assert!(error.contains("2 nodes for 3 ranks"), "{error}");
    let error = ends(&mut numalab(&["bind", "--numa=900", "--", "true"]), 125);
    assert!(error.contains("node 900"), "{error}");
    let error = ends(&mut numalab(&["bind", "--numa=x", "--", "true"]), 125);
    assert!(error.contains("expected a node"), "{error}");
    let error = ends(&mut numalab(&["bind", "--numa=auto", "--", "/no/such/program"]), 127);
    assert!(error.contains("/no/such/program"), "{error}");
}

/// Runs `numalab bind --numa=auto --dry-run` with these environment variables only.
fn bind_as(variables: &str, more: &[&str], code: i32) -> String {
    let arguments = [&["bind", "--numa=auto", "--dry-run"], more, &["--", "true"]].concat();
    let mut command = numalab(&arguments);
    command.env_clear().envs(variables.split_whitespace().filter_map(|pair| pair.split_once('=')));
    ends(&mut command, code)
}

#[test]
fn ranks_are_known_by_the_variables_of_each_launcher_and_unknown_places_are_refused() {
    let flux = "FLUX_JOB_SIZE=8 FLUX_JOB_NNODES=2 FLUX_TASK_RANK=5 FLUX_TASK_LOCAL_ID=1";
    let said = bind_as(flux, &[], 0);
    let known = "[Rank 5] Known as rank 5 of 8, local rank 1 (Flux)\n[Rank 5] Binding";
    assert!(said.starts_with(known), "{said}");
    let pals = "PALS_RANKID=9 PALS_LOCAL_RANKID=1 PALS_LOCAL_SIZE=8 PMIX_RANK=9";
    let said = bind_as(pals, &[], 0);
    assert!(said.starts_with("[Rank 9] Known as rank 9, local rank 1 of 8 (PALS)\n"), "{said}");
    assert!(bind_as("RANK=gold", &[], 0).starts_with("[Rank 0] Binding"));
    let said = bind_as("PBS_TASKNUM=3 PBS_NODENUM=0 PBS_JOBID=7.master", &[], 125);
    assert!(said.contains("started by pbsdsh, which does not say which of this host's"), "{said}");
    let said = bind_as("PMIX_RANK=3", &[], 125);
    assert!(said.contains("rank 3") && said.contains("NUMALAB_LOCAL_RANK"), "{said}");
}

#[test]
fn ranks_asked_for_are_started_in_a_jobs_shell_and_refused_within_a_rank() {
    let of_step = |step: &str, tasks: u32| {
        format!("SLURM_STEP_ID={step} SLURM_PROCID=0 SLURM_STEP_NUM_TASKS={tasks} SLURM_LOCALID=0")
    };
    // The shells of `salloc` and of `srun -n1 --pty bash`.
    for shell in [of_step("4294967290", 1), of_step("0", 1)] {
        let shown = bind_as(&shell, &["--ranks", "4"], 0);
        assert!(shown.contains("[Rank 3] Binding"), "{shell}: {shown}");
    }
    let said = bind_as(&of_step("0", 2), &["--ranks", "4"], 125);
    assert!(said.contains("--ranks 4") && said.contains("SLURM_PROCID=0"), "{said}");
}

#[test]
fn a_process_of_a_job_that_is_not_a_rank_says_which_part_it_is() {
    for (variables, part) in [
        ("SLURM_JOB_ID=7 SLURM_STEP_ID=4294967290 SLURM_PROCID=0", "the interactive shell"),
        ("SLURM_JOB_ID=7 SLURM_STEP_ID=4294967291 SLURM_PROCID=0", "the batch script"),
        ("SLURM_JOB_ID=7 SLURM_STEP_ID=4294967292 SLURM_PROCID=0", "the extern step"),
        ("SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=8", "the batch script"),
        ("SLURM_JOBID=7", "a shell"),
    ] {
        let said = bind_as(variables, &[], 0);
        assert!(said.starts_with(&format!("Not a rank: {part}")), "{variables}: {said}");
        assert!(said.contains("of SLURM job 7") && said.contains("[Rank 0] Binding"), "{said}");
    }
    let rank = bind_as("SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_LOCALID=0", &[], 0);
    assert!(rank.starts_with("[Rank 0] Known as rank 0, local rank 0 (srun)\n"), "{rank}");
    assert!(bind_as("", &[], 0).starts_with("[Rank 0] Binding"));
    let said = bind_as("SGE_TASK_ID=3", &[], 0);
    let numbered = "Not a rank: task 3 of a job array (SGE_TASK_ID), bound as one process; \
                    NUMALAB_RANK makes it a rank\n[Rank 0] Binding";
    assert!(said.starts_with(numbered), "{said}");
    let said = bind_as("WORLD_SIZE=8", &[], 0);
    let of_world =
        "Not a rank: one of 8 processes of an unknown launcher (WORLD_SIZE), bound as one";
    assert!(said.starts_with(of_world), "{said}");
    let said = bind_as("FLUX_JOB_SIZE=4", &[], 125);
    assert!(said.contains("but FLUX_TASK_RANK is not: set it"), "{said}");
    let script = "SLURM_JOB_ID=7 SLURM_STEP_ID=4294967291 SLURM_PROCID=0";
    let step = "SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1";
    for around in [script, step, "A=1"] {
        let said = bind_as(&format!("{around} PARALLEL_JOBSLOT=2"), &[], 0);
        assert!(said.contains("Not a rank: slot 2 of GNU parallel"), "{around}: {said}");
    }
}

#[test]
fn of_two_mpiruns_around_a_rank_the_inner_one_is_named() {
    for (outer, inner, name) in [
        ("mpirun.openmpi", "mpirun.mpich", "MPICH's mpirun"),
        ("mpirun.mpich", "mpirun.openmpi", "Open MPI's mpirun"),
    ] {
        let mut command = Command::new(outer);
        command.args(["-n", "1", inner, "-n", "2", command::NUMALAB]);
        command.args(["bind", "--numa=auto", "--dry-run", "--", "true"]).stdin(Stdio::null());
        command
            .envs(["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"].map(|of| (of, "1")));
        command.envs([("OMPI_MCA_rmaps_base_oversubscribe", "1"), ("HYDRA_LAUNCHER", "fork")]);
        let said = ends(&mut command, 0);
        let known = format!("[Rank 1] Known as rank 1 of 2, local rank 1 of 2 ({name})");
        assert!(said.contains(&known), "{inner} in {outer}: {said}");
    }
}

/// Returns the only directory in `parent`.
fn only(parent: &Path) -> PathBuf {
    let mut entries = fs::read_dir(parent).expect("results");
    let found = entries.next().expect("one run").expect("readable").path();
    assert!(entries.next().is_none(), "one run");
    found
}

fn document(directory: &Path) -> serde_json::Value {
    let directory = directory.to_str().expect("UTF-8");
    let json = ends(&mut numalab(&["report", directory, "--format", "json"]), 0);
    schemas::document(&json)
}

/// A launch leaves the same kind of directory as a run without ranks, and every command for runs
/// takes it; the suite's table and CSV are unchanged.
#[test]
fn ranks_leave_a_result_directory_that_report_compare_and_fleet_take() {
    let place = tempfile::tempdir().expect("made");
    let of = |name: &str| place.path().join("fleet").join(name);
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let (one, two) = (path(&of("host1")), path(&of("host2")));
    let options = ["--size", "64K,1M", "--pages", "4k", "--iterations", "2000"];
    for (parent, ranks) in [(&one, &["--ranks", "1"][..]), (&two, &["--ranks", "1", "--serial"])] {
        let table =
            ends(&mut numalab(&[&["latency", "-o", parent], ranks, &options[..]].concat()), 0);
        assert!(table.contains("| Ranks | Cores   | NUMA |"), "{table}");
    }
    let (first, second) = (only(Path::new(&one)), only(Path::new(&two)));
    for file in ["run.json", "cells.jsonl", "samples.csv", "report.md", "report.html"] {
        assert!(first.join(file).is_file(), "no {file}");
    }
    let found = document(&second);
    assert_eq!(found["schema"], "numalab/run-2");
    let cells = found["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 2);
    for (cell, work) in cells.iter().zip([2_000, 2_000]) {
        assert_eq!((&cell["kind"], &cell["team"]), (&"latency".into(), &"serial".into()));
        assert_eq!(cell["placements"][0]["cpu"], cell["worker"]["cpu"]);
        let samples = cell["samples"].as_array().expect("samples");
        let loads: u64 = samples.iter().map(|sample| sample["work"].as_u64().expect("work")).sum();
        assert_eq!((samples.len(), loads), (20, work));
        let starts: Vec<u64> =
            samples.iter().map(|sample| sample["start_ns"].as_u64().expect("a time")).collect();
        assert!(starts.is_sorted() && starts[0] < starts[19], "{starts:?}");
    }
    // The cell of a run without ranks has the same name, so that the two compare.
    let cpu = cells[0]["worker"]["cpu"].to_string();
    let here = path(&of("host3"));
    let arguments = ["latency", "-o", &here, "--cpus", &cpu, "--size", "64K", "--pages", "4k"];
    ends(&mut numalab(&[&arguments[..], &["--budget", "1s", "-q"]].concat()), 0);
    let alone = only(Path::new(&here));
    assert_eq!(document(&alone)["cells"][0]["id"], cells[0]["id"]);
    let compared =
        ends(&mut numalab(&["compare", &path(&alone), &path(&second), "--format", "json"]), 0);
    let compared = schemas::document(&compared);
    assert_eq!(compared["cells"].as_array().expect("cells").len(), 1, "{compared}");
    let collected =
        ends(&mut numalab(&["fleet", "collect", &path(&place.path().join("fleet"))]), 0);
    assert!(collected.contains("3 runs"), "{collected}");
}

#[test]
fn streams_of_ranks_are_one_cell_with_the_sum_of_all() {
    let place = tempfile::tempdir().expect("made");
    let parent = place.path().to_str().expect("UTF-8");
    let arguments = ["bandwidth", "--ranks", "1", "--size", "4M", "-o", parent, "-q"];
    ends(&mut numalab(&arguments), 0);
    let found = document(&only(place.path()));
    let cell = &found["cells"][0];
    assert_eq!((&cell["kind"], &found["name"]), (&"bandwidth".into(), &"bandwidth".into()));
    assert_eq!(cell["workers"].as_array().expect("workers").len(), 1);
    for sample in cell["samples"].as_array().expect("samples") {
        let of = |name: &str| sample[name].as_f64().expect("a number");
        let rate = of("work") / of("duration_ns");
        assert!((rate / of("value") - 1.0).abs() < 0.01, "{sample}");
    }
}

/// Runs a command without transparent huge pages (`PR_SET_THP_DISABLE`, prctl(2)), as in fragmented
/// memory.
const WITHOUT_HUGE_PAGES: &str = "import ctypes, os, sys
assert ctypes.CDLL(None).prctl(41, 1, 0, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])";

#[test]
fn ranks_that_get_no_huge_page_measure_and_the_launch_says_so() {
    let modes = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if modes.is_ok_and(|modes| modes.contains("[never]")) {
        eprintln!("NOT RUN: this kernel gives no process transparent huge pages");
        return;
    }
    let mut launch = Command::new("/usr/bin/python3");
    launch.args(["-c", WITHOUT_HUGE_PAGES, command::NUMALAB, "latency", "--ranks", "1"]);
    launch.args(["--pages", "thp", "--size", "64K,4M", "--iterations", "2000", "-q"]);
    let (out, err) = command::ends(launch.stdin(Stdio::null()), 0);
    assert!(out.contains("| Ranks | Cores   | NUMA |"), "{out}");
    let said = "huge pages are missing: 2 of 2 cells that requested them got smaller ones";
    assert!(err.contains(said), "{err}");
}

#[test]
fn a_size_that_no_memory_is_left_for_is_named_and_the_others_are_measured() {
    let place = tempfile::tempdir().expect("made");
    let csv = place.path().join("it.csv");
    let arguments = ["latency", "--size", "64K,64T", "--pages", "4k", "--iterations", "2000", "-q"];
    let parent = place.path().join("runs");
    let files = ["--csv", csv.to_str().expect("UTF-8"), "-o", parent.to_str().expect("UTF-8")];
    let arguments = [&arguments[..], &files].concat();
    let (out, err) = command::ends(&mut numalab(&arguments), 0);
    assert!(out.contains("| Ranks | Cores   | NUMA |"), "{out}");
    let said = "1 of 2 cells could not be measured, the first `latency/";
    assert!(err.contains(said) && err.contains("/65536G/") && err.contains("rank 0: "), "{err}");
    let rows = fs::read_to_string(&csv).expect("written");
    assert_eq!(rows.lines().count(), 2, "a heading and one size: {rows}");
    let found = document(&only(&parent));
    let states =
        found["cells"].as_array().expect("cells").iter().map(|cell| &cell["ended"]["outcome"]);
    assert_eq!(states.filter(|state| **state == "failed").count(), 1, "{}", found["cells"]);
}

#[test]
fn the_suites_chain_is_kept_as_any_other_pattern_is() {
    let place = tempfile::tempdir().expect("made");
    let parent = place.path().to_str().expect("UTF-8");
    let suite = tempfile::tempdir().expect("made");
    let csv = suite.path().join("c.csv");
    let csv = csv.to_str().expect("UTF-8");
    let chain = ["latency", "--pattern", "fisher-yates", "--iterations", "2000", "--csv", csv];
    ends(&mut numalab(&[&chain[..], &["--size", "64K", "-o", parent, "-q"]].concat()), 0);
    let found = document(&only(place.path()));
    let cell = &found["cells"][0];
    assert_eq!(cell["pattern"], "fisher-yates");
    assert!(cell["id"].as_str().expect("a name").contains("/fisher-yates/"), "{cell}");
    // Without ranks, the same pattern gives the same cell.
    let other = tempfile::tempdir().expect("made");
    let (cpu, parent) = (cell["worker"]["cpu"].to_string(), other.path().to_str().expect("UTF-8"));
    let alone = ["latency", "--pattern", "fisher-yates", "--cpus", &cpu, "--concurrent"];
    let options = ["--size", "64K", "--budget", "1s", "-o", parent, "-q"];
    ends(&mut numalab(&[&alone[..], &options].concat()), 0);
    assert_eq!(document(&only(other.path()))["cells"][0]["id"], cell["id"]);
}

/// Like a run without ranks, a killed launch keeps every complete size.
#[test]
fn sizes_are_on_disk_as_soon_as_they_are_measured() {
    let place = tempfile::tempdir().expect("made");
    let parent = place.path().to_str().expect("UTF-8");
    let options = ["--size", "64K,1G", "--pages", "4k", "--iterations", "100000000", "-o", parent];
    let mut launch = numalab(&[&["latency", "--csv"][..], &["c.csv"], &options].concat());
    let mut launch =
        launch.current_dir(place.path()).stdout(Stdio::null()).spawn().expect("starts");
    let cells = || {
        let runs = fs::read_dir(place.path()).expect("readable");
        let runs = runs.map(|entry| entry.expect("readable").path().join("cells.jsonl"));
        runs.filter_map(|path| fs::read_to_string(path).ok()).next().unwrap_or_default()
    };
    let begun = std::time::Instant::now();
    while cells().lines().count() == 0 {
        assert!(begun.elapsed().as_secs() < 60, "no cell is on disk");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    launch.kill().expect("killed");
    let ended = launch.wait().expect("ended");
    assert!(!ended.success());
    assert!(cells().contains("64K"), "{}", cells());
}
