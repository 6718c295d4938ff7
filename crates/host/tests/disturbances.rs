//! Disturbances caused on purpose.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use numalab_host::{
    Mapping, Reason, SystemWatch, ThreadSnapshot, base_pages, current_affinity, current_place, pin,
};
use numalab_record::study::Load;

fn work_for(duration: Duration) {
    let end = Instant::now() + duration;
    while Instant::now() < end {
        black_box(0_u64);
    }
}

#[test]
fn sleeping_in_a_window_is_time_off_the_cpu() {
    let _pinned = pin(current_affinity().unwrap().first().unwrap()).unwrap();
    let before = ThreadSnapshot::take();
    thread::sleep(Duration::from_millis(5));
    let reason = ThreadSnapshot::take().disturbance_since(&before);
    // On a busy machine a switch or a migration may be detected first.
    assert!(reason.is_some());
}

#[test]
fn fresh_pages_in_a_window_are_faults() {
    let _pinned = pin(current_affinity().unwrap().first().unwrap()).unwrap();
    let seen = (0..200).any(|_| {
        let mut fresh = Mapping::new(1 << 20, base_pages()).unwrap();
        let before = ThreadSnapshot::take();
        fresh.as_bytes_mut().fill(1);
        let reason = ThreadSnapshot::take().disturbance_since(&before);
        matches!(reason, Some(Reason::MinorFaults { faults }) if faults > 8)
    });
    assert!(seen);
}

#[test]
fn a_quiet_window_is_found_sooner_or_later() {
    let _pinned = pin(current_affinity().unwrap().first().unwrap()).unwrap();
    let quiet = (0..2000).any(|_| {
        let before = ThreadSnapshot::take();
        work_for(Duration::from_micros(500));
        ThreadSnapshot::take().disturbance_since(&before).is_none()
    });
    assert!(quiet);
}

#[test]
fn a_thread_on_the_same_cpu_is_detected_as_a_switch_or_time_off_the_cpu() {
    let cpu = current_affinity().unwrap().first().unwrap();
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _pinned = pin(cpu).unwrap();
            while !end.load(Ordering::Relaxed) {
                black_box(0_u64);
            }
        });
        let _pinned = pin(cpu).unwrap();
        let seen = (0..100).any(|_| {
            let before = ThreadSnapshot::take();
            work_for(Duration::from_millis(10));
            let reason = ThreadSnapshot::take().disturbance_since(&before);
            matches!(reason, Some(Reason::Switched { .. } | Reason::OffCpu { .. }))
        });
        end.store(true, Ordering::Relaxed);
        assert!(seen);
    });
}

#[test]
fn another_process_on_a_watched_cpu_is_foreign() {
    let cpu = current_place().cpu;
    let pinned = pin(cpu).unwrap();
    let mut watch = SystemWatch::new(&[cpu].into_iter().collect());
    // The child inherits the affinity and spins until it is killed.
    let mut child =
        std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let before = watch.snapshot();
    thread::sleep(Duration::from_millis(600));
    let reason = watch.snapshot().disturbance_since(&before);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(pinned);
    assert!(
        matches!(reason, Some(Load::Foreign { .. } | Load::Stolen { .. } | Load::Throttled { .. })),
        "{reason:?}"
    );
}
