//! A machine file compared with a run or with another machine file.

use std::path::Path;

use numalab_formats::gallery;
use numalab_places::machine::{machine_file, run_document};
use numalab_results::capture::capture;
use numalab_results::machine::MachineComparison;

use super::{Compared, refuse_metric, tolerance};
use crate::args::CompareArgs;
use crate::failure::Failure;

/// Largest difference that counts as none, in percent: the same limit that replays must meet.
const MARGIN: f64 = 5.0;

/// Returns true if this is a machine file, or the name of a bundled one.
pub(super) fn is_machine(path: &Path) -> bool {
    let is_toml = path.extension().is_some_and(|extension| extension == "toml");
    let is_known = || path.to_str().is_some_and(|name| gallery::machine(name).is_some());
    is_toml || (!path.exists() && is_known())
}

/// Compares every figure that either side has.
pub(super) fn compared(
    args: &CompareArgs,
    file: &Path,
    result: &Path,
) -> Result<Compared, Failure> {
    refuse_metric(args)?;
    let margin_percent = args.margin.unwrap_or(MARGIN);
    tolerance(margin_percent)?;
    let baseline = file.display().to_string();
    let expected = machine_file(&baseline)?;
    let found = match is_machine(result) {
        true => machine_file(&result.display().to_string())?,
        false => capture(&run_document(result)?).figures,
    };
    let compared = MachineComparison::of(&expected, &found, margin_percent);
    let worse = [compared.worse().next().is_some(), false];
    Ok(Compared { report: Box::new(compared.document()), worse, margin_percent, baseline })
}
