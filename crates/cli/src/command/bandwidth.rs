//! `numalab bandwidth`.

use std::collections::BTreeSet;

use numalab_launch::session::Work;
use numalab_measure::kind::bandwidth::{BandwidthSpec, bandwidth_cells, bandwidth_matrix};
use numalab_measure::{StreamRules, Target, all_workers, isa_name};
use numalab_membench::Isa;
use numalab_record::{Cell, IsaName, StreamKernel};

use super::measuring::{run_cells, survey};
use super::ranks::{self, Role, Task};
use crate::args::BandwidthArgs;
use crate::failure::Failure;

/// Total bytes of a worker's buffers, unless `--size` gives another number.
const BUFFER_BYTES: u64 = 384 << 20;

/// Measures bandwidth and prints it; under a launcher, as ranks.
pub(crate) fn run(args: &BandwidthArgs) -> Result<(), Failure> {
    match ranks::role(&args.ranks, args.ranks.csv.is_some())? {
        Role::NoRanks => run_here(args),
        Role::Starter(ranks) => ranks::start(ranks, &args.given.output),
        Role::Rank(identity) => ranks::run(task(args)?, &identity),
    }
}

/// Returns the work of each rank.
fn task(args: &BandwidthArgs) -> Result<Task<'_>, Failure> {
    let kernel = ranks::one(&args.kernel, StreamKernel::Read)?;
    let rules = StreamRules { kernel, pattern: args.pattern, isa: isa(args) };
    Ok(Task {
        name: "bandwidth",
        work: Work::Bandwidth(rules),
        sizes_bytes: args.size.as_ref().map_or(vec![BUFFER_BYTES], |sizes| sizes.0.clone()),
        serial: args.serial,
        given: &args.given,
        ranks: &args.ranks,
    })
}

fn isa(args: &BandwidthArgs) -> IsaName {
    match &args.isa {
        Some(name) => IsaName(name.to_lowercase()),
        None => isa_name(Isa::detect()),
    }
}

/// Measures bandwidth with this process's threads.
fn run_here(args: &BandwidthArgs) -> Result<(), Failure> {
    let size_bytes = match args.size.as_ref().map(|sizes| sizes.0.as_slice()) {
        None => BUFFER_BYTES,
        Some(&[size]) => size,
        Some(_) => {
            let message = "--size: a list is for ranks; expected one size, such as 256M";
            return Err(Failure::bad_input(message));
        }
    };
    let target = survey(&args.given.selection)?;
    let cells = plan(args, &target, size_bytes);
    run_cells("bandwidth", &target, &args.given, &cells)
}

/// Plans every kernel on one cpu and on all; with several nodes, also node x node.
fn plan(args: &BandwidthArgs, target: &Target, size_bytes: u64) -> Vec<Cell> {
    let all_kernels = args.kernel.is_empty();
    let kernels = if all_kernels { &StreamKernel::ALL[..] } else { &args.kernel };
    let spec =
        BandwidthSpec { pattern: args.pattern, pages: target.pages, isa: isa(args), size_bytes };
    let all = all_workers(&target.machine, &target.scope);
    let mut cells = bandwidth_cells(&all[..1], kernels, &spec);
    cells.extend(bandwidth_cells(&all, kernels, &spec));
    if target.scope.nodes.len() > 1 {
        let kernel = if all_kernels { StreamKernel::Read } else { args.kernel[0] };
        cells.extend(bandwidth_matrix(&target.machine, &target.scope, kernel, &spec));
    }
    let mut seen = BTreeSet::new();
    cells.retain(|cell| seen.insert(cell.id.clone()));
    cells
}
