//! Studies of many guests from outside: refusals, plans, and a run with QEMU guests. Xen's domains
//! are booted in `xen.rs`; with `NUMALAB_LONG=1` whole studies of them run here too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use numalab_image::{Cache, package};
use serde_json::Value;
use tempfile::TempDir;

/// A directory for the studies of one test.
struct Lab {
    directory: TempDir,
}

impl Lab {
    fn open() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_numalab"));
        command.args(arguments).current_dir(self.directory.path()).stdin(Stdio::null());
        command.output().expect("numalab starts")
    }

    /// Returns the text of the only file of this name in the result directories.
    fn result(&self, name: &str) -> String {
        let results = fs::read_dir(self.path("results")).expect("results");
        let mut directories = results.map(|entry| entry.expect("readable").path());
        let directory = directories.next().expect("one result");
        fs::read_to_string(directory.join(name)).expect("the file")
    }
}

/// A process unrelated to numalab that keeps a cpu busy.
struct Other {
    child: Child,
}

impl Other {
    fn with_niceness(niceness: &str) -> Self {
        let mut command = Command::new("nice");
        command.args(["-n", niceness, "sh", "-c", "while :; do :; done"]);
        Self { child: command.spawn().expect("nice starts") }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("it ended");
    }
}

/// Fails unless the sample names the other load during its guests; steal time comes before other
/// causes.
#[track_caller]
fn assert_disturbed(sample: &str) {
    let is_noted = ["foreign", "stolen"].iter().any(|kind| {
        sample.contains(&format!(r#""kind":"load","on":"host","load":{{"kind":"{kind}""#))
    });
    assert!(is_noted, "other processes ran meanwhile: {sample}");
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it ended by itself")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_machine_that_is_not_dom0_is_refused_before_anything_is_written() {
    if Path::new("/proc/xen/capabilities").exists() {
        eprintln!("NOT RUN: this machine runs Xen itself");
        return;
    }
    let lab = Lab::open();
    let output = lab.run(&["study", "run", "guest-scaling", "--set", "on-this-dom0=true"]);
    let errors = text(&output.stderr);
    assert_eq!(code(&output), 3, "{errors}");
    assert!(errors.contains("this machine is not a dom0"), "{errors}");
    assert!(!lab.path("results").exists());
}

#[test]
fn unsuitable_arguments_are_refused_with_suitable_ones() {
    let lab = Lab::open();
    let refused = |arguments: &[&str], words: &str| {
        let output = lab.run(arguments);
        let errors = text(&output.stderr);
        assert_eq!(code(&output), 2, "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    };
    refused(
        &["study", "run", "--dry-run", "noise", "--set", "guests=4"],
        "--set guests: no such factor or setting",
    );
    refused(&["study", "run", "guest-scaling", "--set", "workloads=sdet"], "one of dbench, mix");
    refused(&["study", "run", "guest-scaling", "--set", "guests=65"], "65: expected 1 to 64");
    let sets = ["--set", "hypervisor=qemu", "--set", "emulate-latency=100"];
    let on_qemu = [&["study", "run", "guest-scaling"][..], &sets].concat();
    refused(&on_qemu, "a Xen in QEMU only");
}

#[test]
fn numbers_of_guests_are_levels_and_a_single_number_is_not() {
    let lab = Lab::open();
    let plan = |guests: &str| {
        let guests = format!("guests={guests}");
        // A debug build needs more than the default, which is only noticed once all packages are in the cache.
        let sets = ["--set", &guests, "--set", "guest-memory-mib=512"];
        let arguments = [&["study", "run", "--dry-run", "guest-scaling"][..], &sets].concat();
        let output = lab.run(&arguments);
        assert_eq!(code(&output), 0, "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let several = plan("6,2");
    assert!(several.contains("numa=off guests=2") && several.contains("numa=on guests=6"));
    assert!(!several.contains("guests=4"), "{several}");
    let one = plan("6");
    assert!(one.contains("A  numa=off\n") && !one.contains("guests="), "{one}");
}

const WITH_QEMU: &str = r#"
name = "two-guests"
question = "Do guests of QEMU run together?"
[backend.guests]
hypervisor = "qemu"
guests = 2
guest-memory-mib = 256
[rules]
blocks = 1
warm-ups = 0
aa = false
repeats = 0
[[factor]]
name = "pages"
levels = [
  { name = "4k", set = { guest-memory = "normal", "host:thp_enabled" = "never" } },
  { name = "huge", set = { LEVEL } },
]
[[workload]]
name = "copy"
command = ["sh", "-c", "head -c 20000000 /dev/zero > copy && echo rate: $(wc -c < copy)"]
[[workload.metric]]
name = "copied"
unit = "bytes"
better = "higher"
pattern = "rate: {}"
"#;

/// Returns the study above, with the pages behind the guests' memory as its factor.
fn of_pages(level: &str) -> String {
    WITH_QEMU.replace("LEVEL", level)
}

#[test]
fn guests_of_qemu_run_together_with_the_hosts_huge_pages_and_the_pool_is_put_back() {
    let lab = Lab::open();
    let pool = || fs::read_to_string("/proc/sys/vm/nr_hugepages").expect("a pool");
    let before = pool();
    let text_of = of_pages(r#"guest-memory = "2m", "host:huge_2m_pages" = 270"#);
    fs::write(lab.path("pages.toml"), text_of).expect("written");
    let others = [Other::with_niceness("19"), Other::with_niceness("19")];
    let output = lab.run(&["study", "run", "pages.toml", "--quiet"]);
    drop(others);
    let errors = text(&output.stderr);
    if code(&output) == 3 && std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_none() {
        eprintln!("NOT RUN: no guest, or no pool of huge pages, can be had here: {errors}");
        return;
    }
    assert_eq!(code(&output), 0, "{errors}");
    assert_eq!(pool(), before);
    let journal = lab.result("journal.jsonl");
    let samples: Vec<&str> =
        journal.lines().filter(|line| line.contains(r#""entry":"sample""#)).collect();
    let huge = |sample: &&&str| sample.contains("256 MiB of 2048 KiB");
    assert_eq!((samples.len(), samples.iter().filter(huge).count()), (2, 1), "{journal}");
    assert!(journal.contains("host:huge_2m_pages"), "{journal}");
    for sample in samples {
        // Both guests wrote 20 MB, and both have their memory on a node of this machine.
        assert!(sample.contains(r#""value":40000000.0"#), "{sample}");
        assert!(sample.contains("\"guest\":\"g01\"") && sample.contains("\"guest\":\"g02\""));
        assert!(sample.contains(r#""home":0,"memory":[[0,"#), "{sample}");
        assert!(!sample.contains("unknown for"), "{sample}");
        assert_disturbed(sample);
    }
}

#[test]
fn settings_of_qemu_guests_are_refused_for_others_and_unknown_knobs_are_named() {
    let lab = Lab::open();
    let refused = |study: &str, words: &str| {
        fs::write(lab.path("pages.toml"), study).expect("written");
        let output = lab.run(&["study", "run", "pages.toml"]);
        let errors = text(&output.stderr);
        assert_eq!(code(&output), 2, "{errors}");
        assert!(errors.contains(words), "{errors}");
    };
    let of_xen = of_pages(r#"guest-memory = "2m""#).replace("\"qemu\"", "\"xen\"");
    refused(&of_xen, "them with hypervisor = \"qemu\"");
    refused(&of_pages(r#""host:huge_3m_pages" = 2"#), "no such knob");
}

/// Returns a study of two guests on two hypervisors.
fn of_builds(settings: &str, first: &str, second: &str) -> String {
    format!(
        "name = \"builds\"\nquestion = \"Is the new Xen slower?\"\n[backend.guests]\n{settings}\
         guests = 2\n[rules]\nblocks = 1\nwarm-ups = 0\naa = false\nrepeats = 0\n[[factor]]\n\
         name = \"xen\"\nlevels = [{first:?}, {second:?}]\n[[workload]]\nname = \"sum\"\n\
         command = [\"sh\", \"-c\", \"i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; echo sum: $i\"]\n\
         [[workload.metric]]\nname = \"sum\"\nbetter = \"higher\"\npattern = \"sum: {{}}\"\n"
    )
}

/// Returns the part of a hypervisor that is read before a boot.
fn like_xen(end: &[u8]) -> Vec<u8> {
    let mut program = vec![0; 64];
    program[..5].copy_from_slice(b"\x7fELF\x01");
    program[18] = 3;
    for (at, field) in [(32, 0x1bad_b002_u32), (36, 0), (40, 0xe452_4ffe)] {
        program[at..at + 4].copy_from_slice(&field.to_le_bytes());
    }
    program.extend_from_slice(b"Xen version %d.%d%s\n");
    program.extend_from_slice(end);
    program
}

#[test]
fn a_setting_that_is_not_a_hypervisor_or_cannot_be_chosen_is_refused_with_its_line() {
    let lab = Lab::open();
    fs::write(lab.path("xen"), like_xen(b"")).expect("written");
    fs::write(lab.path("vmlinux"), b"\x7fELF\x02").expect("written");
    let refused = |settings: &str, second: &str, more: &[&str], words: &[&str]| {
        fs::write(lab.path("s.toml"), of_builds(settings, "debian", second)).expect("written");
        let output = lab.run(&[&["study", "run", "s.toml"][..], more].concat());
        let errors = text(&output.stderr);
        assert_eq!(code(&output), 2, "{errors}");
        for word in words {
            assert!(errors.contains(word), "no {word:?} in: {errors}");
        }
        assert!(!lab.path("results").exists());
    };
    let missing =
        ["s.toml, line 11, column 8: setting xen: \"./none\": No such file", "debian, or"];
    refused("", "./none", &[], &missing);
    refused("", "./vmlinux", &[], &["\"./vmlinux\": it is a 64-bit ELF file, such as xen-syms"]);
    refused("", "./s.toml", &[], &["\"./s.toml\": it is neither an ELF file"]);
    refused("hypervisor = \"qemu\"\n", "./xen", &[], &["QEMU guests do not run on Xen"]);
    refused("", "./xen", &["--set", "hypervisor=qemu"], &["QEMU guests do not run on Xen"]);
    refused("", "./xen", &["--set", "on-this-dom0=true"], &["setting xen", "without on-this-dom0"]);
}

#[test]
fn a_plan_identifies_each_build_by_the_content_of_its_file() {
    let lab = Lab::open();
    let memory = "guest-memory-mib = 256\n";
    fs::write(lab.path("s.toml"), of_builds(memory, "debian", "./xen")).expect("written");
    let said = |end: &[u8]| {
        fs::write(lab.path("xen"), like_xen(end)).expect("written");
        let output = lab.run(&["study", "run", "s.toml", "--dry-run"]);
        assert_eq!(code(&output), 0, "{}", text(&output.stderr));
        let said = text(&output.stdout);
        assert!(said.contains("  B  xen=./xen\n"), "{said}");
        let sum = Command::new("sha256sum").arg(lab.path("xen")).output().expect("coreutils");
        let sum = text(&sum.stdout).split(' ').next().expect("a digest").to_owned();
        (said, format!("xen ./xen: sha256\n  {sum}\n"))
    };
    let (plan, build) = said(b"1");
    if plan.contains("It cannot be run now") && std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_none()
    {
        eprintln!("NOT RUN: no guest can be booted here: {plan}");
        return;
    }
    assert!(plan.contains(&build), "no {build:?} in: {plan}");
    assert!(plan.contains("the tools in dom0 are Debian's"), "{plan}");
    assert_eq!(plan.matches("Before it starts").count(), 1, "{plan}");
    let (anew, other_build) = said(b"2");
    assert!(anew.contains(&other_build) && other_build != build, "{anew}");
    assert!(!lab.path("results").exists());
}

/// Returns Debian's hypervisor as packaged, compressed.
fn debians_xen() -> PathBuf {
    let cache = Cache::open().expect("a cache");
    let system = package::Archive::host().record("xen-system-amd64").expect("Debian has Xen");
    let mut names = system.depends.iter().flatten();
    let is_ours = |name: &&String| name.starts_with("xen-hypervisor-4");
    let name = names.find(is_ours).expect("a hypervisor");
    let unpacked = package::ensure_unpacked(&cache, name, &mut |_| ()).expect("unpacked");
    let files = fs::read_dir(unpacked.own.join("boot")).expect("its files");
    let mut files = files.map(|file| file.expect("readable").path());
    files.find(|file| file.extension().is_some_and(|kind| kind == "gz")).expect("xen.gz")
}

#[test]
fn custom_hypervisors_are_booted_and_a_study_resumes_only_with_the_same() {
    if !long() {
        return;
    }
    let lab = Lab::open();
    fs::copy(debians_xen(), lab.path("a.gz")).expect("copied");
    let unpacked = Command::new("gzip").args(["-dc"]).arg(lab.path("a.gz")).output();
    let program = unpacked.expect("gzip starts").stdout;
    fs::write(lab.path("b"), &program).expect("written");
    fs::write(lab.path("s.toml"), of_builds("", "./a.gz", "./b")).expect("written");
    let other = Other::with_niceness("0");
    let output = lab.run(&["study", "run", "s.toml", "--quiet"]);
    drop(other);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let journal = lab.result("journal.jsonl");
    let lines = |entry: &str| {
        let mark = format!("\"entry\":\"{entry}\"");
        journal.lines().filter(move |line| line.contains(&mark)).collect::<Vec<_>>()
    };
    let found: BTreeMap<String, String> = lines("applied").into_iter().map(build_of).collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), ["./a.gz", "./b"]);
    let [packed, plain] = ["./a.gz", "./b"].map(|name| &found[name]);
    assert!(packed.starts_with("Xen 4.") && packed.contains(", build id "), "{packed}");
    assert_eq!(packed.split(", file").next(), plain.split(", file").next());
    assert_ne!(packed, plain, "each file has its own hash");
    let samples = lines("sample");
    assert_eq!(samples.len(), 2);
    for sample in samples {
        assert!(
            sample.contains("\"value\":40000.0") && sample.contains("\"guest\":\"g02\""),
            "{sample}"
        );
        assert_disturbed(sample);
    }
    fs::write(lab.path("b"), [&program[..], b"built anew"].concat()).expect("written");
    let results = fs::read_dir(lab.path("results")).expect("results");
    let results = results.map(|entry| entry.expect("readable").path()).next().expect("one run");
    let output = lab.run(&["study", "resume", &results.to_string_lossy(), "--blocks", "2"]);
    let errors = text(&output.stderr);
    assert_eq!(code(&output), 1, "{errors}");
    assert!(errors.contains("xen ./b was sha256 "), "{errors}");
}

/// Returns the hypervisor that an applied treatment requested, and the one that ran.
fn build_of(applied: &str) -> (String, String) {
    let applied: Value = serde_json::from_str(applied).expect("JSON");
    let evidence = applied["evidence"].as_array().expect("evidence");
    let xen = evidence.iter().find(|fact| fact["what"] == "xen").expect("a hypervisor");
    let text = |key: &str| xen[key].as_str().expect("text").to_owned();
    (text("wanted"), text("found"))
}

fn long() -> bool {
    let asked = std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1");
    if !asked {
        eprintln!("NOT RUN: a study of Xen's domains, without NUMALAB_LONG=1");
    }
    asked
}

#[test]
fn a_whole_study_of_domains_ends_with_where_each_ones_memory_was() {
    if !long() {
        return;
    }
    let lab = Lab::open();
    // However busy this machine is, every domain is seen once.
    let study = text(&lab.run(&["study", "show", "guest-scaling"]).stdout);
    assert!(study.contains("repeats = 2"), "{study}");
    fs::write(lab.path("s.toml"), study.replace("repeats = 2", "repeats = 0")).expect("written");
    let arguments = [
        "study",
        "run",
        "s.toml",
        "--set",
        "guests=8",
        "--set",
        "workloads=dbench",
        "--blocks",
        "1",
    ];
    let output = lab.run(&arguments);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let journal = lab.result("journal.jsonl");
    for sample in journal.lines().filter(|line| line.contains(r#""entry":"sample""#)) {
        assert!(sample.contains("\"guest\":\"g08\""), "{sample}");
        assert!(sample.contains("local-memory"), "{sample}");
    }
    assert!(journal.contains("topology exported (xl info -n)"));
}

/// Two guests, each on a separate node, on machines that are set up differently.
const SETUPS: &str = r#"
name = "setups"
question = "Where do guests lie on machines that are set up in other ways?"
[backend.guests]
guests = 2
guests-per-node = 1
[rules]
blocks = 1
warm-ups = 0
aa = false
repeats = 0
[[factor]]
name = "setup"
levels = [
    { name = "pools", set = { cpupools = true, pinning = "none" } },
    { name = "two-sockets", set = { machine = "two-sockets" } },
    { name = "fake", set = { numa = "fake=3" } },
]
[[workload]]
name = "copy"
command = ["sh", "-c", "head -c 20000000 /dev/zero > copy && echo rate: $(wc -c < copy)"]
[[workload.metric]]
name = "copied"
unit = "bytes"
better = "higher"
pattern = "rate: {}"
"#;

/// Returns the evidence found under a treatment, by its subject.
fn evidence(journal: &str, treatment: usize) -> BTreeMap<String, String> {
    let entries = journal.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let of_it = entries.filter(|entry: &Value| entry["treatment"] == treatment);
    let all = of_it.flat_map(|entry| entry["evidence"].as_array().cloned().unwrap_or_default());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.map(|one| (text(&one["what"]), text(&one["found"]))).collect()
}

/// Returns the placement of a guest under a treatment.
fn place(journal: &str, treatment: usize, guest: &str) -> Value {
    let entries = journal.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let of_it = entries.filter(|entry: &Value| entry["treatment"] == treatment);
    let mut places =
        of_it.flat_map(|entry| entry["guests"].as_array().cloned().unwrap_or_default());
    places.find(|place| place["guest"] == guest).expect("a place")
}

#[test]
fn guests_are_placed_by_their_cpus_in_pools_and_across_sockets_and_fake_nodes_are_recognized() {
    if !long() {
        return;
    }
    let lab = Lab::open();
    fs::write(lab.path("setups.toml"), SETUPS).expect("written");
    let output = lab.run(&["study", "run", "setups.toml"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let journal = lab.result("journal.jsonl");

    let pools = evidence(&journal, 0);
    let split = &pools["cpupools (xl cpupool-list)"];
    assert_eq!(split, "Pool-node0 has cpus 0,1,2,3, Pool-node1 has cpus 4,5,6,7");
    let sockets = evidence(&journal, 1);
    for treatment in [0, 1] {
        for (name, node) in [("g01", 0), ("g02", 1)] {
            let place = place(&journal, treatment, name);
            // With pools it is the node of the CPU that the guest ran on.
            assert_eq!(place["home"], node, "{place}");
            assert_eq!(place["memory"], serde_json::json!([[node, 49152]]), "{place}");
        }
    }
    assert_eq!(place(&journal, 1, "g02")["cpus"], "8-15");
    assert!(sockets["topology exported (xl info -n)"] == "the same", "{sockets:?}");
    let fake = evidence(&journal, 2);
    assert!(fake["numa"].starts_with("3 nodes; Faking node 0"), "{fake:?}");
    for name in ["g01", "g02"] {
        let place = place(&journal, 2, name);
        // One of the machine's two nodes, not of the three made-up ones.
        let node = place["memory"][0][0].as_u64();
        assert!(node.is_some_and(|node| node < 2), "{place}");
    }
}
