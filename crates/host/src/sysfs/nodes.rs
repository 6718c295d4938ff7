//! Reads nodes and their cpus.

use std::collections::BTreeMap;

use numalab_topology::{
    Cpu, CpuId, CpuSet, Distances, LOCAL_DISTANCE, MAX_ID, Node, NodeId, NodeSet,
};

use super::memory;
use super::reader::{NODE_DIRECTORY, Reader};

/// Lists of free pages by node and zone.
const FREE_PAGES: [&str; 2] = ["proc/buddyinfo", "proc/zoneinfo"];

/// Returns the path of a node's directory.
pub(super) fn directory(node: NodeId) -> String {
    format!("{NODE_DIRECTORY}/node{node}")
}

/// Reads all nodes that have a directory, ascending; one node with all cpus if there is none. Nodes
/// that are merely possible are left out: POWER firmware declares hundreds.
pub(super) fn read(reader: &mut Reader<'_>, cpus: &[Cpu]) -> Vec<Node> {
    let numbers: Vec<u32> = reader
        .root
        .numbered(NODE_DIRECTORY, "node")
        .into_iter()
        .filter(|&number| number <= MAX_ID)
        .collect();
    if numbers.is_empty() {
        return vec![only_node(reader, cpus)];
    }
    let online_path = format!("{NODE_DIRECTORY}/online");
    // Copied trees have empty files where a file could not be read.
    let online: Option<NodeSet> = reader.list(&online_path).filter(|online| !online.is_empty());
    let alone = numbers.len() == 1;
    let nodes: Vec<Node> = numbers
        .into_iter()
        .map(|number| {
            let id = NodeId(number);
            let online = online.as_ref().is_none_or(|online| online.contains(id));
            read_one(reader, id, online, alone)
        })
        .collect();
    let has_directory = nodes.iter().map(|node| node.id).collect();
    let missing = online.unwrap_or_default().difference(&has_directory);
    if !missing.is_empty() {
        let message = format!("nodes `{missing}` are listed, but have no directory: ignored");
        reader.warn("node-without-directory", &online_path, message);
    }
    nodes
}

/// Returns the cpus that nodes list, for a tree without anything else about cpus.
pub(super) fn listed_cpus(reader: &mut Reader<'_>) -> Vec<Cpu> {
    let mut listed = CpuSet::new();
    for number in reader.root.numbered(NODE_DIRECTORY, "node") {
        let cpus = reader.cpus(&directory(NodeId(number)), &["cpulist", "cpumap"]);
        listed.extend_from(&cpus.unwrap_or_default());
    }
    if !listed.is_empty() {
        let message = "neither cpu directories nor proc/cpuinfo: cpus are those that nodes list; cores, \
                       packages and caches are unknown";
        reader.warn("no-cpu-directories", NODE_DIRECTORY, message.to_owned());
    }
    listed.iter().map(|id| Cpu { id, online: true, ..Cpu::default() }).collect()
}

/// Returns the only node of a machine without node directories. The kernel's lists of free pages may
/// still name several.
fn only_node(reader: &mut Reader<'_>, cpus: &[Cpu]) -> Node {
    const NO_NODES: &str = "no-nodes";
    let named = FREE_PAGES.iter().map(|file| (file, named_nodes(reader, file)));
    match named.max_by_key(|(_, nodes)| nodes.len()).filter(|(_, nodes)| nodes.len() > 1) {
        None => {
            let message = "no node directories: the machine is assumed to have one node";
            reader.note(NO_NODES, NODE_DIRECTORY, message.to_owned());
        }
        Some((file, nodes)) => {
            let message = format!(
                "no node directories, but {file} names nodes {nodes}: their cpus, memory and \
                 distances are unknown, and all is shown as one node"
            );
            reader.warn(NO_NODES, NODE_DIRECTORY, message);
        }
    }
    let memory = memory::machine_sizes(reader);
    Node {
        id: NodeId(0),
        online: true,
        cpus: cpus.iter().map(|cpu| cpu.id).collect(),
        memory_bytes: memory.total_bytes.unwrap_or(0),
        memory_unknown: memory.total_bytes.is_none(),
        free_bytes: memory.free_bytes,
        huge_pages: memory::huge_pages(reader, "sys/kernel/mm/hugepages"),
        ..Node::default()
    }
}

