//! `numalab guest list`.

use numalab_formats::size::format_rounded;
use numalab_guest::{RunningGuest, Runtime};

use crate::failure::Failure;
use crate::output;

/// Prints the running guests.
pub(super) fn run() -> Result<(), Failure> {
    let runtime = Runtime::open()?;
    let guests = runtime.guests()?;
    if guests.is_empty() {
        return output::print("no guest is running\n");
    }
    output::print(&guests.iter().map(lines).collect::<String>())
}

/// Describes the guest in one line, and the address to reach it.
fn lines(guest: &RunningGuest) -> String {
    let record = &guest.record;
    let qemu = guest.qemu.map_or("QEMU not started yet".to_owned(), |id| format!("QEMU {id}"));
    format!(
        "{qemu}: {} nodes, {} cpus, {}: {}\n  numalab guest pin --qmp {}/control.sock\n",
        record.nodes,
        record.cpus,
        format_rounded(record.memory_bytes),
        record.command.join(" "),
        guest.directory.display()
    )
}
