//! Any text gives a machine or an error; a machine survives being written, and can be passed to
//! every writer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use numalab_formats::{libvirt, machine_toml, qemu, rankfile, slurm, xen};

fuzz_target!(|text: &str| {
    let Ok(machine) = machine_toml::read(text) else {
        return;
    };
    let written = machine_toml::write(&machine).expect("numbers from TOML can be written to TOML");
    assert_eq!(machine_toml::read(&written).expect("our own TOML"), machine);
    let _ = (machine.validate(), slurm::node_line(&machine, "n"));
    if machine.nodes.len() < 100 {
        let _ = machine.fallback_orders();
        let _ = (qemu::write(&machine), libvirt::write(&machine), xen::write(&machine));
    }
    if machine.cpus.len() < 100 {
        let _ = rankfile::write(&machine, "n", &machine.first_threads());
    }
});
