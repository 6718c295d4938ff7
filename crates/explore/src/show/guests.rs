//! Guests as text.

use numalab_formats::size::format_rounded;
use numalab_report::Style;
use numalab_report::text::{Table, count, cut, table};
use numalab_topology::NodeSet;

use super::closing;
use crate::guests::{GuestView, GuestsView, Hypervisor};
use crate::spread::{self, BytesByNode, percent};

/// The guests: virtual cpus beside memory, and what is wrong.
#[must_use]
pub fn guests(view: &GuestsView, style: Style) -> String {
    let title = match view.guests.len() {
        0 => "no guest is seen on this host".to_owned(),
        guests => count(guests, "guest"),
    };
    let mut out = format!("{}\n", style.heading(&title));
    if !view.guests.is_empty() {
        let shown = Table::new("")
            .words("guest")
            .words("by")
            .figures("number")
            .figures("vcpus")
            .words("on nodes")
            .figures("memory")
            .words("on nodes")
            .figures("remote")
            .rows(view.guests.iter().map(row));
        out.push_str(&table(&shown, style));
        out.push('\n');
    }
    if !view.guests.is_empty() || !view.unseen.is_empty() {
        out.push_str(&closing(&view.findings, &view.unseen, style));
    }
    out
}

fn row(guest: &GuestView) -> Vec<String> {
    let nodes: NodeSet = guest.vcpus.iter().filter_map(|vcpu| vcpu.node).collect();
    let by = match guest.hypervisor {
        Hypervisor::Qemu => "QEMU",
        Hypervisor::Xen => "Xen",
    };
    vec![
        cut(&guest.name, 20),
        by.to_owned(),
        guest.number.to_string(),
        guest.vcpus.len().to_string(),
        if nodes.is_empty() { "-".to_owned() } else { nodes.to_string() },
        format_rounded(spread::total(&guest.bytes_by_node)),
        shares(&guest.bytes_by_node),
        guest.remote_share.map_or_else(|| "-".to_owned(), percent),
    ]
}

fn shares(bytes: &BytesByNode) -> String {
    let all = spread::total(bytes);
    let text = bytes.iter().filter(|(_, bytes)| **bytes > 0).map(|(node, bytes)| {
        format!("{node}: {}", percent(spread::ratio(*bytes, all).unwrap_or(0.0)))
    });
    text.collect::<Vec<_>>().join(", ")
}
