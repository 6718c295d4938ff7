//! The three kinds of places, their availability here, and the limits of each.

use numalab_guest::{
    Accelerator, AcceleratorChoice, Boot, EmulatorMode, Guest, GuestError, HostMemory,
    MemoryEmulator, PinPlan, Pins,
};
use numalab_host::{Classed, Root, read_machine};
use numalab_image::{Architecture, Cache, KernelChoice};
use numalab_record::study::{AcceleratorReason, EmulatedCosts, KvmFault, Notice};
use numalab_study::BackendError;
use numalab_topology::{Machine, NodeSet};

use super::shape::{RequestedPlace, Shape};
use crate::downloads::supplies;

/// A place in which the kernel can boot.
pub(super) struct KernelPlace {
    pub boot: Boot,
    pub kind: PlaceKind,
}

/// The kind of a place, which determines what it can show.
pub(super) enum PlaceKind {
    /// Real nodes: times are the machine's.
    Real {
        host: Box<Machine>,
        /// The host node of each guest node.
        nodes: Vec<NodeSet>,
    },
    /// The emulator: times are virtual, and identical in every run.
    Emulated {
        emulator: Box<MemoryEmulator>,
        /// The source of the costs of memory.
        costs: EmulatedCosts,
    },
    /// Neither: times have no meaning.
    Plain,
}

impl PlaceKind {
    /// Returns the notice for readers before the start.
    pub fn notice(&self) -> Notice {
        match self {
            Self::Real { nodes, .. } => Notice::RealNodes { nodes: nodes.clone() },
            Self::Emulated { costs, .. } => Notice::EmulatedMemory { costs: *costs },
            Self::Plain => Notice::PlainTcg,
        }
    }

    /// Returns the place's name in the environment.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Real { .. } => "real nodes",
            Self::Emulated { .. } => "memory emulator",
            Self::Plain => "plain TCG",
        }
    }

    pub fn has_times(&self) -> bool {
        !matches!(self, Self::Plain)
    }

    /// Returns true if the place's times are this machine's, so that other work on it changes them.
    pub fn has_host_times(&self) -> bool {
        matches!(self, Self::Real { .. })
    }
}

/// Finds the requested place, or the best available one; KVM is tried with a kernel fetched for the
/// purpose.
pub(super) fn find(shape: &Shape, machine: &Machine) -> Result<KernelPlace, BackendError> {
    search(shape, machine, &|| {
        let (guest, kernel) = (Guest::default(), KernelChoice::Distribution);
        Boot::find(&guest, AcceleratorChoice::Auto, &kernel, &mut |_| ())
    })
}

/// Predicts the place that will be found if KVM works, without trying it.
pub(super) fn foresee(shape: &Shape, machine: &Machine) -> Result<KernelPlace, BackendError> {
    search(shape, machine, &|| Boot::foreseen(&Guest::default(), AcceleratorChoice::Kvm))
}

/// Returns the files to download before KVM can be tried.
pub(super) fn downloads() -> Result<Vec<String>, BackendError> {
    let cache = Cache::open().map_err(|error| lacking(&error))?;
    let mut supplies = supplies(&cache, Architecture::X86_64)?;
    supplies.need_kernel(&KernelChoice::Distribution);
    Ok(supplies.missing())
}

/// Finds the inputs of a guest on real nodes.
type Find<'a> = &'a dyn Fn() -> Result<Boot, GuestError>;

fn search(shape: &Shape, machine: &Machine, find: Find<'_>) -> Result<KernelPlace, BackendError> {
    match shape.place {
        RequestedPlace::Real => real(machine, find),
        RequestedPlace::Emulator => emulated(shape, machine),
        RequestedPlace::Plain => translated(&Guest::default(), PlaceKind::Plain),
        RequestedPlace::Auto => real(machine, find)
            .or_else(|_| emulated(shape, machine))
            .or_else(|_| translated(&Guest::default(), PlaceKind::Plain)),
    }
}

