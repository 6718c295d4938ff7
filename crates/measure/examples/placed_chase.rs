//! Measures memory that the system placed: unlike `numalab latency`, this binds nothing. It touches
//! memory on one cpu under the inherited policy, chases through it on another, and prints after
//! each round the nodes of its pages and the time of a load.
//!
//! ```text
//! placed_chase TOUCH_CPU RUN_CPU MIB PAGES ROUNDS ROUND_MS
//! numalab bind --numa=0,1 --policy interleave -- placed_chase 0 0 4 4k 1 10
//! round 0: 512 pages on node 0, 512 pages on node 1: 150.0 ns
//! ```
//!
//! PAGES are `4k` or `thp`. A round lasts at least ROUND_MS milliseconds.
#![forbid(unsafe_code)]

use std::error::Error;
use std::time::{Duration, Instant};

use numalab_host::{Mapping, emulator_counters, monotonic_raw_ns, pin, prove_within};
use numalab_marks::virtual_time;
use numalab_membench::{Chase, Clock, Cycle, Line, LineSize, Pattern, Walk};
use numalab_record::Pages;
use numalab_topology::{CpuId, NodeSet};

const CALIBRATION_NS: u64 = 20_000_000;
const WINDOW_LOADS: u64 = 2_000;
const WINDOWS: usize = 51;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [touch, run, mib, pages, rounds, round_ms] = words.as_slice() else {
        return Err("expected TOUCH_CPU RUN_CPU MIB PAGES ROUNDS ROUND_MS".into());
    };
    let pages = match pages.as_str() {
        "4k" => numalab_host::base_pages(),
        "thp" => Pages::Transparent,
        other => return Err(format!("`{other}`: expected 4k or thp").into()),
    };
    emulator_counters().map(virtual_time::use_counters);
    let clock = Clock::calibrate(monotonic_raw_ns, CALIBRATION_NS)?;
    let size = mib.parse::<usize>()? << 20;
    let mut mapping = Mapping::new(size, pages)?;
    let toucher = pin(CpuId(touch.parse()?))?;
    mapping.populate()?;
    let span = mapping.span();
    let cycle = Cycle::new(Pattern::Random, size, LineSize::Bytes64, 1)?;
    let chase = Chase::build(cycle, Line::slice_from_bytes(mapping.as_bytes_mut())?)?;
    drop(toucher);
    let _runner = pin(CpuId(run.parse()?))?;
    let mut walk = chase.walk();
    walk.loads(chase.cycle().nodes() as u64);
    for round in 0..rounds.parse::<u32>()? {
        let ns = median(&mut walk, &clock)?;
        let found = prove_within(span, &NodeSet::new())?.pages_per_node;
        let counts: Vec<String> =
            found.iter().map(|(node, pages)| format!("{pages} pages on node {node}")).collect();
        println!("round {round}: {}: {ns:.1} ns", counts.join(", "));
        let (begun, least) = (Instant::now(), Duration::from_millis(round_ms.parse()?));
        while begun.elapsed() < least {
            walk.loads(WINDOW_LOADS);
        }
    }
    Ok(())
}

fn median(walk: &mut Walk<'_>, clock: &Clock) -> Result<f64, Box<dyn Error>> {
    let mut windows = Vec::new();
    for _ in 0..WINDOWS {
        windows.push(walk.window(WINDOW_LOADS)?.ns_per_load(clock));
    }
    windows.sort_by(f64::total_cmp);
    Ok(windows[WINDOWS / 2])
}
