use super::*;

const MS: u64 = 1_000_000_000;

/// Returns two nodes of two cpus, which threads take in turn.
fn schedule() -> Schedule {
    Schedule::new(&[0, 0, 1, 1], &[0, 2, 1, 3])
}

/// Runs compute-only threads until all cpus have reached a time; returns each thread's run time.
fn run(schedule: &mut Schedule, until_ps: u64) -> Vec<u64> {
    let mut ran = vec![0; schedule.seats()];
    while let Some(turn) = schedule.next().filter(|turn| turn.now_ps < until_ps) {
        let end_ps = turn.until_ps.min(until_ps);
        ran[turn.seat] += end_ps - turn.now_ps;
        schedule.yields(turn.seat, end_ps);
    }
    ran
}

#[test]
fn threads_take_cpus_in_the_given_order_and_reuse_free_seats() {
    let mut schedule = schedule();
    let seats: Vec<usize> = (0..5).map(|_| schedule.begins(0)).collect();
    assert_eq!(seats, [0, 1, 2, 3, 4]);
    let cpus: Vec<usize> = (0..4).map(|seat| schedule.seats[seat].cpu).collect();
    assert_eq!(cpus, [0, 2, 1, 3]);
    schedule.ends(1);
    assert_eq!(schedule.begins(9), 1);
}

#[test]
fn the_cpu_that_is_furthest_behind_runs_and_no_further_than_a_quantum_ahead() {
    let mut schedule = schedule();
    (0..3).for_each(|_| _ = schedule.begins(0));
    let first = schedule.next().unwrap();
    assert_eq!((first.seat, first.until_ps), (0, QUANTUM_PS));
    schedule.yields(0, QUANTUM_PS + 9);
    assert_eq!(schedule.next().unwrap().cpu, 1, "of those that are as far the first cpu");
    schedule.yields(2, 3);
    let ahead = [(0, QUANTUM_PS + 9), (2, 0), (2, 1)];
    assert_eq!(ahead.map(|(seat, now_ps)| schedule.is_ahead(seat, now_ps)), [true, false, true]);
    assert!(run(&mut schedule, MS)[..2].iter().all(|ran| MS - ran < 2 * QUANTUM_PS));
}

#[test]
fn a_single_thread_runs_without_limit() {
    let mut schedule = schedule();
    schedule.begins(5);
    let turn = schedule.next().unwrap();
    assert_eq!((turn.now_ps, turn.until_ps), (5, u64::MAX));
    schedule.waits(0, 9);
    assert_eq!(schedule.next(), None);
}

#[test]
fn threads_of_one_cpu_share_its_time_until_another_one_of_the_node_is_idle() {
    let mut schedule = Schedule::new(&[0, 0, 0], &[0, 1, 2]);
    (0..4).for_each(|_| _ = schedule.begins(0));
    let slice_ps = schedule.slice_ps;
    assert_eq!(slice_ps, 2 * SLICE_PS, "of three cpus");
    let end_ps = 20 * slice_ps;
    let ran = run(&mut schedule, end_ps);
    assert_eq!(ran, [end_ps / 2, end_ps, end_ps, end_ps / 2]);
    schedule.ends(1);
    let ran = run(&mut schedule, 2 * end_ps);
    assert_eq!([0, 2, 3].map(|seat| ran[seat]), [end_ps; 3], "the idle cpu took one");
}

#[test]
fn a_sleeper_wakes_when_all_cpus_have_reached_its_time() {
    let mut schedule = schedule();
    (0..2).for_each(|_| _ = schedule.begins(0));
    schedule.sleeps(0, 10, 4 * MS);
    let turn = schedule.next().unwrap();
    assert_eq!((turn.seat, turn.until_ps), (1, 4 * MS + QUANTUM_PS));
    schedule.yields(1, 4 * MS + 1);
    let turn = schedule.next().unwrap();
    assert_eq!((turn.seat, turn.now_ps), (0, 4 * MS));
    schedule.waits(1, 5 * MS);
    schedule.sleeps(0, 4 * MS, 9 * MS);
    assert_eq!(schedule.next().unwrap().now_ps, 9 * MS, "nobody else is there");
}

