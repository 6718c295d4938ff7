//! Machines from files: every form that the usual tools write, and errors for others.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::command::{self, stderr, stdout};

/// Output of `numactl --hardware --cpu-compress` for a machine with nodes of memory only.
const NUMACTL: &str = "\
available: 3 nodes (0-2)
node 0 cpus: 0-1, 4 (3)
node 0 size: 1024 MB
node 1 cpus: 2-3, 5 (3)
node 1 size: 2048 MB
node 2 cpus:
node 2 size: 4096 MB
node distances:
node   0   1   2
  0:  10  20  40
  1:  20  10  40
  2:  40  40  10
";
const LUMI: &str = include_str!("../../../formats/architectures/lumi_partc");

fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = command::run(arguments);
    (output.status.code().expect("it ended by itself"), stdout(&output), stderr(&output))
}

struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn source(&self, kind: &str, name: &str) -> String {
        format!("{kind}:{}", self.path(name).display())
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("written");
    }

    /// Builds the tables of a machine, in `tables`.
    fn build(&self, source: &str) -> (PathBuf, i32, String) {
        let directory = self.path("tables");
        let place = directory.to_str().expect("UTF-8");
        let (code, _, said) = run(&["machine", "acpi", "build", "--source", source, "-o", place]);
        (directory, code, said)
    }

    /// Returns the directory `tables` with those of the machine above.
    fn tables(&self) -> PathBuf {
        self.write("numactl.txt", NUMACTL);
        let (directory, code, said) = self.build(&self.source("numactl", "numactl.txt"));
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("laid out in order of the nodes, with QEMU's hole"), "{said}");
        directory
    }
}

fn numactl_of(source: &str) -> String {
    let (code, text, said) = run(&["topology", "--source", source, "--format", "numactl"]);
    assert_eq!(code, 0, "{source}: {said}");
    text
}

#[test]
fn memory_of_known_size_survives_tables() {
    let lab = Lab::new();
    lab.tables();
    let text = numactl_of(&lab.source("acpi", "tables"));
    for line in ["available: 3 nodes (0-2)", "node 0 size: 1024 MB", "node 2 size: 4096 MB"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn tables_of_a_machine_without_known_memory_are_not_written() {
    let lab = Lab::new();
    lab.write("lumi", LUMI);
    let (directory, code, said) = lab.build(&lab.source("arch", "lumi"));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("no node has known memory") && !directory.exists(), "{said}");
}

fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).expect("copied");
}

#[test]
fn tables_are_found_however_the_usual_tools_name_them() {
    let lab = Lab::new();
    let tables = lab.tables();
    let expected = numactl_of(&lab.source("acpi", "tables"));
    type Name = fn(&str) -> String;
    let ways: [(&str, Name); 3] = [
        ("sys", |name| name.to_owned()),
        ("acpixtract", |name| format!("{}.dat", name.to_lowercase())),
        ("iasl", |name| format!("{}.aml", name.to_lowercase())),
    ];
    for (directory, rename) in ways {
        fs::create_dir(lab.path(directory)).expect("made");
        for name in ["SRAT", "SLIT", "APIC"] {
            let to = lab.path(directory).join(rename(name));
            copy(&tables.join(format!("{name}.bin")), &to);
        }
        assert_eq!(numactl_of(&lab.source("acpi", directory)), expected, "{directory}");
    }
}

/// Formats bytes like acpidump.
fn dump(name: &str, bytes: &[u8]) -> String {
    let mut text = format!("{name} @ 0x0000000000000000\n");
    for (row, chunk) in bytes.chunks(16).enumerate() {
        let hex: Vec<String> = chunk.iter().map(|byte| format!("{byte:02X}")).collect();
        text.push_str(&format!("    {:04X}: {}\n", row * 16, hex.join(" ")));
    }
    text + "\n"
}

#[test]
fn the_text_that_acpidump_writes_is_read_from_a_directory_and_as_a_file() {
    let lab = Lab::new();
    let tables = lab.tables();
    let expected = numactl_of(&lab.source("acpi", "tables"));
    fs::create_dir(lab.path("dump")).expect("made");
    let text: String = ["SRAT", "SLIT", "APIC"]
        .iter()
        .map(|name| dump(name, &fs::read(tables.join(format!("{name}.bin"))).expect("a table")))
        .collect();
    lab.write("dump/all.txt", text);
    assert_eq!(numactl_of(&lab.source("acpi", "dump")), expected);
    assert_eq!(numactl_of(&lab.source("acpi", "dump/all.txt")), expected);
}

