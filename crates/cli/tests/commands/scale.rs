//! Scaling runs from outside: their launches and their files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{self, NUMALAB, ends, refused, refuses, stderr, stdout};

/// Two nodes of two L3 groups each, with the first core of each reserved for the system.
const OURS: &str = "\
SYSTEM_NAME=\"OURS\"
PARTITION=\"TEST\"
CCDS_PER_NUMA=2   # two
SKIP_CORES=0,4
Thread(s) per core:                 2
NUMA node(s):                       2
NUMA node0 CPU(s):                  0-7,16-23
NUMA node1 CPU(s):                  8-15,24-31
user@login:~> exit
";

/// Runs numalab outside any job.
fn numalab(arguments: &[&str]) -> Command {
    let mut command = command::numalab(arguments);
    for name in ["SLURM_JOB_ID", "SLURM_CONF"] {
        command.env_remove(name);
    }
    command
}

fn ours(directory: &Path) -> String {
    let file = directory.join("ours");
    fs::write(&file, OURS).expect("written");
    file.to_str().expect("UTF-8").to_owned()
}

/// Returns the steps of a dry run, the original suite's or ours: ranks, nodes and cpus.
fn steps(text: &str) -> Vec<[String; 3]> {
    let mut steps: Vec<[String; 3]> = Vec::new();
    for line in text.lines() {
        let Some((head, rest)) = line.split_once(" RANKS ] ") else { continue };
        let ranks = head.trim_start_matches("[ ").to_owned();
        if let Some(nodes) = rest.strip_prefix("NUMA binding: ") {
            steps.push([ranks, nodes.to_owned(), String::new()]);
        } else if let Some(cpus) = rest.strip_prefix("CPU binding : ") {
            cpus.clone_into(&mut steps.last_mut().expect("nodes come first")[2]);
        }
    }
    steps
}

fn corpus() -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");
    let path = std::env::var_os("NUMALAB_CORPUS").map_or_else(|| default.into(), PathBuf::from);
    let suite = path.join("numa-mem-bench");
    if suite.is_dir() {
        return Some(suite);
    }
    eprintln!("NOT RUN: there is no corpus at {} (set NUMALAB_CORPUS)", path.display());
    None
}

#[test]
fn dry_runs_agree_with_those_of_the_suite_in_ranks_cores_and_nodes() {
    let Some(suite) = corpus() else { return };
    let mut compared = 0;
    for entry in fs::read_dir(suite.join("golden-dryrun")).expect("readable") {
        let path = entry.expect("readable").path();
        let name = path.file_stem().expect("a name").to_str().expect("UTF-8").to_owned();
        let [partition, mode, domains] =
            name.splitn(3, '-').collect::<Vec<_>>().try_into().expect("three parts");
        let architecture = suite.join("architectures").join(partition);
        let domains = format!("--{mode}={}", domains.replace('_', ","));
        let golden = steps(&fs::read_to_string(&path).expect("readable"));
        let arch = architecture.to_str().expect("UTF-8");
        let text = ends(
            &mut numalab(&["scale", "--arch", arch, &domains, "--dry-run", "--launcher", "srun"]),
            0,
        )
        .0;
        assert_eq!(steps(&text), golden, "{name}");
        compared += golden.len();
    }
    assert!(compared >= 60, "{compared} steps only");
}

#[test]
fn skipped_cores_are_left_out_and_nothing_is_written_by_a_dry_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let arch = ours(directory.path());
    let arguments = ["scale", "--arch", &arch, "--interleaved", "0,1", "--memory-sizes=8"];
    let command = [&arguments[..], &["--launcher=srun", "--label=a", "--dry-run"]].concat();
    let output = numalab(&command).current_dir(directory.path()).output().expect("it starts");
    let text = stdout(&output);
    let steps = steps(&text);
    assert_eq!(steps.len(), 8);
    assert_eq!(steps[2], ["6", "0,0,0,1,1,1", "1,5,2,8,12,9"]);
    assert_eq!(
        steps[7],
        ["14", "0,0,0,0,0,0,1,1,1,1,1,1,1,1", "1,5,2,6,3,7,8,12,9,13,10,14,11,15"]
    );
    assert!(text.contains("--csv=interleaved_domains0,1_14ranks_8MB.csv"), "{text}");
    for line in ["#SBATCH --exclusive", "--label=a", "About ", "--interleaved=0,1"] {
        assert!(text.contains(line), "no {line} in {text}");
    }
    assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 1);
}

