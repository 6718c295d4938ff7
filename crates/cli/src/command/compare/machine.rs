//! A machine file compared with a run or with another machine file.

use std::path::Path;

use numalab_formats::gallery;
use numalab_places::machine::{machine_file, run_document};
use numalab_results::Judgement;
use numalab_results::capture::capture;
use numalab_results::machine::MachineComparison;

use super::{Compared, refuse_metric, tolerance};
use crate::args::CompareArgs;
use crate::failure::Failure;

/// Largest difference that counts as none, in percent: the same limit that replays must meet.
const MARGIN: f64 = 5.0;

const ONE_RUN: &str = "figures are beyond the margin, but one run does not show how much runs vary; \
                       compare runs: --baseline DIR...";

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
    let (compared, is_exact) = match is_machine(result) {
        true => {
            let found = machine_file(&result.display().to_string())?;
            (MachineComparison::of(&expected, &found, margin_percent), true)
        }
        false => {
            let document = run_document(result)?;
            // In virtual time, runs do not vary.
            let is_virtual = document.run.environment.fact("time").is_some();
            let found = capture(&document).figures;
            (MachineComparison::of_run(&expected, found, margin_percent), is_virtual)
        }
    };
    let is_worse = compared.worse().next().is_some();
    let undecided = (is_worse && !is_exact).then_some(ONE_RUN);
    let worse = [is_worse && is_exact, false];
    let judgement = Judgement::against(&baseline, margin_percent, worse, undecided);
    let names = [baseline, result.display().to_string()];
    Ok((Box::new(compared.document(names)), judgement))
}
