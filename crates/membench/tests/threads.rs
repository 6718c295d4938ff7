//! Cooperation of threads: start line, ping-pong, load.

use numalab_membench::{
    Aborted, Access, Arrays, Barrier, C2cError, Isa, Kernel, Line, Ping, Pong, Stream, Throttle,
    generate,
};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

#[test]
fn no_party_leaves_the_start_line_before_all_have_arrived_in_any_round() {
    const PARTIES: u32 = 3;
    const ROUNDS: u32 = 200;
    let barrier = Barrier::new(PARTIES);
    let arrivals = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..PARTIES {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    arrivals.fetch_add(1, Ordering::Relaxed);
                    barrier.wait().unwrap();
                    let seen = arrivals.load(Ordering::Relaxed);
                    assert!(seen >= round * PARTIES, "{seen} arrivals in round {round}");
                    barrier.wait().unwrap();
                }
            });
        }
    });
    assert_eq!(arrivals.into_inner(), PARTIES * ROUNDS);
}

#[test]
fn one_party_alone_never_waits() {
    for parties in [0, 1] {
        let barrier = Barrier::new(parties);
        assert_eq!(barrier.wait(), Ok(()));
        assert_eq!(barrier.wait(), Ok(()));
    }
}

#[test]
fn an_abort_releases_present_and_later_waiters() {
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| barrier.wait());
        thread::sleep(Duration::from_millis(5));
        assert!(!barrier.is_aborted());
        barrier.abort();
        assert_eq!(waiting.join().unwrap(), Err(Aborted));
    });
    assert!(barrier.is_aborted());
    assert_eq!(barrier.wait(), Err(Aborted));
}

#[test]
fn both_halves_play_the_same_number_of_rounds_call_after_call() {
    let mut home = Line::ZERO;
    let (line, abort) = (home.as_atomic(), AtomicBool::new(false));
    thread::scope(|scope| {
        let pong = scope.spawn(|| {
            let mut pong = Pong::new(line, &abort);
            pong.rounds(50)?;
            pong.rounds(70)
        });
        let mut ping = Ping::new(line, &abort);
        let first = ping.rounds(100).unwrap();
        assert_eq!(first.rounds, 100);
        assert!(first.ticks.0 > 0);
        assert_eq!(ping.rounds(20).unwrap().rounds, 20);
        assert_eq!(pong.join().unwrap(), Ok(()));
    });
    assert_eq!(line.load(Ordering::Relaxed), 2 * 120);
}

#[test]
fn a_half_without_a_partner_ends_on_abort() {
    let (line, abort) = (AtomicU64::new(0), AtomicBool::new(true));
    let alone = Ping::new(&line, &abort).rounds(1);
    assert_eq!(alone, Err(C2cError::Aborted { rounds_done: 0 }));
    let (line, abort) = (AtomicU64::new(1), AtomicBool::new(true));
    let alone = Pong::new(&line, &abort).rounds(5);
    assert_eq!(alone, Err(C2cError::Aborted { rounds_done: 1 }));
}

#[test]
fn a_generator_runs_until_stopped_and_counts_its_work() {
    let mut lines = vec![Line::ZERO; 64];
    let (stop, counted) = (AtomicBool::new(false), AtomicU64::new(0));
    let throttle = Throttle { chunk_bytes: 10 * 64 - 1, delay_spins: 3 };
    thread::scope(|scope| {
        let lines = &mut lines;
        let (stop, counted) = (&stop, &counted);
        scope.spawn(move || {
            let arrays = Arrays::One(lines);
            let mut stream =
                Stream::new(Kernel::Write, Access::Sequential, Isa::detect(), arrays).unwrap();
            generate(&mut stream, throttle, stop, counted);
        });
        while counted.load(Ordering::Relaxed) < 64 * 64 {
            thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
    });
    let total = counted.into_inner();
    assert_eq!(total % 640, 0, "whole chunks, rounded up to lines");
    assert!(lines.iter().all(|line| line.words().iter().all(|&word| word == 3.0_f64.to_bits())));
}

#[test]
fn a_generators_count_continues_from_the_last_call_and_never_decreases() {
    let mut lines = vec![Line::ZERO; 64];
    let before = 1 << 40;
    let (stop, counted) = (AtomicBool::new(false), AtomicU64::new(before));
    let throttle = Throttle { chunk_bytes: 640, delay_spins: 0 };
    thread::scope(|scope| {
        let (lines, stop, counted) = (&mut lines, &stop, &counted);
        scope.spawn(move || {
            let arrays = Arrays::One(lines);
            let mut stream =
                Stream::new(Kernel::Read, Access::Sequential, Isa::detect(), arrays).unwrap();
            generate(&mut stream, throttle, stop, counted);
        });
        while counted.load(Ordering::Relaxed) == before {
            thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
    });
    let total = counted.into_inner();
    assert!(total >= before + 640, "{total}");
}

#[test]
fn a_generator_stopped_beforehand_does_nothing() {
    let mut lines = vec![Line::ZERO; 4];
    let arrays = Arrays::One(&mut lines);
    let mut stream = Stream::new(Kernel::Write, Access::Sequential, Isa::detect(), arrays).unwrap();
    let counted = AtomicU64::new(0);
    let throttle = Throttle { chunk_bytes: 0, delay_spins: 0 };
    generate(&mut stream, throttle, &AtomicBool::new(true), &counted);
    assert_eq!(counted.into_inner(), 0);
    assert_eq!(lines, [Line::ZERO; 4]);
}
