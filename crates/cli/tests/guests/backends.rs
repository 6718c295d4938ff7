//! Tests of the places for studies: this machine with its knobs and services, and real guests.
//!
//! Guests need `qemu-system-x86_64` and the distribution's kernel package, which is
//! downloaded into the cache once. With `NUMALAB_REQUIRE_TOOLS=1` a missing requirement of a test
//! is a failure; otherwise it is printed.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

struct Place {
    directory: TempDir,
}

impl Place {
    /// Creates a directory with the study `s.toml`.
    fn with(study: &str) -> Self {
        let directory = tempfile::Builder::new().prefix("nl").tempdir_in("/tmp").expect("made");
        fs::write(directory.path().join("s.toml"), study).expect("written");
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn numalab(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
        command.args(arguments).current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.numalab(arguments).output().expect("numalab starts")
    }

    #[track_caller]
    fn refused(&self, code: i32, words: &[&str]) {
        let output = self.run(&["study", "run", "s.toml"]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{message}");
        for word in words {
            assert!(message.contains(word), "no {word:?} in: {message}");
        }
        assert!(!self.directory.path().join("results").exists(), "a refused study left results");
    }

    /// Returns the journal entries of the only run.
    fn journal(&self) -> Vec<Value> {
        let results = self.directory.path().join("results");
        let mut runs = fs::read_dir(results).expect("results").map(|run| run.expect("run").path());
        let run: PathBuf = runs.next().expect("one run");
        let text = fs::read_to_string(run.join("journal.jsonl")).expect("a journal");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

/// Processes unrelated to numalab that keep the cpus busy.
struct Others(Vec<Child>);

impl Others {
    fn start() -> Self {
        let busy = || {
            let mut command = Command::new("nice");
            command.args(["-n", "19", "sh", "-c", "while :; do :; done"]).spawn()
        };
        Self((0..2).map(|_| busy().expect("nice starts")).collect())
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().expect("killed");
            child.wait().expect("it ended");
        }
    }
}

/// Returns the entries of this kind.
fn of_kind<'a>(journal: &'a [Value], kind: &str) -> Vec<&'a Value> {
    journal.iter().filter(|entry| entry["entry"] == kind).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns true if a run succeeded; prints a notice if this machine lacks a tool.
#[track_caller]
fn ran(output: &Output) -> bool {
    let message = text(&output.stderr);
    // `guest run` fails with 125, as other codes are its command's.
    if matches!(output.status.code(), Some(3 | 125)) {
        let required = std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_some_and(|value| value != "0");
        assert!(!required, "this machine lacks something: {message}");
        eprintln!("NOT RUN: this machine lacks something: {message}");
        return false;
    }
    assert_eq!(output.status.code(), Some(0), "{}{message}", text(&output.stdout));
    true
}

fn is_long() -> bool {
    std::env::var_os("NUMALAB_LONG").is_some_and(|value| value != "0")
}

/// Returns a study of one block on `backend` with these factors and workloads.
fn study(backend: &str, rest: &str) -> String {
    format!(
        "name = \"s\"\nquestion = \"Does it?\"\n[backend.{backend}\n[rules]\nblocks = 1\n\
         warm-ups = 0\naa = false\nrepeats = 0\nseed = 5\n{rest}"
    )
}

/// Prints the value of a knob as a metric.
const SHOW: &str = "\
[[workload]]
name = \"show\"
command = [\"sh\", \"-c\", \"echo knob = $(cat /proc/sys/kernel/numa_balancing) $NUMALAB_SEED\"]
[[workload.metric]]
name = \"knob\"
better = \"lower\"
pattern = \"knob = {value}\"
";

#[test]
fn a_study_in_a_guest_sets_its_knobs_and_brings_back_readings_counters_and_evidence() {
    let backend = "linux-guest]\nemulate = \"2\"\ncpus = 2\nmemory = \"512M\"\n\
                 counters = [\"numa_pte_updates\", \"pgfault\"]\nwatch-pages = true\naccel = \"tcg\"\n\
                 watch-output = true\nwith = [\"./beside.txt\"]";
    let factors = "[[factor]]\nname = \"numa_balancing\"\nlevels = [0, 1]\n[[factor]]\n\
                   name = \"pool\"\nlevels = [{ name = \"none\", set = { huge_2m_pages = 0 } }, \
                   { name = \"some\", set = { huge_2m_pages = 8, nodes = 1, policy = \"bind:0\", environment = \
                   \"MODE=1\" } }]\n";
    let probe = "[[workload]]\nname = \"probe\"\ntool = \"balancing-probe\"\n\
                 arguments = [\"--size\", \"2M\", \"--time\", \"200ms\"]\n\
                 metrics = [\"latency-end\", \"local\"]\n";
    let place = Place::with(&study(backend, &format!("{factors}{SHOW}{probe}{WORDS}")));
    fs::write(place.path("words.txt"), "7\n").expect("written");
    fs::write(place.path("beside.txt"), "11\n").expect("written");
    let others = Others::start();
    let output = place.run(&["study", "run", "s.toml"]);
    drop(others);
    if !ran(&output) {
        return;
    }
    let journal = place.journal();
    let began = of_kind(&journal, "began");
    let notice = &began[0]["notices"][0];
    assert_eq!((&notice["kind"], &notice["name"]), (&json!("accelerator"), &json!("tcg")));
    let facts = &began[0]["environment"];
    assert!(facts["kernel"] != facts["host_kernel"], "names the guest's kernel: {facts}");
    let applied = of_kind(&journal, "applied");
    assert_eq!(applied.len(), 4);
    for entry in &applied {
        let evidence = entry["evidence"].to_string();
        for what in ["\"numa_balancing\"", "\"huge_2m_pages\"", "meminfo before"] {
            assert!(evidence.contains(what), "{evidence}");
        }
        // The guest's second node has its second CPU.
        let is_placed = entry["treatment"].as_u64().expect("an index") % 2 == 1;
        for placed in [r#""wanted":"1","what":"cpus"}"#, r#""wanted":"bind:0","what":"policy"}"#] {
            assert_eq!(evidence.contains(placed), is_placed, "{evidence}");
        }
    }
    has_sampled(&journal);
}

/// Checks for a sample of each workload under each treatment while others kept the cpus busy.
fn has_sampled(journal: &[Value]) {
    let samples = of_kind(journal, "sample");
    assert_eq!(samples.len(), 12);
    for sample in samples {
        let treatment = sample["treatment"].as_u64().expect("an index");
        let reading = &sample["readings"][0];
        if reading["metric"] == "word" {
            assert_eq!(
                reading["value"],
                if treatment % 2 == 1 { 187.0 } else { 180.0 },
                "{sample}"
            );
            continue;
        }
        if reading["metric"] == "knob" {
            let wanted = if treatment < 2 { 0.0 } else { 1.0 };
            assert_eq!(reading["value"], wanted, "{sample}");
        } else {
            assert_eq!(reading["unit"], "ns");
            assert!(reading["value"].as_f64().expect("a number") > 0.0);
        }
        assert!(sample["counters"]["pgfault"].as_f64().expect("counted") > 0.0, "{sample}");
        assert!(sample["evidence"].to_string().contains("QEMU: smaps"), "{sample}");
        // A sample of few ticks is too short to tell; steal time comes before other causes.
        let mut disturbances = sample["disturbances"].as_array().into_iter().flatten();
        let is_noted = disturbances.any(|disturbance| {
            let kind = &disturbance["load"]["kind"];
            disturbance["on"] == "host" && (kind == "foreign" || kind == "stolen")
        });
        assert!(is_noted || reading["metric"] == "knob", "other processes ran meanwhile: {sample}");
    }
}

/// Returns the distribution's kernel package, as left by earlier guests.
fn kernel_package() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let kernels = cache.or(home).expect("a home").join("numalab/kernel");
    let mut entries = fs::read_dir(&kernels).expect("kernels").map(|entry| entry.expect("one"));
    let is_ours =
        |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("distribution-");
    entries.find(is_ours).expect("a kernel").path().join("package.deb")
}

#[test]
fn a_users_kernels_are_booted_and_distinguished() {
    if !is_long() {
        eprintln!("NOT RUN: three boots; set NUMALAB_LONG=1");
        return;
    }
    let backend = "linux-guest]\nemulate = \"2\"\ncpus = 2\nmemory = \"512M\"\naccel = \"tcg\"";
    let start = Place::with("");
    // The first boot leaves its package in the cache.
    if !ran(&start.run(&["guest", "run", "-q", "--accel", "tcg", "--", "true"])) {
        return;
    }
    let package = kernel_package();
    let factor = format!(
        "[[factor]]\nname = \"kernel\"\nlevels = [\"linux\", \"backports\", {:?}]\n",
        package.display().to_string()
    );
    // The newer kernel has no balancing to show.
    let workload = SHOW.replace("$(cat /proc/sys/kernel/numa_balancing)", "1");
    let place = Place::with(&study(backend, &format!("{factor}{workload}")));
    if !ran(&place.run(&["study", "run", "s.toml"])) {
        return;
    }
    let journal = place.journal();
    let facts = &of_kind(&journal, "began")[0]["environment"];
    let content = facts[format!("kernel {}", package.display())].as_str().expect("its content");
    assert!(content.starts_with("sha256 "), "{facts}");
    let releases = of_kind(&journal, "applied").into_iter().map(|applied| {
        let evidence = applied["evidence"].as_array().expect("evidence").clone();
        let kernel = evidence.into_iter().find(|fact| fact["what"] == "kernel").expect("a kernel");
        let text = |key: &str| kernel[key].as_str().expect("text").to_owned();
        (text("wanted"), text("found"))
    });
    let releases: std::collections::BTreeMap<String, String> = releases.collect();
    assert_eq!(releases.len(), 3, "{releases:?}");
    assert!(releases["backports"] != releases["linux"], "{releases:?}");
    assert_eq!(releases[&package.display().to_string()], releases["linux"]);
}

#[test]
fn each_treatment_of_each_block_has_a_fresh_guest_where_a_study_wants_that() {
    let backend = "linux-guest]\nfresh = true\nmemory = \"512M\"\naccel = \"tcg\"";
    let factor = "[[factor]]\nname = \"swappiness\"\nlevels = [10, 60]\n";
    let finds = "$(ls /root | grep -c mark; touch /root/mark)";
    let workload = SHOW.replace("$(cat /proc/sys/kernel/numa_balancing)", finds);
    let place = Place::with(&study(backend, &format!("{factor}{workload}")));
    if !ran(&place.run(&["study", "run", "s.toml"])) {
        return;
    }
    let journal = place.journal();
    let samples = of_kind(&journal, "sample");
    let found: Vec<&Value> = samples.iter().map(|s| &s["readings"][0]["value"]).collect();
    assert_eq!(found, [&json!(0.0), &json!(0.0)], "what a sample left is found by none");
}

/// Kills a run at each of its system calls in turn, in a guest with real knobs, and counts how
/// often everything was restored.
const KILLS: &str = r#"
knobs="/proc/sys/kernel/numa_balancing /proc/sys/vm/swappiness
  /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
  /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages
  /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"
echo 3 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages
calls=openat,read,write,fsync,fdatasync,unlink,close,statx,clone3
run() { numalab knobs run -q numa_balancing=0 vm.swappiness=11 thp_enabled=never huge_2m_pages=16 -- true; }
before=$(cat $knobs)
strace -qq -o trace -e trace=$calls numalab knobs run -q numa_balancing=0 vm.swappiness=11 \
  thp_enabled=never huge_2m_pages=16 -- true || exit 9
grep '^[a-z]' trace | cut -d'(' -f1 > calls
total=$(wc -l < calls)
numalab knobs run -q huge_2m_pages=4000000 -- true 2> clamped && exit 8
grep -q 'of 4000000 pages could be reserved' clamped || { cat clamped; exit 7; }
[ "$(cat $knobs)" = "$before" ] || exit 6
# Loading the program takes the first steps and changes nothing.
span=$((total * 3 / 5)); [ $span -ge WANTED ] || span=$total
stride=$((span / WANTED)); [ $stride -gt 0 ] || stride=1
killed=0; back=0; refused=0; line=0
while read call; do
  line=$((line + 1))
  eval "n_$call=\$((\${n_$call:-0} + 1)); n=\$n_$call"
  [ $((total - line)) -lt $span ] && [ $(((total - line) % stride)) -eq 0 ] || continue
  strace -qq -o /dev/null -e inject=$call:signal=KILL:when=$n numalab knobs run -q \
    numa_balancing=0 vm.swappiness=11 thp_enabled=never huge_2m_pages=16 -- true
  killed=$((killed + 1))
  if [ "$(cat $knobs)" != "$before" ]; then
    run 2> next; [ $? -eq 125 ] && refused=$((refused + 1))
  fi
  numalab knobs restore > /dev/null || echo "restore failed at $call $n"
  if [ "$(cat $knobs)" = "$before" ]; then back=$((back + 1)); else cat $knobs; fi
  echo "KILLED $killed BACK $back REFUSED $refused"
done < calls
"#;

#[test]
fn in_a_guest_every_knob_is_back_after_a_kill_at_any_step() {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        eprintln!("NOT RUN: strace is missing");
        return;
    }
    let wanted: u64 = if is_long() { 100 } else { 4 };
    let place = Place::with("");
    let script = KILLS.replace("WANTED", &wanted.to_string());
    let output = place.run(&[
        "guest",
        "run",
        "-q",
        "--accel",
        "tcg",
        "--emulate",
        "256M,256M",
        "--cpus",
        "2",
        "--with",
        "/usr/bin/strace",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    if !ran(&output) {
        return;
    }
    let said = text(&output.stdout);
    let last = said.lines().rfind(|line| line.starts_with("KILLED ")).unwrap_or_default();
    let numbers: Vec<u64> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [killed, back, refused] = numbers[..] else { panic!("{said}{}", text(&output.stderr)) };
    eprintln!("{last}");
    assert!(killed >= wanted, "{said}");
    assert_eq!(back, killed, "{said}");
    assert!(refused > 0, "no kill came while knobs were set: {said}");
}

#[test]
fn placements_are_applied_to_all_that_a_workload_starts_and_read_back() {
    let rest = "[[factor]]\nname = \"place\"\nlevels = [{ name = \"free\" }, { name = \"one\", \
                set = { cpus = 0, policy = \"bind:0\", ranks = 1, threads = 1 } }]\n[[workload]]\n\
                name = \"show\"\ncommand = [\"sh\", \"-c\", \"sh -c 'echo cpus = $(nproc) \
                ${OMP_NUM_THREADS:-none}'; grep -c bind:0 /proc/self/numa_maps | sed 's/^/bound = /'\"]\n\
                [[workload.metric]]\nname = \"cpus\"\nbetter = \"lower\"\npattern = \"cpus = {n}\"\n\
                [[workload.metric]]\nname = \"bound\"\nbetter = \"lower\"\npattern = \"bound = {n}\"\n";
    let place = Place::with(&study("host]", rest));
    if !ran(&place.run(&["study", "run", "s.toml"])) {
        return;
    }
    let journal = place.journal();
    for applied in of_kind(&journal, "applied") {
        let found: Vec<String> = applied["evidence"]
            .as_array()
            .expect("evidence")
            .iter()
            .map(|one| format!("{}: {} {}", one["what"], one["wanted"], one["found"]))
            .collect();
        let placed = [
            "\"cpus\": \"0\" \"0\"",
            "\"policy\": \"bind:0\" \"bind:0\"",
            "\"rank 0 cpus\": \"0\" \"0\"",
        ];
        assert_eq!(found, if applied["treatment"] == 1 { &placed[..] } else { &[] });
    }
    for sample in of_kind(&journal, "sample") {
        let value = |at: usize| sample["readings"][at]["value"].as_f64().expect("a number");
        if sample["treatment"] == 1 {
            assert!(value(0) == 1.0 && value(1) > 0.0, "{sample}");
        } else {
            assert_eq!(value(1), 0.0, "{sample}");
        }
    }
}

/// Reads its input, a file next to it and a variable.
const WORDS: &str = "\
[[workload]]
name = \"words\"
command = [\"sh\", \"-c\", \"read a; read b <$(find / -xdev -name beside.txt); echo word: $((a * MODE + b + 169))\"]
stdin = \"words.txt\"
[[workload.metric]]
name = \"word\"
better = \"lower\"
regex = \"^word: ([0-9]+)$\"
";

#[test]
fn commands_get_input_and_variables_and_their_outputs_stay_separate() {
    let factors = "[[factor]]\nname = \"environment\"\nlevels = [\"MODE=0\", \"MODE=1\"]\n";
    let words = WORDS.replace("$(find / -xdev -name beside.txt)", "beside.txt");
    let place = Place::with(&study("host]\nwatch-output = true", &format!("{factors}{words}")));
    fs::write(place.path("words.txt"), "7\n").expect("written");
    fs::write(place.path("beside.txt"), "11\n").expect("written");
    assert!(ran(&place.run(&["study", "run", "s.toml"])));
    let journal = place.journal();
    let mut outputs = BTreeSet::new();
    for sample in of_kind(&journal, "sample") {
        let value = &sample["readings"][0]["value"];
        assert_eq!(*value, json!(if sample["treatment"] == 1 { 187.0 } else { 180.0 }));
        let output = &sample["evidence"][0];
        assert_eq!(output["what"], "output");
        outputs.insert(output["found"].as_str().expect("a hash").to_owned());
    }
    assert_eq!(outputs.len(), 2);
}

#[test]
fn a_workload_that_runs_on_in_the_background_is_terminated_and_refused() {
    let workload = "[[workload]]\nname = \"daemon\"\ncommand = [\"sh\", \"-c\", \"setsid sleep 6543 \
                    >/dev/null 2>&1 & sleep 0.2\"]\nmetric = [{ name = \"t\", better = \"lower\", \
                    exit-time = true }]\n";
    let factors = "[[factor]]\nname = \"v\"\nlevels = [1, 2]\n";
    let place = Place::with(&study("host]", &format!("{factors}{workload}")));
    let output = place.run(&["study", "run", "s.toml"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("left sleep (") && message.contains("now terminated"), "{message}");
    let left = Command::new("pgrep").args(["-f", "sleep 6543"]).output().expect("pgrep runs");
    assert_eq!(text(&left.stdout), "", "nothing is left running");
}

#[test]
fn placements_that_this_machine_does_not_have_are_refused_where_they_are_written() {
    for (set, words) in [
        ("cpus = 4095", "s.toml, line 12, column"),
        ("cpus = 4095", "setting cpus: 4095: expected some of "),
        ("polcy = \"local\"", "did you mean `policy`?"),
        ("policy = \"near\"", "expected one of local, bind, preferred, interleave, weighted"),
        ("ranks = 4096, threads = 4096", "setting ranks: 4096 with 4096 each: expected at most"),
    ] {
        let factor = format!(
            "[[factor]]\nname = \"place\"\nlevels = [{{ name = \"free\" }}, {{ name = \"one\", set = {{ {set} }} }}]\n"
        );
        let place =
            Place::with(&study("host]", &format!("{factor}[[workload]]\ntool = \"latency\"\n")));
        place.refused(2, &[words]);
    }
}

#[test]
fn a_workload_with_a_service_runs_on_this_machine_and_leaves_nothing() {
    let rest = "[[factor]]\nname = \"size\"\nlevels = [16, 64]\n[[workload]]\nname = \"redis\"\n\
                tool = \"redis\"\narguments = [\"-n\", \"300\", \"-d\", \"{size}\", \"-t\", \"get\"]\n\
                metrics = [\"GET rps\"]\n[[workload]]\nname = \"hot\"\ntool = \"redis-hot\"\n\
                arguments = [\"keys=100\", \"bytes={size}\", \"hot=5\", \"share=90\", \"requests=300\"]\n";
    let place = Place::with(&study("host]", rest));
    let mut command = place.numalab(&["study", "run", "s.toml"]);
    let temporary = place.directory.path().join("t");
    fs::create_dir(&temporary).expect("made");
    let output = command.env("TMPDIR", &temporary).output().expect("numalab starts");
    if !ran(&output) {
        return;
    }
    let journal = place.journal();
    let samples = of_kind(&journal, "sample");
    assert_eq!(samples.len(), 4);
    for sample in samples {
        assert!(sample["readings"][0]["value"].as_f64().expect("a number") > 0.0, "{sample}");
    }
    assert_eq!(fs::read_dir(&temporary).expect("there").count(), 0, "a scratch directory is left");
    let environment = journal[0]["environment"].to_string();
    assert!(environment.contains("tool_redis-server"), "versions are recorded: {environment}");
}

#[test]
fn a_missing_tool_is_named_with_its_package_before_anything_is_changed() {
    let rest = "[[factor]]\nname = \"numa_balancing\"\nlevels = [0, 1]\n[[workload]]\n\
                tool = \"sysbench-memory\"\n";
    let place = Place::with(&study("host]", rest));
    let mut command = place.numalab(&["study", "run", "s.toml"]);
    let output = command.env("PATH", "/nowhere").output().expect("numalab starts");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert!(message.contains("`sysbench` was not found"), "{message}");
    assert!(message.contains("apt-get install sysbench"), "{message}");
    assert!(!PathBuf::from("/var/lib/numalab/knobs.journal").exists());
}

#[test]
fn settings_that_no_backend_knows_are_refused() {
    let tool = "[[workload]]\ntool = \"balancing-probe\"\n";
    let factor = |name: &str| format!("[[factor]]\nname = \"{name}\"\nlevels = [0, 1]\n{tool}");
    let place = |backend: &str, name: &str| Place::with(&study(backend, &factor(name)));
    let unknown = ["s.toml, line 11, column 8: setting numa_balancng", "numalab knobs list"];
    place("host]", "numa_balancng").refused(2, &unknown);
    place("host]\ncounter = []", "aslr").refused(2, &["backend.host", "counter", "watch-pages"]);
    let guest = |settings: &str| format!("linux-guest]\n{settings}");
    let unknown = ["s.toml, line 12, column 8: setting numa_balancng", "numalab knobs list"];
    place(&guest("cpus = 2"), "numa_balancng").refused(2, &unknown);
    let emulate = ["s.toml, line 4, column 1: backend.linux-guest.emulate", "\"x\""];
    place(&guest("emulate = \"x\""), "aslr").refused(2, &emulate);
    let levels = "[[factor]]\nname = \"kernel\"\nlevels = [\"linux\", \"/no/such\"]\n";
    let kernels = Place::with(&study(&guest(""), &format!("{levels}{tool}")));
    kernels.refused(
        2,
        &["s.toml, line 12, column 8: setting kernel: \"/no/such\"", "a file that exists"],
    );
    let kernel = place(&guest("kernel = \"/no/such\""), "aslr");
    kernel.refused(
        2,
        &["line 4, column 1: backend.linux-guest.kernel: \"/no/such\"", "a file that exists"],
    );
    place(&guest("accel = \"fast\""), "aslr").refused(2, &["accel", "auto, kvm or tcg"]);
    place(&guest("memory = \"lots\""), "aslr").refused(2, &["memory", "lots"]);
}

#[test]
fn an_agent_answers_a_line_for_each_request_and_ends_with_its_input() {
    let place = Place::with("");
    let mut command = place.numalab(&["study", "agent", "{\"counters\": [\"pgfault\"]}"]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.expect("numalab starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"{\"treatments\": [], \"workloads\": []}\n").expect("written");
    drop(input);
    let output = child.wait_with_output().expect("waited");
    assert!(output.status.success());
    let said = text(&output.stdout);
    let lines: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0], "ready");
    assert!(lines[1]["prepared"]["environment"]["kernel"].is_string(), "{said}");
    assert_eq!(lines.len(), 2);
}

#[test]
fn the_balancing_probe_gives_latencies_that_a_workload_can_read() {
    let place = Place::with("");
    let arguments =
        ["study", "probe", "balancing", "--size", "1M", "--time", "50ms", "--format", "json"];
    let output = place.run(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let spec = numalab_workload::WorkloadSpec::of_tool("balancing-probe");
    let finished = numalab_workload::Finished {
        ending: numalab_workload::Ending::Exited(0),
        stdout: &stdout,
        stderr: "",
        elapsed_s: 0.1,
    };
    let readings = spec.resolve().expect("bundled").read(&finished).expect("readings");
    assert_eq!(readings[0].quantity.metric, "latency-end");
    assert!(readings[0].value > 0.0);
    let refused = place.run(&["study", "probe", "balancing", "--from", "60000"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

#[test]
fn latency_in_json_is_read_by_the_workload_of_that_name() {
    let place = Place::with("");
    let arguments = ["latency", "--size", "1M", "--pages", "4k", "--cpus", "0", "--budget", "2s"];
    let output = place.run(&[&arguments[..], &["--format", "json", "--quiet"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let spec = numalab_workload::WorkloadSpec::of_tool("latency");
    let ending = numalab_workload::Ending::Exited(0);
    let finished =
        numalab_workload::Finished { ending, stdout: &stdout, stderr: "", elapsed_s: 0.1 };
    let readings = spec.resolve().expect("bundled").read(&finished).expect("readings");
    assert!(readings.iter().any(|reading| reading.quantity.metric.starts_with("latency")));
}
