//! Guests on this host: the cpus of their vCPUs, and the nodes of their memory.

mod qemu;
pub mod xen;

use numalab_host::{Root, node_rooms, read_machine};
use numalab_record::explore::{GuestView, GuestsView, spread};

use crate::error::ExploreError;
use crate::process;

/// Searches the processes for guests of QEMU, and queries `xl` if Xen is running.
///
/// # Errors
/// [`ExploreError::Machine`] if the machine cannot be read, [`ExploreError::Xl`] if Xen is running
/// and `xl` fails.
pub fn read_guests(root: &Root) -> Result<GuestsView, ExploreError> {
    let machine = read_machine(root)?.machine;
    let mut view = GuestsView::default();
    if root.is_live() && xen::is_dom0() {
        let (guests, unseen) = xen::read_live()?;
        view.guests = guests;
        view.unseen.extend(unseen);
    }
    qemu::read(root, &machine, &mut view);
    view.guests.iter_mut().for_each(weigh);
    view.cpus_by_node = process::cpus_by_node(&machine);
    view.room_by_node = node_rooms(root);
    Ok(view)
}

/// Sets the remote share of each vCPU, and their mean for the guest.
fn weigh(guest: &mut GuestView) {
    let (mut sum, mut count) = (0.0, 0.0);
    for vcpu in &mut guest.vcpus {
        let own = guest
            .memory
            .iter()
            .find(|memory| memory.guest_node.is_some() && memory.guest_node == vcpu.guest_node);
        let bytes = own.map_or(&guest.bytes_by_node, |memory| &memory.bytes_by_node);
        vcpu.remote_share = vcpu.node.and_then(|node| spread::share_elsewhere(bytes, node));
        if let Some(share) = vcpu.remote_share {
            sum += share;
            count += 1.0;
        }
    }
    guest.remote_share = (count > 0.0).then(|| sum / count);
}
