//! `numalab latency`.

use numalab_measure::beyond_caches;
use numalab_measure::plan::{
    LatencySpec, curve_sizes, latency_cells, matrix_workers, plain_pattern,
};
use numalab_record::{Cell, Team, WorkerPlan};

use super::measuring::{Ground, deliver, print_plan, run_plan};
use crate::args::{Format, LatencyArgs};
use crate::failure::Failure;
use crate::output;

/// The curve of a run without `--size`.
const CURVE_BYTES: (u64, u64) = (4 << 10, 512 << 20);
/// What `--dry-run` takes for the matrix, whose size the curve decides.
const FORESEEN_MATRIX_BYTES: u64 = 256 << 20;

/// Measures latency and prints it.
pub(crate) fn run(args: &LatencyArgs) -> Result<(), Failure> {
    let ground = Ground::survey(&args.selection)?;
    let first = match &args.size {
        Some(sizes) => matrix(args, &ground, &sizes.0),
        None => curve(args, &ground),
    };
    let second = |size_bytes| match &args.size {
        Some(_) => Vec::new(),
        None => matrix(args, &ground, &[size_bytes]),
    };
    if args.output.dry_run {
        return print_plan(&[first, second(FORESEEN_MATRIX_BYTES)].concat());
    }
    let (document, directory) =
        run_plan("latency", &ground, (&args.rules, &args.output), &first, |document| {
            second(beyond_caches(document))
        })?;
    if args.table && args.output.format == Format::Text {
        return output::print(&numalab_report::latency_table(&document));
    }
    deliver(&document, directory.as_deref(), &args.output)
}

/// The first cpu over all sizes.
fn curve(args: &LatencyArgs, ground: &Ground) -> Vec<Cell> {
    let cpu = ground.scope.cpus.first().copied().unwrap_or_default();
    let worker = WorkerPlan { cpu, node: ground.scope.nearest_node(&ground.machine, cpu) };
    let sizes = curve_sizes(CURVE_BYTES.0, CURVE_BYTES.1);
    latency_cells(&[worker], &sizes, spec(args, ground, Team::Serial))
}

/// The chosen cpus and nodes at these sizes: one after the other, all at once, or both.
fn matrix(args: &LatencyArgs, ground: &Ground, sizes: &[u64]) -> Vec<Cell> {
    let mut cells = Vec::new();
    if !args.concurrent {
        let workers = matrix_workers(&ground.machine, &ground.scope, args.per.into());
        cells.extend(latency_cells(&workers, sizes, spec(args, ground, Team::Serial)));
    }
    if args.concurrent || args.both {
        let nearest =
            |&cpu| WorkerPlan { cpu, node: ground.scope.nearest_node(&ground.machine, cpu) };
        let workers: Vec<_> = ground.scope.cpus.iter().map(nearest).collect();
        cells.extend(latency_cells(&workers, sizes, spec(args, ground, Team::Concurrent)));
    }
    cells
}

fn spec(args: &LatencyArgs, ground: &Ground, team: Team) -> LatencySpec {
    let pattern = args.pattern.unwrap_or_else(|| plain_pattern(ground.pages));
    LatencySpec { pattern, pages: ground.pages, team }
}
