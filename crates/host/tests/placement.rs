//! Pinning, memory and proof on the machine that runs the test.

use std::sync::Mutex;
use std::thread;

use numalab_host::{
    AffinityError, Classed, ErrorClass, Mapping, MappingError, ProofError, Root, base_pages,
    bound_and_touched, current_affinity, current_place, page_size_bytes, pin, prove, prove_span,
    read_machine,
};
use numalab_record::{Pages, ProofMethod};
use numalab_topology::{CpuId, NodeId, NodeSet};

/// Huge page pools and free memory belong to the whole machine: such tests take turns.
static MACHINE: Mutex<()> = Mutex::new(());

/// Returns the node of this thread if it has memory, else one that has.
fn node_with_memory() -> NodeId {
    let nodes = nodes_with_memory();
    let here = current_place().node;
    if nodes.contains(here) { here } else { nodes.first().unwrap() }
}

/// Returns the nodes with memory that this process may use.
fn nodes_with_memory() -> NodeSet {
    let machine = read_machine(&Root::live()).unwrap().machine;
    let allowed = machine.allowed.clone().unwrap_or_default().memory_nodes;
    machine.memory_nodes().intersection(&allowed)
}

#[test]
fn a_thread_is_pinned_read_back_and_given_its_affinity_back() {
    let before = current_affinity().unwrap();
    let cpu = before.iter().next_back().unwrap();
    let pinned = pin(cpu).unwrap();
    assert_eq!(pinned.cpu(), cpu);
    assert_eq!(pinned.affinity().to_string(), cpu.to_string());
    assert_eq!(current_place().cpu, cpu);
    assert_eq!(current_place().node, pinned.node());
    assert_eq!(pinned.verify(), Ok(()));
    drop(pinned);
    assert_eq!(current_affinity().unwrap(), before);
}

#[test]
fn a_pinned_thread_leaves_others_alone() {
    let before = current_affinity().unwrap();
    let cpu = before.first().unwrap();
    thread::spawn(move || pin(cpu).map(drop).unwrap()).join().unwrap();
    assert_eq!(current_affinity().unwrap(), before);
}

