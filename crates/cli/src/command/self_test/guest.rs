//! A guest with one node on each node of this machine.

use std::time::Duration;

use numalab_guest::{
    Accelerator, AcceleratorChoice, Guest, HostMemory, Launch, Limits, Outcome, PinPlan, Pins,
    Qemu, QemuNeeds, Runtime, Task,
};
use numalab_guest_agent::{Job, Stream};
use numalab_host::Interrupt;
use numalab_image::{Cache, Contents, Image, Kernel, KernelChoice};
use numalab_record::self_test::{CheckFound, GuestNode};
use numalab_topology::{
    CpuSet, EmulatedNodes, EmulationSpec, Machine, NodeId, NodeSet, UniformMachine,
};

use crate::command::own::own_program;
use crate::failure::Failure;

/// Memory of each guest node.
const NODE_BYTES: u64 = 256 << 20;
/// Time limit of a guest with a command that does nothing.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// Boots a guest with nodes bound and pinned to those host nodes that have CPUs.
pub(super) fn pinned(host: &Machine, nodes: &[NodeId]) -> Result<CheckFound, Failure> {
    let online = host.online_cpus();
    let with_cpus = |node: &NodeId| {
        let cpus = host.node(*node).map(|node| node.cpus.intersection(&online));
        cpus.filter(|cpus| !cpus.is_empty()).map(|cpus| (*node, cpus))
    };
    let nodes: Vec<(NodeId, CpuSet)> = nodes.iter().filter_map(with_cpus).collect();
    let launch = launch(host, &nodes)?;
    let interrupt = Interrupt::install()?;
    let task = Task { job: Job::new(["true".to_owned()]), ..Task::default() };
    let runtime = Runtime::open()?;
    let mut sink = |_: Stream, _: &[u8]| {};
    let outcome = launch.run(&runtime, &task, &mut sink, &|| interrupt.requested())?;
    let accelerator = launch.accelerator().kind.name().to_owned();
    let found = |(index, (host, _)): (usize, &(NodeId, _))| placed(&outcome, index, *host);
    Ok(CheckFound::Guest { accelerator, nodes: nodes.iter().enumerate().map(found).collect() })
}

fn launch(host: &Machine, nodes: &[(NodeId, CpuSet)]) -> Result<Launch, Failure> {
    let cache = Cache::open()?;
    let qemu = Qemu::find(&cache, &QemuNeeds::default())?;
    let mut quiet = |_: &str| {};
    let kernel = Kernel::ensure(&cache, &KernelChoice::Distribution, &mut quiet)?;
    let image = Image::ensure(&cache, &kernel, &Contents::new(own_program()?), &mut quiet)?;
    let accelerator = Accelerator::decide(AcceleratorChoice::Auto, &qemu, &kernel.file, &cache)?;
    Ok(Launch::plan(guest(host, nodes)?, qemu, accelerator, image.boot_files())?)
}

/// Returns a guest machine with a node and one virtual CPU for each of these nodes.
fn guest(host: &Machine, nodes: &[(NodeId, CpuSet)]) -> Result<Guest, Failure> {
    let count = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    let base = UniformMachine::of_packages(count, count, NODE_BYTES * u64::from(count));
    let base = base.build().map_err(Failure::bad_input)?;
    let spec = EmulationSpec::new(EmulatedNodes::Equal(nodes.len()));
    let memory = HostMemory {
        nodes: nodes.iter().map(|(node, _)| NodeSet::from_iter([*node])).collect(),
        prealloc: true,
        ..HostMemory::default()
    };
    let lists = nodes.iter().map(|(_, cpus)| cpus.clone()).collect();
    let plan = PinPlan::NodeLists { vcpus: None, lists };
    let pins = Pins { plan, host: host.clone() };
    Ok(Guest {
        machine: spec.emulate(&base).map_err(Failure::bad_input)?,
        memory,
        pins: Some(pins),
        limits: Limits { run: Some(RUN_LIMIT), ..Limits::default() },
        ..Guest::default()
    })
}

/// Returns where a node of the guest was while it ran.
fn placed(outcome: &Outcome, index: usize, host: NodeId) -> GuestNode {
    let pins = outcome.pins.as_ref();
    let runs_on = pins.and_then(|pins| pins.vcpus.get(index)).and_then(|vcpu| vcpu.runs_on);
    let memory = outcome.memory.as_ref().and_then(|memory| memory.get(index));
    let bytes = |there: bool| {
        let by_node = memory.iter().flat_map(|block| &block.bytes_by_node);
        by_node.filter(|(node, _)| (**node == host) == there).map(|(_, bytes)| bytes).sum()
    };
    GuestNode { host, runs_on, there_bytes: bytes(true), elsewhere_bytes: bytes(false) }
}
