//! The machine that options or settings name: live, described or emulated.

mod error;
mod files;
mod source;
pub mod tables;

use std::path::{Path, PathBuf};

use numalab_formats::described::{DescribedError, part_of, uniform};
use numalab_formats::machine_toml::MachineFile;
use numalab_formats::memory_emulator::{self, EmulatedMachine, GivenCosts, MemoryCosts};
use numalab_formats::{emulation, tiers};
use numalab_host::{Root, read_machine};
use numalab_record::Document;
use numalab_results::capture::capture;
use numalab_topology::{
    EmulatedNodes, EmulationError, EmulationSpec, Finding, Machine, REMOTE_DISTANCE, Severity,
    TierSpec,
};

pub use error::MachineError;
pub use files::{architecture_text, machine_file, mess_curves, run_document};

/// Default memory of each node of a guest modelled on a known machine.
const LIKE_BYTES_PER_NODE: u64 = 512 << 20;
/// Default number of cpus on each of its nodes.
const LIKE_CPUS_PER_NODE: usize = 2;
/// Minimum of the default number of cpus of a guest.
const GUEST_CPUS: u32 = 2;
/// The remedy where emulated nodes are larger than this machine.
const APART: &str = "; expected a part of it, or --cpus N for a machine apart from it";

/// The names of a machine, as options give them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineRequest {
    /// `sysfs` (the default), `acpi:DIR`, `lstopo:FILE` and the like.
    pub source: Option<String>,
    /// A file of numalab's own TOML.
    pub topology: Option<PathBuf>,
    /// A machine with known memory: a machine file, or the name of a bundled one.
    pub like: Option<String>,
    /// Emulated nodes: `4`, or `1G,1G,2G,0`.
    pub emulate: Option<String>,
    /// Rows of their distances: `10,20;20,10`.
    pub distances: Option<String>,
    /// Emulated tiers: `512M@100ns,1G@300ns`.
    pub tiers: Option<String>,
    /// True if the second tier is memory of a CXL device.
    pub cxl: bool,
    pub cpus: Option<u32>,
    /// Memory of all nodes, in bytes.
    pub memory: Option<u64>,
}

/// A machine, with findings about its source.
#[derive(Debug, Default)]
pub struct Described {
    pub machine: Machine,
    pub findings: Vec<Finding>,
    /// The emulated nodes, if any.
    pub emulated: Option<EmulationSpec>,
    /// The emulated tiers, if any.
    pub tiers: Option<TierSpec>,
    /// The machine file, or the figures of a run, if the machine's memory is known.
    pub file: Option<MachineFile>,
}

impl Described {
    /// Returns a note if the costs of accesses are those of a machine file or of emulated tiers, not
    /// of firmware; figures that a run measured have their own notes.
    pub fn given_costs(&self) -> Option<Finding> {
        let is_measured = |of: &Finding| of.code.ends_with("-measured");
        let by = match (&self.tiers, &self.file) {
            (Some(_), _) => "--emulate-tiers",
            (None, Some(_)) if !self.findings.iter().any(is_measured) => "the machine file",
            _ => return None,
        };
        let note = |by| {
            let message = format!("given by {by}");
            Finding::new(Severity::Note, "access-described", "costs of accesses", message)
        };
        (!self.machine.access.is_empty()).then(|| note(by))
    }

    /// Returns a guest's memory as the emulator models it: from the machine's file, otherwise
    /// with these costs.
    ///
    /// # Errors
    /// [`MachineError::Memory`] if the emulator cannot model it.
    pub fn emulated_memory(&self, given: GivenCosts) -> Result<EmulatedMachine, MachineError> {
        self.modelled(given, MemoryCosts::of_guest(self.tiers.as_ref()))
    }

    /// Returns the same for a followed program.
    ///
    /// # Errors
    /// [`MachineError::Memory`] if the emulator cannot model it.
    pub fn followed_memory(&self, given: GivenCosts) -> Result<EmulatedMachine, MachineError> {
        self.modelled(given, MemoryCosts::usual(self.tiers.as_ref()))
    }

    fn modelled(
        &self,
        given: GivenCosts,
        usual: MemoryCosts,
    ) -> Result<EmulatedMachine, MachineError> {
        Ok(match &self.file {
            Some(file) if given == GivenCosts::default() => file.emulated(&self.machine)?,
            _ => memory_emulator::describe(&self.machine, &given.or(usual))?,
        })
    }
}

impl MachineRequest {
    /// Returns the machine.
    ///
    /// # Errors
    /// [`MachineError`] if it cannot be read, or the numbers do not describe one.
    pub fn describe(&self) -> Result<Described, MachineError> {
        self.described(None)
    }

