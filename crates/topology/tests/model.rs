//! The model itself: id lists, groups, serialisation.

mod any_machine;
mod machines;

use std::collections::BTreeSet;

use any_machine::any_machine;
use machines::machine;
use numalab_topology::{Allowed, Cache, CacheKind, CpuId, CpuSet, IdListError, MAX_ID, NodeSet};
use proptest::prelude::*;

fn list(text: &str) -> Vec<u32> {
    let set: CpuSet = text.parse().unwrap();
    set.iter().map(|cpu| cpu.0).collect()
}

#[test]
fn lists_are_read_in_every_form_of_the_kernel() {
    assert_eq!(list(""), Vec::<u32>::new());
    assert_eq!(list("\n"), Vec::<u32>::new());
    assert_eq!(list("7"), [7]);
    assert_eq!(list("0-3,8"), [0, 1, 2, 3, 8]);
    assert_eq!(list(" 8, 0-1 \n"), [0, 1, 8]);
    assert_eq!(list("0-6:2"), [0, 2, 4, 6]);
    assert_eq!(list("3,1-4,2"), [1, 2, 3, 4]);
}

#[test]
fn bad_lists_are_refused_quoting_the_item() {
    let refuse = |text: &str| text.parse::<NodeSet>().unwrap_err();
    assert_eq!(
        refuse("0-3,x").to_string(),
        "`x` in the node list `0-3,x`: expected a number or a range such as 0-3"
    );
    assert!(matches!(refuse("0,,1"), IdListError::Item { .. }));
    assert!(matches!(refuse("0-"), IdListError::Item { .. }));
    assert!(matches!(refuse("0-4:0"), IdListError::Item { .. }));
    assert!(matches!(refuse("3-1"), IdListError::Reversed { .. }));
    assert_eq!(
        refuse("0-4294967295").to_string(),
        format!("node 4294967295 in the list `0-4294967295` is above {MAX_ID}")
    );
}

#[test]
fn lists_are_written_shortest() {
    let write =
        |numbers: &[u32]| numbers.iter().map(|&id| CpuId(id)).collect::<CpuSet>().to_string();
    assert_eq!(write(&[]), "");
    assert_eq!(write(&[5]), "5");
    assert_eq!(write(&[1, 2]), "1,2");
    assert_eq!(write(&[3, 1, 2, 8]), "1-3,8");
}

#[test]
fn groups_are_by_number_and_keep_gaps() {
    let mut machine = machine(&[2, 2], &[true, true], &[vec![10, 20], vec![20, 10]]);
    machine.cpus[0].package = Some(9);
    machine.cpus[1].package = None;
    let groups: Vec<(u32, String)> = machine
        .packages()
        .into_iter()
        .map(|group| (group.number, group.cpus.to_string()))
        .collect();
    assert_eq!(groups, [(1, "2,3".to_owned()), (9, "0".to_owned())]);
}

#[test]
fn first_threads_are_the_first_online_ones_of_their_cores() {
    let mut machine = machine(&[4], &[true], &[vec![10]]);
    for (cpu, (core, thread)) in machine.cpus.iter_mut().zip([(0, 0), (1, 0), (0, 1), (1, 1)]) {
        (cpu.core, cpu.thread) = (Some(core), thread);
    }
    assert_eq!(machine.first_threads(), [CpuId(0), CpuId(1)]);
    machine.cpus[0].online = false;
    assert_eq!(machine.first_threads(), [CpuId(2), CpuId(1)]);
    machine.cpus[3].core = None;
    machine.cpus[1].core = None;
    assert_eq!(machine.first_threads(), [CpuId(1), CpuId(3), CpuId(2)]);
}

