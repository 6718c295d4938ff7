//! `numalab guest pin`.

use std::time::Duration;

use numalab_guest::qmp::{PinError, apply, vcpus};
use numalab_guest::{PinPlan, QmpClient};
use numalab_topology::Machine;

use super::boot;
use crate::args::PinArgs;
use crate::failure::Failure;
use crate::output;

/// Time within which a running QEMU answers.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Pins the threads of a running QEMU.
pub(super) fn run(args: &PinArgs) -> Result<(), Failure> {
    let plan = plan(args);
    let host = boot::host()?;
    let connected = QmpClient::connect(&args.qmp, ANSWER_LIMIT);
    let mut qemu = connected.map_err(PinError::from)?;
    if args.dry_run {
        return output::print(&foreseen(&mut qemu, &plan, &host)?);
    }
    let pinned = apply(&mut qemu, &plan, args.helpers.as_ref(), &host)?;
    output::print(&pinned.to_string())
}

fn plan(args: &PinArgs) -> PinPlan {
    match args.map.clone() {
        Some(PinPlan::NodeLists { lists, .. }) => PinPlan::NodeLists { vcpus: args.vcpus, lists },
        Some(plan) => plan,
        None => PinPlan::Automatic,
    }
}

/// Shows where each vCPU would be pinned.
fn foreseen(qemu: &mut QmpClient, plan: &PinPlan, host: &Machine) -> Result<String, PinError> {
    let placement = plan.placement(&vcpus(qemu)?, host)?;
    let line = |(vcpu, cpus): &(numalab_guest::qmp::Vcpu, _)| {
        format!("vCPU {}: thread {} would be on cpus {cpus}\n", vcpu.index, vcpu.thread)
    };
    Ok(placement.iter().map(line).collect())
}