#[test]
fn distances_without_a_srat_do_not_make_a_machine() {
    let lab = Lab::new();
    let tables = lab.tables();
    fs::remove_file(tables.join("SRAT.bin")).expect("removed");
    let (code, text, said) = run(&["topology", "--source", &lab.source("acpi", "tables")]);
    assert_eq!((code, text.as_str()), (5, ""), "{said}");
    assert!(said.contains("no SRAT"), "{said}");
}

#[test]
fn text_that_is_not_a_description_is_bad_input_and_read_only_up_to_the_limit() {
    let lab = Lab::new();
    lab.write("words", "root:x:0:0:root:/root:/bin/bash\n");
    File::create(lab.path("large")).and_then(|file| file.set_len(65 << 20)).expect("made");
    let path = |name: &str| lab.path(name).display().to_string();
    let sources = ["lstopo", "numactl", "arch", "acpi"];
    let large = sources.map(|kind| lab.source(kind, "large"));
    let zeros = sources.map(|kind| format!("{kind}:/dev/zero"));
    for source in large.iter().chain(&zeros) {
        let (code, _, said) = run(&["topology", "--source", source]);
        assert_eq!(code, 2, "{source}: {said}");
    }
    for file in ["/dev/zero", &path("large")] {
        assert_eq!(run(&["topology", "--topology", file]).0, 2, "{file}");
        assert_eq!(run(&["machine", "acpi", "show", file]).0, 2, "{file}");
    }
    let (code, _, said) = run(&["machine", "acpi", "show", &path("words")]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("not a table: expected a SRAT"), "{said}");
}

#[test]
fn thousands_of_similar_findings_are_a_few_and_a_count() {
    let lab = Lab::new();
    let rows = 100;
    let cells: Vec<u8> = (0..rows * rows)
        .map(
            |cell| {
                if cell % (rows + 1) == 0 { 10 } else { 20 + u8::from(cell % rows > cell / rows) }
            },
        )
        .collect();
    let mut buffer = vec![0; 44 + rows * rows];
    let header = numalab_acpi::Header::new(numalab_acpi::Signature::SLIT, 1);
    numalab_acpi::slit::build(&mut buffer, header, rows, &cells).expect("a SLIT");
    lab.write("SLIT", buffer);
    let slit = lab.path("SLIT").display().to_string();
    let (code, rows, _) = run(&["machine", "acpi", "check", &slit, "--format", "csv"]);
    assert_eq!((code, rows.lines().count()), (0, 10), "{rows}");
    let (_, text, _) = run(&["machine", "acpi", "check", &slit]);
    assert!(text.contains("4942 more like it [distance-asymmetric]"), "{text}");
}

