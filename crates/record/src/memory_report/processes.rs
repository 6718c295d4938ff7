//! The joined reports of a program's processes.

use serde_json::{Map, Value};

use super::{MemoryReport, MemoryReportError};
use crate::program::ProgramMemory;

/// The members that identify a part of a report; all other numbers are summed.
const NAMES: [&str; 3] = ["phase", "vcpu", "node"];

impl MemoryReport {
    /// Joins the reports of processes that ran together by summing the figures of their cpus.
    /// Returns `None` if there are no reports.
    ///
    /// # Errors
    ///
    /// [`MemoryReportError`] if the joined report is not valid.
    pub fn of_processes(
        reports: &[Self],
        program: &ProgramMemory,
    ) -> Result<Option<Self>, MemoryReportError> {
        let json = MemoryReportError::Json;
        let read = |report: &Self| serde_json::from_str::<Value>(&report.text).map_err(json);
        let Some((first, others)) = reports.split_first() else { return Ok(None) };
        if others.is_empty() {
            return Ok(Some(first.clone()));
        }
        let mut whole = read(first)?;
        for other in others {
            add(&mut whole["phases"], read(other)?["phases"].take());
        }
        share(&mut whole);
        whole["program"] = serde_json::to_value(program).map_err(json)?;
        let text = serde_json::to_string_pretty(&whole).map_err(json)? + "\n";
        Self::read(&text).map(Some)
    }
}

fn add(whole: &mut Value, other: Value) {
    match (whole, other) {
        (Value::Array(whole), Value::Array(other)) => {
            for of in other {
                match whole.iter_mut().find(|known| is_same(known, &of)) {
                    Some(known) => add(known, of),
                    None => whole.push(of),
                }
            }
        }
        (Value::Object(whole), Value::Object(other)) => {
            for (name, of) in other {
                if !NAMES.contains(&name.as_str()) {
                    add(whole.entry(name).or_insert(Value::Null), of);
                }
            }
        }
        (whole, of) => {
            if let (Some(one), Some(other)) = (whole.as_u64(), of.as_u64()) {
                *whole = one.saturating_add(other).into();
            } else if whole.is_null() {
                *whole = of;
            }
        }
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    NAMES.iter().all(|name| one.get(name) == other.get(name))
}

/// Recomputes every cpu's share of local accesses.
fn share(whole: &mut Value) {
    let phases = whole["phases"].as_array_mut().into_iter().flatten();
    for cpu in phases.flat_map(|phase| phase["vcpus"].as_array_mut().into_iter().flatten()) {
        let own = cpu["node"].as_u64();
        let count = |node: &Map<String, Value>| {
            ["loads", "stores"].iter().filter_map(|of| node.get(*of)?.as_u64()).sum::<u64>()
        };
        let (mut local, mut all) = (0, 0);
        for node in cpu["nodes"].as_array().into_iter().flatten().filter_map(Value::as_object) {
            all += count(node);
            local += if node.get("node").and_then(Value::as_u64) == own { count(node) } else { 0 };
        }
        cpu["local_share"] = (all > 0).then(|| local as f64 / all as f64).into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(vcpu: u64, loads: u64) -> MemoryReport {
        let node = |node: u64, loads: u64| {
            json!({ "node": node, "loads": loads, "stores": 0, "load_misses": 1, "store_misses": 0,
                    "cost_ns": 5, "queue_ns": 0 })
        };
        let cpu = json!({ "vcpu": vcpu, "node": 0, "instructions": 10, "time_ns": 100, "cost_ns": 5,
                          "local_share": 1.0, "nodes": [node(0, loads), node(1, 10)] });
        let text = json!({
            "schema": "numalab-emulator/1", "mode": "count", "qemu": { "vcpus": 1 },
            "self_test": [], "machine": { "nodes": [], "latency_ns": [], "core": null },
            "phases": [{ "phase": 0, "name": null, "vcpus": [cpu] }], "program": null,
        });
        MemoryReport::read(&text.to_string()).unwrap()
    }

    #[test]
    fn figures_of_a_cpu_add_up_and_cpus_stay_apart() {
        let reports = [report(0, 10), report(1, 7), report(0, 20)];
        let program = ProgramMemory { process: 7, ..ProgramMemory::default() };
        let whole = MemoryReport::of_processes(&reports, &program).unwrap().unwrap();
        let cpus = &whole.phases[0].vcpus;
        let seen = cpus.iter().map(|cpu| (cpu.vcpu, cpu.time_ns, cpu.nodes[0].loads));
        let seen: Vec<_> = seen.collect();
        assert_eq!(seen, [(0, 200, 30), (1, 100, 7)]);
        assert_eq!(whole.program().map(|of| of.process), Some(7));
        let text: Value = serde_json::from_str(&whole.text).unwrap();
        assert_eq!(text["phases"][0]["vcpus"][0]["local_share"], json!(30.0 / 50.0));
        assert_eq!(MemoryReport::of_processes(&[], &program).unwrap(), None);
    }
}
