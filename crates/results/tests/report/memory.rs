//! A memory emulator's report in every format.

use numalab_page::{Format, Style};
use numalab_record::MemoryReport;
use numalab_results::Report;
use proptest::prelude::*;
use serde_json::{Value, json};

fn accesses(node: u64, misses: u64, cost_ns: u64) -> Value {
    json!({"node": node, "loads": misses, "stores": misses, "load_misses": misses,
           "store_misses": 0, "cost_ns": cost_ns, "queue_ns": cost_ns / 10})
}

fn vcpu(vcpu: u64, nodes: &Value) -> Value {
    json!({"vcpu": vcpu, "node": vcpu, "instructions": 5, "time_ns": 2_000_000, "cost_ns": 1,
           "io": 0, "other": 0, "local_share": 0.5, "nodes": nodes})
}

/// Returns a report in which cpu 0 makes a quarter of its accesses to one node and the rest to the
/// other, and cpu 1 makes none in phase `walk`.
fn report() -> Value {
    let idle = json!([accesses(0, 0, 0), accesses(1, 0, 0)]);
    let busy = json!([accesses(0, 1_000_000, 100_000_000), accesses(1, 3_000_000, 600_000_000)]);
    json!({
        "schema": "numalab-emulator/1", "plugin": "0.1.0", "mode": "virtual", "start": "marker",
        "sample": 4, "qemu": {"api": 4, "target": "x86_64", "vcpus": 2},
        "self_test": [{"check": "vcpus", "passed": true, "detail": "2 of 2"}],
        "machine": {"nodes": [{"id": 0, "ranges": []}, {"id": 1, "ranges": []}],
                    "latency_ns": [[100.0, 200.0], [200.0, 100.0]]},
        "phases": [{"phase": 0, "vcpus": [vcpu(0, &busy), vcpu(1, &busy)]},
                   {"phase": 128, "name": "walk", "vcpus": [vcpu(0, &busy), vcpu(1, &idle)]}],
    })
}

fn read(report: &Value) -> MemoryReport {
    MemoryReport::read(&report.to_string()).expect("a report")
}

#[test]
fn the_terminal_text_shows_which_thread_accessed_which_node_at_which_cost() {
    let text = read(&report()).page().terminal(Style::Plain);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!("memory-terminal", text);
}

#[test]
fn markdown_csv_and_html_have_the_same_figures() {
    let report = read(&report());
    assert!(
        report.page().markdown().contains("| cpu 0 | 25.0 | 75.0 |"),
        "{}",
        report.page().markdown()
    );
    let rows = report.exported(Format::Csv).unwrap();
    assert_eq!(rows.lines().count(), 1 + 8);
    assert!(rows.contains("\nwalk,0,0,1,3000000,3000000,3000000,0,600000000,60000000\n"), "{rows}");
    let page = report.page().html();
    assert!(page.contains("<table class=\"heat\"") && page.contains("75.0"), "{page}");
}

#[test]
fn a_command_that_failed_is_reported_first() {
    let mut failed = report();
    let lead = |report: &Value| read(report).page().lead.into_iter().next();
    assert!(lead(&failed).is_none());
    failed["failed"] = json!({"exited": 3});
    let first = lead(&failed).map(|lead| lead.sentence);
    assert_eq!(first.as_deref(), Some("The command failed: exit code 3."));
}

/// Returns a report on a program of two threads on node 0 with a heap on node 1.
fn of_program() -> Value {
    let waits = |thread: u64, waited_ns: u64| {
        json!({"thread": thread, "cpu_node": 0, "memory_node": 1, "loads": 9, "stores": 0,
               "misses": 9, "waited_ns": waited_ns, "memory_ns": waited_ns, "queue_ns": 0})
    };
    let thread = |thread: u64| json!({"thread": thread, "cpu_node": 0, "busy_ns": 900_000});
    let mut report = report();
    report["phases"].as_array_mut().unwrap().truncate(1);
    report["program"] = json!({
        "process": 7, "program": "/home/anna/solver", "elapsed_ns": 2_000_000,
        "threads": [thread(0), thread(7)], "contended_lines": [], "unplaced": 9287,
        "page_faults": {"count": 3, "time_ns": 40_000},
        "regions": [{"start": 0, "end": 4096, "name": "[heap]", "made_at": [],
                     "first_touches": [], "hot_pages": 1, "pages": [],
                     "accesses": [waits(0, 500_000), waits(7, 600_000), waits(0, 300_000)]}],
    });
    report
}

