//! The memory emulator's counts during a job: the share of remote accesses, and their cost.

use numalab_record::{EmulatedCpu, EmulatedMachine, MemoryReport, MemoryReportError};

/// A job's accesses, summed over all cpus.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct JobMemory {
    pub instructions: f64,
    /// The virtual time of all cpus, in ns: instructions plus the cost of accesses.
    pub time_ns: f64,
    /// The virtual time that accesses cost, in ns.
    pub cost_ns: f64,
    /// The part of the cost caused by distance and by contention, in ns.
    pub distance_ns: f64,
    pub load_ns: f64,
    /// The virtual time that all cpus waited for accesses, in ns.
    pub waited_ns: f64,
    /// Accesses that missed all caches: their number, their cost in ns, and the number that went to
    /// another node.
    pub misses: f64,
    pub misses_ns: f64,
    pub remote_misses: f64,
}

/// Reads one phase of a report (`numalab-emulator/1`).
pub(super) fn job_memory(report: &str, phase: usize) -> Result<JobMemory, MemoryReportError> {
    let report = MemoryReport::read(report)?;
    let mut sum = JobMemory::default();
    let phases = report.phases.iter().filter(|found| found.phase == phase as u64);
    for vcpu in phases.flat_map(|phase| &phase.vcpus) {
        sum.add(vcpu, &report.machine);
    }
    let each_ns = report.machine.core.map_or(1.0, |core| core.ns_per_instruction);
    sum.waited_ns = sum.time_ns - sum.instructions * each_ns;
    Ok(sum)
}

impl JobMemory {
    fn add(&mut self, vcpu: &EmulatedCpu, machine: &EmulatedMachine) {
        self.instructions += vcpu.instructions as f64;
        self.time_ns += vcpu.time_ns as f64;
        self.cost_ns += vcpu.cost_ns as f64;
        for count in &vcpu.nodes {
            let misses = count.misses() as f64;
            self.misses += misses;
            self.misses_ns += count.cost_ns as f64;
            self.load_ns += count.queue_ns as f64;
            if count.node != vcpu.node {
                self.remote_misses += misses;
                let farther_ns = farther_ns(machine, vcpu.node, count.node);
                self.distance_ns += farther_ns.unwrap_or_default() * misses;
            }
        }
    }

    /// Returns the share of accesses that went to another node.
    pub(super) fn remote_share(&self) -> Option<f64> {
        (self.misses > 0.0).then(|| self.remote_misses / self.misses)
    }

    /// Returns the speed expected from these counts, relative to the same work with all memory
    /// local and uncontended. That work would take less time by the cost of distance and
    /// contention, scaled by the share of the miss costs that was actually waited for, since misses
    /// overlap with each other and with instructions.
    pub(super) fn expected_speed(&self) -> Option<f64> {
        let waited = (self.waited_ns / self.misses_ns.max(1.0)).clamp(0.0, 1.0);
        let more_ns = (self.distance_ns + self.load_ns) * waited;
        (self.time_ns > 0.0).then(|| (self.time_ns - more_ns) / self.time_ns)
    }
}

/// Returns the additional latency of a node's memory over the cpu's own node, in ns.
fn farther_ns(machine: &EmulatedMachine, from: u64, to: u64) -> Option<f64> {
    let at = |node| machine.nodes.iter().position(|known| known.id == node);
    let row = machine.latency_ns.get(at(from)?)?;
    Some(row.get(at(to)?)? - row.get(at(from)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"schema":"numalab-emulator/1",
      "mode":"virtual","qemu":{"vcpus":1},"self_test":[],
      "machine":{"nodes":[{"id":0},{"id":1}],"latency_ns":[[100,200],[200,100]]},"phases":[
      {"phase":1,"vcpus":[
        {"vcpu":0,"node":0,"instructions":1000,"time_ns":3920,"cost_ns":3000,"nodes":[
          {"node":0,"loads":10,"stores":0,"cost_ns":1000,"load_misses":10,"store_misses":0,"queue_ns":0},
          {"node":1,"loads":5,"stores":5,"cost_ns":2000,"load_misses":5,"store_misses":5,"queue_ns":0}]}]},
      {"phase":2,"vcpus":[]}]}"#;

    #[test]
    fn remote_accesses_predict_the_slowdown() {
        let memory = job_memory(REPORT, 1).unwrap();
        assert_eq!((memory.misses, memory.remote_misses), (20.0, 10.0));
        assert_eq!(memory.remote_share(), Some(0.5));
        // 3000 ns of accesses would be 2000 if all were local. Instructions hide 80 of them, and
        // the same share of the saving.
        let speed = memory.expected_speed().unwrap();
        assert!((speed - (3920.0 - 1000.0 * 2920.0 / 3000.0) / 3920.0).abs() < 1e-9, "{speed}");
    }

    #[test]
    fn waiting_for_loaded_memory_counts_and_misses_that_overlap_take_it_together() {
        let loaded = REPORT.replace("\"queue_ns\":0", "\"queue_ns\":500");
        let loaded = loaded.replace("\"time_ns\":3920", "\"time_ns\":4000");
        let memory = job_memory(&loaded, 1).unwrap();
        assert_eq!((memory.distance_ns, memory.load_ns), (1000.0, 1000.0));
        assert_eq!(memory.expected_speed(), Some(2000.0 / 4000.0));
        // Of the 3000 ns that misses cost, 750 were waited for: four at a time.
        let core = "\"machine\":{\"core\":{\"ns_per_instruction\":0.25},";
        let overlapping = loaded.replace("\"machine\":{", core);
        let overlapping = overlapping.replace("\"time_ns\":4000", "\"time_ns\":1000");
        let memory = job_memory(&overlapping, 1).unwrap();
        assert_eq!(memory.expected_speed(), Some((1000.0 - 2000.0 / 4.0) / 1000.0));
    }

    #[test]
    fn a_phase_without_accesses_expects_nothing_and_no_report_is_an_error() {
        let memory = job_memory(REPORT, 2).unwrap();
        assert_eq!((memory.remote_share(), memory.expected_speed()), (None, None));
        assert!(job_memory("", 1).is_err());
    }
}
