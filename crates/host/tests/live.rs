//! This machine, compared with its own interfaces.

use numalab_host::{MemoryLimit, Root, allowed_now, read_machine};

#[test]
fn the_live_machine_has_the_cpus_and_nodes_that_the_process_may_use() {
    let machine = read_machine(&Root::live()).unwrap().machine;
    let allowed = allowed_now().unwrap();
    assert!(allowed.cpus.is_subset(&machine.online_cpus()));
    for node in allowed.memory_nodes.iter() {
        assert!(machine.node(node).is_some(), "{node}");
    }
    assert_eq!(machine.allowed, Some(allowed));
    for cpu in &machine.cpus {
        assert!(!cpu.online || cpu.node.is_some(), "{cpu:?}");
    }
}

#[test]
fn a_few_pages_may_be_allocated_and_an_address_space_may_not() {
    let limit = MemoryLimit::read(&Root::live()).unwrap();
    assert_eq!(limit.check(1 << 20, None), Ok(()));
    assert!(limit.check(1 << 60, None).is_err());
}
