//! `numalab bandwidth`.

use numalab_launch::session::Work;
use numalab_measure::StreamRules;
use numalab_measure::kind::bandwidth::{BandwidthSpec, bandwidth_plan};
use numalab_record::{IsaName, StreamKernel};

use super::measuring::{run_cells, survey};
use super::ranks::{self, Task};
use crate::args::BandwidthArgs;
use crate::failure::Failure;

/// Total bytes of a worker's buffers, unless `--size` gives another number.
const BUFFER_BYTES: u64 = 384 << 20;

/// Measures bandwidth and prints it; under a launcher, as ranks.
pub(crate) fn run(args: &BandwidthArgs) -> Result<(), Failure> {
    ranks::run(&args.ranks, &args.given.output, || run_here(args), || task(args))
}

fn task(args: &BandwidthArgs) -> Result<Task<'_>, Failure> {
    let kernel = ranks::one(&args.kernel, StreamKernel::Read)?;
    let rules = StreamRules { kernel, pattern: args.pattern, isa: isa(args) };
    Ok(Task {
        name: "bandwidth",
        work: Work::Bandwidth(rules),
        sizes_bytes: args.size.clone().unwrap_or(vec![BUFFER_BYTES]),
        serial: args.serial,
        given: &args.given,
        ranks: &args.ranks,
    })
}

fn isa(args: &BandwidthArgs) -> IsaName {
    match &args.isa {
        Some(name) => IsaName(name.to_lowercase()),
        None => IsaName::fastest(),
    }
}

/// Measures bandwidth with this process's threads.
fn run_here(args: &BandwidthArgs) -> Result<(), Failure> {
    let size_bytes = match args.size.as_deref() {
        None => BUFFER_BYTES,
        Some(&[size]) => size,
        Some(_) => {
            let message = "--size: a list is for ranks; expected one size, such as 256M";
            return Err(Failure::bad_input(message));
        }
    };
    let target = survey(&args.given.selection)?;
    let (pattern, pages, isa) = (args.pattern, target.pages, isa(args));
    let spec = BandwidthSpec { pattern, pages, isa, size_bytes };
    let cells = bandwidth_plan(&target, &args.kernel, &spec);
    run_cells("bandwidth", &target, &args.given, &cells)
}
