//! `numalab c2c`.

use numalab_measure::plan::{c2c_cells, c2c_pairs};

use super::measuring::{Target, run_cells, too_few};
use crate::args::C2cArgs;
use crate::failure::Failure;

/// Measures cache line transfers and prints them.
pub(crate) fn run(args: &C2cArgs) -> Result<(), Failure> {
    let target = Target::survey(&args.given.selection)?;
    let pairs = c2c_pairs(&target.machine, &target.scope, args.pairs);
    if pairs.is_empty() {
        let message = "a cache line needs two cpus to go between; choose more with --cpus";
        return Err(Failure::new(too_few(&args.given.selection), message));
    }
    let cells = c2c_cells(&target.machine, &target.scope, &pairs);
    run_cells("c2c", &target, &args.given, &cells)
}
