//! `numalab loaded`.

use numalab_measure::MeasureError;
use numalab_measure::plan::{LoadedSpec, Scope, load_workers, loaded_cells, loaded_surface};
use numalab_record::{Cell, StreamKernel, WorkerPlan};
use numalab_topology::{NodeId, NodeSet};

use super::measuring::{Target, run_cells, too_few};
use crate::args::LoadedArgs;
use crate::failure::Failure;

/// Measures latency under load and prints it.
pub(crate) fn run(args: &LoadedArgs) -> Result<(), Failure> {
    let target = Target::survey(&args.given.selection)?;
    let cells = cells(args, &target)?;
    run_cells("loaded", &target, &args.given, &cells)
}

/// The first cpu chases; one cpu of every other core loads.
fn cells(args: &LoadedArgs, target: &Target) -> Result<Vec<Cell>, Failure> {
    let Target { machine, scope, pages } = target;
    let cpu = scope.cpus.first().copied().unwrap_or_default();
    let kernels: &[StreamKernel] = match (args.kernel.as_slice(), args.surface) {
        ([], true) => &StreamKernel::ALL,
        ([], false) => &[StreamKernel::Read],
        (kernels, _) => kernels,
    };
    let cells = if args.surface {
        loaded_surface(machine, scope, cpu, kernels, (args.size, *pages))
    } else {
        let node = match args.chaser_node.map(NodeId) {
            Some(node) => {
                let chosen = NodeSet::from_iter([node]);
                Scope::new(machine, None, Some(&chosen)).map_err(MeasureError::from)?;
                node
            }
            None => scope.nearest_node(machine, cpu),
        };
        let load = load_workers(machine, scope, cpu, node);
        let curve = |&kernel: &StreamKernel| {
            let (chaser, load) = (WorkerPlan { cpu, node }, load.clone());
            let (size_bytes, pages) = (args.size, *pages);
            loaded_cells(&LoadedSpec { chaser, load, kernel, size_bytes, pages })
        };
        if load.is_empty() { Vec::new() } else { kernels.iter().flat_map(curve).collect() }
    };
    if cells.is_empty() {
        return Err(Failure::new(
            too_few(&args.given.selection),
            "loaded latency needs two cores: one to chase, one to load the memory; \
             choose more with --cpus",
        ));
    }
    Ok(cells)
}
