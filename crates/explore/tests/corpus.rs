//! Texts of other people's machines, read in place (`NUMALAB_CORPUS`).

use std::fs;
use std::path::PathBuf;

use numalab_explore::guests::xen;
use numalab_explore::nodes::read_buddyinfo;
use numalab_explore::process::numa_maps;
use numalab_explore::read_heap;
use numalab_guest::xen::text::XenDump;
use numalab_host::proc::PageBytes;
use numalab_page::{Lead, Mood};
use numalab_record::explore::{
    GuestView, GuestsView, Hypervisor, Unseen, View, fragmentation, spread,
};
use numalab_results::Report;
use numalab_results::explore::Explored;
use numalab_topology::NodeId;

/// Returns the problems of these.
fn wrong(view: View) -> Vec<Lead> {
    let lead = Explored::of(view).page().lead;
    lead.into_iter().filter(|lead| lead.mood != Mood::Fine && lead.mood != Mood::Plain).collect()
}

fn of_guests(guests: Vec<GuestView>) -> View {
    View::Guests(GuestsView { guests, ..GuestsView::default() })
}

/// Returns the file, or `None`, with a message on stderr, if the corpus is absent.
fn corpus(name: &str) -> Option<PathBuf> {
    let directory = std::env::var_os("NUMALAB_CORPUS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"),
        PathBuf::from,
    );
    let path = directory.join(name);
    if !path.exists() {
        eprintln!("NOT RUN: no {}; NUMALAB_CORPUS names the corpus", path.display());
        return None;
    }
    Some(path)
}

fn text(name: &str) -> Option<String> {
    Some(fs::read_to_string(corpus(name)?).unwrap())
}

#[test]
fn mappings_of_a_java_process_on_two_nodes_are_read() {
    let Some(text) = text("text/numa_maps-java-2node.txt") else { return };
    let mappings = numa_maps::read(&text, PageBytes { base: 4096, pool: 2 << 20 });
    assert_eq!(mappings.len(), 10);
    assert_eq!(mappings[1].bytes_by_node[&NodeId(1)], 213 << 12);
    assert!(mappings[9].own && !mappings[7].own);
}

#[test]
fn buddyinfo_of_two_machines_shows_their_fragmentation() {
    let Some(text) = text("text/buddyinfo-2node-and-arm64-64k.txt") else { return };
    let (x86, arm) = text.split_once("--- arm64 64k ---").unwrap();
    let nodes = read_buddyinfo(x86);
    assert_eq!(nodes[&NodeId(0)].len(), 3);
    // Computed by hand: 6,120 blocks of order 10 and 247 of 9 among 6,739,404 pages.
    let normal = &nodes[&NodeId(0)][2];
    assert_eq!(normal.pages_from(9), 6120 * 1024 + 247 * 512);
    let share = fragmentation(std::slice::from_ref(normal), 9).unwrap();
    assert!((0.05..0.09).contains(&share), "{share}");
    // Pages of 64 KiB: a huge page of 512 MiB is order 13, and node 3 has none.
    let arm = read_buddyinfo(arm);
    assert_eq!(fragmentation(&arm[&NodeId(3)], 13), Some(1.0));
}

fn section<'a>(log: &'a str, name: &str) -> &'a str {
    let (_, rest) = log.split_once(&format!("##### {name} [")).unwrap();
    rest.split("\n#####").next().unwrap()
}

#[test]
fn guests_of_xen_that_libxl_placed_apart_from_their_cpus_are_reported() {
    let Some(log) = text("xen/samples/d4-cpus.log") else { return };
    let dump = XenDump::read(section(&log, "debug-keys u"));
    let guests = xen::placement(section(&log, "xl list -n"), section(&log, "xl vcpu-list"), &dump);
    assert_eq!(guests.len(), 5);
    assert!(guests.iter().all(|guest| guest.hypervisor == Hypervisor::Xen));
    let remote: Vec<Option<f64>> = guests[1..].iter().map(|guest| guest.remote_share).collect();
    assert_eq!(remote, [Some(1.0), Some(0.0), Some(0.0), Some(1.0)]);
    let found = wrong(of_guests(guests));
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(
        found[0].sentence.starts_with(
            "Guest d1: vCPU 0 runs on node 0; 100 % of the guest's memory is on node 2"
        )
    );
    assert!(
        found[0].command.as_deref().unwrap().contains("cpus = [\"0,1\"] (a list)"),
        "{found:?}"
    );
}

#[test]
fn guests_of_xen_on_their_nodes_have_no_findings() {
    for name in ["d4-list-on", "d8-list-on", "d16-list-on"] {
        let Some(log) = text(&format!("xen/samples/{name}.log")) else { return };
        let dump = XenDump::read(section(&log, "debug-keys u"));
        let lists = (section(&log, "xl list -n"), section(&log, "xl vcpu-list"));
        let guests = xen::placement(lists.0, lists.1, &dump);
        assert!(guests.len() >= 5, "{name}");
        assert!(guests[1..].iter().all(|guest| guest.remote_share == Some(0.0)), "{name}");
        assert_eq!(wrong(of_guests(guests)), [], "{name}");
    }
}

#[test]
fn a_xen_without_node_support_is_reported() {
    let Some(log) = text("xen/samples/d8-list-off.log") else { return };
    let dump = XenDump::read(section(&log, "debug-keys u"));
    assert_eq!(xen::unseen(&dump, true), Some(Unseen::NodesOfDomains));
    assert_eq!(xen::unseen(&dump, false), None);
    let on = text("xen/samples/d8-list-on.log").unwrap();
    assert_eq!(xen::unseen(&XenDump::read(section(&on, "debug-keys u")), true), None);
}

#[test]
fn heaps_of_xen_are_read_from_whole_consoles() {
    let Some(path) = corpus("xen/samples/info-numa-on.log") else { return };
    let view = read_heap(&path).unwrap();
    assert_eq!(view.nodes.len(), 4);
    let zones: u64 = view.nodes[0].zones.iter().map(|zone| zone.free_bytes).sum();
    assert_eq!(zones, view.nodes[0].free_bytes);
    let domain = &view.xen.as_ref().unwrap().domains[0];
    assert_eq!(spread::total(&domain.pages_by_node), domain.total_pages);
    // A fake node in a hole has no memory at all.
    let fake = read_heap(&corpus("xen/samples/fake4.log").unwrap()).unwrap();
    let found = wrong(View::Heap(fake));
    assert!(found[0].sentence.starts_with("Node 2 has 0 % free"), "{found:?}");
}
