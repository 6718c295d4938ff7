//! Measures the cost of observation: snapshots per window and per cell, pinning, and the proof of a
//! GiB. Prints the median and the spread of each over repetitions.

use std::hint::black_box;
use std::time::Instant;

use numalab_host::{
    Root, SystemWatch, ThreadSnapshot, base_pages, bound_and_touched, current_affinity,
    current_place, pin, prove, read_machine,
};
use numalab_record::Pages;

/// Runs `work` in `repetitions` of `calls`, and prints microseconds per call.
fn cost(name: &str, repetitions: usize, calls: u32, mut work: impl FnMut()) {
    let mut micros: Vec<f64> = (0..repetitions)
        .map(|_| {
            let start = Instant::now();
            (0..calls).for_each(|_| work());
            start.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
        })
        .collect();
    micros.sort_by(f64::total_cmp);
    let at = |percent: usize| micros[(micros.len() - 1) * percent / 100];
    println!("{name:<44} {:>12.3} us  (5 % {:.3}, 95 % {:.3})", at(50), at(5), at(95));
}

fn main() {
    let cpus = current_affinity().unwrap_or_default();
    let mut watch = SystemWatch::new(&cpus);
    cost("thread snapshot", 101, 1000, || {
        black_box(ThreadSnapshot::take());
    });
    cost("system snapshot", 101, 100, || {
        black_box(watch.snapshot());
    });
    cost("pin, read back, restore", 101, 20, || {
        drop(black_box(pin(current_place().cpu)));
    });
    cost("read_machine", 21, 1, || {
        drop(black_box(read_machine(&Root::live())));
    });
    let node = current_place().node;
    for (size_bytes, pages) in
        [(64 << 20, base_pages()), (1 << 30, base_pages()), (1 << 30, Pages::Transparent)]
    {
        let mebibytes = size_bytes >> 20;
        let started = Instant::now();
        match bound_and_touched(size_bytes, pages, node) {
            Ok(memory) => {
                let millis = started.elapsed().as_secs_f64() * 1e3;
                println!("map, bind and touch {mebibytes} MiB of {pages:<8} {millis:>20.1} ms");
                let name = format!("prove {mebibytes} MiB of {pages}");
                cost(&name, 11, 1, || drop(black_box(prove(&memory, node))));
            }
            Err(error) => println!("{mebibytes} MiB of {pages}: {error}"),
        }
    }
}