/// Returns the nodes that a list of free pages names: `Node 0, zone   Normal ...`.
fn named_nodes(reader: &mut Reader<'_>, file: &str) -> NodeSet {
    let text = reader.document(file).unwrap_or_default();
    let number = |line: &str| line.strip_prefix("Node ")?.split_once(',')?.0.parse().ok();
    text.lines().filter_map(number).filter(|&node| node <= MAX_ID).map(NodeId).collect()
}

fn read_one(reader: &mut Reader<'_>, id: NodeId, online: bool, alone: bool) -> Node {
    let directory = directory(id);
    let memory = memory::node_sizes(reader, &directory, alone);
    let mut cpus = reader.cpus(&directory, &["cpulist", "cpumap"]).unwrap_or_default();
    // The list holds online cpus only; offline ones have a link.
    let linked = reader.root.numbered(&directory, "cpu");
    cpus.extend(linked.into_iter().filter(|&cpu| cpu <= MAX_ID).map(CpuId));
    Node {
        id,
        online,
        cpus,
        memory_bytes: memory.total_bytes.unwrap_or(0),
        memory_unknown: online && memory.total_bytes.is_none(),
        free_bytes: memory.free_bytes,
        huge_pages: memory::huge_pages(reader, &format!("{directory}/hugepages")),
        memory_side_caches: memory::side_caches(reader, &directory),
        ..Node::default()
    }
}

/// Assigns every cpu to the first node that lists it, and removes it from the others, unless these
/// nodes are parts of one node.
pub(super) fn assign_cpus(
    reader: &mut Reader<'_>,
    nodes: &mut [Node],
    cpus: &mut [Cpu],
    distances: &Distances,
) {
    let known: CpuSet = cpus.iter().map(|cpu| cpu.id).collect();
    let mut listed: Vec<CpuSet> = nodes.iter().map(|node| node.cpus.intersection(&known)).collect();
    share_with_fakes(reader, nodes, &mut listed, distances);
    let mut parts: BTreeMap<NodeId, NodeSet> = BTreeMap::new();
    for index in 0..nodes.len() {
        let place = directory(nodes[index].id);
        let unknown = nodes[index].cpus.difference(&known);
        if !unknown.is_empty() {
            let message = format!("cpus `{unknown}` have no directory: ignored");
            reader.warn("cpu-without-directory", &place, message);
        }
        let is_whole =
            |first: &usize| listed[*first] == listed[index] && distances.is_local(*first, index);
        if let Some(first) = (0..index).find(is_whole).filter(|_| !listed[index].is_empty()) {
            let ids = [nodes[first].id, nodes[index].id];
            parts.entry(ids[0]).or_default().extend(ids);
            nodes[index].cpus = listed[index].clone();
            continue;
        }
        let node = &mut nodes[index];
        let mut elsewhere = CpuSet::new();
        for cpu in cpus.iter_mut().filter(|cpu| node.cpus.contains(cpu.id)) {
            if cpu.node.is_some() {
                elsewhere.insert(cpu.id);
            } else {
                cpu.node = Some(node.id);
            }
        }
        if !elsewhere.is_empty() {
            let message = format!("cpus `{elsewhere}` already belong to an earlier node");
            reader.warn("cpu-in-two-nodes", &place, message);
        }
        node.cpus = listed[index].difference(&elsewhere);
    }
    parts.into_values().for_each(|parts| note_parts(reader, &parts));
    if let [node] = nodes {
        adopt(reader, node, cpus);
    }
    let homeless: CpuSet =
        cpus.iter().filter(|cpu| cpu.online && cpu.node.is_none()).map(|cpu| cpu.id).collect();
    if !homeless.is_empty() {
        let message = format!("cpus {homeless} are online, but on no node");
        reader.note("cpu-without-node", NODE_DIRECTORY, message);
    }
}

