//! Memory interleaved by weights over a node of 2 GB/s and one of 1 GB/s, with a demand above their
//! sum.

use super::*;
use crate::curve::Curve;

const LINES_OF_PAGE: u64 = 64;
const MB_S: [f64; 2] = [2000.0, 1000.0];
const LATENCY_NS: [f64; 2] = [80.0, 90.0];
const TURN_PS: u64 = 5_000_000;

/// The result of reading vCPUs.
struct Reads {
    /// Bandwidth in 10^6 bytes per second.
    mb_s: f64,
    /// Latency of each node in ns.
    latency_ns: [f64; 2],
}

/// Returns the address of a line of memory that is interleaved by pages.
fn interleaved(weights: [u64; 2], line: u64) -> u64 {
    let (page, of_page) = (line / LINES_OF_PAGE, line % LINES_OF_PAGE);
    let (round, turn) = (page / (weights[0] + weights[1]), page % (weights[0] + weights[1]));
    let (node, page) = match turn.checked_sub(weights[0]) {
        None => (0, round * weights[0] + turn),
        Some(turn) => (64 * MIB, round * weights[1] + turn),
    };
    node + (page * LINES_OF_PAGE + of_page) * 64
}

/// Simulates vCPUs that read lines at random without dependencies.
fn read(stages: &str, vcpus: usize, weights: [u64; 2]) -> Reads {
    const SETTLED: u64 = 80;
    const TURNS: u64 = 240;
    let engine = engine_of(&format!(
        "cpus={},memory=64M.64M,latency=80.90/90.80,mode=virtual,stages={stages},\
         node-bandwidth=2000.1000",
        vec!["0"; vcpus].join(".")
    ));
    let block = block_of(&[READ, STEP, COUNT, AGAIN]);
    let mut random = 7_u64;
    let mut before = [(0, 0); 2];
    for turn in 1..=TURNS {
        for vcpu in 0..vcpus {
            while engine.time_ps(vcpu) < turn * TURN_PS {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let address = interleaved(weights, (random >> 33) % (12 * MIB / 64));
                engine.block_of(vcpu, block);
                load(&engine, vcpu, address, 0);
            }
        }
        if turn == SETTLED {
            before = reached(&engine, vcpus);
        }
    }
    let after = reached(&engine, vcpus);
    let spent = |node: usize| (after[node].0 - before[node].0, after[node].1 - before[node].1);
    let bytes = 64 * (spent(0).0 + spent(1).0);
    Reads {
        mb_s: bytes as f64 * 1e6 / ((TURNS - SETTLED) * TURN_PS) as f64,
        latency_ns: [0, 1].map(|node| spent(node).1 as f64 / spent(node).0 as f64 / 1000.0),
    }
}

/// Returns the misses to each node and their cost.
fn reached(engine: &Engine, vcpus: usize) -> [(u64, u64); 2] {
    [0, 1].map(|node| {
        let each = (0..vcpus).map(|vcpu| &engine.counters.of(0, vcpu).nodes[node]);
        each.fold((0, 0), |sum, one| (sum.0 + one.misses[0].get(), sum.1 + one.cost_ps.get()))
    })
}

/// Returns the latency of a node at this bandwidth, by the typical curve for its local cpus.
fn on_curve(node: usize, mb_s: f64) -> f64 {
    let points = &Curve::typical(MB_S[node], 80.0)[0].points;
    let pair = points.windows(2).find(|pair| mb_s <= pair[1].0).expect("below the peak");
    let part = (mb_s - pair[0].0) / (pair[1].0 - pair[0].0);
    LATENCY_NS[node] + pair[0].1 + part * (pair[1].1 - pair[0].1) - points[0].1
}

fn near(found: f64, expected: f64, part: f64) -> bool {
    (found / expected - 1.0).abs() < part
}

#[test]
fn weights_in_proportion_to_bandwidths_give_their_sum_and_others_saturate_one_node() {
    for (stages, vcpus) in [("core", 1), ("core", 4), ("core+load", 1), ("core+load", 4)] {
        for (weights, expected) in [([1, 1], 2000.0), ([2, 1], 3000.0), ([5, 1], 2400.0)] {
            let found = read(stages, vcpus, weights).mb_s;
            assert!(near(found, expected, 0.05), "{stages} {vcpus} {weights:?}: {found} MB/s");
        }
    }
}

#[test]
fn an_unsaturated_node_has_the_latency_of_its_curve() {
    for (weights, node) in [([1, 1], 0), ([5, 1], 1)] {
        let reads = read("core+load", 4, weights);
        let share = weights[node] as f64 / (weights[0] + weights[1]) as f64;
        let (found, expected) = (reads.latency_ns[node], on_curve(node, reads.mb_s * share));
        assert!(near(found, expected, 0.05), "{weights:?}: {found} ns, expected {expected}");
        // All requests in flight wait at the other node: 16 lines of each vCPU.
        let other = 1 - node;
        let under_way = 4.0 * 16.0 * 64.0 - reads.mb_s * share * found / 1000.0;
        let waiting_ns = under_way / MB_S[other] * 1000.0;
        let found = reads.latency_ns[other];
        assert!(near(found, waiting_ns, 0.1), "{weights:?}: {found} ns, expected {waiting_ns}");
    }
}
