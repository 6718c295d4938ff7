mod requests;

use numalab_topology::{Allowed, Cpu, CpuSet, Distances, Node};
use proptest::prelude::*;

use super::*;
use crate::identity::{LOCAL_RANK, LOCAL_SIZE, detect};
use crate::near::Near;

fn rank(rank: usize, size: usize) -> Task {
    Task::of_own(rank, size)
}

/// Returns the rank described by environment variables `A=1 B=2`.
fn task(variables: &str) -> Task {
    let look = |name: &str| {
        let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
    };
    detect(&look, None).unwrap().unwrap()
}

/// Returns a rank on one of two hosts with four ranks each, distributed in turn.
fn cyclic(host: usize, local: usize) -> Task {
    task(&format!(
        "SLURM_STEP_ID=0 SLURM_PROCID={} SLURM_STEP_NUM_TASKS=8 SLURM_LOCALID={local} \
         SLURM_NODEID={host} SLURM_STEP_TASKS_PER_NODE=4(x2)",
        2 * local + host
    ))
}

/// Returns a machine with these nodes of memory, without cpus.
fn with_memory(nodes: &str) -> Machine {
    let nodes: NodeSet = nodes.parse().unwrap();
    let node = |id| Node { id, online: true, memory_bytes: 1 << 30, ..Node::default() };
    Machine { nodes: nodes.iter().map(node).collect(), ..Machine::default() }
}

fn node_of(choice: &str, task: &Task) -> Result<String, BindError> {
    let binding = Binding::of(
        &choice.parse()?,
        PolicyKind::Bind,
        Some(task),
        &with_memory("0-7"),
        &NodeSet::new(),
    )?;
    Ok(binding.policy.nodes().to_string())
}

fn nodes_of(choice: &str, present: &str, ranks: usize) -> Result<Vec<String>, BindError> {
    let (choice, machine) = (choice.parse()?, with_memory(present));
    (0..ranks)
        .map(|number| {
            let task = rank(number, ranks);
            Binding::of(&choice, PolicyKind::Bind, Some(&task), &machine, &NodeSet::new())
                .map(|binding| binding.policy.nodes().to_string())
        })
        .collect()
}

/// Origin: `numactl -N 1` of numactl 2.0.16 ends with `<1> is invalid` if node 1 has no memory.
#[test]
fn other_tools_know_cpus_by_their_node_only_if_it_has_memory() {
    let home = |node| Home { node: NodeId(node), cpus: "2,3".parse().unwrap() };
    assert_eq!(home(0).known_node(&with_memory("0")), Some(NodeId(0)));
    assert_eq!(home(1).known_node(&with_memory("0")), None);
    let cpus = Some(home(1).cpus);
    let policy = MemoryPolicy::Bind(NodeSet::from_iter([NodeId(0)]));
    let binding = Binding { rank: 0, policy, cpus_of: None, cpus };
    let said = binding.lines(&["true".to_owned()]);
    assert!(said.contains("numactl --physcpubind=2,3 --membind=0 true"), "{said}");
}

#[test]
fn one_node_is_for_all_ranks_a_list_for_each_in_order() {
    assert_eq!(nodes_of("3", "0-3", 2).unwrap(), ["3", "3"]);
    assert_eq!(nodes_of("2,0,2,1", "0-3", 4).unwrap(), ["2", "0", "2", "1"]);
    assert_eq!(nodes_of("0-3", "0-3", 4).unwrap(), ["0", "1", "2", "3"]);
}

#[test]
fn auto_cycles_through_the_present_nodes_with_gaps_in_their_numbers() {
    for all in ["auto", "all"] {
        assert_eq!(nodes_of(all, "0,8,252", 5).unwrap(), ["0", "8", "252", "0", "8"]);
    }
    assert_eq!(nodes_of("!8", "0,8,252", 3).unwrap(), ["0", "252", "0"]);
    let none = nodes_of("!0-252", "0,8,252", 3).unwrap_err();
    assert_eq!(none, BindError::NoneLeft { present: "0,8,252".parse().unwrap() });
}

