//! `numalab latency`.

use numalab_launch::session::{ChaseRules, Work};
use numalab_measure::kind::latency::{
    curve_sizes, latency_at_once, latency_curve, latency_matrix, plain_pattern,
};
use numalab_measure::{Target, beyond_caches, usual_budget};
use numalab_record::{AccessPattern, Cell, Pages};

use super::measuring::{deliver, print_plan, run_plan, survey};
use super::ranks::{self, Task};
use crate::args::{Format, LatencyArgs};
use crate::failure::Failure;
use crate::output;

/// Range of the curve of a run without `--size`.
const CURVE_BYTES: (u64, u64) = (4 << 10, 512 << 20);
/// Size assumed by `--dry-run` for the matrix; the real one depends on the curve.
const FORESEEN_MATRIX_BYTES: u64 = 256 << 20;

/// Size for ranks without `--size`, as in the NUMA benchmarking suite.
const RANK_BYTES: u64 = 512 << 20;

/// Measures latency and prints it; under a launcher, as ranks.
pub(crate) fn run(args: &LatencyArgs) -> Result<(), Failure> {
    ranks::run(&args.ranks, &args.given.output, || run_here(args), || Ok(task(args)))
}

fn task(args: &LatencyArgs) -> Task<'_> {
    let pattern = pattern(args, ranks::pages(&args.given.selection));
    let (iterations, warmup) = (args.chase.iterations, args.chase.warmup);
    Task {
        name: "latency",
        work: Work::Latency(ChaseRules { pattern, iterations, warmup }),
        sizes_bytes: args.size.clone().unwrap_or(vec![RANK_BYTES]),
        serial: args.serial,
        given: &args.given,
        ranks: &args.ranks,
    }
}

/// Measures latency with this process's threads.
fn run_here(args: &LatencyArgs) -> Result<(), Failure> {
    let target = survey(&args.given.selection)?;
    let first = match &args.size {
        Some(sizes) => matrix(args, &target, sizes),
        None => {
            let sizes = curve_sizes(CURVE_BYTES.0, CURVE_BYTES.1);
            latency_curve(&target, &sizes, pattern(args, target.pages))
        }
    };
    let second = |size_bytes| match &args.size {
        Some(_) => Vec::new(),
        None => matrix(args, &target, &[size_bytes]),
    };
    if args.given.output.dry_run {
        let budget = usual_budget(&first);
        let foreseen = [first, second(FORESEEN_MATRIX_BYTES)].concat();
        return print_plan(&foreseen, &args.given.rules, budget);
    }
    let (document, directory) = run_plan("latency", &target, &args.given, &first, |document| {
        second(beyond_caches(document))
    })?;
    if args.table && args.given.output.format == Format::Text {
        return output::print(&numalab_results::run::latency_table(&document));
    }
    deliver(&document, directory.as_deref(), &args.given.output)
}

/// Plans the chosen cpus and nodes at these sizes: one after the other, or all at once.
fn matrix(args: &LatencyArgs, target: &Target, sizes: &[u64]) -> Vec<Cell> {
    match args.concurrent {
        true => latency_at_once(target, sizes, pattern(args, target.pages)),
        false => latency_matrix(target, args.per, sizes, pattern(args, target.pages)),
    }
}

fn pattern(args: &LatencyArgs, pages: Pages) -> AccessPattern {
    args.pattern.unwrap_or_else(|| plain_pattern(pages))
}
