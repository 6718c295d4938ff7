//! The results of a scaling run, in every form that it writes.

use numalab_record::scaling::{
    Mode, RankPlace, Scaling, ScalingError, ScalingFile, ScalingMetric, read,
};
use numalab_topology::{CpuId, NodeId};

const CSV: &str = "size (MB),0,1\n8,10,11\n";
const STEM: &str = "sequential_domain0_2ranks_8MB";

fn file(path: &str, text: &str) -> ScalingFile {
    ScalingFile { path: path.to_owned(), text: text.to_owned() }
}

fn scaling(files: &[(&str, &str)]) -> (Scaling, Option<String>) {
    let files: Vec<ScalingFile> = files.iter().map(|(path, text)| file(path, text)).collect();
    read("dir", &files).expect("results")
}

fn place(cpu: u32, cpu_node: Option<u32>, memory_node: Option<u32>) -> Option<RankPlace> {
    let [cpu_node, memory_node] = [cpu_node, memory_node].map(|node| node.map(NodeId));
    Some(RankPlace { cpu: CpuId(cpu), cpu_node, memory_node })
}

const STEP: &str = r#"{"metric":"bandwidth","serial":true,"ranks":[
    {"cpu":4,"cpu_node":0,"memory_nodes":{"0":1,"1":9}},{"cpu":5,"memory_nodes":{}}]}"#;
const SCALE: &str = r#"{"system":"big","partition":"gpu","arch":"[arch]","steps":[
    {"csv":"sequential_domain0_2ranks_8MB.csv","cpus":[6,7],"nodes":[1]},{"csv":"other.csv"}]}"#;
const LOG: &str = "[ 2 RANKS ] CPU binding : 8,9\n[ 2 RANKS ] NUMA binding: 2,2\n\
    [ 2 RANKS ] Executing : srun --csv=sequential_domain0_2ranks_8MB.csv\n";
const MAPPING: &str = "rank,cpu_id,cpu_numa,memory_numa\n0,10,3,3\n1,11,3\n";

#[test]
fn places_come_from_the_step_then_the_plan_then_the_log_then_the_check() {
    let beside = [
        (format!("{STEM}.json"), STEP),
        ("scale.json".to_owned(), SCALE),
        ("slurm_1.log".to_owned(), LOG),
        ("mapping_check.log".to_owned(), MAPPING),
    ];
    let expected = [
        [place(4, Some(0), Some(1)), place(5, None, None)],
        [place(6, None, Some(1)), place(7, None, None)],
        [place(8, None, Some(2)), place(9, None, Some(2))],
        [place(10, Some(3), Some(3)), place(11, Some(3), None)],
        [None, None],
    ];
    for (at, expected) in expected.into_iter().enumerate() {
        let mut files = vec![("sequential_domain0_2ranks_8MB.csv", CSV)];
        files.extend(beside[at.min(4)..].iter().map(|(path, text)| (path.as_str(), *text)));
        assert_eq!(scaling(&files).0.steps[0].places, expected, "without the first {at}");
    }
}

#[test]
fn a_source_with_another_number_of_ranks_is_passed_over() {
    let step = r#"{"metric":"latency","ranks":[{"cpu":4}]}"#;
    let json = format!("{STEM}.json");
    let csv = format!("{STEM}.csv");
    let (of, _) = scaling(&[(&csv, CSV), (&json, step), ("mapping_check.log", MAPPING)]);
    assert_eq!(of.steps[0].places[0], place(10, Some(3), Some(3)));
}

#[test]
fn files_in_another_directory_belong_to_another_run() {
    let files = [("a/sequential_domain0_2ranks_8MB.csv", CSV), ("b/mapping_check.log", MAPPING)];
    let (of, _) = scaling(&files);
    assert_eq!((of.steps[0].run.as_str(), &of.steps[0].places[..]), ("a", &[None, None][..]));
    let (of, _) = scaling(&[("a/x.csv", CSV), ("a/mapping_check.log", MAPPING)]);
    assert_eq!(of.steps[0].places[0], place(10, Some(3), Some(3)));
}