#[test]
fn a_woken_thread_resumes_at_once_on_its_cpu_or_an_idle_one_of_its_node() {
    let mut schedule = Schedule::new(&[0, 0], &[0, 1]);
    (0..3).for_each(|_| _ = schedule.begins(0));
    schedule.waits(0, 20);
    assert_eq!(schedule.next().unwrap().seat, 1, "which is behind");
    schedule.goes_on(0, 500);
    assert!(schedule.is_ready(0));
    schedule.waits(2, 30);
    schedule.goes_on(2, 400);
    schedule.waits(1, 600);
    // The cpu has seats 2 and 0 in some order; the idle cpu takes the queued one.
    let cpus = [0, 2].map(|seat| schedule.seats[seat].cpu);
    assert_ne!(cpus[0], cpus[1]);
}

#[test]
fn an_idle_cpu_takes_its_time_to_run_a_thread_that_another_one_wakes() {
    let mut schedule = Schedule::new(&[0, 0], &[0, 1]).waking_in(9_000);
    (0..2).for_each(|_| _ = schedule.begins(0));
    schedule.waits(1, 20);
    schedule.is_woken(1, 500);
    assert_eq!(schedule.turn_of(1).map(|turn| turn.now_ps), Some(9_500));
    schedule.waits(1, 20_000);
    schedule.goes_on(1, 21_000);
    assert_eq!(schedule.turn_of(1).map(|turn| turn.now_ps), Some(21_000), "by itself");
}

#[test]
fn a_spin_ends_when_the_next_runner_has_come_there_or_the_slice_is_over() {
    let mut schedule = schedule();
    (0..2).for_each(|_| _ = schedule.begins(0));
    schedule.yields(1, 3_000);
    assert_eq!(schedule.spins_until_ps(0, 50), 3_000);
    assert_eq!(schedule.spins_until_ps(1, 3_000), 3_000, "the other one is behind");
    let mut shared = Schedule::new(&[0], &[0]);
    (0..2).for_each(|_| _ = shared.begins(0));
    shared.next();
    let slice_ps = shared.slice_ps;
    assert_eq!(shared.spins_until_ps(0, 50), slice_ps);
    shared.yields(0, slice_ps);
    assert_eq!(shared.next().unwrap().seat, 1, "which it waits for");
    shared.waits(1, slice_ps + 9);
    assert_eq!(shared.spins_until_ps(0, slice_ps + 9), slice_ps + 9, "nobody is to do anything");
}

#[test]
fn a_thread_runs_only_on_allowed_cpus() {
    let mut schedule = schedule();
    schedule.begins(0);
    schedule.allows(0, &[3], 70);
    let turn = schedule.next().unwrap();
    assert_eq!((turn.cpu, turn.now_ps), (3, 70));
    schedule.allows(0, &[64], 80);
    assert_eq!(schedule.next().unwrap().cpu, 3, "there is no such cpu");
    (1..3).for_each(|_| _ = schedule.begins(0));
    schedule.allows(1, &[2, 3], 90);
    schedule.waits(1, 95);
    schedule.goes_on(1, 99);
    assert!([2, 3].contains(&schedule.seats[1].cpu));
    // A thread that sleeps stays asleep, and wakes on a cpu that it may use.
    schedule.waits(1, 100);
    schedule.allows(1, &[0], 110);
    assert!(!schedule.is_ready(1));
    schedule.goes_on(1, 120);
    assert_eq!((schedule.is_ready(1), schedule.seats[1].cpu), (true, 0));
}

#[test]
fn after_fork_only_the_forking_thread_remains() {
    let mut schedule = schedule();
    (0..3).for_each(|_| _ = schedule.begins(0));
    schedule.yields(1, 40);
    schedule.keeps_only(1);
    assert_eq!(schedule.next().unwrap(), Turn { seat: 1, cpu: 2, now_ps: 40, until_ps: u64::MAX });
    assert_eq!(schedule.begins(50), 0);
}
