//! The formats that describe a machine to other tools, in one list.

use numalab_topology::{EmulationSpec, Findings, Machine};

use crate::regular::note_unknown_parts;
use crate::{
    Carried, WriteError, Written, command_line, hwloc, libvirt, machine_toml, numactl, qemu,
    rankfile, slurm, svg, xen,
};

/// A format that describes a machine to another tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolFormat {
    /// The format's name as a choice of the user.
    pub name: &'static str,
    /// The format's meaning in a few words.
    pub about: &'static str,
    /// The features that the format represents; `None` for all.
    pub carried: Option<Carried>,
    /// Writes a machine; the emulation is the one that made the machine, or one that makes the same
    /// nodes.
    pub write: Write,
}

type Write = fn(&Machine, &EmulationSpec) -> Result<Written<ToolInput>, WriteError>;

/// The input of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolInput {
    /// The content of a file.
    Text(String),
    /// Words of a command line.
    Arguments(Vec<String>),
}

/// Every format, numalab's own first.
pub const TOOL_FORMATS: [ToolFormat; 11] = [
    ToolFormat {
        name: "toml",
        about: "numalab's own TOML, to edit and pass to --topology",
        carried: None,
        write: |machine, _| Ok(whole(machine_toml::write(machine)?)),
    },
    ToolFormat {
        name: "qemu",
        about: "QEMU arguments",
        carried: Some(qemu::CARRIED),
        write: |machine, _| {
            let Written { output, losses } = qemu::write(machine)?;
            Ok(Written { output: ToolInput::Arguments(output), losses })
        },
    },
    ToolFormat {
        name: "libvirt",
        about: "Elements of a libvirt domain",
        carried: Some(libvirt::CARRIED),
        write: |machine, _| Ok(text(libvirt::write(machine)?)),
    },
    ToolFormat {
        name: "xen",
        about: "Lines of an xl.cfg",
        carried: Some(xen::CARRIED),
        write: |machine, _| Ok(text(xen::write(machine)?)),
    },
    ToolFormat {
        name: "slurm",
        about: "A NodeName line of slurm.conf and a map_cpu list",
        carried: Some(slurm::CARRIED),
        write: |machine, _| {
            let node = slurm::node_line(machine, "node0")?;
            let cores = slurm::map_cpu(&machine.first_threads());
            let mut assumed = Findings::default();
            note_unknown_parts(machine, &mut assumed);
            let output = format!("{}\n# srun, one rank per core:\n# {cores}", node.trim_end());
            Ok(text(Written { output, losses: assumed.into_list() }))
        },
    },
    ToolFormat {
        name: "rankfile",
        about: "An Open MPI rankfile, one rank per core",
        carried: Some(rankfile::CARRIED),
        write: |machine, _| {
            Ok(whole(rankfile::write(machine, "localhost", &machine.first_threads())?))
        },
    },
    ToolFormat {
        name: "hwloc-xml",
        about: "hwloc XML",
        carried: Some(hwloc::CARRIED),
        write: |machine, _| Ok(whole(hwloc::write_xml(machine)?)),
    },
    ToolFormat {
        name: "hwloc-synthetic",
        about: "hwloc synthetic description",
        carried: Some(hwloc::SYNTHETIC_CARRIED),
        write: |machine, _| Ok(text(hwloc::write_synthetic(machine)?)),
    },
    ToolFormat {
        name: "numactl",
        about: "The output of numactl --hardware",
        carried: Some(numactl::CARRIED),
        write: |machine, _| Ok(whole(numactl::write(machine))),
    },
    ToolFormat {
        name: "cmdline",
        about: "The numa=fake= argument of Linux",
        carried: Some(command_line::CARRIED),
        write: |_, emulation| Ok(whole(command_line::numa_fake(emulation)?)),
    },
    ToolFormat {
        name: "svg",
        about: "A drawing",
        carried: Some(svg::CARRIED),
        write: |machine, _| Ok(whole(svg::write(machine))),
    },
];

/// Returns a text that loses nothing.
fn whole(output: String) -> Written<ToolInput> {
    text(Written { output, losses: Vec::new() })
}

/// Returns a text that ends with its last line.
fn text(Written { output, losses }: Written) -> Written<ToolInput> {
    Written { output: ToolInput::Text(format!("{}\n", output.trim_end())), losses }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_that_need_packages_and_cores_say_that_they_assume_unknown_ones() {
        let hardware = "node 0 cpus: 0 1\nnode 0 size: 1000 MB\n";
        let one_node = crate::emulation::parse("1", None).unwrap();
        let of = |name: &str, is_known: bool| {
            let mut machine = numactl::read(hardware).unwrap().value;
            for (core, cpu) in (0u32..).zip(&mut machine.cpus).filter(|_| is_known) {
                (cpu.core, cpu.package) = (Some(core), Some(0));
            }
            let format = TOOL_FORMATS.iter().find(|format| format.name == name).unwrap();
            let written = (format.write)(&machine, &one_node).unwrap();
            let codes = written.losses.into_iter().map(|loss| loss.code);
            codes.filter(|code| code.ends_with("-assumed")).collect::<Vec<_>>()
        };
        for name in ["slurm", "qemu", "libvirt"] {
            assert_eq!(of(name, false), ["packages-assumed", "cores-assumed"], "{name}");
            assert!(of(name, true).is_empty(), "{name}");
        }
        assert!(of("xen", false).is_empty(), "xl has neither");
    }
}
