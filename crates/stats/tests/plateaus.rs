//! Curves with known levels, with and without noise.

use numalab_stats::{Error, Level, Rng, SizePoint, plateaus};

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

/// Latencies of a hierarchy: each cache as `(ns, capacity)`, then memory. `sharpness` is how
/// quickly a level takes over past the capacity of the one before: 1 is random replacement (hits
/// fall as capacity / size), larger is nearer to a step.
struct Machine<'a> {
    caches: &'a [(f64, f64)],
    memory_ns: f64,
    sharpness: f64,
}

impl Machine<'_> {
    fn latency_ns(&self, size: f64) -> f64 {
        let levels = self.caches.iter().rev();
        levels.fold(self.memory_ns, |slower, (ns, capacity)| {
            let hits = (capacity / size).min(1.0).powf(self.sharpness);
            hits * ns + (1.0 - hits) * slower
        })
    }

    /// Returns the curve from 4 KiB to 1 GiB with Gaussian noise of a relative standard deviation.
    fn curve(&self, points_per_octave: u32, noise: f64, seed: u64) -> Vec<SizePoint> {
        let mut rng = Rng::new(seed);
        let at = |index: u32| {
            let octave = 4096_u64 << (index / points_per_octave);
            let within = octave * u64::from(index % points_per_octave);
            let size_bytes = octave + within / u64::from(points_per_octave);
            let gauss = (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0;
            let latency_ns = self.latency_ns(size_bytes as f64) * (1.0 + noise * gauss);
            SizePoint { size_bytes, latency_ns }
        };
        (0..=18 * points_per_octave).map(at).collect()
    }
}

const THREE_CACHES: [(f64, f64); 3] = [(1.4, 32.0 * KIB), (4.6, MIB), (22.0, 32.0 * MIB)];

fn assert_levels(found: &[Level], caches: &[(f64, f64)], memory_ns: f64, tolerance: f64) {
    assert_eq!(found.len(), caches.len() + 1, "{found:#?}");
    for (level, (ns, capacity)) in found.iter().zip(caches) {
        assert!((level.latency_ns / ns - 1.0).abs() < tolerance, "{ns} ns: {level:?}");
        let octaves = (level.capacity_bytes.unwrap() / capacity).log2().abs();
        assert!(octaves < 0.5, "{capacity} bytes, {octaves} octaves off: {level:?}");
        assert!(level.from_bytes < level.to_bytes);
    }
    let memory = found[caches.len()];
    assert!((memory.latency_ns / memory_ns - 1.0).abs() < tolerance, "{memory:?}");
    assert_eq!(memory.capacity_bytes, None);
}

#[test]
fn three_caches_and_memory_are_found_with_their_capacities() {
    let machine = Machine { caches: &THREE_CACHES, memory_ns: 95.0, sharpness: 3.0 };
    assert_levels(&plateaus(&machine.curve(4, 0.0, 0)).unwrap(), &THREE_CACHES, 95.0, 0.03);
}

#[test]
fn smooth_transitions_blur_the_levels_by_a_few_percent_only() {
    let machine = Machine { caches: &THREE_CACHES, memory_ns: 95.0, sharpness: 1.5 };
    assert_levels(&plateaus(&machine.curve(4, 0.0, 0)).unwrap(), &THREE_CACHES, 95.0, 0.08);
}

#[test]
fn two_percent_of_noise_changes_nothing_in_99_of_100_curves() {
    let machine = Machine { caches: &THREE_CACHES, memory_ns: 95.0, sharpness: 3.0 };
    let right = (0..100)
        .filter(|seed| {
            let levels = plateaus(&machine.curve(4, 0.02, *seed)).unwrap();
            let close = |(level, (ns, _)): (&Level, &(f64, f64))| {
                (level.latency_ns / ns - 1.0).abs() < 0.05
            };
            levels.len() == 4 && levels.iter().zip(&THREE_CACHES).all(close)
        })
        .count();
    assert!(right >= 99, "{right} of 100");
}

#[test]
fn two_points_an_octave_are_enough() {
    let machine = Machine { caches: &THREE_CACHES, memory_ns: 95.0, sharpness: 3.0 };
    assert_levels(&plateaus(&machine.curve(2, 0.0, 0)).unwrap(), &THREE_CACHES, 95.0, 0.04);
}

#[test]
fn two_levels_are_two_levels() {
    let caches = [(3.0, 512.0 * KIB)];
    let machine = Machine { caches: &caches, memory_ns: 110.0, sharpness: 2.0 };
    assert_levels(&plateaus(&machine.curve(4, 0.01, 1)).unwrap(), &caches, 110.0, 0.05);
}

#[test]
fn one_disturbed_window_is_not_a_level_and_moves_no_capacity() {
    let machine = Machine { caches: &THREE_CACHES, memory_ns: 95.0, sharpness: 3.0 };
    for disturbed in 0..73 {
        let mut curve = machine.curve(4, 0.0, 0);
        curve[disturbed].latency_ns *= 3.0;
        let levels = plateaus(&curve).unwrap();
        assert_eq!(levels.len(), 4, "point {disturbed}: {levels:#?}");
        assert_eq!(levels[3].capacity_bytes, None, "point {disturbed}");
    }
}

