//! A guest with one node on each node of this machine.

use std::time::Duration;

use numalab_guest::{
    AcceleratorChoice, Boot, Guest, GuestError, HostMemory, Launch, Limits, Outcome, PinPlan, Pins,
    Runtime, Task,
};
use numalab_guest_agent::{Job, Stream};
use numalab_host::Interrupt;
use numalab_image::{Architecture, Contents, KernelChoice};
use numalab_record::self_test::{CheckFound, GuestNode};
use numalab_topology::{CpuSet, Machine, NodeId, NodeSet};

use super::SelfTestError;
use crate::machine::MachineRequest;

const NODE_BYTES: u64 = 256 << 20;
/// Time limit of a guest with a command that does nothing.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// Boots a guest with nodes bound and pinned to those host nodes that have CPUs.
pub(super) fn pinned(host: &Machine, nodes: &[NodeId]) -> Result<CheckFound, SelfTestError> {
    let online = host.online_cpus();
    let with_cpus = |node: &NodeId| {
        let cpus = host.node(*node).map(|node| node.cpus.intersection(&online));
        cpus.filter(|cpus| !cpus.is_empty()).map(|cpus| (*node, cpus))
    };
    let nodes: Vec<(NodeId, CpuSet)> = nodes.iter().filter_map(with_cpus).collect();
    let launch = launch(host, &nodes)?;
    let interrupt = Interrupt::install()?;
    let task = Task { job: Job::new(["true".to_owned()]), ..Task::default() };
    let runtime = Runtime::open().map_err(GuestError::from)?;
    let mut sink = |_: Stream, _: &[u8]| {};
    let outcome = launch.run(&runtime, &task, &mut sink, &|| interrupt.requested())?;
    let accelerator = launch.accelerator().kind.name().to_owned();
    let found = |(index, (host, _)): (usize, &(NodeId, _))| placed(&outcome, index, *host);
    Ok(CheckFound::Guest { accelerator, nodes: nodes.iter().enumerate().map(found).collect() })
}

fn launch(host: &Machine, nodes: &[(NodeId, CpuSet)]) -> Result<Launch, SelfTestError> {
    let (guest, choice) = (guest(host, nodes)?, KernelChoice::Distribution);
    let contents = Contents::own(Architecture::of_host()).map_err(GuestError::from)?;
    let mut quiet = |_: &str| {};
    let boot = Boot::find(&guest, AcceleratorChoice::Auto, &choice, &mut quiet)?;
    let kernel = boot.kernel(&guest, &choice, &mut quiet)?;
    let image = boot.image(&kernel, &contents, &mut quiet)?;
    Ok(boot.launch(guest, image.boot_files())?)
}

/// Returns a guest machine with a node and one virtual CPU for each of these nodes.
fn guest(host: &Machine, nodes: &[(NodeId, CpuSet)]) -> Result<Guest, SelfTestError> {
    let request = MachineRequest {
        emulate: Some(nodes.len().to_string()),
        cpus: Some(u32::try_from(nodes.len()).unwrap_or(u32::MAX)),
        memory: Some(NODE_BYTES * nodes.len() as u64),
        ..MachineRequest::default()
    };
    let memory = HostMemory {
        nodes: nodes.iter().map(|(node, _)| NodeSet::from_iter([*node])).collect(),
        prealloc: true,
        ..HostMemory::default()
    };
    let lists = nodes.iter().map(|(_, cpus)| cpus.clone()).collect();
    let plan = PinPlan::NodeLists { vcpus: None, lists };
    Ok(Guest {
        machine: request.describe_guest()?.machine,
        memory,
        pins: Some(Pins { plan, host: host.clone() }),
        limits: Limits { run: Some(RUN_LIMIT), ..Limits::default() },
        ..Guest::default()
    })
}

/// Returns the location of a guest's node while the guest ran.
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
