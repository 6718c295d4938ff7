//! A kernel supplied by the user (`[backend.kernel] file = ...`): its console is the output that
//! workloads' patterns read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use numalab_guest::{Launch, Patterns, RawEnd, RawTask, Runtime};
use numalab_guest_agent::Stream;
use numalab_host::Interrupt;
use numalab_image::Medium;
use numalab_record::study::Treatment;
use numalab_record::{MemoryReport, MemoryReportError};
use numalab_study::{BackendError, SampleRequest, StudyPlace};
use numalab_workload::Workload;
use regex::Regex;

use super::place::lacking;
use super::shape::{BACKENDS, FILE, KIND, Shape};
use crate::{exec, facts};

/// The program name for workloads of this backend.
const PROGRAM: &str = "kernel";

/// A kernel supplied by the user.
#[derive(Clone, Debug)]
pub(super) struct KernelFile {
    pub path: PathBuf,
    task: RawTask,
}

/// The output of a boot.
pub(super) struct Heard {
    pub text: String,
    /// Accesses to memory by its location, if the emulator counted them.
    pub counters: BTreeMap<String, f64>,
}

impl KernelFile {
    /// Returns the file that the study names, if any.
    pub fn of(shape: &Shape) -> Result<Option<Self>, BackendError> {
        let Some(path) = &shape.file else { return Ok(None) };
        let medium = Medium::of(path).map_err(|error| {
            BackendError::bad_input(StudyPlace::backend(KIND.name, FILE), path.display(), error)
        })?;
        let expect = pattern("expect", shape.expect.as_deref())?;
        let patterns = Patterns { expect, fail: pattern("fail", shape.fail.as_deref())? };
        Ok(Some(Self { path: path.clone(), task: RawTask { medium, patterns } }))
    }

    /// Returns the fingerprint by which a resumed study recognises the file.
    pub fn fact(&self) -> Result<String, BackendError> {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy();
        Ok(format!("{name} {}", facts::content(&self.path)?))
    }

    /// Rejects a workload with another program.
    pub fn check(workload: &Workload) -> Result<(), BackendError> {
        super::check_program(workload, PROGRAM, "since backend.kernel.file is given")
    }

    /// Returns the kernel's arguments: the workload's with settings filled in, then the remaining
    /// settings.
    pub fn words(treatment: &Treatment, workload: &Workload) -> Vec<String> {
        let own = &workload.command[1.min(workload.command.len())..];
        let filled = own.iter().map(|word| exec::filled(word, &treatment.settings));
        let has_place = |name: &str| own.iter().any(|word| word.contains(&format!("{{{name}}}")));
        let others = treatment.settings.iter().filter(|(name, _)| *name != BACKENDS);
        let others = others.filter(|(name, _)| !has_place(name));
        filled.chain(others.map(|(name, value)| format!("{name}={value}"))).collect()
    }

    /// Boots the kernel and collects its output until the end.
    pub fn run(
        &self,
        launch: &Launch,
        runtime: &Runtime,
        interrupt: &Interrupt,
        request: &SampleRequest<'_>,
    ) -> Result<Heard, BackendError> {
        let mut console = Vec::new();
        let mut sink = |_: Stream, bytes: &[u8]| console.extend_from_slice(bytes);
        let ran = launch.run_raw(runtime, &self.task, &mut sink, &|| interrupt.requested());
        let outcome = ran.map_err(|error| lacking(&error))?;
        let is_expected = self.task.patterns.expect.is_some();
        match &outcome.end {
            RawEnd::Stopped => return Err(BackendError::Interrupted),
            RawEnd::Expected { .. } => {}
            RawEnd::Port { value: 0 } | RawEnd::PoweredOff if !is_expected => {}
            end => {
                return Err(BackendError::of_workload(request.workload, end));
            }
        }
        let text = String::from_utf8_lossy(&console).replace('\r', "");
        let counters = outcome.memory_report.map(|report| counted(&report)).transpose();
        let unread = |error| BackendError::failed("the memory emulator's report", error);
        Ok(Heard { text, counters: counters.map_err(unread)?.unwrap_or_default() })
    }
}

fn pattern(name: &str, text: Option<&str>) -> Result<Option<Regex>, BackendError> {
    let bad = |text: &str| {
        BackendError::bad_input(StudyPlace::backend(KIND.name, name), text, "a regular expression")
    };
    text.map(|text| Regex::new(text).map_err(|_| bad(text))).transpose()
}

/// Returns the accesses of all cpus to memory of their own nodes, and of others.
fn counted(report: &str) -> Result<BTreeMap<String, f64>, MemoryReportError> {
    let report = MemoryReport::read(report)?;
    let mut sums = [0.0, 0.0];
    for vcpu in report.phases.iter().flat_map(|phase| &phase.vcpus) {
        for of in &vcpu.nodes {
            sums[usize::from(of.node != vcpu.node)] += (of.loads + of.stores) as f64;
        }
    }
    let names = ["local accesses", "remote accesses"].map(str::to_owned);
    Ok(names.into_iter().zip(sums).collect())
}

#[cfg(test)]
mod tests {
    use numalab_record::study::Setting;
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_fill_placeholders_and_others_become_separate_words() {
        let setting = |text: &str| Setting::Text(text.to_owned());
        let settings = [("policy", "near"), ("log", "off"), (BACKENDS, "own")];
        let settings = settings.map(|(name, value)| (name.to_owned(), setting(value)));
        let treatment = Treatment { settings: settings.into_iter().collect(), ..treatment() };
        let words = KernelFile::words(&treatment, &workload());
        assert_eq!(words, ["bench", "alloc.policy=near", "log=off"]);
    }

    fn treatment() -> Treatment {
        Treatment { name: "near".to_owned(), levels: vec![0], settings: BTreeMap::new() }
    }

    fn workload() -> Workload {
        let spec = "name = \"w\"\ncommand = [\"kernel\", \"bench\", \"alloc.policy={policy}\"]\n[[metric]]\nname = \"rate\"\nbetter = \"higher\"\n\
                    pattern = \"rate {x/s}\"\n";
        let spec: numalab_workload::WorkloadSpec = toml::from_str(spec).unwrap();
        spec.resolve().unwrap()
    }

    #[test]
    fn accesses_are_summed_by_local_and_remote_memory() {
        let cpu = |cpu: u64, accesses: &[[u64; 3]]| {
            let nodes: Vec<_> = accesses
                .iter()
                .map(|[node, loads, stores]| {
                    json!({ "node": node, "loads": loads, "stores": stores, "load_misses": 0,
                        "store_misses": 0, "cost_ns": 0, "queue_ns": 0 })
                })
                .collect();
            json!({ "vcpu": cpu, "node": cpu, "instructions": 1, "time_ns": 1, "cost_ns": 0,
                "nodes": nodes })
        };
        let cpus = [cpu(0, &[[0, 5, 1], [1, 2, 0]]), cpu(1, &[[0, 3, 0]])];
        let report = json!({ "schema": "numalab-emulator/1", "mode": "count",
            "qemu": { "vcpus": 2 }, "self_test": [],
            "machine": { "nodes": [], "latency_ns": [] },
            "phases": [{ "phase": 0, "vcpus": cpus }] });
        let counted = counted(&report.to_string()).unwrap();
        assert_eq!((counted["local accesses"], counted["remote accesses"]), (6.0, 5.0));
        assert!(super::counted("{}").is_err(), "it would count as no accesses");
    }
}
