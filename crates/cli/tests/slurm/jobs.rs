//! Ranks under a real SLURM and under the mpirun of Open MPI and MPICH.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::lab::{Lab, lab, text, turn};

use crate::schemas;

const NUMALAB: &str = env!("CARGO_BIN_EXE_numalab");

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Returns the output of a command that must succeed.
fn prints(command: &mut Command) -> String {
    let output = output(command);
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {out}{errors}");
    out
}

/// Returns the message of a command that must fail, on either stream.
fn says(command: &mut Command) -> String {
    let output = output(command);
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(!output.status.success(), "{command:?}: {out}{errors}");
    out + &errors
}

fn srun(lab: &Lab, options: &[&str], command: &[&str]) -> Command {
    let mut srun = lab.command("srun");
    srun.args(["--unbuffered", "--exclusive"]).args(options).args(command);
    srun
}

/// Returns `srun` in a job with a whole node, as `map_cpu` bindings require.
fn in_job(lab: &Lab, options: &[&str], command: &[&str]) -> Command {
    let mut salloc = lab.command("salloc");
    salloc.args(["--quiet", "--exclusive", "--nodes=1", "srun", "--unbuffered"]);
    salloc.args(options).args(command);
    salloc
}

/// A short measurement that prints the suite's CSV.
const SHORT: [&str; 6] =
    [NUMALAB, "latency", "--size=1", "--quiet", "--format=csv", "--iterations=2000"];

fn short(more: &[&'static str]) -> Vec<&'static str> {
    [&SHORT[..], more].concat()
}

fn is_csv_of(ranks: usize, text: &str) -> bool {
    let header: String = (0..ranks).map(|rank| format!(",{rank}")).collect();
    let mut lines = text.lines().skip_while(|line| !line.starts_with("size"));
    lines.next() == Some(&format!("size (MB){header}"))
        && lines.next().is_some_and(|row| row.split(',').count() == ranks + 1)
}

/// Writes an architecture file of one node with `ccds` L3 groups and these cpus.
fn architecture(directory: &Path, cpus: &str, ccds: u32) -> String {
    let path = directory.join(format!("arch-{cpus}-{ccds}"));
    let text = format!(
        "SYSTEM_NAME=\"LAB\"\nPARTITION=\"LAB\"\nCCDS_PER_NUMA={ccds}\nThread(s) per core: 1\nNUMA node0 CPU(s): {cpus}\n"
    );
    fs::write(&path, text).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

fn results_in(parent: &Path) -> PathBuf {
    let entries = fs::read_dir(parent).unwrap_or_else(|e| panic!("{}: {e}", parent.display()));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    found.sort();
    found.pop().expect("a result directory")
}

fn waits_for(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn csvs(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("readable");
    let names = entries.map(|entry| entry.expect("readable").file_name());
    let mut names: Vec<String> = names.map(|name| text(name.as_encoded_bytes())).collect();
    names.retain(|name| name.ends_with(".csv"));
    names.sort();
    names
}

#[test]
fn srun_starts_ranks_that_are_where_its_map_puts_them() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let options = ["-N1", "-n2", "--cpu-bind=map_cpu:1,0", "--hint=nomultithread"];
    let csv = lab.directory().join("mapped.csv");
    let out = format!("--csv={}", csv.display());
    let shown = prints(&mut in_job(lab, &options, &[NUMALAB, "latency", "--size=1-2", &out]));
    for line in ["Number of ranks: 2", "Launcher: srun", "|  001  | 0       |", "[1] Total"] {
        assert!(shown.contains(line), "no `{line}` in {shown}");
    }
    let kept = fs::read_to_string(&csv).expect("written");
    assert!(is_csv_of(2, &kept) && kept.lines().count() == 3, "{kept}");
    let mapping = fs::read_to_string(lab.directory().join("mapping_check.log")).expect("written");
    assert_eq!(mapping, "rank,cpu_id,cpu_numa,memory_numa\n0,1,0,0\n1,0,0,0\n");
    let json = fs::read_to_string(csv.with_extension("json")).expect("written");
    let json = schemas::document(&json);
    assert_eq!(json["schema"], "numalab/run-2");
    assert_eq!(json["launch"]["launcher"], "srun");
    let cell = &json["cells"][3];
    assert_eq!((&cell["worker"]["cpu"], &cell["size_bytes"]), (&0.into(), &(2 << 20).into()));
    assert_eq!(cell["samples"].as_array().map(Vec::len), Some(20));
}

#[test]
fn ranks_of_two_hosts_meet_over_tcp() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let command = [NUMALAB, "latency", "--size=1", "--overcommit"];
    let shown = prints(&mut srun(lab, &["-N2", "-n4", "--cpu-bind=none"], &command));
    assert!(shown.contains("Meeting: shared memory and TCP"), "{shown}");
    assert!(shown.contains("|  003  |"), "{shown}");
    let streamed = [NUMALAB, "bandwidth", "--size=8", "--overcommit", "-q", "--format=csv"];
    let shown = prints(&mut srun(lab, &["-N2", "-n2", "--cpu-bind=none"], &streamed));
    assert!(is_csv_of(2, &shown), "{shown}");
}

#[test]
fn ranks_in_turn_over_two_hosts_are_bound_by_their_numbers_on_the_host() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let bind = [NUMALAB, "bind", "--numa=auto", "--dry-run", "--", "true"];
    let options = ["-N2", "-n4", "--distribution=cyclic", "--cpu-bind=none"];
    let shown = prints(&mut srun(lab, &options, &bind));
    for (rank, local) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
        let known = format!("Known as rank {rank} of 4, local rank {local} of 2 (srun)");
        assert!(shown.contains(&known), "{known}: {shown}");
    }
}