#[test]
fn where_only_a_second_thread_of_a_core_is_allowed_it_represents_the_core() {
    let mut machine = machine(&[6], &[true], &[vec![10]]);
    for (cpu, core) in machine.cpus.iter_mut().zip([0, 1, 2, 0, 1, 2]) {
        (cpu.core, cpu.thread) = (Some(core), u32::from(cpu.id.0 > 2));
    }
    let cpus: CpuSet = "1,3-5".parse().unwrap();
    machine.allowed = Some(Allowed { cpus, ..Allowed::default() });
    assert_eq!(machine.first_threads(), [CpuId(3), CpuId(1), CpuId(5)]);
    assert_eq!(machine.one_per_core(&machine.online_cpus()), [CpuId(0), CpuId(1), CpuId(2)]);
}

#[test]
fn data_caches_come_nearest_first_without_instruction_caches() {
    let mut machine = machine(&[1], &[true], &[vec![10]]);
    let cache = |level, kind| Cache {
        level,
        kind,
        size_bytes: None,
        line_bytes: None,
        ways: None,
        cpus: machine.nodes[0].cpus.clone(),
    };
    machine.caches = vec![
        cache(3, CacheKind::Unified),
        cache(1, CacheKind::Instruction),
        cache(1, CacheKind::Data),
    ];
    let levels: Vec<u8> =
        machine.data_caches_of(CpuId(0)).iter().map(|cache| cache.level).collect();
    assert_eq!(levels, [1, 3]);
    assert!(machine.data_caches_of(CpuId(1)).is_empty());
}

proptest! {
    #[test]
    fn lists_round_trip(numbers in proptest::collection::btree_set(0..=MAX_ID, 0..200)) {
        let set: CpuSet = numbers.iter().map(|&id| CpuId(id)).collect();
        prop_assert_eq!(&set.to_string().parse::<CpuSet>().unwrap(), &set);
        let read: BTreeSet<u32> = set.iter().map(|cpu| cpu.0).collect();
        prop_assert_eq!(read, numbers);
    }

    #[test]
    fn any_text_is_a_list_or_an_error(text in "[0-9,:\\- x]{0,24}") {
        if let Ok(set) = text.parse::<CpuSet>() {
            prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set);
        }
    }

    #[test]
    fn set_operations_agree_with_the_standard_sets(
        a in proptest::collection::btree_set(0u32..40, 0..30),
        b in proptest::collection::btree_set(0u32..40, 0..30),
    ) {
        let set = |numbers: &BTreeSet<u32>| numbers.iter().map(|&id| CpuId(id)).collect::<CpuSet>();
        let numbers = |set: &CpuSet| set.iter().map(|cpu| cpu.0).collect::<BTreeSet<u32>>();
        prop_assert_eq!(numbers(&set(&a).intersection(&set(&b))), &a & &b);
        prop_assert_eq!(numbers(&set(&a).difference(&set(&b))), &a - &b);
        prop_assert_eq!(set(&a).is_subset(&set(&b)), a.is_subset(&b));
    }

    #[test]
    fn groups_partition_the_cpus_that_have_one(machine in any_machine()) {
        let mut seen = CpuSet::new();
        for group in machine.packages() {
            prop_assert!(seen.intersection(&group.cpus).is_empty());
            seen.extend(group.cpus.iter());
        }
        let expected: CpuSet = machine.cpus.iter().map(|cpu| cpu.id).collect();
        prop_assert_eq!(seen, expected);
    }
}

#[cfg(feature = "serde")]
proptest! {
    #[test]
    fn a_machine_survives_json(machine in any_machine()) {
        let text = serde_json::to_string(&machine).unwrap();
        let read: numalab_topology::Machine = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read, machine);
    }
}

#[cfg(feature = "serde")]
#[test]
fn json_writes_sets_as_lists_and_refuses_bad_ones() {
    let set: CpuSet = "0-3,8".parse().unwrap();
    assert_eq!(serde_json::to_string(&set).unwrap(), "\"0-3,8\"");
    let error = serde_json::from_str::<CpuSet>("\"3-1\"").unwrap_err();
    assert!(error.to_string().contains("ends before it begins"), "{error}");
}
