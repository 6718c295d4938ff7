//! `numalab topology`.

use std::fmt::Display;

use numalab_formats::HostPlacement;
use numalab_formats::{
    Carried, Written, command_line, hwloc, libvirt, machine_toml, numactl, qemu, rankfile, slurm,
    svg, xen,
};
use numalab_host::note;
use numalab_record::system;
use numalab_topology::{EmulationSpec, Machine};

use crate::args::{Format, TopologyArgs, TopologyFormat};
use crate::failure::Failure;
use crate::output;
use crate::source::{Described, describe};

/// Reads the machine and prints it.
pub(crate) fn run(args: &TopologyArgs) -> Result<(), Failure> {
    let described = describe(&args.machine)?;
    if !is_of_results(args.format) {
        described.findings.iter().for_each(note);
    }
    let text = render(&described, args.format)?;
    if let Some(loss) = carried(args.format).and_then(|carried| carried.loss(&described.machine)) {
        note(loss);
    }
    output::print(&text)
}

/// Whether every result has this format; the others describe a machine to other tools.
fn is_of_results(format: TopologyFormat) -> bool {
    use TopologyFormat::{Csv, Html, Json, Md, Text};
    matches!(format, Text | Json | Csv | Md | Html)
}

fn render(described: &Described, format: TopologyFormat) -> Result<String, Failure> {
    let Described { machine, findings, emulated, .. } = described;
    let result = |format| {
        let (machine, findings) = (machine.clone(), findings.clone());
        output::render(&system::Described { machine, findings }, format)
    };
    let nothing_bound = HostPlacement::default();
    match format {
        TopologyFormat::Text => result(Format::Text),
        TopologyFormat::Json => result(Format::Json),
        TopologyFormat::Csv => result(Format::Csv),
        TopologyFormat::Md => result(Format::Md),
        TopologyFormat::Html => result(Format::Html),
        TopologyFormat::Toml => said(machine_toml::write(machine)),
        TopologyFormat::Qemu => {
            let arguments = with_losses(said(qemu::write(machine, &nothing_bound))?);
            Ok(output::shell_lines(&arguments))
        }
        TopologyFormat::Libvirt => Ok(with_losses(said(libvirt::write(machine, &nothing_bound))?)),
        TopologyFormat::Xen => Ok(with_losses(said(xen::write(machine, &nothing_bound))?)),
        TopologyFormat::Slurm => slurm_lines(machine),
        TopologyFormat::Rankfile => {
            said(rankfile::write(machine, "localhost", &machine.first_threads()))
        }
        TopologyFormat::HwlocXml => said(hwloc::write_xml(machine, hwloc::XmlVersion::default())),
        TopologyFormat::HwlocSynthetic => {
            Ok(line(&with_losses(said(hwloc::write_synthetic(machine))?)))
        }
        TopologyFormat::Numactl => Ok(numactl::write(machine)),
        TopologyFormat::Cmdline => {
            let spec = emulated.clone().unwrap_or_else(|| EmulationSpec::like(machine));
            Ok(line(&said(command_line::numa_fake(&spec))?))
        }
        TopologyFormat::Svg => Ok(svg::write(machine)),
    }
}

/// What a format carries; `None` for those that carry everything.
fn carried(format: TopologyFormat) -> Option<Carried> {
    Some(match format {
        TopologyFormat::Text
        | TopologyFormat::Json
        | TopologyFormat::Csv
        | TopologyFormat::Md
        | TopologyFormat::Html
        | TopologyFormat::Toml => return None,
        TopologyFormat::Numactl => numactl::CARRIED,
        TopologyFormat::HwlocXml => hwloc::CARRIED,
        TopologyFormat::HwlocSynthetic => hwloc::SYNTHETIC_CARRIED,
        TopologyFormat::Qemu => qemu::CARRIED,
        TopologyFormat::Libvirt => libvirt::CARRIED,
        TopologyFormat::Xen => xen::CARRIED,
        TopologyFormat::Slurm => slurm::CARRIED,
        TopologyFormat::Rankfile => rankfile::CARRIED,
        TopologyFormat::Cmdline => command_line::CARRIED,
        TopologyFormat::Svg => svg::CARRIED,
    })
}

fn slurm_lines(machine: &Machine) -> Result<String, Failure> {
    let node = said(slurm::node_line(machine, "node0"))?;
    let cores = slurm::map_cpu(&machine.first_threads());
    Ok(format!("{}\n# srun, one rank a core:\n# {cores}\n", node.trim_end()))
}

fn line(text: &str) -> String {
    format!("{}\n", text.trim_end())
}

/// Says what the format cannot carry.
fn with_losses<T>(written: Written<T>) -> T {
    written.losses.iter().for_each(note);
    written.output
}

fn said<T>(written: Result<T, impl Display>) -> Result<T, Failure> {
    written.map_err(Failure::bad_input)
}
