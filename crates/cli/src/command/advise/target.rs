//! The machine that the arguments describe, and the place where candidates are tried.

use numalab_advise::{Target, costs, places};
use numalab_host::note;
use numalab_results::advice::{CostsKnown, KernelNow, MachineCosts, TrialPlace};
use numalab_study::BackendSpec;

use super::{guest, here};
use crate::args::AdviseArgs;
use crate::failure::Failure;
use crate::source::{describe, describe_guest};

/// Returns the described machine, or this one if the arguments describe none.
pub(super) fn target(args: &AdviseArgs) -> Result<Target, Failure> {
    let is_here = here::is_meant(&args.machine);
    let usual = if is_here { TrialPlace::Host } else { TrialPlace::Emulation };
    let place = args.try_on.unwrap_or(usual);
    if place != TrialPlace::Guest && !args.with.is_empty() {
        return Err(Failure::bad_input("--with: expected --try-on guest as well"));
    }
    match place {
        TrialPlace::Host => here::target(args, place),
        TrialPlace::Emulation if is_here => here::target(args, place),
        TrialPlace::Emulation => described(args, place, None),
        TrialPlace::Guest => described(args, place, Some(guest::spec(args)?)),
    }
}

/// Returns a machine other than this one.
fn described(
    args: &AdviseArgs,
    place: TrialPlace,
    guest: Option<BackendSpec>,
) -> Result<Target, Failure> {
    // Guests are small by default; a program gets all the memory that it touches.
    let described = match (&args.machine.emulated.emulate_like, &guest) {
        (Some(_), None) => describe(&args.machine)?,
        _ => describe_guest(&args.machine)?,
    };
    described.findings.iter().for_each(note);
    let machine = described.followed_memory(args.costs.given())?;
    // Linux enables NUMA balancing by default on several nodes.
    let balancing = guest.is_some().then_some(1);
    let kernel = KernelNow { balancing, huge_always: false };
    let places = places(&machine);
    let costs = MachineCosts { kernel, ..costs(&machine, CostsKnown::Described, places) };
    Ok(Target { machine, costs, place, guest })
}
