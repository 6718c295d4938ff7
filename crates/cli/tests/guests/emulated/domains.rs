//! Xen domains on memory with the costs of a machine file.

use serde_json::Value;

use super::lab::Lab;

#[test]
fn domains_do_not_share_a_cpu_while_another_is_idle() {
    if std::env::var_os("NUMALAB_LONG").is_none_or(|value| value != "1") {
        println!("NOT RUN: domains of Xen on an x460, without NUMALAB_LONG=1");
        return;
    }
    let lab = Lab::open();
    let results = lab.path("results");
    let results = results.to_str().expect("UTF-8");
    let mut words = vec!["study", "run", "guest-scaling", "--blocks", "1", "-q", "-o", results];
    let set = ["emulate-like=x460", "node-memory-mib=5120", "workloads=dbench", "guests=4"];
    words.extend(set.iter().flat_map(|set| ["--set", set]));
    let output = lab.numalab(&words);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let run = std::fs::read_dir(results).expect("results").next().expect("a run").expect("there");
    let journal = std::fs::read_to_string(run.path().join("journal.jsonl")).expect("a journal");
    let entries = journal.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let samples: Vec<Value> = entries.filter(|entry| entry["entry"] == "sample").collect();
    assert_eq!(samples.len(), 2, "{journal}");
    for sample in samples {
        let fairness = &sample["counters"]["throughput fairness %"];
        assert!(fairness.as_f64().is_some_and(|percent| percent > 99.0), "{sample:#}");
    }
}
