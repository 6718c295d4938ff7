//! `numalab loaded`.

use numalab_measure::MeasureError;
use numalab_measure::plan::{LoadedSpec, Scope, all_workers, loaded_cells};
use numalab_record::WorkerPlan;
use numalab_topology::{NodeId, NodeSet};

use super::measuring::{Target, deliver, print_plan, run_plan, too_few, usual_budget};
use crate::args::LoadedArgs;
use crate::failure::Failure;

/// Measures latency under load and prints it.
pub(crate) fn run(args: &LoadedArgs) -> Result<(), Failure> {
    let target = Target::survey(&args.selection)?;
    let cells = loaded_cells(&spec(args, &target)?);
    if args.output.dry_run {
        return print_plan(&cells, &args.rules, usual_budget(&cells));
    }
    let rules = (&args.rules, &args.output);
    let (document, directory) = run_plan("loaded", &target, rules, &cells, |_| Vec::new())?;
    deliver(&document, directory.as_deref(), &args.output)
}

/// The first cpu chases; one cpu of every other core loads.
fn spec(args: &LoadedArgs, target: &Target) -> Result<LoadedSpec, Failure> {
    let Target { machine, scope, pages } = target;
    let cpu = scope.cpus.first().copied().unwrap_or_default();
    let node = match args.chaser_node.map(NodeId) {
        Some(node) => {
            let chosen = NodeSet::from_iter([node]);
            Scope::new(machine, None, Some(&chosen)).map_err(MeasureError::from)?;
            node
        }
        None => scope.nearest_node(machine, cpu),
    };
    let load: Vec<WorkerPlan> = all_workers(machine, scope)
        .into_iter()
        .filter(|worker| worker.cpu != cpu)
        .map(|worker| WorkerPlan { node, ..worker })
        .collect();
    if load.is_empty() {
        return Err(Failure::new(
            too_few(&args.selection),
            "loaded latency needs two cores: one to chase, one to load the memory; \
             choose more with --cpus",
        ));
    }
    let (kernel, size_bytes, pages) = (args.kernel, args.size, *pages);
    Ok(LoadedSpec { chaser: WorkerPlan { cpu, node }, load, kernel, size_bytes, pages })
}
