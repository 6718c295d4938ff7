//! `numalab guest pin`.

use std::time::Duration;

use numalab_guest::qmp::{PinError, apply, vcpus};
use numalab_guest::{GuestError, PinPlan, QmpClient};
use numalab_topology::Machine;

use super::{boot, report};
use crate::args::PinArgs;
use crate::failure::Failure;
use crate::output;

/// Time within which a running QEMU answers.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Pins the threads of a running QEMU.
pub(super) fn run(args: &PinArgs) -> Result<(), Failure> {
    let plan = plan(args);
    let host = boot::host()?;
    let failed = |error: PinError| Failure::from(GuestError::from(error));
    let connected = QmpClient::connect(&args.qmp, ANSWER_LIMIT);
    let mut qemu = connected.map_err(|error| failed(error.into()))?;
    if args.dry_run {
        let text = foreseen(&mut qemu, &plan, &host).map_err(failed)?;
        return output::print(&text);
    }
    let pinned = apply(&mut qemu, &plan, args.helpers.as_ref(), &host).map_err(failed)?;
    output::print(&report::pin_lines(&pinned))
}

fn plan(args: &PinArgs) -> PinPlan {
    match args.node_cpus.clone().or_else(|| args.map.clone()) {
        Some(PinPlan::NodeLists { lists, .. }) => PinPlan::NodeLists { vcpus: args.vcpus, lists },
        Some(plan) => plan,
        None => PinPlan::Automatic,
    }
}

/// Shows where each virtual cpu would be pinned.
fn foreseen(qemu: &mut QmpClient, plan: &PinPlan, host: &Machine) -> Result<String, PinError> {
    let placement = plan.placement(&vcpus(qemu)?, host)?;
    let line = |(vcpu, cpus): &(numalab_guest::qmp::Vcpu, _)| {
        format!("vcpu {}: thread {} would be on cpus {cpus}\n", vcpu.index, vcpu.thread)
    };
    Ok(placement.iter().map(line).collect())
}