#[test]
fn the_plan_names_the_system_and_brings_the_architecture_file() {
    let (of, architecture) = scaling(&[("x.csv", CSV), ("scale.json", SCALE)]);
    assert_eq!((of.name.as_str(), architecture.as_deref()), ("big gpu", Some("[arch]")));
    let (of, architecture) = scaling(&[("x.csv", CSV), ("scale.json", r#"{"system":"big"}"#)]);
    assert_eq!((of.name.as_str(), architecture), ("big", None));
    let (of, _) = scaling(&[("x.csv", CSV), ("scale.json", r#"{"partition":"gpu"}"#)]);
    assert_eq!(of.name, "dir");
}

#[test]
fn a_step_has_its_subject_and_its_mode_from_its_name_or_itself() {
    let csv = format!("{STEM}.csv");
    let json = format!("{STEM}.json");
    let (of, _) = scaling(&[(&csv, CSV), (&json, STEP)]);
    assert_eq!((of.steps[0].metric, of.steps[0].serial), (ScalingMetric::Bandwidth, true));
    let (of, _) = scaling(&[(&csv, CSV)]);
    assert_eq!((of.steps[0].metric, of.steps[0].serial), (ScalingMetric::Latency, false));
    let (of, _) = scaling(&[("interleaved_domains0,3_2ranks_8MB_serial.csv", CSV)]);
    assert_eq!((of.steps[0].mode, of.steps[0].serial), (Mode::Interleaved, true));
    assert_eq!(of.steps[0].domains, [0, 3]);
}

#[test]
fn steps_are_ordered_by_metric_mode_way_domains_and_ranks() {
    let one = "size (MB),0\n8,9\n";
    let names = [
        "sequential_domain1_1ranks_8MB.csv",
        "mine.csv",
        "sequential_domain0_2ranks_8MB.csv",
        "interleaved_domain0_1ranks_8MB.csv",
        "sequential_domain0_1ranks_8MB_serial.csv",
        "sequential_domain0_1ranks_8MB.csv",
    ];
    let files = names.map(|name| (name, if name.contains("2ranks") { CSV } else { one }));
    let (of, _) = scaling(&files);
    let order: Vec<usize> = of
        .steps
        .iter()
        .map(|step| names.iter().position(|name| *name == step.file).unwrap())
        .collect();
    assert_eq!(order, [5, 2, 0, 4, 3, 1]);
}

#[test]
fn a_damaged_csv_is_refused_with_file_line_and_text() {
    let error = |text: &str| read("dir", &[file("x.csv", text)]).unwrap_err().to_string();
    let row = "expected a size in MB and a number for each rank";
    let header = "expected a header such as `size (MB),0,1`, a column for each rank";
    for (text, expected) in [
        ("", format!("x.csv:1: ``, {header}")),
        ("\n\n", format!("x.csv:1: ``, {header}")),
        ("size (MB)\n", format!("x.csv:1: `size (MB)`, {header}")),
        ("size (MB),0,a\n", format!("x.csv:1: `size (MB),0,a`, {header}")),
        ("ranks,0,1\n", format!("x.csv:1: `ranks,0,1`, {header}")),
        ("size,0\n8,1,2\n", format!("x.csv:2: `8,1,2`, {row}")),
        ("size,0\n\n8,0\n", format!("x.csv:3: `8,0`, {row}")),
        ("size,0\n0,1\n", format!("x.csv:2: `0,1`, {row}")),
        ("size,0\n8,inf\n", format!("x.csv:2: `8,inf`, {row}")),
        ("size,0\n8,NaN\n", format!("x.csv:2: `8,NaN`, {row}")),
        ("size,0\n2e9,1\n", format!("x.csv:2: `2e9,1`, {row}")),
        ("size,0\n1e-9,1\n", format!("x.csv:2: `1e-9,1`, {row}")),
        ("size,0\n8,1\n9,", String::new()),
    ] {
        if expected.is_empty() {
            assert!(read("dir", &[file("x.csv", text)]).is_ok(), "{text:?} has no end");
            continue;
        }
        assert_eq!(error(text), expected);
    }
    let long = error(&format!("size,0\n{}\n", "9".repeat(500)));
    assert!(long.len() < 200, "{long}");
}

#[test]
fn a_truncated_last_line_that_does_not_parse_is_dropped_and_reported() {
    let (of, _) = scaling(&[("x.csv", "size,0,1\n8,1,2\n16,3")]);
    assert_eq!((&of.steps[0].sizes_bytes[..], of.steps[0].complete), (&[8 << 20][..], false));
    assert_eq!(of.findings, ["x.csv: the step was aborted, so sizes are missing"]);
    let (of, _) = scaling(&[("x.csv", "size,0,1\n8,1,2\n16,3,4")]);
    assert_eq!((of.steps[0].sizes_bytes.len(), of.steps[0].complete), (2, true));
}

#[test]
fn rows_are_ordered_by_size_with_their_values() {
    let (of, _) = scaling(&[("x.csv", "Size (MB),0,1\n16,3,4\n0.5,1,2\n")]);
    let step = &of.steps[0];
    assert_eq!(step.sizes_bytes, [1 << 19, 16 << 20]);
    assert_eq!(
        (step.at(1 << 19), step.at(16 << 20)),
        (Some(&[1.0, 2.0][..]), Some(&[3.0, 4.0][..]))
    );
    assert_eq!((step.at(1), step.ranks(), step.l3_group(0, None)), (None, 2, None));
}

#[test]
fn a_damaged_file_next_to_a_csv_is_a_finding_and_the_step_is_still_read() {
    let csv = format!("d/{STEM}.csv");
    let json = format!("d/{STEM}.json");
    let (of, architecture) = scaling(&[(&csv, CSV), (&json, "{"), ("d/scale.json", "[1]")]);
    assert_eq!((of.steps.len(), architecture, of.findings.len()), (1, None, 2));
    assert!(
        of.findings[0]
            .starts_with("d/sequential_domain0_2ranks_8MB.json is damaged and not used: ")
    );
    assert!(
        of.findings[1].starts_with("d/scale.json is damaged and not used: "),
        "{:?}",
        of.findings
    );
}

#[test]
fn a_directory_of_foreign_csv_files_has_no_results() {
    let files = [file("samples.csv", "x"), file("a/cells.csv", "x"), file("notes.txt", "x")];
    let error = read("dir", &files).unwrap_err();
    assert_eq!(error, ScalingError::Empty { directory: "dir".to_owned() });
    assert!(error.to_string().starts_with("dir: no results of numalab scale: expected files"));
}
