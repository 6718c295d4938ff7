//! Arguments that name a machine, and the commands about it.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use numalab_formats::{TOOL_FORMATS, ToolFormat};
use numalab_places::machine::MachineRequest;

use super::{Format, value};

/// An emulated machine.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct EmulatedArgs {
    /// A machine with known memory: a machine file, or a name from `numalab machine list`. Guests
    /// get its topology and memory system (latencies, load curves, caches, TLBs), and this part of
    /// it: --cpus and --memory [default for guests: two CPUs and at most 512M per node]
    #[arg(long, value_name = "FILE|NAME", conflicts_with = "emulate")]
    pub emulate_like: Option<String>,
    /// Emulate nodes: 4, 2U (every node in two), 1G,1G,2G,0 (memory), 1G:4,2G:0 (with CPUs)
    #[arg(long, value_name = "NODES")]
    pub emulate: Option<String>,
    /// With --emulate: rows of distances, such as 10,20;20,10
    #[arg(long, value_name = "ROWS", requires = "emulate")]
    pub distances: Option<String>,
    /// Number of CPUs of an emulated machine (guests: one per node, at least 2)
    #[arg(long, value_name = "N")]
    pub cpus: Option<u32>,
}

/// A machine: the live one, one described by a file, or an emulated one.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MachineArgs {
    /// Source of the machine: sysfs (this machine, the default), sysfs:DIR, acpi, acpi:DIR,
    /// arch:FILE (or a bundled name: lumi_partc, lumi_partg), libvirt:FILE (`virsh capabilities`),
    /// likwid:FILE (`likwid-topology`), lscpu:FILE (plain, -e, -p or -J), lstopo:FILE (XML, text or
    /// synthetic), numactl:FILE, xl:FILE (`xl info -n` in dom0), results:DIR (with its measurements)
    #[arg(long, value_name = "SOURCE", conflicts_with_all = ["emulate_like", "cpus"])]
    pub source: Option<String>,
    /// A machine described in numalab's own TOML
    #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "emulate_like", "cpus"])]
    pub topology: Option<PathBuf>,
    #[command(flatten)]
    pub emulated: EmulatedArgs,
    /// Emulate tiers of memory, fastest first: SIZE@NS each, optionally with a bandwidth limit and
    /// a memory-side cache (2G@100ns,8G@300ns,10G/s,cache=64M); all CPUs are on the first, and the
    /// others are nodes without CPUs
    #[arg(long, value_name = "TIERS", conflicts_with_all = ["source", "topology", "emulate", "emulate_like", "memory"])]
    pub emulate_tiers: Option<String>,
    /// With --emulate-tiers: make the second tier memory of a CXL device, found by Linux's own
    /// drivers (--kernel backports); a multiple of 256M. Each access to it takes about a
    /// microsecond of real time
    #[arg(long, requires = "emulate_tiers")]
    pub cxl: bool,
    /// With --cpus: total memory [default: the sum of the nodes, else 1G each]
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["source", "topology"], value_parser = value::size)]
    pub memory: Option<u64>,
}

impl MachineArgs {
    /// Returns the names of the machine.
    pub fn request(&self) -> MachineRequest {
        let EmulatedArgs { emulate_like, emulate, distances, cpus } = self.emulated.clone();
        MachineRequest {
            source: self.source.clone(),
            topology: self.topology.clone(),
            like: emulate_like,
            emulate,
            distances,
            tiers: self.emulate_tiers.clone(),
            cxl: self.cxl,
            cpus,
            memory: self.memory,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab topology
  numalab topology --format svg > machine.svg
  numalab topology --source sysfs:/tmp/copy         a copied tree with sys/ and proc/ in it
  numalab topology --emulate 4 --cpus 8 --format qemu
  numalab topology --emulate 1G,1G,2G,0 --cpus 8 --distances \\
    '10,20,20,40;20,10,20,40;20,20,10,40;40,40,40,10'
  numalab topology --emulate-tiers 2G@100ns,8G@300ns,10G/s --cpus 4 --format toml
  numalab topology --source arch:lumi_partc --format slurm
  numalab topology --source results:results/measure-20261121-024500 --format hwloc-xml   measured")]
pub(crate) struct TopologyArgs {
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Output format
    #[arg(long, default_value = "text", value_parser = topology_format())]
    pub format: TopologyFormat,
}

/// Formats of a topology.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TopologyFormat {
    /// A format of every result.
    Result(Format),
    /// A format that describes the machine to another tool.
    Tool(ToolFormat),
}

fn topology_format() -> impl TypedValueParser<Value = TopologyFormat> {
    let results = value::formats_of_figures();
    let results = results.map(|(of, name, about)| (TopologyFormat::Result(of), name, about));
    let tools = TOOL_FORMATS.map(|of| (TopologyFormat::Tool(of), of.name, of.about));
    value::one_of(results.chain(tools))
}

#[derive(Debug, Args)]
pub(crate) struct AcpiArgs {
    #[command(subcommand)]
    pub command: AcpiCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AcpiCommand {
    /// Print the entries of tables
    #[command(after_help = "\
Examples:
  numalab machine acpi show SRAT.bin SLIT.bin
  numalab machine acpi show --system                 this machine's (reading them requires root)
  acpidump > all.txt; numalab machine acpi show all.txt --format json")]
    Show {
        #[command(flatten)]
        tables: TableArgs,
        /// Output format
        #[arg(long, default_value = "text", value_parser = value::format())]
        format: Format,
    },
    /// Check tables individually and against each other; exit 5 on an error
    #[command(after_help = "\
Examples:
  numalab machine acpi check SRAT.bin SLIT.bin APIC.bin
  numalab machine acpi check --system")]
    Check {
        #[command(flatten)]
        tables: TableArgs,
        /// Exit 5 on a warning too
        #[arg(long)]
        strict: bool,
        /// Output format
        #[arg(long, default_value = "text", value_parser = value::format())]
        format: Format,
    },
    /// Write the tables of a machine, for QEMU's -acpitable or an override initrd
    #[command(after_help = "\
Examples:
  numalab machine acpi build --emulate 4 --cpus 8 -o tables
  numalab machine acpi build --topology machine.toml -o tables
  numalab machine acpi build --source results:results/measure-20261121-024500 -o tables
                                                     HMAT as measured")]
    Build {
        #[command(flatten)]
        machine: MachineArgs,
        /// Directory for SRAT.bin, SLIT.bin, HMAT.bin and APIC.bin
        #[arg(short, long, value_name = "DIR")]
        output: PathBuf,
        /// Show what would be written; write nothing
        #[arg(long)]
        dry_run: bool,
    },
}

/// The tables to read.
#[derive(Clone, Debug, Args)]
pub(crate) struct TableArgs {
    /// Binary tables, or the text written by acpidump
    #[arg(required_unless_present = "system", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Read the tables of this machine, from /sys/firmware/acpi/tables
    #[arg(long, conflicts_with = "files")]
    pub system: bool,
}