    /// Returns the machine of a guest, which is small and uniform if nothing describes it.
    ///
    /// # Errors
    /// As [`describe`](Self::describe).
    pub fn describe_guest(&self) -> Result<Described, MachineError> {
        self.described(Some((LIKE_CPUS_PER_NODE, LIKE_BYTES_PER_NODE)))
    }

    /// Returns the machine for a program under emulation: guests are small by default, a program
    /// gets all the memory that it touches.
    ///
    /// # Errors
    /// As [`describe`](Self::describe).
    pub fn describe_for_program(&self) -> Result<Described, MachineError> {
        let mut described = match self.like {
            Some(_) => self.describe()?,
            None => self.describe_guest()?,
        };
        if described.file.is_none() {
            described.findings.extend(assumed_distances(&described.machine));
        }
        Ok(described)
    }

    /// Returns true if the request names this machine, or a run on a machine like it.
    pub fn is_here(&self) -> bool {
        let is_made = self.emulate.is_some()
            || self.like.is_some()
            || self.tiers.is_some()
            || self.topology.is_some()
            || self.cpus.is_some();
        let was_measured_here = |place: &str| {
            let run = run_document(Path::new(place)).map(|document| document.run.machine);
            let here = read_machine(&Root::live());
            run.is_ok_and(|run| here.is_ok_and(|here| is_like(&run, &here.machine)))
        };
        let is_here = |source: &String| match source.split_once(':') {
            None => source == "sysfs",
            Some(("results", place)) => was_measured_here(place),
            Some(_) => false,
        };
        !is_made && self.source.as_ref().is_none_or(is_here)
    }

    /// Returns the run that `results:DIR` names as the source, and its place.
    ///
    /// # Errors
    /// [`MachineError`] if it is not a run.
    pub fn run(&self) -> Result<Option<(&Path, Document)>, MachineError> {
        let place = self.source.as_deref().and_then(|source| source.strip_prefix("results:"));
        let place = place.map(Path::new);
        place.map(|place| Ok((place, run_document(place)?))).transpose()
    }

    /// Returns the machine; a guest has these usual cpus and bytes on each node.
    fn described(&self, usual: Option<(usize, u64)>) -> Result<Described, MachineError> {
        if let Some(text) = &self.tiers {
            return self.tiered(text);
        }
        if let Some(name) = &self.like {
            return self.like(name, usual);
        }
        let spec = self.emulated()?;
        let is_free = usual.is_some() && self.source.is_none() && self.topology.is_none();
        let cpus = self.cpus.or(is_free.then(|| guest_cpus(spec.as_ref())));
        let (machine, findings, file) = match (cpus, self.memory) {
            (Some(cpus), memory) => {
                self.expect_cpus_of_nodes(spec.as_ref())?;
                let machine = uniform(spec.as_ref(), cpus, memory);
                (machine.map_err(|error| self.refused(error))?, Vec::new(), None)
            }
            (None, Some(memory)) => {
                return Err(MachineError::option("memory", memory, "expected --cpus as well"));
            }
            (None, None) => {
                let run = if self.topology.is_none() { self.run()? } else { None };
                let (base, findings) = match (&self.topology, &run) {
                    (Some(file), _) => source::own(file)?,
                    (None, Some((place, run))) => source::measured(place, run)?,
                    (None, None) => source::read_source(self.source.as_deref().unwrap_or("sysfs"))?,
                };
                let emulated = spec.as_ref().map(|spec| spec.emulate(&base)).transpose();
                let emulated = emulated.map_err(|error| self.refused(error.into()))?;
                let file = run.filter(|_| emulated.is_none());
                let file = file.map(|(_, run)| capture(&run).figures).filter(has_latencies);
                (emulated.unwrap_or(base), findings, file)
            }
        };
        Ok(Described { machine, findings, emulated: spec, file, ..Described::default() })
    }

    fn tiered(&self, text: &str) -> Result<Described, MachineError> {
        let bad =
            |error: &dyn std::fmt::Display| MachineError::option("emulate-tiers", text, error);
        let spec = tiers::parse(text).map_err(|error| bad(&error))?;
        let cpus = self.cpus.unwrap_or(GUEST_CPUS);
        let machine = if self.cxl { spec.cxl_machine(cpus) } else { spec.machine(cpus) };
        let machine = machine.map_err(|error| bad(&error))?;
        Ok(Described { machine, tiers: Some(spec), ..Described::default() })
    }

    /// Returns a known machine, or the requested part of it.
    fn like(&self, name: &str, usual: Option<(usize, u64)>) -> Result<Described, MachineError> {
        let file = machine_file(name)?;
        let machine = if self.cpus.is_none() && self.memory.is_none() && usual.is_none() {
            file.machine.clone()
        } else {
            let (per_node, node_bytes) = usual.unwrap_or((usize::MAX, u64::MAX));
            let nodes = file.machine.nodes.iter().filter(|node| node.online).count().max(1);
            let usual_bytes = node_bytes.saturating_mul(nodes as u64);
            let memory = self.memory.unwrap_or(usual_bytes);
            let part = part_of(&file.machine, self.cpus, per_node, memory);
            part.map_err(|error| self.refused(error))?
        };
        Ok(Described { machine, file: Some(file), ..Described::default() })
    }

