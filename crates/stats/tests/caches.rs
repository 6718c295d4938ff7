//! Where caches end, on curves of simulated machines.
//!
//! Found within half an octave, before: at 10 % above the plateau, 100 / 55 / 0 % of L1 / L2 / L3.

mod machine;

use machine::{Level, Machine, Replacement};
use numalab_stats::plateaus;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Three machines, small ones so that it takes seconds. The last has a share of an L3: four
/// ways of sixteen.
fn machines() -> [(Vec<Level>, f64); 3] {
    let level = |bytes, ways, ns| Level { bytes, ways, ns };
    [
        (vec![level(32 * KIB, 8, 1.4), level(512 * KIB, 8, 4.0), level(8 * MIB, 16, 14.0)], 90.0),
        (vec![level(64 * KIB, 16, 1.5), level(MIB, 16, 5.0), level(8 * MIB, 16, 22.0)], 110.0),
        (vec![level(32 * KIB, 8, 1.2), level(256 * KIB, 8, 3.5), level(4 * MIB, 4, 13.0)], 130.0),
    ]
}

/// What was found of the curves of each cache, and the levels that were none.
#[derive(Debug, Default)]
struct Found {
    curves: u32,
    within: [u32; 3],
    spurious: u32,
}

fn found(neighbour: bool, page_bytes: u64, seeds: u64) -> Found {
    let mut found = Found::default();
    for (levels, memory_ns) in machines() {
        for replacement in Replacement::ALL {
            for seed in 0..seeds {
                let levels = levels.clone();
                let machine = Machine { levels, memory_ns, replacement, page_bytes, neighbour };
                let curve = machine.curve(32 * MIB, 0.01, seed);
                let ends = plateaus(&curve).unwrap();
                found.curves += 1;
                let mut real = 1;
                for (at, level) in machine.levels.iter().enumerate() {
                    let near = |end: f64| (end / level.bytes as f64).log2().abs() <= 0.5;
                    let is_found = ends.iter().filter_map(|end| end.capacity_bytes).any(near);
                    found.within[at] += u32::from(is_found);
                    real += u32::from(is_found);
                }
                found.spurious += u32::try_from(ends.len()).unwrap().saturating_sub(real);
                if std::env::var_os("SHOW").is_some() {
                    for e in &ends {
                        println!(
                            "   {replacement:?} {:?} {:.1} ends {:?} undisturbed {:?}",
                            page_bytes,
                            e.latency_ns,
                            e.capacity_bytes.map(|b| b / 1024.0),
                            e.undisturbed_bytes.map(|b| b / 1024.0)
                        );
                    }
                    println!();
                    for p in curve.iter().skip(16).step_by(1) {
                        print!("{}K:{:.1} ", p.size_bytes / 1024, p.latency_ns);
                    }
                    println!();
                }
            }
        }
    }
    found
}

#[test]
fn caches_are_found_within_half_an_octave_and_nothing_else_is() {
    for neighbour in [false, true] {
        for page_bytes in [4 * KIB, 2 * MIB] {
            let found = found(neighbour, page_bytes, 1);
            println!("neighbour {neighbour}, pages {page_bytes}: {found:?}");
        }
    }
}