#[test]
fn auto_leaves_out_memory_without_cpus_unless_there_is_no_other_and_weights_that_of_devices() {
    let chosen = |nodes: &[(u32, &str)], choice: &str, kind| {
        let mut machine = Machine::default();
        for &(id, cpus) in nodes {
            let (id, cpus): (_, CpuSet) = (NodeId(id), cpus.parse().unwrap());
            let cpu = |cpu| Cpu { id: cpu, online: true, node: Some(id), ..Cpu::default() };
            machine.cpus.extend(cpus.iter().map(cpu));
            let node = Node { id, online: true, memory_bytes: 1 << 30, cpus, ..Node::default() };
            machine.nodes.push(node);
        }
        let choice = choice.parse().unwrap();
        let of_devices = "10".parse().unwrap();
        let turn = |local| Binding::of(&choice, kind, Some(&rank(local, 3)), &machine, &of_devices);
        let nodes: Vec<_> =
            (0..3).map(|local| turn(local).unwrap().policy.nodes().to_string()).collect();
        nodes.join(" ")
    };
    let gpus = [(0, "0-3"), (1, "4-7"), (2, ""), (10, "")];
    assert_eq!(chosen(&gpus, "auto", PolicyKind::Bind), "0 1 0");
    assert_eq!(chosen(&gpus, "all", PolicyKind::Bind), "0 1 2");
    assert_eq!(chosen(&gpus, "auto", PolicyKind::Interleave), "0,1 0,1 0,1");
    assert_eq!(chosen(&gpus, "auto", PolicyKind::Weighted), "0-2 0-2 0-2");
    assert_eq!(chosen(&gpus, "all", PolicyKind::Weighted), "0-2,10 0-2,10 0-2,10");
    assert_eq!(chosen(&gpus, "2", PolicyKind::Bind), "2 2 2");
    assert_eq!(chosen(&[(1, ""), (3, "")], "auto", PolicyKind::Bind), "1 3 1");
}

#[test]
fn auto_follows_the_cpus_that_a_rank_may_run_on() {
    let machine = |allowed: &str| {
        let mut machine = Machine::default();
        // Nodes 0 and 2 have memory, node 3 is memory of a device.
        for (id, cpus, gib) in [(0, "0-3", 1), (1, "4-7", 0), (2, "8-11", 1), (3, "", 1)] {
            let (id, cpus): (_, CpuSet) = (NodeId(id), cpus.parse().unwrap());
            let cpu = |cpu| Cpu { id: cpu, online: true, node: Some(id), ..Cpu::default() };
            machine.cpus.extend(cpus.iter().map(cpu));
            let (online, memory_bytes) = (true, gib << 30);
            machine.nodes.push(Node { id, online, memory_bytes, cpus, ..Node::default() });
        }
        let rows = [[10, 20, 40, 80], [20, 10, 12, 11], [40, 12, 10, 80], [80, 11, 80, 10]];
        machine.distances = Distances::from_rows(&rows.map(Vec::from)).unwrap();
        let cpus = allowed.parse().unwrap();
        machine.allowed = Some(Allowed { cpus, ..Allowed::default() });
        machine
    };
    let node = |allowed: &str, local, kind| {
        let of_devices = NodeSet::from_iter([NodeId(3)]);
        let (choice, task) = (NodeChoice::Auto, rank(local, 4));
        let binding = Binding::of(&choice, kind, Some(&task), &machine(allowed), &of_devices);
        binding.unwrap().policy.nodes().to_string()
    };
    assert_eq!(node("0-11", 0, PolicyKind::Bind), "0");
    assert_eq!(node("0-11", 1, PolicyKind::Bind), "2");
    for local in 0..4 {
        assert_eq!(node("9", local, PolicyKind::Bind), "2", "bound by its launcher");
        assert_eq!(node("4-7", local, PolicyKind::Preferred), "2", "node 3 is a device's");
    }
    assert_eq!(node("9", 0, PolicyKind::Interleave), "0,2");
}

