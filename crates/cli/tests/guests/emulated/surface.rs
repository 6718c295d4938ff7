//! Compares a machine file's load curves with the results of `numalab loaded` in a guest like that
//! machine.

use std::collections::BTreeMap;

use numalab_formats::machine_toml::read_file;
use numalab_formats::memory_emulator::Curve;

use super::lab::{Answer, Lab, assert_near, is_long_or_not_run};

/// Above this share of the peak, latency depends on which core demands more, and only the peak is
/// judged.
const SATURATED: f64 = 0.97;

/// Latency by bandwidth and share of writes.
pub struct Surface<'a> {
    /// Curves by rising share of writes.
    pub curves: &'a [Curve],
}

impl Surface<'_> {
    /// Returns the peak bandwidth for this share of writes, in 10^6 bytes per second; the time per
    /// byte is interpolated between two curves.
    pub fn peak_mb_s(&self, writes_percent: f64) -> f64 {
        1.0 / self.between(writes_percent, |curve| 1.0 / peak_mb_s(curve))
    }

    /// Returns the rise of latency while these 10^6 bytes per second are read and written; `None`
    /// if memory is saturated. Interpolates between curves by the share of writes, at the same part
    /// of each peak.
    pub fn rise_ns(&self, read_mb_s: f64, written_mb_s: f64) -> Option<f64> {
        if self.curves.is_empty() {
            return Some(0.0);
        }
        let moved = read_mb_s + written_mb_s;
        let writes_percent = 100.0 * written_mb_s / moved;
        let part = moved / self.peak_mb_s(writes_percent);
        (part < SATURATED).then(|| self.between(writes_percent, |curve| risen_ns(curve, part)))
    }

    /// Returns the rise of latency while these 10^6 bytes per second are read, up to the peak;
    /// `None` beyond. Without curves there is no limit.
    pub fn rise_to_peak_ns(&self, read_mb_s: f64) -> Option<f64> {
        let Some(curve) = self.curves.first() else { return Some(0.0) };
        let part = read_mb_s / peak_mb_s(curve);
        (part <= 1.0).then(|| risen_ns(curve, part))
    }

    fn between(&self, writes_percent: f64, value: impl Fn(&Curve) -> f64) -> f64 {
        let above = self.curves.iter().position(|curve| curve.writes_percent >= writes_percent);
        let Some(above) = above else { return value(self.curves.last().expect("a curve")) };
        let high = &self.curves[above];
        let Some(low) = above.checked_sub(1).map(|at| &self.curves[at]) else {
            return value(high);
        };
        let part =
            (writes_percent - low.writes_percent) / (high.writes_percent - low.writes_percent);
        value(low) + part * (value(high) - value(low))
    }
}

fn peak_mb_s(curve: &Curve) -> f64 {
    curve.points.last().expect("points").0
}

/// Returns the rise of latency at a part of a curve's peak.
fn risen_ns(curve: &Curve, part: f64) -> f64 {
    let points = &curve.points;
    let mb_s = part * peak_mb_s(curve);
    let above = points.iter().position(|point| point.0 >= mb_s).expect("below the peak").max(1);
    let [below, above] = [points[above - 1], points[above]];
    below.1 + (mb_s - below.0) / (above.0 - below.0) * (above.1 - below.1) - points[0].1
}

/// Returns the bytes read and written for each byte that a kernel requests.
fn moved_by(kernel: &str) -> [f64; 2] {
    match kernel {
        "read" => [1.0, 0.0],
        "write" => [1.0, 1.0],
        "write-nt" => [0.0, 1.0],
        "copy" => [1.0, 0.5],
        "copy-nt" => [0.5, 0.5],
        "triad" => [1.0, 1.0 / 3.0],
        other => panic!("the kernel `{other}`"),
    }
}

/// A point of `numalab loaded`.
#[derive(Clone, Debug)]
pub struct Point {
    pub kernel: String,
    /// Read traffic of the streams and the chase, in 10^6 bytes per second.
    pub read_mb_s: f64,
    pub written_mb_s: f64,
    pub ns: f64,
}

impl Point {
    /// Creates a point under streams of a kernel with this demand.
    pub fn new(kernel: &str, asked_gb_s: f64, ns: f64) -> Self {
        let [read, written] = moved_by(kernel).map(|share| share * asked_gb_s * 1000.0);
        // The chase moves a line per load.
        let read_mb_s = read + 64_000.0 / ns;
        Self { kernel: kernel.to_owned(), read_mb_s, written_mb_s: written, ns }
    }