#[test]
fn a_missing_cpu_is_refused_with_the_existing_ones() {
    for cpu in [CpuId(60_000), CpuId(u32::MAX)] {
        let error = pin(cpu).unwrap_err();
        assert_eq!(error.class(), ErrorClass::BadInput);
        let AffinityError::NotAllowed { allowed, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(allowed, current_affinity().unwrap());
    }
}

#[test]
fn a_pin_undone_by_another_process_is_detected() {
    let before = current_affinity().unwrap();
    if before.len() < 2 {
        eprintln!("NOT RUN: one cpu: a pin cannot be undone");
        return;
    }
    let outer = pin(before.first().unwrap()).unwrap();
    let _inner = pin(before.iter().next_back().unwrap()).unwrap();
    let error = outer.verify().unwrap_err();
    assert!(matches!(error, AffinityError::NotApplied { .. }), "{error}");
}

#[test]
fn touched_memory_on_its_node_is_proven() {
    let _turn = MACHINE.lock();
    let node = node_with_memory();
    let memory = bound_and_touched((8 << 20) - 100, base_pages(), node).unwrap();
    assert_eq!(memory.len_bytes(), (8 << 20) - 100);
    assert_eq!(memory.mapped_bytes(), 8 << 20);
    assert!(memory.as_bytes().iter().all(|&byte| byte == 0));
    let proof = match prove(&memory, node) {
        Ok(proof) => proof,
        Err(error @ ProofError::NoSmaps { .. }) => {
            eprintln!("NOT RUN: this system has no smaps: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!(proof.pages_total, (8 << 20) / page_size_bytes(base_pages()));
    assert_eq!(proof.address, memory.address());
    assert_eq!(proof.bytes_per_page_size.values().sum::<u64>(), 8 << 20);
    assert_eq!(proof.pages_per_node.len(), 1);
    if proof.method == ProofMethod::OnlyNode {
        eprintln!("NOT RUN: move_pages does not exist here: proven by there being one node");
    } else {
        assert_eq!(proof.pages_checked, proof.pages_total);
        assert_eq!(proof.pages_per_node[&node], proof.pages_total);
    }
}

#[test]
fn written_data_is_read_back_while_the_span_is_proven() {
    let _turn = MACHINE.lock();
    let node = node_with_memory();
    let mut memory = bound_and_touched(1 << 20, base_pages(), node).unwrap();
    let span = memory.span();
    let bytes = memory.as_bytes_mut();
    bytes[12_345] = 7;
    let proven = prove_span(span, node);
    bytes[12_346] = 8;
    assert!(matches!(proven, Ok(_) | Err(ProofError::NoSmaps { .. })));
    assert_eq!(memory.as_bytes()[12_344..12_347], [0, 7, 8]);
}

#[test]
fn memory_on_another_node_than_expected_is_an_error() {
    let _turn = MACHINE.lock();
    let node = node_with_memory();
    let memory = bound_and_touched(1 << 20, base_pages(), node).unwrap();
    match prove(&memory, NodeId(node.0 + 1)).unwrap_err() {
        ProofError::WrongNode { misplaced, .. } => {
            assert_eq!(misplaced, (1 << 20) / page_size_bytes(base_pages()));
        }
        error => assert_eq!(error.class(), ErrorClass::Lacking, "{error}"),
    }
}

#[test]
fn untouched_memory_is_not_proven() {
    let _turn = MACHINE.lock();
    let node = node_with_memory();
    let memory = Mapping::new(1 << 20, base_pages()).unwrap();
    let error = prove(&memory, node).unwrap_err();
    assert!(matches!(error, ProofError::NotTouched { .. } | ProofError::NoSmaps { .. }), "{error}");
}

#[test]
fn the_span_of_memory_that_is_gone_is_an_error() {
    let _turn = MACHINE.lock();
    let node = node_with_memory();
    let span = bound_and_touched(64 << 20, base_pages(), node).unwrap().span();
    assert!(prove_span(span, node).is_err());
}

#[test]
fn transparent_huge_pages_are_proven_to_be_huge() {
    let _turn = MACHINE.lock();
    let node = node_with_memory();
    let memory = match bound_and_touched(16 << 20, Pages::Transparent, node) {
        Ok(memory) => memory,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(memory.address() % page_size_bytes(Pages::Transparent), 0);
    match prove(&memory, node) {
        Ok(proof) => {
            let huge = proof.bytes_per_page_size[&page_size_bytes(Pages::Transparent)];
            assert_eq!(huge, 16 << 20);
        }
        Err(error) => {
            assert_eq!(error.class(), ErrorClass::Lacking, "{error}");
            eprintln!("NOT RUN: no transparent huge pages here: {error}");
        }
    }
}

#[test]
fn requested_base_pages_are_not_huge() {
    let _turn = MACHINE.lock();
    let node = node_with_memory();
    let memory = bound_and_touched(16 << 20, base_pages(), node).unwrap();
    if let Ok(proof) = prove(&memory, node) {
        let sizes: Vec<u64> = proof.bytes_per_page_size.into_keys().collect();
        assert_eq!(sizes, [page_size_bytes(base_pages())]);
    }
}

#[test]
fn reserved_huge_pages_are_proven_or_refused_with_the_command() {
    let _turn = MACHINE.lock();
    let choices = [Pages::HUGE_2M, Pages::HUGE_1G];
    let nodes = nodes_with_memory();
    for (node, pages) in nodes.iter().flat_map(|node| choices.map(|pages| (node, pages))) {
        match bound_and_touched(1, pages, node) {
            Ok(memory) => {
                let proof = prove(&memory, node).unwrap();
                let page_bytes = page_size_bytes(pages);
                assert_eq!(proof.bytes_per_page_size[&page_bytes], page_bytes);
                println!("{pages} proven on node {node}");
            }
            Err(MappingError::NoHugePages { command, .. }) => {
                assert!(command.starts_with("echo "), "{command}");
                assert!(command.ends_with("/nr_hugepages"), "{command}");
            }
            Err(error) => assert_eq!(error.class(), ErrorClass::Lacking, "{error}"),
        }
    }
}

#[test]
fn a_missing_node_is_refused() {
    let mut memory = Mapping::new(4096, base_pages()).unwrap();
    for node in [NodeId(1023), NodeId(70_000)] {
        let error = memory.bind(node).unwrap_err();
        assert_ne!(error.class(), ErrorClass::Failed, "{error}");
    }
}

#[test]
fn sizes_beyond_an_address_space_are_refused() {
    for size_bytes in [0, 1 << 47, usize::MAX] {
        let error = Mapping::new(size_bytes, base_pages()).unwrap_err();
        assert_eq!(error, MappingError::Size { size_bytes });
    }
    let error = Mapping::new((1 << 47) - 1, base_pages()).unwrap_err();
    assert!(matches!(error, MappingError::OutOfMemory { .. }), "{error}");
}

#[test]
fn populating_can_be_stopped_between_pieces() {
    let _turn = MACHINE.lock();
    let mut memory = Mapping::new(160 << 20, base_pages()).unwrap();
    let mut asked = 0;
    let done = memory.populate_while(|| {
        asked += 1;
        asked < 3
    });
    assert_eq!(done, Ok(false));
    assert_eq!(asked, 3);
    let node = node_with_memory();
    match prove(&memory, node).unwrap_err() {
        ProofError::NotTouched { absent, .. } => {
            assert_eq!(absent, (32 << 20) / page_size_bytes(base_pages()));
        }
        error => assert!(matches!(error, ProofError::NoSmaps { .. }), "{error}"),
    }
}

#[test]
fn memory_is_proven_on_every_allowed_node_and_nowhere_else() {
    let _turn = MACHINE.lock();
    let nodes = nodes_with_memory();
    for node in nodes.iter() {
        let mut memory = Mapping::new(4 << 20, base_pages()).unwrap();
        // Touched by this thread first, wherever that is: binding moves the pages.
        memory.populate().unwrap();
        memory.bind(node).unwrap();
        for expected in nodes.iter() {
            match prove(&memory, expected) {
                Ok(proof) => {
                    assert_eq!(expected, node);
                    assert_eq!(proof.pages_per_node[&node], proof.pages_total);
                }
                Err(ProofError::WrongNode { pages_per_node, .. }) => {
                    assert_ne!(expected, node);
                    assert_eq!(pages_per_node.into_keys().collect::<Vec<_>>(), [node]);
                }
                Err(error) => assert_eq!(error.class(), ErrorClass::Lacking, "{error}"),
            }
        }
    }
    println!("bound, moved and proven on nodes {nodes}");
}

#[test]
fn a_node_without_memory_is_refused() {
    let machine = read_machine(&Root::live()).unwrap().machine;
    let empty = machine.nodes.iter().find(|node| node.memory_bytes == 0);
    let Some(node) = empty else {
        eprintln!("NOT RUN: every node here has memory");
        return;
    };
    let error = bound_and_touched(4096, base_pages(), node.id).unwrap_err();
    assert!(matches!(error, MappingError::NodeNotAllowed { .. }), "{error}");
    println!("{error}");
}