/// Two ranks of two threads each, with their second threads on the same cpu.
#[test]
fn ranks_and_their_threads_are_seen_where_srun_and_openmp_put_them() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let program = lab.directory().join("threads");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/slurm/lab/threads.c");
    prints(Command::new("cc").args(["-O1", "-fopenmp", source, "-o"]).arg(&program));
    let path = program.to_str().expect("UTF-8");
    let options = ["-n2", "--cpu-bind=mask_cpu:3,3", "--export=ALL"];
    let mut ranks = in_job(lab, &options, &[path]);
    ranks.envs([("OMP_NUM_THREADS", "2"), ("OMP_PLACES", "threads"), ("OMP_PROC_BIND", "close")]);
    let mut ranks = ranks.spawn().expect("salloc starts");
    // Other labs on this machine may have ranks, too.
    let own = |seen: &serde_json::Value| -> Vec<serde_json::Value> {
        let all = seen["ranks"].as_array().expect("ranks").iter();
        all.filter(|rank| rank["command"] == path).cloned().collect()
    };
    let explore = |more: &[&str]| {
        let start = ["explore", "--ranks", "--format", "json"];
        schemas::document(&prints(Command::new(NUMALAB).args(start).args(more)))
    };
    let mut seen = serde_json::Value::Null;
    waits_for("two ranks with two busy threads each", || {
        seen = explore(&[]);
        let busy = |rank: &serde_json::Value| {
            let threads = rank["threads"].as_array().expect("threads").iter();
            threads.filter(|thread| thread["cpu_ticks"].as_u64() > Some(0)).count() == 2
        };
        own(&seen).len() == 2 && own(&seen).iter().all(busy)
    });
    let ranks_seen = own(&seen);
    let job = ranks_seen[0]["job"].as_str().expect("a job").to_owned();
    let number = job.split('.').next().expect("a number").to_owned();
    let of_job = own(&explore(&["--job", &number])).len();
    let of_another = own(&explore(&["--job", "999999.0"])).len();
    let text = prints(Command::new(NUMALAB).args(["explore", "--ranks", "--job", &number]));
    prints(lab.command("scancel").arg(&number));
    ranks.wait().expect("ended");

    assert!(job.ends_with(".0"), "{job}");
    assert_eq!((of_job, of_another), (2, 0), "{job}");
    for (rank, number) in ranks_seen.iter().zip(0..) {
        assert_eq!((rank["rank"].as_u64(), rank["size"].as_u64()), (Some(number), Some(2)));
        assert!(rank["own_bytes_by_node"]["0"].as_u64() >= Some(32 << 20), "{rank}");
        let allowed = |index: usize| rank["threads"][index]["allowed"].as_str();
        assert_eq!((allowed(0), allowed(1)), (Some("0"), Some("1")), "{rank}");
    }
    let found = seen["findings"].as_array().expect("findings").iter();
    let mut shared = found.filter(|finding| finding["kind"] == "cpus-shared");
    let threads = shared.next().and_then(|finding| finding["threads"].as_u64());
    assert!(threads >= Some(4), "{}", seen["findings"]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("threads of ranks 0, 1 are all bound to cpus 0,1"), "{text}");
    let picture = text.lines().find(|line| line.trim_start().starts_with("0  0,1"));
    assert!(picture.is_some_and(|line| line.contains("**")), "two ranks on each cpu: {text}");
}

