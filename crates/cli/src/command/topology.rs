//! `numalab topology`.

use numalab_host::{Reading, Root};

use crate::args::{TopologyArgs, TopologyFormat};
use crate::failure::Failure;
use crate::output;

/// Reads the machine and prints it.
pub(crate) fn run(args: &TopologyArgs) -> Result<(), Failure> {
    let Reading { machine, findings } =
        numalab_host::read_machine(&root(&args.source)?).map_err(numalab_host::Error::from)?;
    let text = match args.format {
        TopologyFormat::Text => {
            numalab_report::topology::text(&machine, &findings, output::style())
        }
        TopologyFormat::Json => {
            output::json_line(numalab_report::topology::json(&machine, &findings))?
        }
    };
    output::print(&text)
}

fn root(source: &str) -> Result<Root, Failure> {
    match source.split_once(':') {
        None if source == "sysfs" => Ok(Root::live()),
        Some(("sysfs", directory)) if !directory.is_empty() => Ok(Root::at(directory)),
        _ => Err(Failure::bad_input(format!("--source `{source}`: expected sysfs or sysfs:DIR"))),
    }
}
