//! Commands that measure one kind of cells: their arguments, and the cells they plan.

use clap::{Args, Subcommand};
use numalab_measure::Target;
use numalab_measure::kind::c2c::{c2c_cells, c2c_pairs};
use numalab_measure::kind::loaded::{loaded_curves, loaded_surface};
use numalab_record::{Cell, StreamKernel};
use numalab_topology::NodeId;

use super::measuring::{run_cells, survey, too_few};
use crate::args::{Measuring, value};
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum KindCommand {
    /// Measure memory latency under load from other CPUs
    Loaded(LoadedArgs),
    /// Measure core-to-core latency: a cache line passed between two CPUs
    C2c(C2cArgs),
}

/// Measures the cells of a command and prints what was found.
pub(crate) fn run(command: &KindCommand) -> Result<(), Failure> {
    match command {
        KindCommand::Loaded(args) => measure("loaded", &args.given, |target| args.cells(target)),
        KindCommand::C2c(args) => measure("c2c", &args.given, |target| args.cells(target)),
    }
}

fn measure(
    name: &str,
    given: &Measuring,
    cells: impl FnOnce(&Target) -> Result<Vec<Cell>, Failure>,
) -> Result<(), Failure> {
    let target = survey(&given.selection)?;
    run_cells(name, &target, given, &cells(&target)?)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab loaded                           chase on the first CPU, load from the others of its node
  numalab loaded --kernel write --cpus 0-15
  numalab loaded --chaser-node 1           measure latency to memory of node 1
  numalab loaded --surface --dry-run       the whole plan, and how long it takes
  numalab loaded --surface -o results      every kernel and node, loaded by near and far CPUs")]
pub(crate) struct LoadedArgs {
    /// Kernels of the load generators: read, write, write-nt, copy, copy-nt, triad, or a list
    /// [default: read; with --surface: all, whose reads are 100 to 50 % of the bytes moved, or whose
    /// writes bypass the caches]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = value::kernel)]
    pub kernel: Vec<StreamKernel>,
    /// Load the memory of every node, from the CPUs of the chaser's node and then from all others
    #[arg(long, conflicts_with = "chaser_node")]
    pub surface: bool,
    /// Bytes of each worker's buffer
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = value::size)]
    pub size: u64,
    /// Node of the memory whose latency is measured [default: the nearest]
    #[arg(long, value_name = "NODE")]
    pub chaser_node: Option<u32>,
    #[command(flatten)]
    pub given: Measuring,
}

impl LoadedArgs {
    /// Plans a chase on the first cpu, and load on one cpu of every other core.
    fn cells(&self, target: &Target) -> Result<Vec<Cell>, Failure> {
        let Target { machine, scope, pages } = target;
        let cpu = scope.cpus.first().copied().unwrap_or_default();
        let kernels: &[StreamKernel] = match (self.kernel.as_slice(), self.surface) {
            ([], true) => &StreamKernel::ALL,
            ([], false) => &[StreamKernel::Read],
            (kernels, _) => kernels,
        };
        let cells = match self.surface {
            true => loaded_surface(machine, scope, cpu, kernels, (self.size, *pages)),
            false => loaded_curves(target, self.chaser_node.map(NodeId), kernels, self.size)?,
        };
        if cells.is_empty() {
            return Err(Failure::new(
                too_few(&self.given.selection),
                "loaded latency needs two cores: one to chase, one to load the memory; \
             choose more with --cpus",
            ));
        }
        Ok(cells)
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab c2c                              all pairs; a stratified sample on large machines
  numalab c2c --cpus 0,8,16                only these CPUs")]
pub(crate) struct C2cArgs {
    /// Maximum number of pairs, approximately
    #[arg(long, value_name = "N", default_value_t = 2_016)]
    pub pairs: usize,
    #[command(flatten)]
    pub given: Measuring,
}

impl C2cArgs {
    /// Plans every pair of cpus, or a sample of them.
    fn cells(&self, target: &Target) -> Result<Vec<Cell>, Failure> {
        let pairs = c2c_pairs(&target.machine, &target.scope, self.pairs);
        if pairs.is_empty() {
            let message = "a cache line needs two cpus to move between; choose more with --cpus";
            return Err(Failure::new(too_few(&self.given.selection), message));
        }
        Ok(c2c_cells(&target.machine, &target.scope, &pairs))
    }
}