/// A launch under srun or mpirun leaves a run's result directory, and every command for runs takes
/// it.
#[test]
fn launches_leave_a_run_that_report_compare_and_fleet_take() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let mut runs = Vec::new();
    for (launcher, options) in
        [("srun", &["-N1", "-n2", "--cpu-bind=none"][..]), ("mpirun.openmpi", &["-n", "2"])]
    {
        let parent = lab.directory().join("runs").join(launcher);
        let parent = parent.to_str().expect("UTF-8").to_owned();
        let command = [NUMALAB, "latency", "--size=64K,1M", "--iterations=2000", "-o", &parent];
        prints(lab.command(launcher).args(options).args(command).arg("--overcommit"));
        let run = results_in(Path::new(&parent)).to_str().expect("UTF-8").to_owned();
        let json = prints(lab.command(NUMALAB).args(["report", &run, "--format", "json"]));
        let json = schemas::document(&json);
        assert_eq!((&json["schema"], &json["name"]), (&"numalab/run-2".into(), &"latency".into()));
        let cells = json["cells"].as_array().expect("cells");
        assert_eq!(cells.len(), 4, "{launcher}: two sizes of two ranks");
        for cell in cells {
            assert_eq!(cell["samples"].as_array().map(Vec::len), Some(20));
            assert_eq!(cell["placements"][0]["cpu"], cell["worker"]["cpu"]);
        }
        runs.push(run);
    }
    let compared =
        lab.command(NUMALAB).args(["compare", &runs[0], &runs[1], "--format=json"]).output();
    let compared = schemas::document(&compared.expect("it starts").stdout);
    // If the launcher bound both ranks to one cpu, the second has a separate name.
    let common = compared["cells"].as_array().map_or(0, Vec::len);
    assert!(common >= 2, "{compared}");
    let all = lab.directory().join("runs");
    let all = all.to_str().expect("UTF-8");
    let collected = prints(lab.command(NUMALAB).args(["fleet", "collect", all]));
    assert!(collected.contains("2 runs"), "{collected}");
}

#[test]
fn mpi_is_found_at_run_time_under_every_launcher() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let show = [NUMALAB, "latency", "--size=1", "--meet=mpi", "--overcommit"];
    for (launcher, options, library) in [
        ("mpirun.openmpi", &["-n", "2"][..], "Open MPI"),
        ("mpirun.mpich", &["-n", "2"], "MPICH"),
        ("srun", &["-n2", "--mpi=pmix", "--cpu-bind=none"], "Open MPI"),
        ("srun", &["-n2", "--mpi=pmi2", "--cpu-bind=none"], "MPICH"),
    ] {
        let shown = prints(lab.command(launcher).args(options).args(show));
        assert!(shown.contains(&format!("Meeting: MPI ({library}")), "{launcher}: {shown}");
        assert!(shown.contains("|  001  |"), "{launcher}: {shown}");
    }
    // Without it, the same ranks meet in shared memory.
    for launcher in ["mpirun.openmpi", "mpirun.mpich"] {
        let shown = prints(lab.command(launcher).args(["-n", "2"]).args(short(&["--overcommit"])));
        assert!(is_csv_of(2, &shown), "{launcher}: {shown}");
    }
    // With a plugin that the library does not support, each rank starts a world of its own size
    // one, and says so.
    let command = short(&["--meet=mpi:libmpich.so.12", "--overcommit"]);
    let options = ["-n2", "--mpi=pmix", "--cpu-bind=none"];
    let said = says(&mut srun(lab, &options, &command));
    assert!(said.contains("srun started 2 tasks, but each finds a world of 1"), "{said}");
}

