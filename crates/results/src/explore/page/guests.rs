//! The page of guests.

use numalab_page::number::{count, share_words, size_words};
use numalab_page::rows::{Field, Rows};
use numalab_page::text::cut;
use numalab_page::{Page, Panel, Part, Table};
use numalab_record::explore::{GuestView, GuestsView, Hypervisor, spread};
use numalab_topology::NodeSet;

use super::shares;

/// Returns the page of guests: vCPUs compared with memory.
pub(super) fn page(view: &GuestsView) -> Page {
    let title = match view.guests.len() {
        0 => "no guest found on this host".to_owned(),
        guests => count(guests, "guest"),
    };
    let shown = Table::new("each guest's vCPUs and memory by node")
        .words(["guest", "by"])
        .figures(["number", "vCPUs"])
        .words("on nodes")
        .figures("memory")
        .words("on nodes")
        .figures("remote")
        .rows(view.guests.iter().map(row));
    let part = Part::of("Guests", vec![Panel::table(shown)]);
    Page { title, parts: part.into_iter().collect(), ..Page::default() }
}

pub(super) fn rows(view: &GuestsView) -> Rows {
    let of_guest = |guest: &GuestView| -> Vec<Vec<Field>> {
        let mut nodes: NodeSet = guest.vcpus.iter().filter_map(|vcpu| vcpu.node).collect();
        nodes.extend(guest.bytes_by_node.keys().copied());
        let row = |node| {
            let vcpus = guest.vcpus.iter().filter(|vcpu| vcpu.node == Some(node)).count();
            let bytes = guest.bytes_by_node.get(&node).copied().unwrap_or(0);
            let labels = [&guest.name, by(guest), &guest.number.to_string(), &node.to_string()];
            let values = [Field::from(vcpus), Field::from(bytes)];
            labels.map(Field::from).into_iter().chain(values).collect()
        };
        nodes.iter().map(row).collect()
    };
    columns().rows(view.guests.iter().flat_map(of_guest))
}

pub(crate) fn columns() -> Rows {
    Rows::new("guest")
        .labels(["guest", "hypervisor", "number", "node"])
        .values("vcpus", [("vcpus", "the guest's virtual CPUs on the node")])
        .values("bytes", [("memory_bytes", "the guest's memory on the node")])
}

fn by(guest: &GuestView) -> &'static str {
    match guest.hypervisor {
        Hypervisor::Qemu => "QEMU",
        Hypervisor::Xen => "Xen",
    }
}

fn row(guest: &GuestView) -> Vec<String> {
    let nodes: NodeSet = guest.vcpus.iter().filter_map(|vcpu| vcpu.node).collect();
    vec![
        cut(&guest.name, 20),
        by(guest).to_owned(),
        guest.number.to_string(),
        guest.vcpus.len().to_string(),
        if nodes.is_empty() { "-".to_owned() } else { nodes.to_string() },
        size_words(spread::total(&guest.bytes_by_node)),
        shares(&guest.bytes_by_node, 40),
        guest.remote_share.map_or_else(|| "-".to_owned(), share_words),
    ]
}
