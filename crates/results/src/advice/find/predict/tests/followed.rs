//! Placements for which the cores were simulated in the same run.

use super::*;

#[test]
fn another_placement_costs_the_waits_of_the_followed_cores() {
    let mut program = program(400, Sharing::Private, 0);
    let longer = |thread: &mut ProgramThread, longer_ns| {
        let each = [Placed::Interleaved(vec![0, 1]), Placed::Bound(1)];
        thread.elsewhere = each.map(|placed| Elsewhere { placed, longer_ns }).to_vec();
    };
    program.threads.iter_mut().for_each(|thread| longer(thread, 0));
    assert_eq!(change(&interleave(), &program), 0.0);
    longer(&mut program.threads[3], 550);
    let found = change(&interleave(), &program);
    assert!((found - 50.0).abs() < 0.1, "{found}: the longest thread decides");
    let bound = change(&Candidate::Bind { node: 1 }, &program);
    assert!(bound > 50.0, "{bound}: and three threads have two cpus");
    assert!(change(&Candidate::Bind { node: 0 }, &program) < 50.0, "nobody followed them so");
    let other = Candidate::WeightedInterleave { weights: vec![2, 1] };
    assert!(change(&other, &program) < 0.0, "nobody followed them so");
}

#[test]
fn pages_with_their_second_users_cost_the_waits_of_the_followed_cores() {
    let mut program = program(1000, Sharing::Read, 1);
    let touched = Candidate::FirstTouch { line: None, region: String::new() };
    let guessed = change(&touched, &program);
    for thread in &mut program.threads {
        let longer_ns = if thread.cpu_node == 1 { -60 } else { 0 };
        thread.elsewhere = vec![Elsewhere { placed: Placed::Users, longer_ns }];
    }
    let found = change(&touched, &program);
    assert!(guessed < -10.0 && (-6.0..-3.0).contains(&found), "{guessed} and {found}");
}

#[test]
fn huge_pages_save_the_counted_walks_where_walks_cost_time() {
    let mut program = program(0, Sharing::Private, 0);
    let huge = |longer_ns| Elsewhere { placed: Placed::Huge, longer_ns };
    program.threads.iter_mut().for_each(|thread| thread.elsewhere = vec![huge(-300)]);
    assert!(advice(&program, machine()).best().is_none(), "walks cost nothing");
    for nodes in [1, 2] {
        let MachineCosts { nodes: ids, .. } = machine();
        let has_memory = vec![true; nodes];
        let nodes = ids[..nodes].to_vec();
        let walking = MachineCosts { nodes, has_memory, walks: true, ..machine() };
        let advice = advice(&program, walking);
        let best = advice.best().expect("a gain");
        assert_eq!(best.candidate, Candidate::HugePages, "{advice:?}");
        assert!(best.predicted.unwrap().change_percent < -25.0, "{best:?}");
    }
}

#[test]
fn threads_are_packed_where_one_node_has_no_cpus_for_all_and_cores_were_followed() {
    let mut program = program(0, Sharing::Private, 0);
    let pack = |program: &ProgramMemory| {
        let found = advice(program, machine());
        found.options.iter().find(|of| of.candidate == Candidate::Pack).cloned()
    };
    assert_eq!(pack(&program), None, "nobody followed them");
    let packed = Elsewhere { placed: Placed::Packed, longer_ns: -300 };
    program.threads.iter_mut().for_each(|of| of.elsewhere = vec![packed.clone()]);
    let found = pack(&program).expect("four threads, two cpus a node").predicted.unwrap();
    assert!(found.change_percent < -25.0, "{found:?}");
    let region = &mut program.regions[0];
    region.accesses.iter_mut().for_each(|by| by.memory_node = 1);
    // Threads 0 and 1 would be on node 0, threads 2 and 3 on node 1.
    let used = |by| Use::then(&Candidate::Pack, region, by, &machine()).parts[0];
    assert_eq!([0, 1].map(|at| used(&region.accesses[at])), [(0, 1.0), (1, 1.0)]);
    program.threads.truncate(2);
    assert_eq!(pack(&program), None, "they are bound to a node instead");
}
