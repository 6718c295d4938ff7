//! Guests of QEMU, found among the processes.

use std::path::Path;
use std::time::Duration;

use numalab_guest::qmp::{self, QmpAddress, QmpClient, Vcpu};
use numalab_host::Root;
use numalab_record::explore::{
    BytesByNode, GuestMemory, GuestView, GuestsView, Hypervisor, MappingKind, MappingView,
    ProcessView, ThreadView, Unseen, VcpuView, spread,
};
use numalab_topology::Machine;

use crate::error::ExploreError;
use crate::process;

/// The minimum size of a mapping with guest memory, in bytes; smaller ones belong to QEMU itself.
const LEAST_GUEST_BYTES: u64 = 32 << 20;
/// Time limit for a monitor, which does not answer while it has another client.
const LIMIT: Duration = Duration::from_secs(2);

/// Adds every guest of QEMU to the view.
pub(super) fn read(root: &Root, machine: &Machine, view: &mut GuestsView) {
    for process in root.numbered("proc", "") {
        let Some(arguments) = qemu_arguments(root, process) else { continue };
        let name = guest_name(&arguments).unwrap_or_else(|| format!("QEMU {process}"));
        match process::read_process_on(root, process, machine) {
            Ok(looked) => {
                let guest = guest(root, name, &arguments, &looked, &mut view.unseen);
                view.guests.push(guest);
            }
            Err(ExploreError::Denied { .. }) => {
                view.unseen.push(Unseen::GuestOfAnotherUser { guest: name, process });
            }
            // The process ended meanwhile.
            Err(_) => {}
        }
    }
}

/// Returns the arguments of a process if it is a QEMU.
fn qemu_arguments(root: &Root, process: u32) -> Option<Vec<String>> {
    let arguments = root.arguments(process).ok()?;
    let program = Path::new(arguments.first()?).file_name()?.to_str()?;
    let is_qemu = program.starts_with("qemu-system-") || ["qemu-kvm", "kvm"].contains(&program);
    is_qemu.then_some(arguments)
}

/// Returns the name from `-name guest=web,debug-threads=on` or `-name web`.
fn guest_name(arguments: &[String]) -> Option<String> {
    let at = arguments.iter().position(|argument| argument == "-name")?;
    let first = arguments.get(at + 1)?.split(',').next()?;
    Some(first.strip_prefix("guest=").unwrap_or(first).to_owned())
}

/// Returns the monitor socket that our own guests provide for other programs.
fn control(arguments: &[String]) -> Option<String> {
    let path = |argument: &String| {
        let start = argument.find('/')?;
        let path = argument[start..].split(',').next()?;
        path.ends_with("/control.sock").then(|| path.to_owned())
    };
    arguments.iter().find_map(path)
}

fn guest(
    root: &Root,
    name: String,
    arguments: &[String],
    looked: &ProcessView,
    unseen: &mut Vec<Unseen>,
) -> GuestView {
    let control = control(arguments);
    let asked = control.as_ref().filter(|_| root.is_live()).and_then(|path| ask(path, looked));
    let (vcpus, memory) = match asked {
        Some((vcpus, memory)) => (vcpus, memory),
        None => (named_vcpus(looked), large_mappings(looked)),
    };
    if vcpus.is_empty() {
        unseen.push(Unseen::VcpuThreads { guest: name.clone() });
    }
    let mut bytes_by_node = BytesByNode::new();
    memory.iter().for_each(|memory| spread::add(&mut bytes_by_node, &memory.bytes_by_node));
    GuestView {
        hypervisor: Hypervisor::Qemu,
        name,
        number: looked.process,
        vcpus,
        memory,
        bytes_by_node,
        remote_share: None,
        control,
    }
}

