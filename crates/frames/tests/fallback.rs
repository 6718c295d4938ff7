//! Frames come from the nodes in exactly the order of the distances, on every machine that has its
//! distance table in the corpus and on thousands of random ones.

mod common;

use std::path::PathBuf;

use common::{Bench, Tables, range};
use numalab_frames::{CpuIndex, NodeIndex, Request};
use proptest::prelude::*;

/// Number of frames of each node.
const FRAMES: u64 = 5;
const FRAMES_EACH: usize = 5;

/// A distance table: `at(from, to)`.
#[derive(Clone, Debug)]
struct Distances {
    nodes: usize,
    entries: Vec<u8>,
}

impl Distances {
    fn at(&self, from: usize, to: usize) -> u8 {
        self.entries[from * self.nodes + to]
    }

    /// Returns all nodes by distance from one, itself first, equal ones by number, by brute force.
    fn order(&self, from: usize) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.nodes).filter(|&n| n != from).collect();
        let mut order = vec![from];
        while !left.is_empty() {
            let mut best = 0;
            for k in 1..left.len() {
                if self.at(from, left[k]) < self.at(from, left[best]) {
                    best = k;
                }
            }
            order.push(left.remove(best));
        }
        order
    }

    /// Reads the distance table of an ACPI SLIT (ACPI 6.5, 5.2.17) of any length.
    fn from_slit(bytes: &[u8]) -> Option<Self> {
        let count = u64::from_le_bytes(bytes.get(36..44)?.try_into().ok()?);
        let nodes = usize::try_from(count).ok().filter(|n| (1..=1024).contains(n))?;
        let entries = bytes.get(44..44 + nodes * nodes)?.to_vec();
        Some(Self { nodes, entries })
    }
}

/// Takes all frames from one cpu, and returns the nodes in the order in which they served.
fn nodes_as_they_exhaust(distances: &Distances, from: usize) -> Vec<usize> {
    let node = |n: usize| NodeIndex(u16::try_from(n).unwrap());
    let orders = (0..distances.nodes).map(|n| distances.order(n).into_iter().map(node).collect());
    let bench = Bench::new(Tables {
        ranges: (0..distances.nodes).map(|n| range(n as u64 * FRAMES, FRAMES, node(n).0)).collect(),
        zone_limits: vec![u64::MAX],
        cpus: vec![node(from)],
        fallback: orders.collect(),
    });
    let frames = bench.frames();
    let mut nodes = Vec::new();
    // Alternates between the cache and the shared maps; the order is the same.
    let run = Request::FRAME;
    while let Ok(frame) = frames.alloc(CpuIndex(0), &run) {
        nodes.push(usize::try_from(frame.number() / FRAMES).unwrap());
    }
    nodes
}

fn check(distances: &Distances, from: usize) {
    let expected: Vec<usize> =
        distances.order(from).into_iter().flat_map(|n| [n; FRAMES_EACH]).collect();
    assert_eq!(nodes_as_they_exhaust(distances, from), expected, "{distances:?} from {from}");
}

fn corpus() -> PathBuf {
    std::env::var_os("NUMALAB_CORPUS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus")),
        PathBuf::from,
    )
}

#[test]
fn frames_come_in_the_order_of_every_distance_table_of_the_corpus() {
    let Ok(entries) = std::fs::read_dir(corpus().join("tables")) else {
        eprintln!("NOT RUN: no corpus at {}: set NUMALAB_CORPUS", corpus().display());
        return;
    };
    let mut machines = 0;
    for path in entries.map(|entry| entry.unwrap().path()) {
        if !path.to_string_lossy().ends_with(".SLIT.bin") {
            continue;
        }
        let Some(distances) = Distances::from_slit(&std::fs::read(&path).unwrap()) else {
            continue;
        };
        // All nodes of a small machine, some of a large one, because a run takes n^2 steps of n
        // each.
        let step = distances.nodes.div_ceil(16);
        (0..distances.nodes).step_by(step).for_each(|from| check(&distances, from));
        machines += 1;
    }
    assert!(machines >= 10, "only {machines} distance tables were usable");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn frames_come_in_the_order_of_any_distances(
        (nodes, from, entries) in (1_usize..12).prop_flat_map(|nodes| {
            (Just(nodes), 0..nodes, prop::collection::vec(10_u8..16, nodes * nodes))
        })
    ) {
        check(&Distances { nodes, entries }, from);
    }
}