/// Gives the fake nodes that list no cpus the cpus of the node that they are parts of: some kernels
/// list them only there.
fn share_with_fakes(
    reader: &mut Reader<'_>,
    nodes: &[Node],
    listed: &mut [CpuSet],
    distances: &Distances,
) {
    if !is_fake(reader) {
        return;
    }
    let whole = |index: usize| {
        let local = |first: &usize| !listed[*first].is_empty() && distances.is_local(*first, index);
        (0..nodes.len()).find(local)
    };
    let is_part = |index: &usize| listed[*index].is_empty() && nodes[*index].may_have_memory();
    let parts: Vec<(usize, CpuSet)> = (0..nodes.len())
        .filter(is_part)
        .filter_map(|index| Some((index, listed[whole(index)?].clone())))
        .collect();
    for (index, cpus) in parts {
        listed[index] = cpus;
    }
}

/// Reports whether the kernel was started with fake nodes.
fn is_fake(reader: &mut Reader<'_>) -> bool {
    let command_line = reader.document("proc/cmdline").unwrap_or_default();
    command_line.split_ascii_whitespace().any(|word| word.starts_with("numa=fake"))
}

/// Describes the origin of nodes that are parts of one node.
pub(super) fn by_fake(reader: &mut Reader<'_>) -> &'static str {
    match is_fake(reader) {
        true => "the kernel option numa=fake created them",
        false => "the kernel option numa=fake creates such nodes",
    }
}

fn note_parts(reader: &mut Reader<'_>, nodes: &NodeSet) {
    let by = by_fake(reader);
    let message = format!(
        "nodes {nodes} have the same cpus at distance {LOCAL_DISTANCE} from each other, so these are \
         local to each of them: {by}"
    );
    reader.note("nodes-share-cpus", NODE_DIRECTORY, message);
}

/// Gives the only node the cpus that no node lists: all if it lists none itself, and offline ones
/// without a link, unless they can belong to a node that is absent now. That is so if the node is
/// not the first of several possible ones, or if its row of distances has values for others: kernels
/// of virtual machines have many possible nodes that never appear.
fn adopt(reader: &mut Reader<'_>, node: &mut Node, cpus: &mut [Cpu]) {
    let possible: Option<NodeSet> = reader.list(&format!("{NODE_DIRECTORY}/possible"));
    let row = reader.text(&format!("{}/distance", directory(node.id))).unwrap_or_default();
    let is_first = node.id == NodeId(0) && row.split_ascii_whitespace().count() <= 1;
    let alone = is_first || possible.is_none_or(|possible| possible.len() <= 1);
    let lists_none = node.cpus.is_empty();
    for cpu in cpus.iter_mut().filter(|cpu| cpu.node.is_none()) {
        if alone && (lists_none || !cpu.online) {
            cpu.node = Some(node.id);
            node.cpus.insert(cpu.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::Root;

    #[test]
    fn offline_cpus_are_of_no_node_where_distances_show_that_one_is_absent() {
        let cpus_of_node = |distance: &str| {
            let top = tempfile::tempdir().unwrap();
            let node = top.path().join(directory(NodeId(0)));
            std::fs::create_dir_all(&node).unwrap();
            std::fs::write(node.join("cpulist"), "0-7\n").unwrap();
            std::fs::write(node.join("distance"), distance).unwrap();
            std::fs::write(top.path().join(NODE_DIRECTORY).join("possible"), "0-1\n").unwrap();
            let cpu = |id| Cpu { id: CpuId(id), online: id < 8, ..Cpu::default() };
            let mut cpus: Vec<Cpu> = (0..16).map(cpu).collect();
            let root = Root::at(top.path());
            let mut reader = Reader::new(&root);
            let mut nodes = read(&mut reader, &cpus);
            assign_cpus(&mut reader, &mut nodes, &mut cpus, &Distances::default());
            nodes[0].cpus.to_string()
        };
        assert_eq!(cpus_of_node("10 20\n"), "0-7");
        assert_eq!(cpus_of_node("10\n"), "0-15");
    }
}