#[test]
fn a_dry_run_names_the_launcher_that_is_missing_here() {
    let directory = tempfile::tempdir().expect("a directory");
    let arch = ours(directory.path());
    let command = ["scale", "--arch", &arch, "--sequential=0", "--launcher=srun", "--dry-run"];
    let output = numalab(&command).env("PATH", directory.path()).output().expect("it starts");
    assert!(output.status.success() && !steps(&stdout(&output)).is_empty(), "it is shown anyway");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("here it would not run: `srun` is not in PATH"), "{said}");
}

#[test]
fn sibling_threads_are_added_after_all_cores_only_with_smt() {
    let directory = tempfile::tempdir().expect("a directory");
    let arch = ours(directory.path());
    let command = ["scale", "--arch", &arch, "--sequential=0", "--launcher=srun", "--dry-run"];
    let without = steps(&ends(&mut numalab(&command), 0).0);
    assert_eq!(without.last().expect("steps")[2], "1,2,3,5,6,7");
    let text = ends(&mut numalab(&[&command[..], &["--smt"]].concat()), 0).0;
    let with = steps(&text);
    assert_eq!(with[..without.len()], without);
    assert_eq!(with.last().expect("steps")[2], "1,2,3,5,6,7,17,18,19,21,22,23");
    let script = text.lines().find(|line| line.contains(" scale ")).expect("the job's command");
    assert!(script.ends_with(" --smt"), "{script}");
}

#[test]
fn a_study_that_cannot_run_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let arch = ours(directory.path());
    let parent = directory.path().to_str().expect("UTF-8");
    refuses(&["scale", "--arch", "/no/such", "--sequential", "0"], 2, &["/no/such"]);
    refuses(&["scale", "--arch", &arch], 2, &["--sequential"]);
    refuses(&["scale", "--arch", &arch, "--sequential", "7"], 2, &["domain 7"]);
    refuses(&["scale", "--arch", &arch, "--sequential", "!"], 2, &["--sequential"]);
    refuses(&["scale", "--arch", &arch, "--sequential", "0", "--memory-sizes", "8X"], 2, &["8X"]);
    refuses(&["scale", "--arch", &arch, "--sequential", "0", "--label", "a/b"], 2, &["a/b"]);
    let text = OURS.replace("8-15,24-31", "4008-4015,4024-4031");
    fs::write(&arch, text).expect("written");
    let elsewhere = ["scale", "--arch", &arch, "--sequential", "1", "--launcher", "local"];
    let words = ["ours: it has cpus 40", "expected this machine's file"];
    refused(numalab(&elsewhere).current_dir(directory.path()), 2, &words);
    fs::write(&arch, OURS).expect("written");
    refuses(&["scale", "--resume", parent], 2, &["scale.json"]);
    let mut submit = numalab(&["scale", "--arch", &arch, "--sequential", "0", "--submit"]);
    refused(submit.env("PATH", "/no/such"), 3, &["slurm-client"]);
}

#[test]
fn a_command_is_run_once_a_step_and_resumed_where_it_failed() {
    let directory = tempfile::tempdir().expect("a directory");
    let arch = directory.path().join("one");
    let one = "SYSTEM_NAME=\"ONE\"\nPARTITION=\"P\"\nCCDS_PER_NUMA=1\nThread(s) per core: 1\nNUMA node0 CPU(s): 0\n";
    fs::write(&arch, one).expect("written");
    let parent = directory.path().join("results");
    let flag = directory.path().join("mended");
    let work = format!("test -e {} && echo rank $NUMALAB_RANK", flag.display());
    let arguments = [
        "scale",
        "--arch",
        arch.to_str().expect("UTF-8"),
        "--sequential=0",
        "--launcher=local",
        "--memory-sizes=8",
        "--label=x",
        "-o",
        parent.to_str().expect("UTF-8"),
        "--workload",
        &work,
    ];
    let (_, errors) = ends(&mut numalab(&arguments), 1);
    let results = fs::read_dir(&parent).expect("made").next().expect("one").expect("readable");
    let results = results.path();
    for words in
        [".log has the reason); 0 of 1 steps have their results", "numalab scale --resume "]
    {
        assert!(errors.contains(words), "no `{words}` in {errors}");
    }
    assert!(results.to_str().expect("UTF-8").ends_with("_x"), "{}", results.display());
    fs::write(&flag, "").expect("written");
    let printed = ends(&mut numalab(&["scale", "--resume", results.to_str().expect("UTF-8")]), 0).0;
    assert!(printed.contains("Benchmarks completed successfully"), "{printed}");
    let kept = fs::read_to_string(results.join("sequential_domain0_1ranks_8MB.out"));
    assert!(kept.expect("kept").ends_with("rank 0\n"));
    let again = ends(&mut numalab(&["scale", "--resume", results.to_str().expect("UTF-8")]), 0).0;
    assert!(!again.contains("Executing"), "{again}");
}