fn real(machine: &Machine, find: Find<'_>) -> Result<KernelPlace, BackendError> {
    let lacks = |what: &str, remedy: &str| BackendError::lacking(what, remedy);
    let reading = read_machine(&Root::live());
    let host = reading.map(|reading| reading.machine).unwrap_or_default();
    let with_memory: Vec<NodeSet> =
        host.memory_nodes().iter().map(|node| NodeSet::from_iter([node])).collect();
    if with_memory.len() < machine.nodes.len() {
        let (here, wanted) = (with_memory.len(), machine.nodes.len());
        let what = format!("{here} host nodes with memory, the study needs {wanted}");
        return Err(lacks(
            &what,
            "expected a machine with that many nodes, or where = \
            \"emulator\"",
        ));
    }
    if Accelerator::without_device().is_some() {
        return Err(lacks(&KvmFault::NoDevice.to_string(), "load kvm_intel or kvm_amd"));
    }
    let boot = find().map_err(|error| lacking(&error))?;
    if let AcceleratorReason::KvmFails(fault) = &boot.accelerator.reason {
        return Err(lacks(&fault.to_string(), "expected a machine with KVM"));
    }
    let nodes = with_memory.into_iter().take(machine.nodes.len()).collect();
    Ok(KernelPlace { boot, kind: PlaceKind::Real { host: Box::new(host), nodes } })
}

fn emulated(shape: &Shape, machine: &Machine) -> Result<KernelPlace, BackendError> {
    let (described, costs) = shape.described(machine)?;
    let emulator = MemoryEmulator::find(EmulatorMode::Virtual, Architecture::X86_64, described);
    let emulator = emulator.map_err(|error| lacking(&error))?;
    let guest = Guest {
        machine: machine.clone(),
        memory_emulator: Some(emulator.clone()),
        own_kernel: shape.file.is_none(),
        ..Guest::default()
    };
    translated(&guest, PlaceKind::Emulated { emulator: Box::new(emulator), costs })
}

/// Returns a place under TCG for this guest.
fn translated(guest: &Guest, kind: PlaceKind) -> Result<KernelPlace, BackendError> {
    let boot = Boot::foreseen(guest, AcceleratorChoice::Tcg);
    Ok(KernelPlace { boot: boot.map_err(|error| lacking(&error))?, kind })
}

/// Converts a guest's error to a backend's.
pub(super) fn lacking(error: &dyn Classed) -> BackendError {
    BackendError::of("booting the kernel", error)
}

/// Returns real memory and pins for a guest: each node on a separate host node, or all on the
/// first.
pub(super) fn real_placement(kind: &PlaceKind, all_on_first: bool) -> (HostMemory, Option<Pins>) {
    let PlaceKind::Real { host, nodes } = kind else {
        return (HostMemory { unreserved: true, ..HostMemory::default() }, None);
    };
    let first = nodes.first().cloned().unwrap_or_default();
    let nodes = match all_on_first {
        true => nodes.iter().map(|_| first.clone()).collect(),
        false => nodes.clone(),
    };
    let memory = HostMemory { nodes, prealloc: true, ..HostMemory::default() };
    let pins = Pins { plan: PinPlan::Automatic, host: (**host).clone() };
    (memory, Some(pins))
}

#[cfg(test)]
mod tests {
    use super::*;
    use numalab_study::BackendSpec;

    #[test]
    fn only_real_nodes_have_times_that_others_on_this_machine_change() {
        let real = PlaceKind::Real { host: Box::new(Machine::default()), nodes: Vec::new() };
        assert!(real.has_times() && real.has_host_times());
        let spec = BackendSpec { kind: "kernel".to_owned(), ..BackendSpec::default() };
        let shape = Shape::of(&spec).unwrap();
        let (machine, costs) = shape.described(&shape.machine().unwrap()).unwrap();
        assert_eq!(costs, EmulatedCosts::Distances);
        let emulator =
            MemoryEmulator { plugin: "plugin.so".into(), mode: EmulatorMode::Virtual, machine };
        let emulated = PlaceKind::Emulated { emulator: Box::new(emulator), costs };
        assert!(emulated.has_times() && !emulated.has_host_times());
        assert!(!PlaceKind::Plain.has_times() && !PlaceKind::Plain.has_host_times());
    }
}
