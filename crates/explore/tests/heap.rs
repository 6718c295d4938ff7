//! Dumps of our own allocator.

use std::fs;

use numalab_explore::{ExploreError, read_heap};
use numalab_frames::*;
use numalab_host::{Classed, ErrorClass};
use numalab_page::Style;
use numalab_record::explore::View;
use numalab_results::Report;
use numalab_results::explore::Explored;

/// Returns a dump of two nodes of 64 MiB, with a run allocated on node 0, and every other frame of
/// a stretch of node 1.
fn dump() -> Vec<u8> {
    let range = |start: u64, node: u16| MemoryRange {
        start: Frame::new(start),
        frames: 16_384,
        node: NodeIndex(node),
        state: RangeState::Online,
    };
    let machine = Machine {
        ranges: &[range(0, 0), range(16_384, 1)],
        zone_limits: &PC_ZONE_LIMITS,
        cpus: &[NodeIndex(0), NodeIndex(1)],
        fallback: &[&[NodeIndex(0), NodeIndex(1)], &[NodeIndex(1), NodeIndex(0)]],
    };
    let mut metadata: Vec<Word> =
        (0..machine.metadata_words().unwrap()).map(|_| Word::new(0)).collect();
    let frames = Frames::new(machine, &mut metadata, CpuFences).unwrap();
    let all_but_a_bit = Request::order(Order::BLOCK).policy(Policy::Exact(NodeIndex(0)));
    for _ in 0..32 {
        frames.alloc(CpuIndex(0), &all_but_a_bit).unwrap();
    }
    let one = Request::order(Order::new(0).unwrap()).policy(Policy::Exact(NodeIndex(1)));
    let taken: Vec<Frame> = (0..16_384).map(|_| frames.alloc(CpuIndex(1), &one).unwrap()).collect();
    for frame in taken.iter().step_by(2) {
        frames.free_frame(CpuIndex(1), *frame).unwrap();
    }
    let mut bytes = Vec::new();
    let mut sink = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok::<(), std::convert::Infallible>(())
    };
    frames.dump(&mut sink).unwrap();
    bytes
}

#[test]
fn a_dump_shows_each_node_with_its_free_memory_and_its_problems() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), dump()).unwrap();
    let view = read_heap(file.path()).unwrap();
    assert_eq!((view.nodes[0].free_bytes, view.nodes[1].free_bytes), (0, 32 << 20));
    assert_eq!(view.nodes[1].free_huge_bytes, Some(0));
    let explored = Explored::of(View::Heap(view));
    let lead = explored.page().lead;
    let found: Vec<&str> = lead.iter().map(|lead| lead.sentence.as_str()).collect();
    assert!(found[0].starts_with("Node 0 has 0 % free while node 1 has 50 %"), "{found:?}");
    assert!(found[1].starts_with("100 % of the free memory of node 1 is in pieces"), "{found:?}");
    let text = explored.terminal(Style::Plain);
    assert!(text.contains("a character is 2 MiB") && text.contains("####"), "{text}");
}

#[test]
fn the_serial_output_of_the_kernel_contains_the_same_dump() {
    let hex: String = dump().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut text = "numalab kernel\n".to_owned();
    for (at, piece) in hex.as_bytes().chunks(512).enumerate() {
        let (offset, piece) = (at * 256, std::str::from_utf8(piece).unwrap());
        text.push_str(&format!(
            "@numalab {at} 00000000 {{\"heap\":{{\"offset\":{offset},\"hex\":\"{piece}\"}}}}\n"
        ));
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    assert_eq!(read_heap(file.path()).unwrap().nodes[1].free_bytes, 32 << 20);
}

#[test]
fn a_broken_dump_and_a_file_without_one_are_bad_input_with_the_reason() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let bytes = dump();
    fs::write(file.path(), &bytes[..bytes.len() - 3]).unwrap();
    let error = read_heap(file.path()).unwrap_err();
    assert!(error.to_string().contains("truncated"), "{error}");
    fs::write(file.path(), "not a dump\n").unwrap();
    let error = read_heap(file.path()).unwrap_err();
    assert!(matches!(error, ExploreError::NoHeap { .. }));
    assert_eq!(error.class(), ErrorClass::BadInput);
    let absent = read_heap(std::path::Path::new("/nonexistent/heap")).unwrap_err();
    assert!(absent.to_string().contains("/nonexistent/heap"), "{absent}");
}

/// Keys pressed while guests ran, and again when they were gone.
#[test]
fn a_console_with_several_lists_of_domains_shows_the_last_one_with_guests() {
    let list = |free: u32, guest: &str| {
        format!(
            "(XEN) 'u' pressed -> dumping numa info (now = 1)\n\
             (XEN) NODE0 start->0 size->1000 free->{free}\n\
             (XEN) Domain 0 (total: 100):\n(XEN)     Node 0: 100\n{guest}"
        )
    };
    let guest = "(XEN) Domain 4 (total: 300):\n(XEN)     Node 0: 300\n";
    let console = [list(900, ""), list(600, guest), list(901, "")].concat();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &console).unwrap();
    let view = read_heap(file.path()).unwrap();
    assert_eq!(view.nodes[0].free_bytes, 600 * 4096, "all of it is of the same list");
    let xen = view.xen.as_ref().unwrap();
    let domains: Vec<u32> = xen.domains.iter().map(|domain| domain.domain).collect();
    assert_eq!((domains, xen.list, xen.lists), (vec![0, 4], 2, 3));
    let text = Explored::of(View::Heap(view)).terminal(Style::Plain);
    assert!(text.contains("List 2 of 3 on this console: the last one with guests"), "{text}");
}
