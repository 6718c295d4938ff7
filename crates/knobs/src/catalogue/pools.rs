//! Knobs of the pools of huge pages, of every size that the kernel has: `huge_2m_pages`,
//! `huge_2m_overcommit`, `huge_2m_pages_node0`.

use numalab_record::Pages;

use super::{Knob, Nature};
use numalab_host::Root;
use numalab_host::huge_page_sizes;

const NODES: &str = "sys/devices/system/node";

/// Finds the knob of a pool by its name. A size that this kernel does not have is found too.
pub(super) fn find(root: &Root, name: &str) -> Option<Knob> {
    let (size, what) = name.strip_prefix("huge_")?.split_once('_')?;
    let pages: Pages = size.parse().ok()?;
    let Pages::Sized(bytes) = pages else { return None };
    if pages.name() != size {
        return None;
    }
    let directory = format!("hugepages/hugepages-{}kB", bytes >> 10);
    let of_machine = |file: &str| format!("sys/kernel/mm/{directory}/{file}");
    let share = |node: u32| format!("{NODES}/node{node}/{directory}/nr_hugepages");
    let knob = |path| Knob::new(name, vec![path], Nature::Value);
    match what {
        "pages" => {
            let mut knob = knob(of_machine("nr_hugepages"));
            let nodes = root.numbered(NODES, "node");
            let shares: Vec<String> = nodes.into_iter().map(share).collect();
            // Writing the sum redistributes the pages over the nodes, so each node's share is
            // saved.
            if !shares.is_empty() && shares.iter().all(|path| root.path(path).exists()) {
                knob.saves = shares;
            }
            Some(knob)
        }
        "overcommit" => Some(knob(of_machine("nr_overcommit_hugepages"))),
        _ => Some(knob(share(what.strip_prefix("pages_node")?.parse().ok()?))),
    }
}

/// Returns the names of the knobs of this kernel's pools, smallest pages first, with descriptions.
pub(super) fn list(root: &Root) -> Vec<(String, String)> {
    let nodes = root.numbered(NODES, "node");
    let of_size = |bytes: u64| {
        let (name, size) = (Pages::Sized(bytes).name(), words(bytes));
        let of_machine = [
            (format!("huge_{name}_pages"), format!("pages in the pool of {size} pages")),
            (format!("huge_{name}_overcommit"), format!("{size} pages allowed beyond the pool")),
        ];
        let of_nodes = nodes.iter().map(move |node| {
            let knob = format!("huge_{name}_pages_node{node}");
            (knob, format!("{size} pages in the pool on node {node}"))
        });
        of_machine.into_iter().chain(of_nodes)
    };
    huge_page_sizes(root).into_iter().flat_map(of_size).collect()
}

/// Formats the size of a page: `512 MiB`.
fn words(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fits = units.into_iter().find(|(_, shift)| bytes >> shift > 0);
    let (unit, shift) = fits.unwrap_or(("KiB", 10));
    format!("{} {unit}", bytes >> shift)
}
