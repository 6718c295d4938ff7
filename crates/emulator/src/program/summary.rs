//! What a program did to its memory, for the report.

use serde::Serialize;

use numalab_memory_model::machine::Machine;

use super::{Program, lock};
use crate::program::regions::Region;

/// The program's part of a report.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    process: u32,
    /// What it went on as, which is not emulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    became: Option<String>,
    threads: Vec<Thread>,
    regions: Vec<Used>,
    /// Bytes of the pages that are there at the end, by node.
    bytes: Vec<Bytes>,
    /// Accesses to pages for which the machine had no memory left.
    unplaced: u64,
}

/// A seat of the model that threads ran on.
#[derive(Clone, Debug, Serialize)]
struct Thread {
    vcpu: usize,
    /// The machine's cpu.
    cpu: usize,
}

#[derive(Clone, Debug, Serialize)]
struct Bytes {
    node: u32,
    bytes: u64,
}

/// A region that was accessed.
#[derive(Clone, Debug, Serialize)]
struct Used {
    #[serde(flatten)]
    region: Region,
    accesses: Vec<From>,
}

/// What the cpus of a node did to a region's pages on a node.
#[derive(Clone, Debug, Serialize)]
struct From {
    cpu_node: u32,
    memory_node: u32,
    loads: u64,
    stores: u64,
    waited_ns: u64,
}

impl Summary {
    /// As far as the program has come.
    pub fn new(program: &Program, machine: &Machine) -> Self {
        let id = |at: usize| machine.nodes[at].id;
        let regions = lock(&program.regions);
        let used = regions.all().iter().enumerate().map(|(number, region)| Used {
            region: region.clone(),
            accesses: accesses(program, machine, number),
        });
        let bytes = lock(&program.space).bytes_by_node();
        Self {
            process: std::process::id(),
            became: lock(&program.becomes).clone(),
            threads: (0..machine.cpus.len())
                .map(|vcpu| Thread { vcpu, cpu: program.threads.cpu(vcpu) })
                .collect(),
            regions: used.filter(|used| !used.accesses.is_empty()).collect(),
            bytes: bytes
                .iter()
                .enumerate()
                .map(|(at, &bytes)| Bytes { node: id(at), bytes })
                .collect(),
            unplaced: program.unplaced.load(std::sync::atomic::Ordering::Relaxed),
        }
    }
}

fn accesses(program: &Program, machine: &Machine, region: usize) -> Vec<From> {
    let nodes = machine.nodes.len();
    let mut sums = vec![[0_u64; 3]; nodes * nodes];
    for (place, figures) in program.accesses.iter().enumerate() {
        for node in 0..nodes {
            let sum = &mut sums[machine.cpus[place] * nodes + node];
            let more = figures.of(region * nodes + node);
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }
    let used = sums.iter().enumerate().filter(|(_, [loads, stores, _])| loads + stores > 0);
    used.map(|(at, &[loads, stores, waited_ps])| From {
        cpu_node: machine.nodes[at / nodes].id,
        memory_node: machine.nodes[at % nodes].id,
        loads,
        stores,
        waited_ns: waited_ps / 1000,
    })
    .collect()
}