    fn emulated(&self) -> Result<Option<EmulationSpec>, MachineError> {
        let Some(nodes) = &self.emulate else { return Ok(None) };
        let spec = emulation::parse(nodes, self.distances.as_deref());
        spec.map(Some).map_err(|error| MachineError::option("emulate", nodes, error))
    }

    /// Refuses a number of cpus that contradicts that of the emulated nodes.
    fn expect_cpus_of_nodes(&self, spec: Option<&EmulationSpec>) -> Result<(), MachineError> {
        let Some(EmulatedNodes::Listed(nodes)) = spec.map(|spec| &spec.nodes) else {
            return Ok(());
        };
        let Some(each) = nodes.iter().map(|node| node.cpus).collect::<Option<Vec<_>>>() else {
            return Ok(());
        };
        let all = each.into_iter().fold(0_usize, usize::saturating_add);
        match self.cpus {
            Some(cpus) if cpus as usize != all => {
                let nodes = self.emulate.as_deref().unwrap_or_default();
                let expected = format!("expected {all}, the number in --emulate {nodes}");
                Err(MachineError::option("cpus", cpus, expected))
            }
            _ => Ok(()),
        }
    }

    /// Converts the error of a number into one that names its option.
    fn refused(&self, error: DescribedError) -> MachineError {
        match error {
            DescribedError::Cpus { cpus, error } => MachineError::option("cpus", cpus, error),
            DescribedError::Nodes(_) | DescribedError::Memory { .. } => {
                let nodes = self.emulate.as_deref().unwrap_or_default();
                let is_of_this_machine =
                    self.cpus.is_none() && self.source.is_none() && self.topology.is_none();
                let remedy = match error {
                    DescribedError::Nodes(
                        EmulationError::Cpus { .. } | EmulationError::Memory { .. },
                    ) if is_of_this_machine => APART,
                    _ => "",
                };
                MachineError::option("emulate", nodes, format_args!("{error}{remedy}"))
            }
            DescribedError::Uneven { cpus, nodes } => {
                let reason = format!("expected a multiple of {nodes}, the nodes with cpus");
                MachineError::option("cpus", cpus, reason)
            }
        }
    }
}

/// Returns true if a machine has the same nodes and cpus as this one.
pub fn is_like(machine: &Machine, here: &Machine) -> bool {
    let shape = |of: &Machine| {
        let online = of.cpus.iter().filter(|cpu| cpu.online);
        online.map(|cpu| (cpu.id, cpu.node)).collect::<Vec<_>>()
    };
    shape(machine) == shape(here) && machine.memory_nodes() == here.memory_nodes()
}

/// Returns a note if latencies are assumed because distances are unknown or mean unreachable.
fn assumed_distances(machine: &Machine) -> Option<Finding> {
    let online = || machine.nodes.iter().filter(|node| node.online).map(|node| node.id);
    let pairs = online().flat_map(|from| online().map(move |to| (from, to)));
    let mut unknown =
        pairs.filter(|&(from, to)| from != to && machine.cost_distance(from, to).is_none());
    let (from, to) = unknown.next()?;
    let more = match unknown.count() {
        0 => String::new(),
        more => format!(" (as for {more} more)"),
    };
    let message = format!(
        "the distance is unknown or unreachable{more}: the memory is emulated at distance \
         {REMOTE_DISTANCE}, twice the local latency"
    );
    Some(Finding {
        severity: Severity::Note,
        code: "distances-assumed".to_owned(),
        place: format!("node {from} to {to}"),
        message,
    })
}

/// Returns one cpu for each node without explicit cpus, at least [`GUEST_CPUS`] in total.
fn guest_cpus(spec: Option<&EmulationSpec>) -> u32 {
    let cpus = match spec.map(|spec| &spec.nodes) {
        None => 0,
        Some(EmulatedNodes::Equal(nodes) | EmulatedNodes::Split(nodes)) => *nodes,
        Some(EmulatedNodes::Listed(nodes)) => {
            nodes.iter().fold(0, |sum: usize, node| sum.saturating_add(node.cpus.unwrap_or(1)))
        }
    };
    u32::try_from(cpus).unwrap_or(u32::MAX).max(GUEST_CPUS)
}

/// Returns true for figures with latencies of memory, which the emulator needs.
fn has_latencies(file: &MachineFile) -> bool {
    file.machine.access.iter().any(|access| access.read_latency_ps.is_some())
}

#[cfg(test)]
mod tests;