#[test]
fn known_machines_are_there_by_name_from_anywhere() {
    let (code, text, said) = run(&["topology", "--source", "arch:lumi_partc", "--format", "slurm"]);
    assert_eq!(code, 0, "{said}");
    assert!(text.contains("\n# --cpu-bind=map_cpu:0,1,2,"), "{text}");
    assert_eq!(text.matches("--cpu-bind").count(), 1, "{text}");
    let dry = ["scale", "--arch", "lumi_partc", "--sequential", "0", "--dry-run"];
    let (code, text, said) = run(&dry);
    assert_eq!(code, 0, "{said}");
    assert!(text.contains("PART-C"), "{text}");
    let (code, _, said) = run(&["topology", "--source", "arch:nosuch"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("expected a file, or one of lumi_partc, lumi_partg"), "{said}");
}

#[test]
fn texts_of_lscpu_and_hwloc_are_sources_and_other_texts_are_refused_with_these() {
    let lab = Lab::new();
    let of = |kind: &str, text: &str| {
        lab.write("text", text.as_bytes());
        run(&["topology", "--source", &format!("{kind}:{}", lab.path("text").display())])
    };
    let table = "CPU NODE SOCKET CORE ONLINE\n0 0 0 0 yes\n1 8 1 1 yes\n";
    let (code, text, said) = of("lscpu", table);
    assert_eq!(code, 0, "{said}");
    assert!(text.contains("2 nodes, 2 packages, 2 cores, 2 cpus, memory unknown"), "{text}");
    assert!(!text.contains("huge pages"), "of which lscpu says nothing: {text}");
    let (code, text, said) = of("lstopo", "pack:2 [numa(memory=8GiB)] core:2 pu:2\n");
    assert_eq!(code, 0, "{said}");
    assert!(text.contains("2 nodes, 2 packages, 4 cores, 8 cpus, 16G of memory"), "{text}");
    let (code, text, said) = of("lstopo", "Machine (11GB)\n  Core L#0\n    PU L#0 (P#0)\n");
    assert_eq!(code, 0, "{said}");
    assert!(text.contains("1 node") && text.contains("11G of memory"), "{text}");
    let cells = "<cells><cell id='3'><cpus><cpu id='7'/></cpus></cell></cells>";
    let host = format!("<capabilities><host><topology>{cells}</topology></host></capabilities>\n");
    let (code, text, said) = of("libvirt", &host);
    assert_eq!(code, 0, "{said}");
    assert!(text.contains("1 node") && text.contains("memory unknown"), "{text}");
    for (kind, text, advice) in [
        ("numactl", table, "give it as lscpu:FILE"),
        ("lscpu", "available: 1 nodes (0)\nnode 0 cpus: 0\n", "give it as numactl:FILE"),
        ("lstopo", "Machine (11GB total)\n  Package L#0\n", "as `lstopo --of xml FILE` writes"),
        ("lscpu", "Machine (11GB)\n  PU L#0 (P#0)\n", "give it as lstopo:FILE"),
        ("lstopo", "<capabilities><host/></capabilities>", "give it as libvirt:FILE"),
        ("numactl", "                node0\nnuma_hit     7\n", "give `numactl -H`"),
    ] {
        let (code, _, said) = of(kind, text);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(advice), "{kind}: {said}");
    }
}

/// Returns the figure of this attribute in a line of XML.
fn attribute(line: &str, name: &str) -> u64 {
    let rest = line.split_once(&format!("{name}=\"")).expect("the attribute").1;
    rest.split('"').next().and_then(|figure| figure.parse().ok()).expect("a number")
}

#[test]
fn costs_of_a_machine_file_are_not_called_the_firmwares() {
    let (code, page, said) = run(&["topology", "--emulate-like", "epyc-7763-nps4"]);
    assert_eq!(code, 0, "{said}");
    assert!(page.contains("Access costs of the described machine"), "{page}");
    assert!(page.contains("given by the machine file") && !page.contains("firmware"), "{page}");
}

#[test]
fn measured_figures_are_attributes_for_hwloc_and_latencies_in_the_hmat() {
    let lab = Lab::new();
    let results = lab.path("results").display().to_string();
    let measure =
        ["latency", "--size", "2M,64M", "--pages", "4k", "--budget", "20s", "-q", "-o", &results];
    let (code, _, said) = run(&measure);
    assert_eq!(code, 0, "{said}");
    let run_directory = fs::read_dir(&results).expect("results").next().expect("one").expect("one");
    let source = format!("results:{}", run_directory.path().display());
    let (code, xml, said) = run(&["topology", "--source", &source, "--format", "hwloc-xml"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("measured: random over 64M, 4k pages [latency-measured]"), "{said}");
    let (_, values) =
        xml.split_once("<memattr name=\"ReadLatency\" flags=\"6\">").expect("memattr");
    let xml_ns = attribute(values, " value");
    let tables = lab.path("tables");
    let directory = tables.to_str().expect("UTF-8");
    let (code, _, said) = run(&["machine", "acpi", "build", "--source", &source, "-o", directory]);
    assert_eq!(code, 0, "{said}");
    let source = format!("acpi:{directory}");
    let (code, toml, said) = run(&["topology", "--source", &source, "--format", "toml"]);
    assert_eq!(code, 0, "{said}");
    let (_, figure) = toml.split_once("read_latency_ps = ").expect("a latency");
    let hmat_ps: u64 = figure.split_whitespace().next().and_then(|ps| ps.parse().ok()).expect("ps");
    assert_eq!((hmat_ps + 500) / 1000, xml_ns);
    assert!(xml_ns > 0);
}

#[test]
fn results_without_figures_between_nodes_describe_no_machine() {
    let lab = Lab::new();
    lab.write("study.json", "{\"schema\": \"numalab/study-2\"}");
    let (code, _, said) = run(&["topology", "--source", &lab.source("results", "study.json")]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("numalab report"), "{said}");
    assert_eq!(run(&["topology", "--source", &lab.source("results", "nowhere")]).0, 2);
}