/// Runs a scaling run of one and two ranks with its results on a file system of 256 KiB that a file
/// nearly fills, then removes the file and resumes the run. The file system is this shell's own and
/// ends with it.
const FULL_DISK: &str = r#"
mount -t tmpfs -o size=256k none "$1" && cd "$1" || { echo "no mount"; exit 77; }
cp "$2" arch
run() { "$0" scale "$@" -q; echo "exit $?"; }
dd if=/dev/zero of=filler bs=1k 2>/dev/null
rm -f spare; truncate -s 200k filler
dd if=/dev/zero of=more bs=1k count=$(( $(stat -f -c %a .) * 4 - 20 )) 2>/dev/null
run --arch arch --sequential=0 --memory-sizes=1,2 --launcher=local --label=full \
  --rank-option=--iterations=500 --rank-option=--overcommit
ls results_scaling/*_full
rm -f filler more
run --resume results_scaling/*_full
cat results_scaling/*_full/*.csv
"#;

#[test]
fn a_full_disk_ends_the_run_with_whole_rows_and_resume_finishes_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let arch = directory.path().join("arch");
    let text = "SYSTEM_NAME=\"D\"\nPARTITION=\"P\"\nCCDS_PER_NUMA=1\nNUMA node0 CPU(s): 0,1\n";
    fs::write(&arch, text).expect("written");
    let mount = directory.path().join("small");
    fs::create_dir(&mount).expect("made");
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "--map-root-user", "sh", "-c", FULL_DISK]);
    shell.arg(NUMALAB).arg(&mount).arg(&arch).stdin(Stdio::null());
    let output = shell.output().expect("unshare is there");
    let errors = stderr(&output);
    if output.status.code() == Some(77) || errors.starts_with("unshare:") {
        let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|v| v == "1");
        assert!(!required, "no file system can be mounted here: {errors}");
        eprintln!("NOT RUN: no file system can be mounted here: {errors}");
        return;
    }
    let text = stdout(&output);
    let (first, resumed) = text.split_once("exit 1\n").unwrap_or_else(|| panic!("{text}{errors}"));
    assert_eq!(first, "");
    assert!(errors.contains("No space left on device"), "{errors}");
    let (left, finished) =
        resumed.split_once("exit 0\n").unwrap_or_else(|| panic!("{text}{errors}"));
    // This step had started, but did not finish.
    let missing = "sequential_domain0_2ranks_1,2MB.csv\n";
    assert!(left.contains("scale.json") && !left.contains(missing), "{left}");
    let rows: Vec<&str> = finished.lines().collect();
    assert_eq!(rows.len(), 6, "{text}{errors}");
    assert_eq!((rows[0], rows[3]), ("size (MB),0", "size (MB),0,1"));
}

#[test]
fn domains_are_chosen_as_numactl_takes_them() {
    let bindings = |choice: &str| {
        let output =
            numalab(&["scale", "--arch", "lumi_partc", "--sequential", choice, "--dry-run"])
                .output()
                .expect("numalab starts");
        let out = stdout(&output);
        let binding = out.lines().find(|line| line.contains("NUMA binding"));
        binding.unwrap_or_else(|| panic!("{choice}: {out}")).to_owned()
    };
    assert!(bindings("all").ends_with(": 0,1,2,3,4,5,6,7"), "{}", bindings("all"));
    assert_eq!(bindings("!0-5"), bindings("6,7"));
}
