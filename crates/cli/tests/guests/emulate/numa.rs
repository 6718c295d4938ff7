//! Programs that use libnuma: they see the emulated machine, and place their pages on it.

use super::{MACHINE, block_accesses, of_nodes};
use crate::programs::lab::lab;

#[test]
fn libnuma_sees_the_machine_and_its_pages_are_where_it_asks() {
    let Some(lab) = lab() else { return };
    let output = lab.run(&MACHINE, &[&lab.program("libnuma")]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = "nodes to 1, cpus 4, distance 20\non node 1: 1 1 -14\n\
                    moved: -1 No such device, 0\nthen: 0 1 -14\nmigrated: 0 0 -14\nin turn: 1\nruns on node 1\n\
                    read: -14 -14 -14\nshared: 0 -2 -14\nwritten: 1 -14 -14\npopulated: 1 1 -14\n\
                    bound to node 2: Invalid argument\n\
                    strictly to node 0: Input/output error\n";
    assert_eq!(text, expected, "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn numactl_shows_the_machine_and_gives_a_program_cpus_and_policy() {
    let Some(lab) = lab() else { return };
    let output = lab.run(&MACHINE, &["numactl", "-H"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in ["available: 2 nodes (0-1)", "node 1 cpus: 2 3", "node 1 size: 1024 MB"] {
        assert!(text.contains(line), "{text}");
    }
    let placement = lab.program("placement");
    let bound = ["numactl", "--cpunodebind=1", "--membind=1", &placement, "first"];
    let accesses = block_accesses(&lab.report_of(&bound));
    let on_one = of_nodes(&accesses, 1, 1);
    assert!(on_one > 0 && accesses.iter().map(|(_, count)| count).sum::<u64>() == on_one);
    let turns = ["numactl", "--interleave=all", &placement, "first"];
    let accesses = block_accesses(&lab.report_of(&turns));
    let of_memory = |node| of_nodes(&accesses, 0, node) + of_nodes(&accesses, 1, node);
    assert_eq!(of_memory(0), of_memory(1), "{accesses:?}");
    // A shell that does not use libnuma starts a program that does.
    let shell = ["sh", "-c", "numactl --preferred=1 numactl -s"];
    let text = String::from_utf8_lossy(&lab.run(&MACHINE, &shell).stdout).into_owned();
    assert!(text.contains("preferred node: 1") && text.contains("physcpubind: 0 1 2 3"), "{text}");
}

/// The process's status and its sysfs show the machine, which numalab looks at before it binds a
/// command.
#[test]
fn numalab_binds_a_command_to_nodes_that_the_host_may_not_have() {
    let Some(lab) = lab() else { return };
    let allowed = ["grep", "_allowed", "/proc/self/status"];
    let text = String::from_utf8_lossy(&lab.run(&MACHINE, &allowed).stdout).into_owned();
    let expected = "Cpus_allowed:\t0000000f\nCpus_allowed_list:\t0-3\nMems_allowed:\t00000003\n\
                    Mems_allowed_list:\t0-1\n";
    assert_eq!(text, expected);
    let numalab = env!("CARGO_BIN_EXE_numalab");
    let shown = lab.run(&MACHINE, &[numalab, "topology"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.starts_with("2 nodes, 2 packages, 4 cores, 4 cpus, "), "{shown}");
    let program = lab.program("placement");
    let bound = [numalab, "bind", "--numa", "1", "--cpus", "node", "--", &program, "first"];
    let accesses = block_accesses(&lab.report_of(&bound));
    let on_one = of_nodes(&accesses, 1, 1);
    assert!(on_one > 0, "{accesses:?}");
    assert_eq!(accesses.iter().map(|(_, count)| count).sum::<u64>(), on_one, "{accesses:?}");
}

/// Regression: the host's kernel refused cpus that only the emulated machine has.
#[test]
fn programs_bind_threads_to_cpus_that_the_host_may_not_have() {
    let Some(lab) = lab() else { return };
    let nproc = |cpus: &str| lab.run(&MACHINE, &["taskset", "-c", cpus, "nproc"]);
    for (cpus, expected) in [("3", "1\n"), ("0,2,3", "3\n")] {
        assert_eq!(String::from_utf8_lossy(&nproc(cpus).stdout), expected, "{cpus}");
    }
    let refused = nproc("9");
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && words.contains("Invalid argument"), "{words}");
}