#[test]
fn the_document_has_the_figures_of_the_page_and_makes_the_page_again() {
    let report = read(&of_program());
    let json = report.json().expect("JSON");
    let document: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(document["schema"], "numalab/emulation-1");
    let figure = |name: &str| document["results"][name].as_f64().expect(name);
    // If accesses were local, half of the 1.4 ms would remain, out of 4 ms of both cpus.
    let [memory, remote] = ["memory", "remote"]
        .map(|of| (figure(&format!("{of}_ns")), figure(&format!("{of}_percent"))));
    assert_eq!((memory, remote), ((1_400_000.0, 35.0), (700_000.0, 17.5)));
    assert_eq!((figure("page_faults_percent"), figure("contended_percent")), (1.0, 0.0));
    let [region] = &document["results"]["remote_regions"].as_array().expect("regions")[..] else {
        panic!("{document}")
    };
    assert_eq!((&region["name"], &region["of_remote_percent"]), (&json!("[heap]"), &json!(100.0)));
    let page = report.page();
    assert_eq!(page.title, "Memory cost of solver on a machine with 2 nodes");
    let again = numalab_results::with_report("a", &json, |report| report.page());
    assert_eq!(again.expect("a document"), page);
}

#[test]
fn a_program_has_the_wait_of_each_thread_and_the_accesses_that_found_no_memory() {
    let text = read(&of_program()).page().terminal(Style::Plain);
    let row = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap().trim_end();
    let words = |start| row(start).split_whitespace().skip(2).collect::<Vec<_>>();
    assert_eq!(words("thread 0"), ["0", "1.80e-5", "0.800", "0.900"], "{text}");
    assert_eq!(words("thread 7"), ["0", "9.00e-6", "0.600", "0.900"], "{text}");
    // A cpu is not a thread: several threads share one.
    assert!(text.contains("\ncpu 1 ") && !text.contains("\nthread 1 "), "{text}");
    assert!(text.contains("left out: 9287."), "{text}");
}

#[test]
fn nothing_counted_is_reported() {
    let mut empty = report();
    empty["phases"] = json!([]);
    let text = read(&empty).page().terminal(Style::Plain);
    assert!(text.contains("Nothing was counted"), "{text}");
}

#[test]
fn another_schema_and_other_texts_are_refused() {
    let mut other = report();
    other["schema"] = json!("numalab/1");
    let error = MemoryReport::read(&other.to_string()).unwrap_err().to_string();
    assert!(error.contains("\"numalab/1\"") && error.contains("numalab-emulator/1"), "{error}");
    assert!(MemoryReport::read("[1").is_err());
    assert!(MemoryReport::read("{\"schema\":\"numalab-emulator/1\"}").is_err());
}

proptest! {
    #[test]
    fn no_figures_make_it_panic(misses in any::<u64>(), cost in any::<u64>(), cut in 0..4000_usize) {
        let mut report = report();
        report["phases"][0]["vcpus"][0]["nodes"][0] = accesses(0, misses, cost);
        let report = report.to_string();
        let (text, page) = {
            let read = MemoryReport::read(&report).expect("a report");
            (read.page().terminal(Style::Plain), read.page().html())
        };
        prop_assert!(!text.is_empty() && !page.is_empty());
        prop_assert!(MemoryReport::read(report.get(..cut.min(report.len() - 1)).unwrap_or("")).is_err());
    }
}
