//! `numalab topology`.

use std::fmt::Display;

use numalab_formats::{
    Carried, Written, command_line, hwloc, libvirt, machine_toml, numactl, qemu, rankfile, slurm,
    svg, xen,
};
use numalab_host::note;
use numalab_places::machine::Described;
use numalab_record::system;
use numalab_topology::{EmulationSpec, Machine};

use crate::args::{TopologyArgs, TopologyFormat};
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(args: &TopologyArgs) -> Result<(), Failure> {
    let described = args.machine.request().describe()?;
    if !matches!(args.format, TopologyFormat::Result(_)) {
        // The other formats describe a machine to other tools.
        described.findings.iter().for_each(note);
    }
    let (text, carried) = render(&described, args.format)?;
    if let Some(loss) = carried.and_then(|carried| carried.loss(&described.machine)) {
        note(loss);
    }
    output::print(&text)
}

/// Renders a format, with the features that it carries; `None` for formats that carry everything.
fn render(
    described: &Described,
    format: TopologyFormat,
) -> Result<(String, Option<Carried>), Failure> {
    let Described { machine, findings, emulated, .. } = described;
    let (text, carried) = match format {
        TopologyFormat::Result(format) => {
            let (machine, findings) = (machine.clone(), findings.clone());
            return Ok((output::render(&system::Described { machine, findings }, format)?, None));
        }
        TopologyFormat::Toml => return Ok((said(machine_toml::write(machine))?, None)),
        TopologyFormat::Qemu => {
            let arguments = with_losses(said(qemu::write(machine))?);
            (output::shell_lines(&arguments), qemu::CARRIED)
        }
        TopologyFormat::Libvirt => (with_losses(said(libvirt::write(machine))?), libvirt::CARRIED),
        TopologyFormat::Xen => (with_losses(said(xen::write(machine))?), xen::CARRIED),
        TopologyFormat::Slurm => (slurm_lines(machine)?, slurm::CARRIED),
        TopologyFormat::Rankfile => {
            let text = rankfile::write(machine, "localhost", &machine.first_threads());
            (said(text)?, rankfile::CARRIED)
        }
        TopologyFormat::HwlocXml => {
            (said(hwloc::write_xml(machine, hwloc::XmlVersion::default()))?, hwloc::CARRIED)
        }
        TopologyFormat::HwlocSynthetic => {
            let text = with_losses(said(hwloc::write_synthetic(machine))?);
            (line(&text), hwloc::SYNTHETIC_CARRIED)
        }
        TopologyFormat::Numactl => (numactl::write(machine), numactl::CARRIED),
        TopologyFormat::Cmdline => {
            let spec = emulated.clone().unwrap_or_else(|| EmulationSpec::like(machine));
            (line(&said(command_line::numa_fake(&spec))?), command_line::CARRIED)
        }
        TopologyFormat::Svg => (svg::write(machine), svg::CARRIED),
    };
    Ok((text, Some(carried)))
}

fn slurm_lines(machine: &Machine) -> Result<String, Failure> {
    let node = said(slurm::node_line(machine, "node0"))?;
    let cores = slurm::map_cpu(&machine.first_threads());
    Ok(format!("{}\n# srun, one rank a core:\n# {cores}\n", node.trim_end()))
}

fn line(text: &str) -> String {
    format!("{}\n", text.trim_end())
}

/// Reports what the format cannot carry.
fn with_losses<T>(written: Written<T>) -> T {
    written.losses.iter().for_each(note);
    written.output
}

fn said<T>(written: Result<T, impl Display>) -> Result<T, Failure> {
    written.map_err(Failure::bad_input)
}