    /// Fails if the point is off the surface by a tenth of the latency; returns true if it was
    /// below the peak, where latency is judged.
    pub fn is_on(&self, surface: &Surface<'_>, idle_ns: f64) -> bool {
        let Some(rise_ns) = surface.rise_ns(self.read_mb_s, self.written_mb_s) else {
            return false;
        };
        let Self { kernel, read_mb_s, written_mb_s, ns } = self;
        let what = format!("beside {kernel} with {read_mb_s} read and {written_mb_s} written");
        assert_near(*ns, idle_ns + rise_ns, 0.10, &what);
        true
    }

    /// Returns the traffic as a part of the peak for its share of writes.
    pub fn of_peak(&self, surface: &Surface<'_>) -> f64 {
        let moved = self.read_mb_s + self.written_mb_s;
        moved / surface.peak_mb_s(100.0 * self.written_mb_s / moved)
    }
}

/// Returns the points in a part of the guest's output, in numalab's CSV.
pub fn points(answer: &Answer, part: &str) -> Vec<Point> {
    let mut by_cell: BTreeMap<String, (f64, Option<f64>)> = BTreeMap::new();
    for row in answer.rows(part) {
        let point = by_cell.entry(row["cell"].to_owned()).or_default();
        let median: Option<f64> = row["median"].parse().ok();
        match row["metric"] {
            "latency" => point.1 = median,
            _ => point.0 = median.unwrap_or(0.0),
        }
    }
    let point = |(cell, (gb_s, ns)): (String, (f64, Option<f64>))| {
        Some(Point::new(cell.split('/').nth(1)?, gb_s, ns?))
    };
    by_cell.into_iter().filter_map(point).collect()
}

/// The file of a memory that three cores saturate.
pub const FILE: &str = include_str!("replay.toml");
const IDLE_NS: f64 = 100.0;

/// Loads node 0 of that memory with each of these kernels in turn.
fn every_point_is_on_the_surface(kernels: &[&str]) {
    let lab = Lab::open();
    let file = lab.path("machine.toml");
    std::fs::write(&file, FILE).expect("written");
    let loaded = |kernel: &&str| {
        format!(
            "\necho '== {kernel}'\nnumalab loaded --kernel {kernel} --size 4M --pages thp --cpus 0-3 \
             --nodes 0 --budget 1s --seed 1 -q --format csv"
        )
    };
    let script = "echo always > /sys/kernel/mm/transparent_hugepage/enabled".to_owned()
        + &kernels.iter().map(loaded).collect::<String>();
    let like = ["--emulate-like", file.to_str().expect("UTF-8")];
    let Some(answer) = lab.guest(&like, &script) else { return };
    let given = read_file(FILE).expect("a machine file");
    let surface = Surface { curves: &given.memory.load[0].curves };
    for kernel in kernels {
        let points = points(&answer, kernel);
        let judged = points.iter().filter(|point| point.is_on(&surface, IDLE_NS)).count();
        assert!(judged >= 5, "{kernel}: {points:?}");
        let most = points.iter().map(|point| point.of_peak(&surface)).fold(0.0, f64::max);
        assert_near(most, 1.0, 0.05, &format!("the peak of {kernel}"));
    }
}

#[test]
fn half_reads_and_half_non_temporal_stores_are_on_the_surface() {
    every_point_is_on_the_surface(&["copy-nt"]);
}

#[test]
fn every_kernel_is_on_the_surface() {
    if !is_long_or_not_run("the surface of five more kernels") {
        return;
    }
    every_point_is_on_the_surface(&["read", "write", "write-nt", "copy", "triad"]);
}

#[test]
fn a_surface_is_its_curves_and_the_points_between_them() {
    let curve = |writes_percent, peak| Curve {
        writes_percent,
        points: vec![(0.0, 100.0), (peak / 2.0, 120.0), (peak, 300.0)],
    };
    let curves = [curve(0.0, 3000.0), curve(50.0, 2000.0)];
    let surface = Surface { curves: &curves };
    let near = |found: Option<f64>, expected: f64| {
        assert!((found.unwrap() - expected).abs() < 1e-9, "{found:?}, expected {expected}");
    };
    near(surface.rise_ns(750.0, 0.0), 10.0);
    near(surface.rise_ns(500.0, 500.0), 20.0);
    near(surface.rise_ns(0.0, 500.0), 10.0);
    // With a quarter of the traffic as writes the peak is 2400: this is half of it.
    near(surface.rise_ns(900.0, 300.0), 20.0);
    assert_eq!(surface.rise_ns(2950.0, 0.0), None, "saturated");
}
