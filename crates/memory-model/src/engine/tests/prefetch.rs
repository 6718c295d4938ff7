//! Streams that are prefetched for a core with at most two of their lines in its window.

use super::past_caches::engine_of_file;
use super::*;

/// Returns the ns per line of independent loads with fifteen instructions after each.
fn line_ns(prefetch: &str, step: u64) -> f64 {
    const LINES: u64 = 4000;
    let machine = format!(
        r#"{{"schema":"numalab-emulator-machine/1","nodes":[{{"id":0,"ranges":[[0,67108864]]}}],
        "cpus":[0],"latency_ns":[[100.0]],
        "core":{{"misses":16,"instructions":32,"ns_per_instruction":1.0{prefetch}}},
        "caches":[{{"level":1,"size_bytes":32768,"ways":8,"line_bytes":64,"scope":"cpu"}}]}}"#
    );
    let engine = engine_of_file(&machine);
    let mut code = [COUNT; 16];
    code[0] = READ;
    let core = engine.arguments.machine.core.unwrap_or(Core::TYPICAL);
    let flow = Flow::new(code.into_iter().map(decode), &Speeds::of(&core));
    let block: &Flow = Box::leak(Box::new(flow));
    for line in 0..LINES {
        engine.block_of(0, block);
        load(&engine, 0, line * step % (64 * MIB), 0);
    }
    engine.time_ps(0) as f64 / 1000.0 / LINES as f64
}

#[test]
fn a_prefetched_stream_takes_the_time_of_its_instructions() {
    let near = |found: f64, expected: f64| {
        assert!((found / expected - 1.0).abs() < 0.05, "{found}, expected {expected}");
    };
    // Two or three lines in the reorder buffer.
    near(line_ns("", 64), 50.0);
    near(line_ns(",\"prefetch\":20", 64), 16.0);
    // The prefetcher is three lines ahead of those two or three.
    near(line_ns(",\"prefetch\":1", 64), 100.0 / 3.0);
    // Every second line is not a stream.
    near(line_ns(",\"prefetch\":20", 128), 50.0);
}