#[test]
fn flat_noise_is_one_level_without_capacity() {
    let machine = Machine { caches: &[], memory_ns: 100.0, sharpness: 1.0 };
    for seed in 0..100 {
        let levels = plateaus(&machine.curve(4, 0.02, seed)).unwrap();
        assert_eq!(levels.len(), 1, "{seed}: {levels:?}");
        assert!((levels[0].latency_ns - 100.0).abs() < 2.0);
        assert_eq!(levels[0].capacity_bytes, None);
    }
}

#[test]
fn a_step_of_13_percent_is_one_level_and_one_of_25_percent_two() {
    let stepped = |step: f64| {
        let at = |i: u32| SizePoint {
            size_bytes: 4096 << i,
            latency_ns: if i < 8 { 100.0 } else { 100.0 * step },
        };
        plateaus(&(0..20).map(at).collect::<Vec<_>>()).unwrap().len()
    };
    assert_eq!((stepped(1.13), stepped(1.25)), (1, 2));
}

#[test]
fn a_curve_that_rises_everywhere_has_no_plateau() {
    let points: Vec<SizePoint> =
        (0..20).map(|i| SizePoint { size_bytes: 4096 << i, latency_ns: 1.3_f64.powi(i) }).collect();
    assert_eq!(plateaus(&points).unwrap(), []);
}

#[test]
fn one_size_is_one_level_of_the_median() {
    let at = |latency_ns| SizePoint { size_bytes: 4096, latency_ns };
    let levels = plateaus(&[at(5.0), at(1.0), at(2.0)]).unwrap();
    assert_eq!(levels.len(), 1);
    assert!((levels[0].latency_ns - 2.0).abs() < 1e-12);
    assert_eq!((levels[0].from_bytes, levels[0].capacity_bytes), (4096, None));
}

#[test]
fn the_order_of_points_does_not_matter() {
    let machine = Machine { caches: &THREE_CACHES, memory_ns: 95.0, sharpness: 3.0 };
    let curve = machine.curve(4, 0.02, 3);
    let mut shuffled = curve.clone();
    Rng::new(9).shuffle(&mut shuffled);
    assert_eq!(plateaus(&shuffled).unwrap(), plateaus(&curve).unwrap());
}

#[test]
fn points_without_size_or_latency_are_refused() {
    let point = |size_bytes, latency_ns| SizePoint { size_bytes, latency_ns };
    assert_eq!(plateaus(&[]), Err(Error::Empty));
    let refused = plateaus(&[point(1, 1.0), point(2, -1.0)]);
    assert_eq!(refused, Err(Error::NotPositive { index: 1, value: -1.0 }));
    let refused = plateaus(&[point(4096, 1.0), point(0, 1.0)]);
    assert!(matches!(refused, Err(Error::OutOfRange { what: "size_bytes", .. })));
    assert!(matches!(plateaus(&[point(1, f64::NAN)]), Err(Error::NotFinite { index: 0, .. })));
}

/// As measured on a virtual machine that has 2 to 3 MiB of a 32 MiB cache.
#[test]
fn a_cache_of_half_an_octave_between_two_steps_is_a_level() {
    let curve = [
        (64, 3.52),
        (96, 3.53),
        (128, 3.50),
        (192, 3.50),
        (256, 3.50),
        (384, 3.47),
        (512, 3.92),
        (768, 4.83),
        (1024, 7.52),
        (1536, 12.12),
        (2048, 13.48),
        (3072, 13.42),
        (4096, 138.5),
        (6144, 144.9),
        (8192, 141.9),
        (12288, 136.2),
        (16384, 138.0),
        (24576, 140.0),
    ];
    let points = curve.map(|(kib, latency_ns)| SizePoint { size_bytes: kib << 10, latency_ns });
    let levels = plateaus(&points).expect("a curve");
    let found: Vec<f64> = levels.iter().map(|level| level.latency_ns.round()).collect();
    assert_eq!(found, [4.0, 13.0, 139.0]);
    let capacity = levels[1].capacity_bytes.expect("the shelf ends");
    assert!((3.0..4.0).contains(&(capacity / f64::from(1 << 20))), "{capacity}");
}

#[test]
fn a_pause_on_a_gentle_slope_is_not_a_level() {
    let latencies = [1.0, 1.0, 1.0, 1.0, 1.3, 1.5, 1.5, 1.9, 2.2, 2.6, 2.6, 2.6, 2.6, 2.6];
    let octave = |octave: u32| [4096_u64 << octave, 6144 << octave];
    let sizes = (0..7).flat_map(octave);
    let points: Vec<SizePoint> = sizes
        .zip(latencies)
        .map(|(size_bytes, latency_ns)| SizePoint { size_bytes, latency_ns })
        .collect();
    assert_eq!(plateaus(&points).expect("a curve").len(), 2);
}
