//! Nodes of machines that do not describe them, and of copies from machines with other page sizes.

use std::fs;
use std::time::Duration;

use numalab_explore::read_nodes;
use numalab_host::Root;
use numalab_page::Style;
use numalab_record::explore::{NodesView, View};
use numalab_results::Report;
use numalab_results::explore::Explored;

const GIB: u64 = 1 << 30;

/// Reads the nodes of a copied tree with these files.
fn nodes(files: &[(&str, &str)]) -> NodesView {
    let top = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = top.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    read_nodes(&Root::at(top.path()), Duration::ZERO).unwrap()
}

const CPUS: (&str, &str) = ("proc/cpuinfo", "processor : 0\nprocessor : 1\n");

#[test]
fn without_node_directories_the_only_node_has_the_memory_of_the_machine() {
    let meminfo = "MemTotal: 16777216 kB\nMemFree: 8388608 kB\nBuffers: 1048576 kB\n\
                   Cached: 2097152 kB\nSReclaimable: 1024 kB\n";
    let view = nodes(&[CPUS, ("proc/meminfo", meminfo)]);
    let [node] = &view.nodes[..] else { panic!("{view:?}") };
    assert_eq!((node.total_bytes, node.free_bytes), (Some(16 * GIB), Some(8 * GIB)));
    assert_eq!(node.page_cache_bytes, Some(3 * GIB), "cached files and buffers");
    assert_eq!(node.available_bytes(), Some(11 * GIB + (1 << 20)));
    assert_eq!((node.anonymous_bytes, node.slab_bytes), (None, None));
    let text = Explored::of(View::Nodes(view)).terminal(Style::Plain);
    assert!(text.contains("8 GiB") && !text.contains("0 B"), "{text}");
}

#[test]
fn memory_that_no_file_reports_has_no_gauge() {
    let view = nodes(&[CPUS]);
    assert_eq!(view.nodes.len(), 1);
    let explored = Explored::of(View::Nodes(view));
    let gauges = explored.rows().unwrap().openmetrics().unwrap_or_default();
    assert!(!gauges.contains("_bytes{"), "{gauges}");
    let json: serde_json::Value = serde_json::from_str(&explored.json().unwrap()).unwrap();
    assert!(json["nodes"][0]["free_bytes"].is_null(), "{json}");
}

#[test]
fn nonsense_in_the_files_of_nodes_is_shown_with_them() {
    let view = nodes(&[
        CPUS,
        ("sys/devices/system/node/node0/cpulist", "zero\n"),
        ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 4096 kB\n"),
    ]);
    let codes: Vec<_> = view.odd.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["no-cpu-directories", "not-a-list"]);
    let text = Explored::of(View::Nodes(view)).terminal(Style::Plain);
    assert!(text.contains("Anomalies") && text.contains("`zero`"), "{text}");
}

#[test]
fn fragmentation_of_a_copied_tree_is_that_of_its_own_pages_or_unknown() {
    let meminfo = "MemTotal: 16777216 kB\nMemFree: 8388608 kB\n";
    let files = [
        CPUS,
        ("proc/meminfo", meminfo),
        ("proc/buddyinfo", "Node 0, zone   Normal 0 0 0 0 0 0 0 0 0 0 0 0 0 16\n"),
        ("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "536870912\n"),
    ];
    let smaps = ("proc/self/smaps", "Size: 64 kB\nKernelPageSize: 64 kB\n");
    let of_64k = nodes(&[&files[..], &[smaps]].concat());
    assert_eq!((of_64k.base_page_bytes, of_64k.huge_order), (Some(64 << 10), Some(13)));
    assert_eq!(of_64k.nodes[0].fragmentation, Some(0.0), "16 pages of 512 MiB are free");
    let unknown = nodes(&files);
    assert_eq!((unknown.base_page_bytes, unknown.huge_order), (None, None));
    assert_eq!(unknown.nodes[0].fragmentation, None);
    let text = Explored::of(View::Nodes(unknown)).terminal(Style::Plain);
    assert!(text.contains("lost: unknown, as is the size of a page"), "{text}");
}
