//! The machine that the tests run on.

use std::fs;
use std::time::{Duration, Instant};

use numalab_explore::{read_nodes, read_process};
use numalab_host::{Root, base_pages, bound_and_touched, current_place};
use numalab_page::Style;
use numalab_record::explore::{Unseen, View, spread};
use numalab_results::Report;
use numalab_results::explore::Explored;

#[test]
fn memory_of_this_process_is_found_where_it_was_bound() {
    let node = current_place().node;
    let memory = bound_and_touched(32 << 20, base_pages(), node).unwrap();
    let view = read_process(&Root::live(), std::process::id()).unwrap();
    let start = memory.span().address as u64;
    let mapping = view.mappings.iter().find(|mapping| {
        mapping.start <= start && start < mapping.start + mapping.size_bytes.unwrap_or(0)
    });
    let mapping = mapping.expect("the mapping is listed");
    assert!(mapping.bytes_by_node[&node] >= 32 << 20, "{mapping:?}");
    assert_eq!(mapping.policy, format!("bind:{node}"));
    assert!(view.threads.iter().any(|thread| thread.node == Some(node)));
    assert!(view.page_sizes.unwrap().anonymous >= 32 << 20);
    if let Some(sampled) = &view.sampled {
        assert!(spread::total(&sampled.pages_by_node) > 0, "{sampled:?}");
    }
    let text = Explored::of(View::Process(view.clone())).terminal(Style::Plain);
    assert!(text.contains("By node") && text.contains("bind:"), "{text}");
    drop(memory);
}

#[test]
fn nodes_of_this_machine_have_zones_counters_and_rates() {
    let view = read_nodes(&Root::live(), Duration::from_millis(50)).unwrap();
    let node = &view.nodes[0];
    assert!(node.total_bytes > Some(0) && !node.zones.is_empty(), "{node:?}");
    let json: serde_json::Value =
        serde_json::from_str(&Explored::of(View::Nodes(view.clone())).json().unwrap()).unwrap();
    assert_eq!((&json["schema"], &json["explore"]), (&"numalab/explore-2".into(), &"nodes".into()));
    assert!(json["nodes"][0]["zones"][0]["free_blocks"].is_array());
}

/// The reason for the limit of 20,000 for `smaps`; the time is printed, not checked.
#[test]
fn a_process_with_100_000_mappings_is_read_without_smaps() {
    let top = tempfile::tempdir().unwrap();
    let directory = top.path().join("proc/7/task");
    fs::create_dir_all(&directory).unwrap();
    fs::create_dir_all(top.path().join("sys/devices/system/cpu/cpu0/topology")).unwrap();
    for name in ["online", "possible", "present"] {
        fs::write(top.path().join("sys/devices/system/cpu").join(name), "0\n").unwrap();
    }
    let (mut maps, mut numa_maps) = (String::new(), String::new());
    for at in 0..100_000_u64 {
        let start = 0x7f00_0000_0000 + at * 8192;
        maps.push_str(&format!("{start:x}-{:x} rw-p 00000000 00:00 0 \n", start + 4096));
        numa_maps.push_str(&format!(
            "{start:x} default anon=1 dirty=1 active=0 N{}=1 kernelpagesize_kB=4\n",
            at % 4
        ));
    }
    for (name, text) in [
        ("maps", maps),
        ("numa_maps", numa_maps),
        ("cmdline", "big\0".to_owned()),
        ("smaps_rollup", "1000-9000 ---p 00000000 00:00 0 [rollup]\nRss: 400000 kB\n".to_owned()),
    ] {
        fs::write(top.path().join("proc/7").join(name), text).unwrap();
    }
    let begun = Instant::now();
    let view = read_process(&Root::at(top.path()), 7).unwrap();
    println!("100,000 mappings: {:?}", begun.elapsed());
    assert_eq!(view.mappings.len(), 100_000);
    assert_eq!(spread::total(&view.bytes_by_node), 100_000 << 12);
    assert_eq!(view.unseen[0], Unseen::HugePagesByMapping { most_mappings: 20_000 });
    assert_eq!(view.page_sizes.unwrap().resident, 400_000 << 10);
}
