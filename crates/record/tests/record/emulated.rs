//! Reports of the memory emulator.

use numalab_record::{MemoryReport, MemoryReportError};
use serde_json::{Value, json};

fn accesses(node: u64, load_misses: u64, store_misses: u64) -> Value {
    json!({"node": node, "loads": 100, "stores": 50, "load_misses": load_misses,
        "store_misses": store_misses, "cost_ns": 9, "queue_ns": 1})
}

fn report() -> Value {
    let cpu = |vcpu: u64, node: u64, time_ns: u64| {
        json!({"vcpu": vcpu, "node": node, "instructions": 5, "time_ns": time_ns, "cost_ns": 9,
            "nodes": [accesses(0, 3, 4), accesses(1, 20, 10)]})
    };
    let phase = |phase: u64, name: Value| json!({"phase": phase, "name": name, "vcpus": [cpu(0, 0, 100), cpu(1, 1, 23)]});
    json!({
        "schema": "numalab-emulator/1", "mode": "count", "qemu": {"vcpus": 2, "version": "9"},
        "self_test": [{"check": "c", "passed": true, "detail": "d"}],
        "machine": {"nodes": [{"id": 0}, {"id": 1}], "latency_ns": [[80.0, 140.0], [140.0, 80.0]]},
        "phases": [phase(0, json!("warm")), phase(1, Value::Null)],
    })
}

fn with_program() -> Value {
    let mut report = report();
    report["program"] = json!({
        "process": 7, "elapsed_ns": 9, "threads": [], "contended_lines": [], "unplaced": 0,
        "regions": [{"start": 1, "end": 2, "name": "[heap]", "first_touches": [], "hot_pages": 0,
            "pages": [], "accesses": [], "made_at": [{"object": "/bin/a", "offset": 64}],
            "later": "a newer emulator says more"}],
        "later": "of the program too",
    });
    report
}

fn read(report: &Value) -> MemoryReport {
    MemoryReport::read(&report.to_string()).expect("a report")
}

#[test]
fn accesses_that_reached_memory_are_counted_in_total_and_for_the_local_node() {
    let report = read(&report());
    let [zero, one] = &report.phases[0].vcpus[..] else { panic!("two cpus") };
    assert_eq!((zero.misses(), zero.local_misses()), (37, 7));
    assert_eq!((one.misses(), one.local_misses()), (37, 30));
    assert_eq!(report.time_ns(), 2 * 123);
    assert_eq!(
        (report.phases[0].label().as_str(), report.phases[1].label().as_str()),
        ("warm", "1")
    );
    assert_eq!((report.sample, report.program()), (1, None));
}

#[test]
fn sums_beyond_64_bits_are_as_large_as_can_be() {
    let mut of = report();
    of["phases"][0]["vcpus"][0]["nodes"][0]["load_misses"] = u64::MAX.into();
    of["phases"][0]["vcpus"][0]["time_ns"] = u64::MAX.into();
    let of = read(&of);
    assert_eq!(of.phases[0].vcpus[0].misses(), u64::MAX);
    assert_eq!(of.phases[0].vcpus[0].local_misses(), u64::MAX);
    assert_eq!(of.time_ns(), u64::MAX);
}

#[test]
fn another_schema_is_named_before_anything_that_is_missing() {
    for (schema, found) in [(json!("numalab-emulator/2"), "numalab-emulator/2"), (json!(""), "")] {
        let error = MemoryReport::read(&json!({"schema": schema}).to_string()).unwrap_err();
        let expected = format!(
            "schema {found:?}: expected \"numalab-emulator/1\", the memory emulator's report"
        );
        assert_eq!(error.to_string(), expected);
    }
    let error = MemoryReport::read("{}").unwrap_err();
    assert!(matches!(error, MemoryReportError::Schema { found } if found.is_empty()));
    for text in ["", "{", "7", "{\"schema\":1}"] {
        let error = MemoryReport::read(text).unwrap_err().to_string();
        assert!(error.starts_with("not a report of the memory emulator: "), "{text}: {error}");
    }
}

#[test]
fn a_report_without_one_of_its_members_is_refused_by_the_members_name() {
    for member in ["mode", "qemu", "self_test", "machine", "phases"] {
        let mut of = report();
        of.as_object_mut().unwrap().remove(member);
        let error = MemoryReport::read(&of.to_string()).unwrap_err().to_string();
        assert!(error.contains(&format!("missing field `{member}`")), "{error}");
    }
    let mut of = report();
    of["phases"][1]["vcpus"][0]["nodes"][1]["loads"] = (-1).into();
    assert!(MemoryReport::read(&of.to_string()).is_err());
}

#[test]
fn a_report_is_written_with_all_of_its_machine_and_read_back() {
    let mut of = with_program();
    of["machine"]["core"] = json!({"ns_per_instruction": 0.25, "width": 4});
    of["machine"]["caches"] = json!([{"bytes": 32768}]);
    let report = read(&of);
    let text = serde_json::to_value(&report).expect("JSON");
    assert_eq!(text["machine"]["core"], of["machine"]["core"]);
    assert_eq!(text["machine"]["caches"], of["machine"]["caches"]);
    assert_eq!((&text["qemu"]["version"], &text["qemu"]["vcpus"]), (&json!("9"), &json!(2)));
    let again: MemoryReport = serde_json::from_value(text).expect("still a report");
    assert_eq!(again, report);
    assert_eq!(again.program().map(|of| of.process), Some(7));
}
