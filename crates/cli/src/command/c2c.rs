//! `numalab c2c`.

use numalab_measure::plan::{c2c_cells, c2c_pairs};

use super::measuring::{Target, deliver, print_plan, run_plan, too_few, usual_budget};
use crate::args::C2cArgs;
use crate::failure::Failure;

/// Measures cache line transfers and prints them.
pub(crate) fn run(args: &C2cArgs) -> Result<(), Failure> {
    let target = Target::survey(&args.selection)?;
    let pairs = c2c_pairs(&target.machine, &target.scope, args.pairs);
    if pairs.is_empty() {
        let message = "a cache line needs two cpus to go between; choose more with --cpus";
        return Err(Failure::new(too_few(&args.selection), message));
    }
    let cells = c2c_cells(&target.machine, &target.scope, &pairs);
    if args.output.dry_run {
        return print_plan(&cells, &args.rules, usual_budget(&cells));
    }
    let rules = (&args.rules, &args.output);
    let (document, directory) = run_plan("c2c", &target, rules, &cells, |_| Vec::new())?;
    deliver(&document, directory.as_deref(), &args.output)
}