#[test]
fn a_map_that_wraps_or_is_not_obeyed_fails_before_anything_is_measured() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let said = says(&mut in_job(lab, &["-n4", "--cpu-bind=map_cpu:0,1"], &short(&[])));
    assert!(said.contains("map_cpu names 2 cpus for 4 ranks on host n"), "{said}");
    assert!(!said.contains("size (MB)"), "{said}");
    // On this machine, cpus 6 and 7 of the map are mapped to others.
    let said = says(&mut in_job(lab, &["-n2", "--cpu-bind=map_cpu:6,7"], &short(&[])));
    assert!(said.contains("should be on cpu"), "{said}");
    let said = says(&mut srun(lab, &["-n4", "--cpu-bind=none"], &short(&[])));
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    assert!(said.contains("would share cpu") || cpus >= 4, "{said}");
}

#[test]
fn a_rank_that_fails_leaves_its_exit_code_where_the_launcher_loses_it() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let csv = lab.directory().join("failing.csv");
    let out = format!("--csv={}", csv.display());
    let command = [NUMALAB, "latency", "--size=64T", &out];
    let options = ["-n2", "--kill-on-bad-exit", "--cpu-bind=map_cpu:0,1"];
    says(&mut in_job(lab, &options, &command));
    let left = fs::read_to_string(lab.directory().join("failing.rank0.failed"));
    assert!(left.expect("it is left").starts_with("2\n"));
    assert!(!csv.exists());
}

#[test]
fn interleaving_by_l3_groups_is_that_of_slurm() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let arch = architecture(&lab.directory(), "0-127", 16);
    let arguments = ["scale", "--arch", &arch, "--interleaved=0", "--launcher=srun", "--dry-run"];
    let ours = prints(Command::new(NUMALAB).args(arguments));
    for ranks in [5, 16, 40, 128] {
        let options = ["-p", "big", "-N1", "-n", &ranks.to_string()];
        let bind = ["--distribution=block:cyclic", "--cpu-bind=verbose,cores"];
        let shown = output(&mut srun(lab, &[&options[..], &bind].concat(), &["true"]));
        let masks = cpus_by_task(&text(&shown.stderr));
        assert_eq!(masks.len(), ranks, "{}", text(&shown.stderr));
        let theirs: Vec<String> = masks.values().map(ToString::to_string).collect();
        let line = format!("[ {ranks} RANKS ] CPU binding : {}", theirs.join(","));
        assert!(ours.lines().any(|our| our == line), "SLURM has `{line}`");
    }
}

/// Returns the cpu of each task from the output of `--cpu-bind=verbose`: a mask of one bit.
fn cpus_by_task(output: &str) -> BTreeMap<usize, usize> {
    let task = |line: &str| {
        let (_, rest) = line.split_once("task ")?;
        let number = rest.split_ascii_whitespace().next()?.parse().ok()?;
        let mask = rest.split_once("mask 0x")?.1.split_ascii_whitespace().next()?.to_owned();
        let top = mask.chars().next()?.to_digit(16)?;
        Some((number, (mask.len() - 1) * 4 + usize::try_from(top.ilog2()).ok()?))
    };
    output.lines().filter_map(task).collect()
}

#[test]
fn a_submitted_scaling_run_leaves_the_suites_directory() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let arch = architecture(&lab.directory(), "0-7", 4);
    let parent = lab.directory().join("submitted");
    let out = format!("--output={}", parent.display());
    let scale = ["scale", "--arch", &arch, "--interleaved=0", "--memory-sizes=1", "--label=it"];
    let more = ["--rank-option=--overcommit", "--rank-option=--iterations=1000", &out, "--submit"];
    let arguments = [&scale[..], &more].concat();
    let refused = lab.command(NUMALAB).args(&arguments).arg("--sbatch=--mem=99999999").output();
    let refused = refused.expect("it starts");
    assert_eq!(refused.status.code(), Some(3), "{}", text(&refused.stderr));
    assert!(
        text(&refused.stderr).contains("SLURM rejects the batch script"),
        "{}",
        text(&refused.stderr)
    );
    let shown = prints(lab.command(NUMALAB).args(&arguments));
    let job = shown.trim().strip_prefix("Submitted batch job ").expect("a number").to_owned();
    let results = parent.join(format!("job_{job}_it"));
    let last = results.join("interleaved_domain0_8ranks_1MB.csv");
    waits_for("the last step", || last.exists());
    waits_for("the job's end", || !queue(lab).contains(&job));
    assert_eq!(csvs(&results).len(), 8);
    assert!(is_csv_of(8, &fs::read_to_string(last).expect("there")));
    let log = results.join(format!("slurm_run_numa_benchmarks_{job}.log"));
    let log = fs::read_to_string(log).expect("there");
    for line in [
        "[ 8 RANKS ] CPU binding : 0,2,4,6,1,3,5,7",
        "[Rank 7] Binding to NUMA domain 0",
        "[ 8 RANKS ] Benchmark completed successfully",
        "Benchmarks completed successfully",
    ] {
        assert!(log.contains(line), "no `{line}` in {log}");
    }
    assert!(results.join("mapping_check.log").exists());
}

