//! Clustering of synthetic round-trip times.

use super::*;

/// Returns times from `ns`, with seeded noise: `spread` on each pair and a third of it on each cpu.
fn times(cpus: usize, spread: f64, seed: u64, ns: impl Fn(usize, usize) -> f64) -> Times {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    // The sum of twelve uniform values minus six is nearly normal.
    let mut normal = || {
        let mut uniform = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            #[expect(clippy::cast_precision_loss, reason = "a random value")]
            let value = (state >> 11) as f64 / (1_u64 << 53) as f64;
            value
        };
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    };
    let own: Vec<f64> = (0..cpus).map(|_| normal() * spread / 3.0).collect();
    let mut ln_ns = vec![vec![f64::NAN; cpus]; cpus];
    for a in 0..cpus {
        for b in a + 1..cpus {
            let ln = ns(a, b).ln() + own[a] + own[b] + spread * normal();
            (ln_ns[a][b], ln_ns[b][a]) = (ln, ln);
        }
    }
    let cpus = (0..).map(CpuId).take(cpus).collect();
    Times { cpus, ln_ns, cells: Vec::new() }
}

fn found(times: &Times) -> Option<String> {
    let groups = times.groups()?;
    let sets = groups.iter().map(|group| times.set(group).to_string());
    Some(sets.collect::<Vec<_>>().join(" | "))
}

#[test]
fn two_nodes_of_two_caches_each_are_two_groups() {
    let ns = |a: usize, b: usize| match (a / 4 == b / 4, a / 8 == b / 8) {
        (true, _) => 60.0,
        (_, true) => 130.0,
        _ => 280.0,
    };
    assert_eq!(found(&times(16, 0.02, 1, ns)).as_deref(), Some("0-7 | 8-15"));
}

#[test]
fn four_nodes_at_equal_distance_are_four_groups() {
    let ns = |a: usize, b: usize| if a % 4 == b % 4 { 80.0 } else { 140.0 };
    let groups = found(&times(12, 0.02, 2, ns));
    assert_eq!(groups.as_deref(), Some("0,4,8 | 1,5,9 | 2,6,10 | 3,7,11"));
}

#[test]
fn threads_of_unknown_cores_form_no_groups() {
    let ns = |a: usize, b: usize| if a / 2 == b / 2 { 20.0 } else { 60.0 };
    assert_eq!(found(&times(16, 0.02, 3, ns)), None);
}

#[test]
fn a_ratio_of_one_and_a_half_is_found_in_95_of_100_and_one_node_taken_for_two_in_one_at_most() {
    for cpus in [6, 8, 12, 16] {
        let halves =
            |a: usize, b: usize| if (a * 2 / cpus) == (b * 2 / cpus) { 100.0 } else { 150.0 };
        let hits =
            (0..400).filter(|&seed| found(&times(cpus, 0.08, seed, halves)).is_some()).count();
        assert!(hits >= 380, "{hits} of 400 found among {cpus} cpus");
        for spread in [0.02, 0.08, 0.2] {
            let one = |seed: &u64| found(&times(cpus, spread, *seed, |_, _| 100.0)).is_some();
            let false_ones = (1000..1400).filter(one).count();
            assert!(false_ones <= 4, "{false_ones} of 400 for {cpus} cpus of one node");
        }
    }
}
