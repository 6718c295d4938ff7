//! A machine file and a run, or another machine file, side by side.

use std::path::Path;

use numalab_formats::gallery;
use numalab_results::capture::capture;
use numalab_results::machine::MachineComparison;

use super::{fail_if, refuse_metric, tolerance};
use crate::args::CompareArgs;
use crate::failure::Failure;
use crate::{input, output, source};

/// Differences that count as none, in percent: what a replay is held to.
const MARGIN: f64 = 5.0;

/// Whether this names a machine file, or a machine that comes with numalab.
pub(super) fn is_machine(path: &Path) -> bool {
    let is_toml = path.extension().is_some_and(|extension| extension == "toml");
    let is_known = || path.to_str().is_some_and(|name| gallery::machine(name).is_some());
    is_toml || (!path.exists() && is_known())
}

/// Prints every figure that either has, and fails if asked to where the second is worse.
pub(super) fn run(args: &CompareArgs, file: &Path, result: &Path) -> Result<(), Failure> {
    refuse_metric(args)?;
    let margin = args.margin.unwrap_or(MARGIN);
    tolerance(margin)?;
    let name = file.display().to_string();
    let expected = input::machine_file(&name)?;
    let found = match is_machine(result) {
        true => input::machine_file(&result.display().to_string())?,
        false => capture(&source::run_document(result)?).figures,
    };
    let compared = MachineComparison::of(&expected, &found, margin);
    output::show(&compared, args.format)?;
    fail_if(args.fail_if, [compared.worse().next().is_some(), false], margin, &name)
}