/// Queries a QEMU over its monitor for other programs.
fn ask(path: &str, looked: &ProcessView) -> Option<(Vec<VcpuView>, Vec<GuestMemory>)> {
    let mut client = QmpClient::connect(&QmpAddress::Socket(path.into()), LIMIT).ok()?;
    let threads = qmp::vcpus(&mut client).ok()?;
    let proofs = qmp::prove_memory(&mut client, looked.process).ok()?;
    let vcpus = threads.into_iter().map(|vcpu: Vcpu| {
        let thread = looked.threads.iter().find(|thread| thread.thread == vcpu.thread);
        VcpuView { guest_node: vcpu.node, ..vcpu_view(vcpu.index, thread) }
    });
    let memory = proofs.into_iter().map(|proof| GuestMemory {
        guest_node: node_of_backend(&proof.block.name),
        name: proof.block.name,
        policies: proof.policies,
        bytes_by_node: proof.bytes_by_node,
    });
    Some((vcpus.collect(), memory.collect()))
}

/// Returns the node from a name of a backend: `ram1` of numalab, `ram-node1` of libvirt, `m1` in
/// many other cases.
fn node_of_backend(name: &str) -> Option<u32> {
    let number = ["ram-node", "ram", "m"].iter().find_map(|start| name.strip_prefix(start))?;
    number.parse().ok()
}

fn vcpu_view(index: u32, thread: Option<&ThreadView>) -> VcpuView {
    VcpuView {
        index,
        thread: thread.map(|thread| thread.thread),
        cpu: thread.map(|thread| thread.cpu),
        node: thread.and_then(|thread| thread.node),
        allowed: thread.map(|thread| thread.allowed.clone()),
        ..VcpuView::default()
    }
}

/// Returns the threads that QEMU has named as vCPUs: `CPU 3/KVM`, `CPU 3/TCG`.
fn named_vcpus(looked: &ProcessView) -> Vec<VcpuView> {
    let index = |name: &str| name.strip_prefix("CPU ")?.split('/').next()?.parse().ok();
    let named = looked.threads.iter().filter_map(|thread| Some((index(&thread.name)?, thread)));
    let mut vcpus: Vec<VcpuView> =
        named.map(|(index, thread)| vcpu_view(index, Some(thread))).collect();
    vcpus.sort_by_key(|vcpu| vcpu.index);
    vcpus
}

fn large_mappings(looked: &ProcessView) -> Vec<GuestMemory> {
    let is_guests = |mapping: &&MappingView| {
        !matches!(mapping.kind, MappingKind::Heap | MappingKind::Stack | MappingKind::File)
            && mapping.size_bytes.is_some_and(|bytes| bytes >= LEAST_GUEST_BYTES)
            && !mapping.bytes_by_node.is_empty()
    };
    let memory = looked.mappings.iter().filter(is_guests).map(|mapping| {
        let file = mapping.file.as_deref().unwrap_or_default();
        let backend = file.rsplit('/').next().unwrap_or_default();
        let backend = backend.trim_start_matches("memfd:").trim_end_matches(" (deleted)");
        GuestMemory {
            name: if backend.is_empty() {
                format!("{:#x}", mapping.start)
            } else {
                backend.to_owned()
            },
            guest_node: None,
            policies: vec![mapping.policy.clone()],
            bytes_by_node: mapping.bytes_by_node.clone(),
        }
    });
    memory.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_monitors_are_read_from_the_arguments() {
        let arguments = [
            "qemu-system-x86_64",
            "-name",
            "guest=web,debug-threads=on",
            "-qmp",
            "unix:/run/user/0/numalab/guest-1-2/control.sock,server=on,wait=off",
        ];
        let arguments = arguments.map(str::to_owned);
        assert_eq!(guest_name(&arguments).as_deref(), Some("web"));
        let path = "/run/user/0/numalab/guest-1-2/control.sock";
        assert_eq!(control(&arguments).as_deref(), Some(path));
        assert_eq!(control(&arguments[..3]), None);
        assert_eq!((node_of_backend("ram3"), node_of_backend("ram-node12")), (Some(3), Some(12)));
        assert_eq!(node_of_backend("pc.ram"), None);
    }
}
