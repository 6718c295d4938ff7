//! `numalab topology`.

use numalab_formats::{ToolFormat, ToolInput, Written};
use numalab_host::note;
use numalab_places::machine::Described;
use numalab_record::system;
use numalab_topology::EmulationSpec;

use crate::args::{TopologyArgs, TopologyFormat};
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(args: &TopologyArgs) -> Result<(), Failure> {
    let described = args.machine.request().describe()?;
    match args.format {
        TopologyFormat::Result(format) => {
            let given = described.given_costs();
            let Described { machine, mut findings, .. } = described;
            findings.extend(given);
            output::show_taken(&system::Described { machine, findings }, format)
        }
        TopologyFormat::Tool(format) => describe(described, &format),
    }
}

/// Describes a machine to another tool, and reports what the format cannot carry.
fn describe(described: Described, format: &ToolFormat) -> Result<(), Failure> {
    let Described { machine, findings, emulated, .. } = described;
    let emulation = emulated.unwrap_or_else(|| EmulationSpec::like(&machine));
    let written = (format.write)(&machine, &emulation);
    let Written { output, losses } = written.map_err(Failure::bad_input)?;
    let loss = format.carried.and_then(|carried| carried.loss(&machine));
    findings.iter().chain(&losses).chain(&loss).for_each(note);
    output::print(&match output {
        ToolInput::Text(text) => text,
        ToolInput::Arguments(words) => output::shell_lines(&words),
    })
}