#[test]
fn a_list_of_another_length_than_the_ranks_is_refused() {
    let error = nodes_of("0,1,2", "0-3", 4).unwrap_err();
    assert!(error.to_string().contains("3 nodes for 4 ranks"), "{error}");
    let choice = "0,1".parse().unwrap();
    let error = Binding::of(&choice, PolicyKind::Bind, None, &with_memory("0-3"), &NodeSet::new())
        .unwrap_err();
    assert!(error.to_string().contains("no launcher says which rank"), "{error}");
}

#[test]
fn nodes_in_turn_go_by_the_local_rank_however_ranks_are_distributed() {
    for host in 0..2 {
        for local in 0..4 {
            let task = cyclic(host, local);
            assert_eq!(node_of("0-3", &task).unwrap(), local.to_string());
            assert_eq!(node_of("auto", &task).unwrap(), local.to_string());
        }
    }
}

#[test]
fn a_list_for_all_ranks_goes_by_rank_and_one_for_a_host_by_local_rank() {
    let task = cyclic(1, 2);
    assert_eq!(node_of("0,1,2,3,4,5,6,7", &task).unwrap(), "5");
    assert_eq!(node_of("4,5,6,7", &task).unwrap(), "6");
    let error = node_of("0,1", &task).unwrap_err().to_string();
    assert!(error.contains("4 ranks on this host and 8 ranks in all"), "{error}");
}

#[test]
fn a_rank_without_a_local_number_is_refused_unless_the_user_gives_it() {
    let unknown = "PMIX_RANK=3 PMIX_NAMESPACE=prterun-a@1";
    for choice in ["auto", "0,1"] {
        let error = node_of(choice, &task(unknown)).unwrap_err().to_string();
        assert!(error.contains("rank 3") && error.contains(LOCAL_RANK), "{error}");
    }
    assert_eq!(node_of("2", &task(unknown)).unwrap(), "2");
    let given = task(&format!("{unknown} NUMALAB_LOCAL_RANK=1"));
    assert_eq!(node_of("auto", &given).unwrap(), "1");
    let error = node_of("0,1", &given).unwrap_err().to_string();
    assert!(error.contains(LOCAL_SIZE), "{error}");
    let given = task(&format!("{unknown} NUMALAB_LOCAL_RANK=1 NUMALAB_LOCAL_RANKS=2"));
    assert_eq!(node_of("4,5", &given).unwrap(), "5");
}

#[test]
fn a_forbidden_node_is_distinguished_from_a_missing_one() {
    let allowed = Allowed { memory_nodes: "1".parse().unwrap(), ..Allowed::default() };
    let machine = Machine { allowed: Some(allowed), ..with_memory("0-1") };
    let refused = |choice: &str| {
        let choice = choice.parse().unwrap();
        Binding::of(&choice, PolicyKind::Bind, None, &machine, &NodeSet::new())
            .unwrap_err()
            .to_string()
    };
    assert!(refused("0").contains("memory of node 0: its cpuset.mems allows 1"));
    assert!(refused("7").contains("node 7 does not exist here"));
}

#[test]
fn a_missing_node_is_named_with_those_that_exist() {
    let error = nodes_of("1", "0,8", 1).unwrap_err().to_string();
    assert!(error.contains("node 1") && error.contains("0,8"), "{error}");
}

#[test]
fn the_default_is_node_0_with_the_lines_of_the_suite() {
    let machine = with_memory("0-1");
    let binding =
        Binding::of(&NodeChoice::Unsaid, PolicyKind::Bind, None, &machine, &NodeSet::new())
            .unwrap();
    let command = ["./numa_bench".to_owned(), "--size=512".to_owned()];
    assert_eq!(
        binding.lines(&command),
        "[Rank 0] Binding to NUMA domain 0\n\
         [Rank 0] Executing ./numa_bench --size=512, equivalent to: numactl --membind=0 ./numa_bench --size=512\n"
    );
    let script = ["sh", "-c", "a; b"].map(str::to_owned);
    assert!(binding.lines(&script).ends_with(" sh -c 'a; b'\n"), "{}", binding.lines(&script));
    assert!(binding.other_tools(&script).contains("map_mem:0 sh -c 'a; b'\n"));
}

