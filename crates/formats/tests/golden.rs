//! The output of every writer for our own machines. `INSTA_UPDATE=always cargo test` accepts new
//! output; read the difference before you commit it.

mod own_machines;

use insta::assert_snapshot;
use numalab_formats::{
    WriteError, Written, hwloc, libvirt, machine_toml, numactl, qemu, rankfile, slurm, svg, xen,
};
use numalab_topology::Finding;

fn all(writer: &str, write: impl Fn(&numalab_topology::Machine) -> String) {
    for (name, machine) in own_machines::all() {
        assert_snapshot!(format!("{writer}_{name}"), write(&machine));
    }
}

/// Returns the output with its losses, or the refusal.
fn text_of(written: Result<Written, WriteError>) -> String {
    match written {
        Err(error) => format!("refused: {error}\n"),
        Ok(Written { output, losses }) => {
            let losses: String =
                losses.iter().map(|loss: &Finding| format!("lost: {loss}\n")).collect();
            format!("{output}\n{losses}")
        }
    }
}

#[test]
fn machines_are_written_as_toml() {
    all("toml", |machine| machine_toml::write(machine).unwrap());
}

#[test]
fn machines_are_written_as_numactl_shows_them() {
    all("numactl", numactl::write);
}

#[test]
fn machines_are_written_as_lstopo_xml() {
    all("hwloc", |machine| {
        hwloc::write_xml(machine).unwrap_or_else(|error| format!("refused: {error}"))
    });
}

#[test]
fn machines_are_written_as_synthetic_descriptions() {
    all("synthetic", |machine| text_of(hwloc::write_synthetic(machine)));
}

#[test]
fn a_synthetic_description_has_no_size_for_nodes_of_unequal_memory() {
    let mut machine = own_machines::two_nodes();
    let whole = machine.nodes[0].memory_bytes;
    machine.nodes[1].memory_bytes = whole - whole / 20;
    let written = hwloc::write_synthetic(&machine).expect("nearly equal");
    assert!(written.output.contains(&format!("memory={}", whole - whole / 20)));
    assert!(written.losses[0].message.contains("all are given the least"), "{:?}", written.losses);
    machine.nodes[1].memory_bytes = 0;
    let error = hwloc::write_synthetic(&machine).expect_err("no memory").to_string();
    assert!(error.contains(&format!("{whole} of node 0, 0 of node 1")), "{error}");
}

fn lines(written: Written<Vec<String>>) -> Written {
    let pairs: Vec<String> = written.output.chunks(2).map(|pair| pair.join(" ")).collect();
    Written { output: pairs.join("\n"), losses: written.losses }
}

#[test]
fn machines_are_written_as_qemu_arguments() {
    all("qemu", |machine| text_of(qemu::write(machine).map(lines)));
}

#[test]
fn machines_are_written_as_libvirt_domains() {
    all("libvirt", |machine| text_of(libvirt::write(machine)));
}

#[test]
fn machines_are_written_as_xl_configurations() {
    all("xen", |machine| text_of(xen::write(machine)));
}

#[test]
fn machines_are_written_as_slurm_lines() {
    all("slurm", |machine| {
        let line =
            slurm::node_line(machine, "n[1-2]").unwrap_or_else(|error| format!("refused: {error}"));
        format!("{line}\n{}\n", slurm::map_cpu(&machine.first_threads()))
    });
}

#[test]
fn machines_are_written_as_rankfiles() {
    all("rankfile", |machine| rankfile::write(machine, "n1", &machine.first_threads()).unwrap());
}

#[test]
fn machines_are_drawn() {
    all("svg", svg::write);
}
