//! Memory of CXL devices for QEMU: nodes that are in no firmware table.

use numalab_formats::qemu;
use numalab_formats::{memory_emulator, tiers};
use numalab_topology::Machine;

fn machine(tiers: &str) -> Machine {
    tiers::parse(tiers).unwrap().cxl_machine(2).unwrap()
}

fn words(machine: &Machine) -> Result<String, String> {
    let written = qemu::write(machine);
    written.map(|written| written.output.join(" ")).map_err(|error| error.to_string())
}

#[test]
fn a_node_of_cxl_memory_is_a_device_behind_a_host_bridge_and_in_no_table() {
    let written = qemu::write(&machine("512M@100ns,256M@300ns"));
    let written = written.unwrap();
    let text = written.output.join(" ");
    let expected = "-machine cxl=on,cxl-fmw.0.targets.0=cxl0,cxl-fmw.0.size=256M \
                    -object memory-backend-ram,id=ram1,size=256M \
                    -device pxb-cxl,id=cxl0,bus=pcie.0,bus_nr=252 \
                    -device cxl-rp,id=cxlport0,bus=cxl0,port=0,chassis=252,slot=0 \
                    -device cxl-type3,id=cxlmem0,bus=cxlport0,volatile-memdev=ram1,sn=1";
    assert!(text.ends_with(expected), "{text}");
    assert!(text.contains("-m 512M ") && text.contains("hmat-lb,initiator=0,target=0,"), "{text}");
    for absent in ["nodeid=1", "dist,", "target=1"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    let codes: Vec<_> = written.losses.iter().map(|loss| loss.code.as_str()).collect();
    assert_eq!(codes, ["cxl-performance-unknown"]);
}

#[test]
fn memory_that_qemu_cannot_make_cxl_memory_of_is_refused_with_its_limits() {
    let error = words(&machine("512M@100ns,300M@300ns")).unwrap_err();
    assert_eq!(
        error,
        "QEMU cannot express 300 MiB of CXL memory on node 1: expected a multiple of 256 MiB"
    );
    let mut first = machine("512M@100ns,256M@300ns");
    (first.nodes[0].cxl, first.nodes[1].cxl) = (true, false);
    let error = words(&first).unwrap_err();
    assert!(error.ends_with("cpus 0,1 on node 0, which is CXL memory"), "{error}");
    let three = tiers::parse("256M@100ns,256M@200ns,256M@400ns").unwrap();
    let mut middle = three.machine(2).unwrap();
    middle.nodes[1].cxl = true;
    let error = words(&middle).unwrap_err();
    assert!(error.ends_with("CXL memory on node 1: expected all CXL nodes last"), "{error}");
}

#[test]
fn the_emulator_charges_cxl_memory_where_qemu_puts_its_window() {
    let machine = machine("512M@100ns,256M@300ns");
    let costs = memory_emulator::MemoryCosts::default();
    let described = memory_emulator::describe(&machine, &costs).unwrap();
    let window = (4 << 30) + (256 << 20);
    assert_eq!(described.nodes[0].ranges, [(0, 512 << 20)]);
    assert_eq!(described.nodes[1].ranges, [(window, window + (256 << 20))]);
}
