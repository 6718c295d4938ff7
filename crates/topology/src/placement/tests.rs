use super::*;
use crate::emulate::{EmulatedNodes, EmulationSpec};
use crate::id::NodeId;
use crate::uniform::UniformMachine;

/// Returns a machine of four nodes with two cpus each.
fn machine() -> Machine {
    let base = UniformMachine::of_packages(4, 8, 4 << 30);
    EmulationSpec::new(EmulatedNodes::Equal(4)).emulate(&base.build().unwrap()).unwrap()
}

fn placement(settings: &[(&str, &str)]) -> Result<Placement, PlacementError> {
    let value = |name: &str| settings.iter().find(|of| of.0 == name).map(|of| of.1.to_owned());
    Placement::of(value, &machine())
}

#[test]
fn settings_are_read_and_written_in_one_form() {
    let cpus = |settings| placement(settings).unwrap().cpus.unwrap().to_string();
    assert_eq!(cpus(&[("cpus", "!0-3")]), "4-7");
    assert_eq!(cpus(&[("nodes", "1,3")]), "2,3,6,7");
    assert_eq!(placement(&[]), Ok(Placement::default()));
    let policies = [
        ("local", "local"),
        ("bind:1", "bind:1"),
        ("preferred:3", "preferred:3"),
        ("preferred:0,1", "preferred:0,1"),
        ("interleave", "interleave:0-3"),
        ("weighted:!0", "weighted:1-3"),
    ];
    for (text, shown) in policies {
        let of = placement(&[("nodes", "0"), ("policy", text)]).unwrap();
        let settings: Vec<(&str, String)> = of.settings().collect();
        assert_eq!(settings, [("nodes", "0".to_owned()), ("policy", shown.to_owned())]);
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(placement(&settings), Ok(of));
    }
}

#[test]
fn missing_subjects_are_refused_with_the_present_ones() {
    for (settings, words) in [
        (&[("cpus", "9")][..], "cpus: 9: expected some of 0-7"),
        (&[("nodes", "x")], "nodes: x: expected some of 0-3"),
        (&[("policy", "bind:7")], "policy: 7: expected some of 0-3"),
        (&[("policy", "near")], "policy: near: expected one of local, bind"),
        (&[("policy", "local:0")], "policy: local:0: expected one of local, bind"),
        (&[("policy", "bind")], "with nodes of 0-3 as in bind:0"),
        (&[("cpus", "0"), ("nodes", "0")], "either cpus or nodes, not both"),
    ] {
        let message = placement(settings).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn every_tool_that_can_is_given_the_same_placement() {
    let bound = placement(&[("nodes", "1"), ("policy", "bind:1")]).unwrap();
    let lines = bound.commands("./a");
    let lines: Vec<&str> = lines.iter().map(|(_, line)| line.as_str()).collect();
    assert_eq!(
        lines,
        [
            "numalab bind -q --numa=1 --cpus node -- ./a",
            "numactl --cpunodebind=1 --membind=1 ./a",
            "srun -n1 --cpu-bind=map_ldom:1 --mem-bind=map_mem:1 ./a",
            "OMP_NUM_THREADS=2 OMP_PLACES='{2}:2' OMP_PROC_BIND=close ./a",
            "taskset -c 2,3 ./a",
            "systemd-run --scope -p AllowedCPUs=2,3 -p AllowedMemoryNodes=1 ./a",
            "systemd-run --pipe --same-dir -p CPUAffinity=2,3 -p NUMAPolicy=bind -p NUMAMask=1 ./a",
            "flux run -n1 -o cpu-affinity=map:2,3 numactl --membind=1 ./a",
            "torchrun --nproc-per-node=1 --no-python numactl --cpunodebind=1 --membind=1 ./a",
            "kubelet --cpu-manager-policy=static --memory-manager-policy=Static \
             --topology-manager-policy=single-numa-node --reserved-cpus=CPUS \
             --reserved-memory=NODE:memory=SIZE, and a pod with resources.limits of whole cpus and \
             memory",
            "virsh numatune GUEST --mode strict --nodeset 1 --config",
            "xl create GUEST.cfg 'cpus=[\"node:1\"]', with an entry for each vCPU",
        ]
    );
    let tools = |settings: &[(&str, &str)]| {
        let lines = placement(settings).unwrap().commands("./a").into_iter();
        lines.map(|(tool, line)| (tool, line.replace(" ./a", ""))).collect::<Vec<_>>()
    };
    let line = |tool, line: &str| (tool, line.to_owned());
    assert_eq!(
        tools(&[("policy", "weighted")]),
        [
            line("numactl", "numactl --weighted-interleave=0-3"),
            line("srun", "srun -n1 numactl --weighted-interleave=0-3"),
            line(
                "torchrun",
                "torchrun --nproc-per-node=1 --no-python numactl --weighted-interleave=0-3"
            ),
        ]
    );
    assert!(tools(&[("policy", "preferred:2")]).contains(&line(
        "systemd",
        "systemd-run --pipe --same-dir -p NUMAPolicy=preferred -p NUMAMask=2"
    )));
    let masked = tools(&[("cpus", "0-2,7")]);
    assert!(masked.contains(&line("srun", "srun -n1 --cpu-bind=mask_cpu:0x87")), "{masked:?}");
    assert!(masked.contains(&line("numactl", "numactl --physcpubind=0-2,7")), "{masked:?}");
}

#[test]
fn preferring_several_nodes_is_another_option_than_one() {
    let options = |nodes: &[u32]| {
        let nodes = nodes.iter().map(|node| NodeId(*node)).collect();
        Placement::from(MemoryPolicy::Preferred(nodes)).numactl()
    };
    assert_eq!(options(&[2]), "--preferred=2");
    assert_eq!(options(&[0, 2]), "--preferred-many=0,2");
}