fn queue(lab: &Lab) -> String {
    prints(lab.command("squeue").args(["-h", "-o", "%A"]))
}

#[test]
fn a_job_script_of_the_suite_runs_under_its_own_names() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/suite");
    for name in ["run_numa_benchmarks.sh", "wrapper_numa.sh", "numa_bench"] {
        fs::copy(suite.join(name), lab.directory().join(name)).expect("copied");
    }
    let numalab = Path::new(NUMALAB).parent().expect("a directory").display();
    let path = format!("{numalab}:{}", std::env::var("PATH").unwrap_or_default());
    let arch = architecture(&lab.directory(), "0-7", 4);
    let of_suite = ["./run_numa_benchmarks.sh", "--arch", &arch, "--sequential", "0", "--label"];
    let ours = ["suite", "--memory-sizes=1", "--rank-option=--iterations=1000"];
    let mut sbatch = lab.command("sbatch");
    sbatch.env("PATH", &path).args(["--wait", "--parsable"]).args(of_suite).args(ours);
    let submitted = output(sbatch.arg("--rank-option=--overcommit"));
    assert!(submitted.status.success(), "{}", logs(&lab.directory()));
    let job = text(&submitted.stdout).trim().to_owned();
    let results = lab.directory().join(format!("results_scaling/job_{job}_suite"));
    assert_eq!(csvs(&results).len(), 8, "{results:?}");
    assert!(results.join(format!("slurm_run_numa_benchmarks_{job}.log")).exists());
    let csv = "--csv=suite.csv";
    let bench = ["./numa_bench", "--size=1", "--iterations=1000", "--overcommit", csv];
    let wrapped = [&["./wrapper_numa.sh", "--numa=0", "--"][..], &bench].concat();
    let options = ["-N1", "-n2", "--cpu-bind=none"];
    let shown = prints(srun(lab, &options, &wrapped).env("PATH", &path));
    assert!(shown.contains("[Rank 1] Binding to NUMA domain 0"), "{shown}");
    let kept = fs::read_to_string(lab.directory().join("suite.csv")).expect("written");
    assert!(is_csv_of(2, &kept), "{kept}");
}

#[test]
fn a_job_array_measures_each_element_and_a_batch_script_is_not_a_rank() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let script = format!(
        "{NUMALAB} latency --dry-run --size=1 > array-$SLURM_ARRAY_TASK_ID.plan; \
         srun -n1 --cpu-bind=map_cpu:0 {NUMALAB} latency --size=1 --iterations=1000 -q \
         --csv=array-$SLURM_ARRAY_TASK_ID.csv"
    );
    let options = ["--wait", "--array=0-2", "--nodes=1", "--exclusive", "--wrap", &script];
    let submitted = output(lab.command("sbatch").args(options));
    assert!(submitted.status.success(), "{}", logs(&lab.directory()));
    for element in 0..3 {
        let csv = lab.directory().join(format!("array-{element}.csv"));
        assert!(is_csv_of(1, &fs::read_to_string(csv).expect("measured")));
        let plan = lab.directory().join(format!("array-{element}.plan"));
        assert!(fs::read_to_string(plan).expect("shown").contains(", about "));
    }
}

/// Returns the output of a directory's jobs, each below its file's name.
fn logs(directory: &Path) -> String {
    let files = fs::read_dir(directory).expect("readable").flatten().map(|entry| entry.path());
    let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "out"));
    let text = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| error.to_string());
        format!("{}:\n{text}", path.display())
    };
    logs.map(text).collect::<Vec<_>>().join("\n")
}

