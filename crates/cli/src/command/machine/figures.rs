//! Converts machine files to figures and back.

use numalab_formats::machine_toml::{LoadFigures, MachineFile, MemoryFigures};
use numalab_results::capture::{Load, MachineFigures};
use numalab_topology::NodeSet;

/// Returns the figures of a file; a load on several nodes becomes one on each.
pub(crate) fn figures_of(file: MachineFile) -> MachineFigures {
    let MachineFile { machine, memory } = file;
    let each = |load: LoadFigures| {
        let from = load.from.map_or_else(|| vec![None], |set| set.iter().map(Some).collect());
        let nodes: Vec<_> = load.nodes.iter().collect();
        let one = move |node| {
            let (peak_mb_s, curves) = (load.peak_mb_s, load.curves.clone());
            from.clone().into_iter().map(move |from| Load {
                node,
                from,
                peak_mb_s,
                curves: curves.clone(),
            })
        };
        nodes.into_iter().flat_map(one).collect::<Vec<Load>>()
    };
    MachineFigures {
        machine,
        cache_latency_ns: memory.cache_latency_ns,
        core: memory.core,
        tlb: memory.tlb,
        transfers: memory.transfers,
        loads: memory.load.into_iter().flat_map(each).collect(),
    }
}

/// Returns the machine file with these figures.
pub(crate) fn file_of(figures: MachineFigures) -> MachineFile {
    let load = |load: Load| LoadFigures {
        nodes: NodeSet::from_iter([load.node]),
        from: load.from.map(|node| NodeSet::from_iter([node])),
        peak_mb_s: load.peak_mb_s,
        curves: load.curves,
    };
    let memory = MemoryFigures {
        cache_latency_ns: figures.cache_latency_ns,
        core: figures.core,
        tlb: figures.tlb,
        transfers: figures.transfers,
        load: figures.loads.into_iter().map(load).collect(),
    };
    MachineFile { machine: figures.machine, memory }
}
