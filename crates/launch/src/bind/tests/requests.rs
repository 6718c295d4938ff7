//! Requests: cpus as well as memory, devices, dry runs and isolated cpus.

use super::*;

/// Returns two nodes of four cpus, of which only the first has memory.
fn two_nodes() -> Machine {
    let mut machine = Machine::default();
    for (id, cpus, gib) in [(0, "0-3", 1), (1, "4-7", 0)] {
        let (id, cpus): (_, CpuSet) = (NodeId(id), cpus.parse().unwrap());
        let cpu = |cpu| Cpu { id: cpu, online: true, node: Some(id), ..Cpu::default() };
        machine.cpus.extend(cpus.iter().map(cpu));
        let memory_bytes = gib << 30;
        machine.nodes.push(Node { id, online: true, memory_bytes, cpus, ..Node::default() });
    }
    machine
}

fn request<'a>(nodes: &'a NodeChoice, cpus: Option<&'a RankCpus>) -> BindRequest<'a> {
    BindRequest { nodes, near: None, policy: PolicyKind::Bind, cpus }
}

#[test]
fn a_rank_has_its_own_cpu_or_those_of_its_node() {
    let (auto, machine) = (NodeChoice::Auto, two_nodes());
    let resolved = |cpus: &RankCpus, nodes: &NodeChoice| {
        request(nodes, Some(cpus)).resolve(Some(&rank(1, 2)), &machine, &NodeSet::new()).unwrap()
    };
    let listed = resolved(&RankCpus::Listed(vec![CpuId(6), CpuId(2)]), &auto);
    assert_eq!((listed.cpu, listed.home, listed.idle), (Some(CpuId(2)), None, CpuSet::new()));
    assert_eq!(listed.binding.cpus, Some("2".parse().unwrap()));
    let of_node = resolved(&RankCpus::OfNode, &auto);
    assert_eq!(of_node.home, Some(Home { node: NodeId(0), cpus: "0-3".parse().unwrap() }));
    assert_eq!((of_node.cpu, of_node.binding.cpus_of), (None, Some(NodeId(0))));
    assert_eq!(of_node.idle, "4-7".parse().unwrap(), "cpus that nodes in turn give to none");
    let named = resolved(&RankCpus::OfNode, &NodeChoice::List(vec![NodeId(0)]));
    assert_eq!(named.idle, CpuSet::new(), "the user named the node");
}

#[test]
fn cpus_and_memory_near_a_device_replace_the_nodes() {
    let near = Near {
        device: "nvme0n1".to_owned(),
        device_node: NodeId(1),
        cpu_node: NodeId(1),
        cpus: "4-7".parse().unwrap(),
        memory_node: NodeId(0),
        is_device_memory: false,
    };
    let unsaid = NodeChoice::Unsaid;
    let request = BindRequest { near: Some(&near), ..request(&unsaid, None) };
    let bound = request.resolve(None, &two_nodes(), &NodeSet::new()).unwrap();
    assert_eq!(bound.binding.policy, MemoryPolicy::Bind("0".parse().unwrap()));
    assert_eq!(bound.home, Some(Home { node: NodeId(1), cpus: "4-7".parse().unwrap() }));
    let said = request.lines(&bound, &["true".to_owned()], None, false, &|_| None);
    assert!(
        said.starts_with(&format!("[Rank 0] {}\n[Rank 0] Binding to", near.describe())),
        "{said}"
    );
}

#[test]
fn a_dry_run_names_the_launcher_and_a_single_process_other_tools() {
    let unsaid = NodeChoice::Unsaid;
    let request = request(&unsaid, None);
    let said = |task: Option<&Task>, is_dry_run: bool| {
        let bound = request.resolve(task, &two_nodes(), &NodeSet::new()).unwrap();
        request.lines(&bound, &["true".to_owned()], task, is_dry_run, &|_| None)
    };
    let lines = "[Rank 0] No --numa given: binding to node 0\n[Rank 0] Binding to NUMA domain 0\n\
        [Rank 0] Executing true, equivalent to: numactl --membind=0 true\n";
    assert_eq!(said(None, false), lines);
    assert!(said(None, true).starts_with(lines) && said(None, true).contains("map_mem:0 true\n"));
    let ranked = cyclic(0, 1);
    assert!(
        said(Some(&ranked), true).starts_with("[Rank 2] Known as "),
        "{}",
        said(Some(&ranked), true)
    );
    assert!(said(Some(&ranked), false).starts_with("[Rank 2] No --numa given"));
    assert!(said(Some(&rank(2, 4)), true).starts_with("[Rank 2] No --numa given"));
}

#[test]
fn the_isolated_cpus_of_a_node_are_named_where_a_rank_is_to_run_on_the_nodes_cpus() {
    let mut machine = with_memory("0-2");
    for (node, cpus) in machine.nodes.iter_mut().zip(["0,1", "2,3", "4,5"]) {
        node.cpus = cpus.parse().unwrap();
        let of_node = node.id;
        let cpu = |id| Cpu { id, online: true, node: Some(of_node), ..Cpu::default() };
        machine.cpus.extend(node.cpus.iter().map(cpu));
    }
    let (cpus, isolated) = ("0,1,4".parse().unwrap(), "2,3,5".parse().unwrap());
    let memory_nodes = "0-2".parse().unwrap();
    machine.allowed = Some(Allowed { cpus, memory_nodes, isolated });
    let choice: NodeChoice = "1".parse().unwrap();
    let bound = Binding::of(&choice, PolicyKind::Bind, None, &machine, &NodeSet::new()).unwrap();
    let refused = bound.home(&machine).unwrap_err().to_string();
    assert!(refused.contains("cpus 2,3 of node 1 are isolated"), "{refused}");
    assert!(refused.ends_with("as in --cpus 2"), "{refused}");
    let left_out = |choice: &str, policy| {
        let nodes = &choice.parse().unwrap();
        let request = BindRequest { nodes, near: None, policy, cpus: None };
        let bound = request.resolve(None, &machine, &NodeSet::new()).unwrap();
        bound.isolated.to_string()
    };
    assert_eq!(left_out("auto", PolicyKind::Bind), "1", "node 2 has a cpu that is not isolated");
    assert_eq!(left_out("auto", PolicyKind::Interleave), "", "it uses the memory of all nodes");
    assert_eq!(left_out("0", PolicyKind::Bind), "");
}
