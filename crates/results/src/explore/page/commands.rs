//! Remedies as commands.

use numalab_page::number::size_words;
use numalab_page::one_line;
use numalab_record::shell::quoted;
use numalab_topology::{MemoryPolicy, NodeId, NodeSet, Placement};

use crate::advice::place_file;
use crate::explore::Remedy;

/// Returns a remedy's command, ready to copy; alternatives follow on separate lines.
pub(super) fn command(remedy: &Remedy) -> String {
    match remedy {
        Remedy::UseOtherNode { full, roomy, is_shared } => use_other(*full, *roomy, *is_shared),
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
        Remedy::InterleaveSegment { nodes, segment, bytes } => {
            interleave_segment(nodes, segment, *bytes)
        }
        Remedy::PlaceFile { nodes, file, command } => read_again(nodes, file, &one_line(command)),
        Remedy::BindNear { device, command } => {
            format!("numalab bind --near {device} -- {}", one_line(command))
        }
        Remedy::AskForHugePages { command } => ask_for_huge_pages(&one_line(command)),
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
            format!(
                "numalab guest pin --qmp {socket} --map '{}'",
                map.collect::<Vec<_>>().join(";")
            )
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

fn use_other(full: NodeId, roomy: NodeId, is_shared: bool) -> String {
    let running = match is_shared {
        true => {
            "numalab explore --pid PID  # most of the node is shared memory: ipcs -mp and df -t tmpfs \
             lead to its programs"
                .to_owned()
        }
        false => {
            format!("migratepages PID {full} {roomy}  # running programs: numastat -p lists them")
        }
    };
    let policy = numactl(MemoryPolicy::Preferred(NodeSet::from_iter([roomy])));
    format!("{policy} -- COMMAND  # new programs\n{running}")
}

fn read_again(nodes: &NodeSet, file: &str, command: &str) -> String {
    let nodes: Vec<u32> = nodes.iter().map(|node| node.0).collect();
    let [numactl, _] = place_file(file, &nodes);
    format!("{numactl}; {command}  # while no program has it mapped")
}

fn ask_for_huge_pages(command: &str) -> String {
    format!(
        "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 {command}\n\
         numalab knobs run thp_enabled=always -- {command}"
    )
}

fn interleave(nodes: &NodeSet, command: &str, balancing_is_off: bool) -> String {
    let command = one_line(command);
    let placement = Placement::from(MemoryPolicy::Interleave(nodes.clone()));
    let tools = placement.commands(&command).into_iter();
    // Commands for guests and pods name no program.
    let others = tools
        .filter(|(tool, line)| !matches!(*tool, "numalab" | "numactl") && line.ends_with(&command));
    let first = format!("numactl {} -- {command}", placement.numactl());
    let lines = std::iter::once(first).chain(others.map(|(_, line)| line));
    let balance = "sysctl kernel.numa_balancing=1  # the running program";
    let lines: Vec<String> =
        balancing_is_off.then(|| balance.to_owned()).into_iter().chain(lines).collect();
    lines.join("\n")
}

/// Interleaves only the segment: by numactl(8) if that can open it (a file that still has its name,
/// or a System V segment with a key), else by a call of libnuma in the program.
pub(crate) fn interleave_segment(nodes: &NodeSet, segment: &str, bytes: u64) -> String {
    let policy = Placement::from(MemoryPolicy::Interleave(nodes.clone())).numactl();
    let key = |name: &str| u32::from_str_radix(name.strip_prefix("/SYSV")?.get(..8)?, 16).ok();
    let each = size_words(bytes.div_ceil(nodes.len().max(1) as u64));
    let before = format!("before its first touch; {each} on each node");
    match (key(segment), segment.ends_with(" (deleted)")) {
        // The highest byte of a key made by ftok(3) is the program's number.
        (Some(key @ 1..), _) => format!(
            "numactl --length=SIZE --shmid={} --shm=FILE {policy}  # {before}; FILE: of the \
             program's ftok()",
            key >> 24
        ),
        (None, false) if segment.starts_with('/') => {
            let file = quoted(segment);
            format!("numactl --length=$(stat -c %s {file}) --file={file} {policy}  # {before}")
        }
        _ => format!(
            "numa_interleave_memory(p, bytes, numa_parse_nodestring(\"{nodes}\"))  # numa(3), in the \
             program: {before}"
        ),
    }
}

fn numactl(policy: MemoryPolicy) -> String {
    format!("numactl {}", Placement::from(policy).numactl())
}

fn pin_domain(guest: &str, node: NodeId, is_pinned: bool) -> String {
    let anew = match is_pinned {
        true => {
            "\nxl destroy GUEST; xl create GUEST.cfg 'cpus=[\"node:N\"]'  # an entry for each vCPU: \
             Xen does not move memory"
        }
        false => "",
    };
    format!("xl vcpu-pin {guest} all node:{node}{anew}")
}
