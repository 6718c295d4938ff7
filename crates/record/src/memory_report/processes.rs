//! The joined reports of a program's processes.

use super::{EmulatedAccesses, EmulatedCpu, EmulatedPhase, EmulatedTranslation, MemoryReport};
use crate::program::ProgramMemory;

impl MemoryReport {
    /// Joins the reports of processes that ran together as this program, by adding up the figures of
    /// their cpus. Returns `None` if there are no reports.
    pub fn of_processes(reports: Vec<Self>, program: ProgramMemory) -> Option<Self> {
        let mut reports = reports.into_iter();
        let mut whole = reports.next()?;
        for phase in reports.flat_map(|report| report.phases) {
            let is_same = |known: &EmulatedPhase| known.phase == phase.phase;
            match whole.phases.iter().position(is_same) {
                Some(known) => whole.phases[known].add(phase),
                None => whole.phases.push(phase),
            }
        }
        whole.program = Some(program);
        Some(whole)
    }
}

impl EmulatedPhase {
    fn add(&mut self, other: Self) {
        for cpu in other.vcpus {
            let is_same = |known: &EmulatedCpu| (known.vcpu, known.node) == (cpu.vcpu, cpu.node);
            match self.vcpus.iter().position(is_same) {
                Some(known) => self.vcpus[known].add(&cpu),
                None => self.vcpus.push(cpu),
            }
        }
    }
}

impl EmulatedCpu {
    fn add(&mut self, other: &Self) {
        let counts = [
            (&mut self.instructions, other.instructions),
            (&mut self.time_ns, other.time_ns),
            (&mut self.cost_ns, other.cost_ns),
            (&mut self.io, other.io),
            (&mut self.other, other.other),
        ];
        counts.into_iter().for_each(add);
        if let (Some(translation), Some(other)) = (&mut self.translation, &other.translation) {
            translation.add(other);
        }
        for of in &other.nodes {
            match self.nodes.iter_mut().find(|known| known.node == of.node) {
                Some(known) => known.add(of),
                None => self.nodes.push(*of),
            }
        }
        let all = |node: &EmulatedAccesses| node.loads.saturating_add(node.stores);
        let own = self.nodes.iter().filter(|node| node.node == self.node);
        let local = own.map(all).fold(0, u64::saturating_add);
        let every = self.nodes.iter().map(all).fold(0, u64::saturating_add);
        self.local_share = (every > 0).then(|| local as f64 / every as f64);
    }
}

impl EmulatedTranslation {
    fn add(&mut self, other: &Self) {
        let counts = [
            (&mut self.walks, other.walks),
            (&mut self.walk_references, other.walk_references),
            (&mut self.translation_ns, other.translation_ns),
        ];
        counts.into_iter().for_each(add);
    }
}

impl EmulatedAccesses {
    fn add(&mut self, other: &Self) {
        let counts = [
            (&mut self.loads, other.loads),
            (&mut self.stores, other.stores),
            (&mut self.load_misses, other.load_misses),
            (&mut self.store_misses, other.store_misses),
            (&mut self.lines_written_back, other.lines_written_back),
            (&mut self.cost_ns, other.cost_ns),
            (&mut self.queue_ns, other.queue_ns),
        ];
        counts.into_iter().for_each(add);
    }
}

fn add((sum, count): (&mut u64, u64)) {
    *sum = sum.saturating_add(count);
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
        let whole = MemoryReport::of_processes(reports.to_vec(), program.clone()).unwrap();
        let cpus = &whole.phases[0].vcpus;
        let seen = cpus.iter().map(|cpu| (cpu.vcpu, cpu.time_ns, cpu.nodes[0].loads));
        let seen: Vec<_> = seen.collect();
        assert_eq!(seen, [(0, 200, 30), (1, 100, 7)]);
        assert_eq!(whole.program().map(|of| of.process), Some(7));
        assert_eq!(cpus[0].local_share, Some(30.0 / 50.0));
        assert_eq!(MemoryReport::of_processes(Vec::new(), program), None);
    }
}