/// Starts a scaling run of 1 and 2 ranks as a job, and returns it once 2 ranks measure.
fn long_job(lab: &Lab, name: &str) -> (String, PathBuf) {
    let arch = architecture(&lab.directory(), "0-1", 1);
    let parent = lab.directory().join(name);
    let line = format!(
        "{NUMALAB} scale --arch {arch} --sequential=0 --memory-sizes=1,2,64 --launcher=srun \
         --rank-option=--iterations=1000 --rank-option=--pattern=fisher-yates -o {} -q --label={name}",
        parent.display()
    );
    let options = ["--parsable", "--nodes=1", "--exclusive", "--wrap", &line];
    let job = prints(lab.command("sbatch").args(options)).trim().to_owned();
    let part = "sequential_domain0_2ranks_1,2,64MB.csv.part";
    waits_for("rows of the second step", || {
        let results = parent.join(format!("job_{job}_{name}"));
        fs::read_to_string(results.join(part)).is_ok_and(|text| text.lines().count() >= 2)
    });
    (job, results_in(&parent))
}

/// Checks that the results are usable, and that `--resume` finishes the run.
fn is_finished_by_resume(lab: &Lab, results: &Path) {
    assert_eq!(csvs(results), ["sequential_domain0_1ranks_1,2,64MB.csv"]);
    let part = results.join("sequential_domain0_2ranks_1,2,64MB.csv.part");
    let part = fs::read_to_string(part).expect("rows are kept");
    assert!(is_csv_of(2, &part), "{part}");
    let resume = ["scale", "-q", "--resume", results.to_str().expect("UTF-8")];
    prints(lab.command(NUMALAB).args(resume));
    assert_eq!(csvs(results).len(), 2);
}

#[test]
fn a_job_that_its_time_limit_ends_is_finished_by_resume() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let (job, results) = long_job(lab, "limit");
    // Imitates slurmctld at the time limit: SIGCONT and SIGTERM, KillWait, SIGKILL.
    prints(lab.command("scancel").arg(&job));
    waits_for("the job's end", || !queue(lab).contains(&job));
    is_finished_by_resume(lab, &results);
}

#[test]
fn a_killed_rank_fails_its_step_and_resume_finishes_it() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let (job, results) = long_job(lab, "killed");
    let rank = process_with("NUMALAB_NONE", &format!("SLURM_JOB_ID={job}"), "SLURM_PROCID=1");
    prints(Command::new("kill").args(["-9", &rank.expect("rank 1 runs").to_string()]));
    waits_for("the job's end", || !queue(lab).contains(&job));
    is_finished_by_resume(lab, &results);
}

/// Returns a numalab process with both variables in its environment.
fn process_with(never: &str, one: &str, other: &str) -> Option<u32> {
    let entries = fs::read_dir("/proc").ok()?.flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).find(|process| {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        let has = |word: &str| environment.split(|byte| *byte == 0).any(|w| w == word.as_bytes());
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        has(one) && has(other) && !has(never) && name.trim() == "numalab" && {
            let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            command.split(|byte| *byte == 0).nth(1) == Some(b"latency")
        }
    })
}

#[test]
fn after_the_loss_of_a_node_its_results_remain_and_another_node_finishes() {
    let (_turn, Some(lab)) = (turn(), lab()) else { return };
    let (job, results) = long_job(lab, "lost");
    let node = prints(lab.command("squeue").args(["-h", "-j", &job, "-o", "%N"]));
    let name = format!("NodeName={}", node.trim());
    let lost = ["update", &name, "State=DOWN", "Reason=lost"];
    prints(lab.command("scontrol").args(lost));
    waits_for("the job's end", || !queue(lab).contains(&job));
    waits_for("its ranks' end", || {
        process_with("NUMALAB_NONE", &format!("SLURM_JOB_ID={job}"), "SLURM_PROCID=0").is_none()
    });
    is_finished_by_resume(lab, &results);
    // A node comes back by itself while its daemon still answers.
    output(lab.command("scontrol").args(["update", &name, "State=RESUME"]));
}

#[test]
fn a_stopped_lab_leaves_no_daemon() {
    let (_turn, Some(own)) = (turn(), Lab::start(&["n1"])) else { return };
    let name = own.directory().join("slurm.conf").to_str().expect("UTF-8").to_owned();
    let daemons = || {
        let running = fs::read_dir("/proc").expect("readable").flatten();
        let of_lab = running.filter(|entry| {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            text(&environment).contains(&name)
        });
        of_lab.count()
    };
    let job = ["--exclusive", "--wrap", "srun sleep 600"];
    prints(own.command("sbatch").args(job));
    assert!(daemons() >= 2);
    assert!(own.supervisor() > 0);
    drop(own);
    waits_for("all daemons' end", || daemons() == 0);
}
