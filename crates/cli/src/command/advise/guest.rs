//! The guest in which candidates are tried: the described machine with emulated memory.

use numalab_places::DescribedGuest;
use numalab_study::BackendSpec;

use crate::args::AdviseArgs;
use crate::failure::Failure;
use crate::source::describe_guest;

/// Returns the backend settings of a study for the machine that the arguments describe.
pub(super) fn spec(args: &AdviseArgs) -> Result<BackendSpec, Failure> {
    let of = &args.machine;
    let made = &of.emulated;
    let is_made =
        made.emulate.is_some() || of.emulate_tiers.is_some() || made.emulate_like.is_some();
    if !is_made || of.source.is_some() || of.topology.is_some() || of.cxl {
        let given = [
            ("--cxl", of.cxl),
            ("--source", of.source.is_some()),
            ("--topology", of.topology.is_some()),
        ];
        let given = given.into_iter().find(|(_, is_given)| *is_given);
        return Err(Failure::bad_input(format!(
            "--try-on guest {}: expected --emulate, --emulate-tiers without --cxl, or --emulate-like",
            given.map_or("for this machine".to_owned(), |(option, _)| format!("with {option}")),
        )));
    }
    let described = describe_guest(of)?;
    let guest = DescribedGuest {
        emulate: made.emulate.as_deref(),
        distances: made.distances.as_deref(),
        tiers: of.emulate_tiers.as_deref().zip(described.tiers.as_ref()),
        like: made.emulate_like.as_deref(),
        machine: &described.machine,
        costs: args.costs.given(),
        with: &args.with,
    };
    Ok(guest.spec())
}
