//! `numalab bandwidth`.

use std::collections::BTreeSet;

use numalab_measure::plan::{
    BandwidthSpec, all_workers, bandwidth_cells, bandwidth_matrix, isa_name,
};
use numalab_membench::Isa;
use numalab_record::{Cell, IsaName, StreamKernel};

use super::measuring::{Ground, deliver, print_plan, run_plan};
use crate::args::BandwidthArgs;
use crate::failure::Failure;

/// Each worker's buffers together, unless `--size` says otherwise.
const BUFFER_BYTES: u64 = 384 << 20;

/// Measures bandwidth and prints it.
pub(crate) fn run(args: &BandwidthArgs) -> Result<(), Failure> {
    let ground = Ground::survey(&args.selection)?;
    let cells = plan(args, &ground);
    if args.output.dry_run {
        return print_plan(&cells);
    }
    let rules = (&args.rules, &args.output);
    let (document, directory) = run_plan("bandwidth", &ground, rules, &cells, |_| Vec::new())?;
    deliver(&document, directory.as_deref(), &args.output)
}

/// Every kernel on one cpu and on all; with several nodes, node x node too.
fn plan(args: &BandwidthArgs, ground: &Ground) -> Vec<Cell> {
    let all_kernels = args.kernel.is_empty();
    let kernels = if all_kernels { &StreamKernel::ALL[..] } else { &args.kernel };
    let isa = match &args.isa {
        Some(name) => IsaName(name.to_lowercase()),
        None => isa_name(Isa::detect()),
    };
    let spec = BandwidthSpec {
        pattern: args.pattern,
        pages: ground.pages,
        isa,
        size_bytes: args.size.unwrap_or(BUFFER_BYTES),
    };
    let all = all_workers(&ground.machine, &ground.scope);
    let mut cells = bandwidth_cells(&all[..1], kernels, &spec);
    cells.extend(bandwidth_cells(&all, kernels, &spec));
    if ground.scope.nodes.len() > 1 {
        let kernel = if all_kernels { StreamKernel::Read } else { args.kernel[0] };
        cells.extend(bandwidth_matrix(&ground.machine, &ground.scope, kernel, &spec));
    }
    let mut seen = BTreeSet::new();
    cells.retain(|cell| seen.insert(cell.id.clone()));
    cells
}
