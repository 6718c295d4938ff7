//! The machine that the arguments describe, and the place where candidates are tried.

use numalab_advise::{Target, is_like};
use numalab_host::note;
use numalab_results::advice::TrialPlace;

use super::here;
use crate::args::AdviseArgs;
use crate::failure::Failure;

/// Returns the described machine, or this one if the arguments describe none.
pub(super) fn target(args: &AdviseArgs) -> Result<Target, Failure> {
    let request = args.machine.request();
    let is_here = request.is_here(is_like);
    let usual = if is_here { TrialPlace::Host } else { TrialPlace::Emulation };
    let place = args.try_on.unwrap_or(usual);
    if place != TrialPlace::Guest && !args.with.is_empty() {
        return Err(Failure::bad_input("--with: expected --try-on guest as well"));
    }
    let costs = args.costs.given();
    let (described, guest) = match place {
        TrialPlace::Host => return here::target(args, place),
        TrialPlace::Emulation if is_here => return here::target(args, place),
        TrialPlace::Emulation => (request.describe_for_program()?, None),
        TrialPlace::Guest => {
            let spec = request.guest_spec(costs.clone(), &args.with)?;
            (request.describe_guest()?, Some(spec))
        }
    };
    described.findings.iter().for_each(note);
    Ok(Target::described(described.followed_memory(costs)?, place, guest))
}