#[test]
fn a_node_that_cannot_be_bound_to_is_refused_with_the_reason() {
    let mut machine = with_memory("0-2");
    machine.nodes[0].memory_bytes = 0;
    let cpus = "0".parse().unwrap();
    machine.allowed =
        Some(Allowed { cpus, memory_nodes: NodeSet::from_iter([NodeId(1)]), ..Allowed::default() });
    let said = |choice: &str| {
        let choice = choice.parse().unwrap();
        let bound = Binding::of(&choice, PolicyKind::Bind, None, &machine, &NodeSet::new());
        bound.unwrap_err().to_string()
    };
    assert_eq!(said("0"), "--numa: node 0 has no memory: expected one of 1");
    assert!(said("2").contains("may not use memory of node 2: its cpuset.mems allows 1"));
    assert_eq!(said("7"), "--numa: node 7 does not exist here: expected one of 1");
}

#[test]
fn spreading_policies_take_all_named_nodes_whatever_the_rank() {
    let (choice, machine) = ("0,2".parse().unwrap(), with_memory("0-3"));
    let of = |kind| {
        Binding::of(&choice, kind, Some(&rank(5, 8)), &machine, &NodeSet::new()).unwrap().policy
    };
    let nodes: NodeSet = "0,2".parse().unwrap();
    assert_eq!(of(PolicyKind::Interleave), MemoryPolicy::Interleave(nodes.clone()));
    assert_eq!(of(PolicyKind::Weighted), MemoryPolicy::WeightedInterleave(nodes));
}

#[test]
fn several_nodes_are_preferred_together_without_a_launcher_or_where_asked_for() {
    let (choice, machine) = ("0,2".parse().unwrap(), with_memory("0-3"));
    let of = |kind, task: Option<Task>| {
        Binding::of(&choice, kind, task.as_ref(), &machine, &NodeSet::new()).unwrap()
    };
    let many = MemoryPolicy::Preferred("0,2".parse().unwrap());
    let alone = of(PolicyKind::Preferred, None);
    assert_eq!(alone.policy, many);
    assert!(alone.lines(&[]).contains("numactl --preferred-many=0,2"), "{}", alone.lines(&[]));
    assert_eq!(of(PolicyKind::PreferredMany, Some(rank(5, 8))).policy, many);
    let of_rank = of(PolicyKind::Preferred, Some(rank(1, 2))).policy;
    assert_eq!(of_rank, MemoryPolicy::Preferred(NodeSet::from_iter([NodeId(2)])));
}

proptest! {
    #[test]
    fn any_text_is_a_choice_or_an_error_that_quotes_it(text in "[0-9a-z,:!-]{0,12}") {
        match text.parse::<NodeChoice>() {
            Ok(NodeChoice::List(nodes)) => prop_assert!(!nodes.is_empty()),
            Ok(_) => prop_assert!(text == "auto" || text == "all" || text.starts_with('!')),
            Err(error) => prop_assert!(error.to_string().contains(&text)),
        }
    }
}

#[test]
fn cpus_of_nodes_without_memory_are_named() {
    let mut machine = with_memory("0-1");
    let cpu =
        |id: u32| Cpu { id: CpuId(id), online: true, node: Some(NodeId(id / 2)), ..Cpu::default() };
    machine.cpus = (0..4).map(cpu).collect();
    assert!(cpus_without_memory(&machine).is_empty());
    machine.nodes[1].memory_bytes = 0;
    assert_eq!(cpus_without_memory(&machine).to_string(), "2,3");
}
