//! Results of `numalab scale` and of the NUMA benchmarking suite.

use numalab_launch::scale::read_scaling;
use numalab_results::scaling::ScalingSummary;

use crate::args::{Format, ReportArgs};
use crate::failure::Failure;
use crate::output;

pub(super) fn run(args: &ReportArgs) -> Result<(), Failure> {
    let scaling = read_scaling(&args.place)?;
    let report = ScalingSummary::of(&scaling);
    let format = args.format.or_else(|| args.place.is_file().then_some(Format::Text));
    let Some(format) = format else {
        return output::print_paths(&output::write_pages(&report, &args.place)?);
    };
    output::show(&report, format)
}
