//! Remedies as commands.

use numalab_topology::{MemoryPolicy, NodeId, NodeSet, Placement};

use crate::explore::Remedy;

/// Returns a remedy's command, ready to copy.
pub(super) fn command(remedy: &Remedy) -> String {
    match remedy {
        Remedy::UseOtherNode { full, roomy } => format!(
            "{} -- COMMAND for new programs, or migratepages PID {full} {roomy} for running ones \
             (numastat -p lists them)",
            numactl(MemoryPolicy::Preferred(NodeSet::from_iter([*roomy])))
        ),
        Remedy::ReservePages { node, page_bytes, pages } => format!(
            "echo {pages} > /sys/devices/system/node/node{node}/hugepages/hugepages-{}kB/nr_hugepages",
            page_bytes >> 10
        ),
        Remedy::ReclaimOnNode => {
            "sysctl vm.zone_reclaim_mode=1 (reclaims the node's page cache first)".to_owned()
        }
        Remedy::Compact { node } => format!("echo 1 > /sys/devices/system/node/node{node}/compact"),
        Remedy::MovePages { process, from, to } => {
            let to = to.map_or_else(|| "NODE".to_owned(), |to| to.to_string());
            format!("migratepages {process} {from} {to}")
        }
        Remedy::MoveThreads { number, all, cpus } => {
            format!("taskset -{}cp {cpus} {number}", if *all { "a" } else { "" })
        }
        Remedy::Interleave { nodes, command, balancing_is_off } => {
            interleave(nodes, command, *balancing_is_off)
        }
        Remedy::InterleaveSegment { nodes, segment } => interleave_segment(nodes, segment),
        Remedy::BindNear { device, command } => {
            format!("start it as numalab bind --near {device} -- {command}")
        }
        Remedy::AskForHugePages { command } => format!(
            "start it as GLIBC_TUNABLES=glibc.malloc.hugetlb=1 {command}, or to try: numalab knobs \
             run thp_enabled=always -- {command}"
        ),
        Remedy::AllowHugePages => {
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled".to_owned()
        }
        Remedy::LookAtProcess { process } => format!("numalab explore --pid {process}"),
        Remedy::SpreadThreads => {
            "srun --cpus-per-task=N --cpu-bind=cores, with OMP_NUM_THREADS=N OMP_PLACES=cores"
                .to_owned()
        }
        Remedy::LookAtNodes => "numalab explore --nodes".to_owned(),
        Remedy::PinVcpus { socket, map } => {
            let map = map.iter().map(|(vcpu, cpus)| format!("{vcpu}={cpus}"));
            let map = map.collect::<Vec<_>>().join(";");
            format!("numalab guest pin --qmp {socket} --map '{map}'")
        }
        Remedy::ListCpus { guest, cpus } => format!(
            "in its configuration: cpus = [\"{cpus}\"] (a list), then xl destroy {guest} and xl create"
        ),
        Remedy::PinDomain { guest, node, is_pinned } => pin_domain(guest, *node, *is_pinned),
        Remedy::RecreateDomain { domain, node } => format!(
            "in its configuration: cpus = [\"node:{node}\"], then xl destroy {domain} and xl \
             create (Xen does not move memory)"
        ),
    }
}

fn interleave(nodes: &NodeSet, command: &str, balancing_is_off: bool) -> String {
    let balance = if balancing_is_off { "sysctl kernel.numa_balancing=1, or " } else { "" };
    let placement = Placement::from(MemoryPolicy::Interleave(nodes.clone()));
    let lines = placement.commands("COMMAND").into_iter();
    let others = lines.filter(|(tool, _)| !matches!(*tool, "numalab" | "numactl"));
    let others: String = others.map(|(tool, line)| format!("; with {tool}: {line}")).collect();
    format!("{balance}start it as numactl {} -- {command}{others}", placement.numactl())
}

fn interleave_segment(nodes: &NodeSet, segment: &str) -> String {
    let of = match segment.strip_suffix(" (deleted)").unwrap_or(segment) {
        file if file.starts_with("/dev/") => format!("--file={file}"),
        _ => "--shmid=ID (of ipcs -m)".to_owned(),
    };
    format!(
        "{} {of} before it is first touched, or the program's own option for it; all other memory \
         stays by first touch",
        numactl(MemoryPolicy::Interleave(nodes.clone()))
    )
}

fn numactl(policy: MemoryPolicy) -> String {
    format!("numactl {}", Placement::from(policy).numactl())
}

fn pin_domain(guest: &str, node: NodeId, is_pinned: bool) -> String {
    let anew = match is_pinned {
        true => ", or create it again with cpus = [\"node:N\"] (Xen does not move memory)",
        false => "",
    };
    format!("xl vcpu-pin {guest} all node:{node}{anew}")
}
