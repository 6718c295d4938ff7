use numalab_host::Interrupt;
use numalab_topology::Distances;

use super::*;
use crate::context::Settings;
use crate::test_machines::machine;

fn cpus(machine: &Machine) -> Option<(u32, u32)> {
    BalancingProbe::cpus(machine).map(|(from, to)| (from.0, to.0))
}

#[test]
fn memory_moves_from_the_first_cpu_to_the_node_farthest_from_it() {
    assert_eq!(cpus(&machine(3, 2)), Some((0, 4)), "node 2 is 22 away, node 1 only 21");
    let mut near_last = machine(3, 1);
    let rows = [vec![10, 40, 20], vec![40, 10, 20], vec![20, 20, 10]];
    near_last.distances = Distances::from_rows(&rows).unwrap();
    assert_eq!(cpus(&near_last), Some((0, 1)));
}

#[test]
fn on_one_node_another_cpu_is_taken_and_nothing_can_move() {
    let (from, to) = cpus(&machine(1, 2)).unwrap();
    assert_eq!(from, 0);
    assert_eq!(machine(1, 2).cpu(CpuId(to)).unwrap().node, Some(NodeId(0)));
    assert_eq!(cpus(&Machine::default()), None);
    let mut single = machine(1, 1);
    single.cpus.truncate(1);
    assert_eq!(cpus(&single), Some((0, 0)));
}

#[test]
fn cpus_that_are_offline_take_no_part() {
    let mut machine = machine(2, 1);
    machine.cpus[0].online = false;
    machine.cpus[1].online = false;
    assert_eq!(cpus(&machine), Some((2, 3)));
}

#[test]
fn without_distances_every_other_node_is_far() {
    let mut machine = machine(2, 2);
    machine.distances = Distances::default();
    let (from, to) = cpus(&machine).unwrap();
    let node = |cpu| machine.cpu(CpuId(cpu)).unwrap().node;
    assert_eq!((node(from), node(to)), (Some(NodeId(0)), Some(NodeId(1))));
}

#[test]
fn given_cpus_must_be_online() {
    let mut machine = machine(2, 1);
    machine.cpus[3].online = false;
    let settings = Settings { seed: 1, precision: 0.5, budget: Duration::from_secs(1) };
    let context = MeasureContext::new(machine, settings, Interrupt::never()).unwrap();
    let probe = |from: Option<u32>, to: Option<u32>| {
        let time = Duration::from_secs(1);
        BalancingProbe::on(&context, 4096, time, from.map(CpuId), to.map(CpuId))
    };
    let usual = probe(None, None).unwrap();
    assert_eq!((usual.from, usual.to), (CpuId(0), CpuId(1)));
    assert_eq!((usual.size_bytes, usual.time), (4096, Duration::from_secs(1)));
    let given = probe(Some(2), Some(0)).unwrap();
    assert_eq!((given.from, given.to), (CpuId(2), CpuId(0)));
    let refused = probe(None, Some(3)).unwrap_err().to_string();
    assert_eq!(refused, "cpu 3 does not exist here: expected one of 0-2");
    let refused = probe(Some(9), None).unwrap_err().to_string();
    assert_eq!(refused, "cpu 9 does not exist here: expected one of 0-2");
}
