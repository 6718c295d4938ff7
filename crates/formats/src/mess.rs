//! Bandwidth–latency curves in the files of Mess (github.com/bsc-mem/Mess): one CSV for all curves
//! and, in older versions and its simulator, a `bwlat_<percent of reads>.txt` for each share of
//! reads.

use std::collections::BTreeMap;

use numalab_memory_model::curve::Curve;

use crate::error::ReadError;

const FORMAT: &str = "Mess's curves";
/// Columns by content, in the order of preference of Mess's own tools: smoothed, mean, single
/// values.
const READS: [&str; 2] = ["read_pct_rounded", "rd_percentage"];
const BANDWIDTH: [&str; 3] = ["bandwidth_smooth", "bandwidth_mean", "bandwidth"];
const LATENCY: [&str; 3] = ["latency_smooth", "latency_mean", "latency"];
const MB_IN_GB: f64 = 1000.0;

/// Writes curves as `memory_curves.csv`: percent of reads, GB/s, ns.
pub fn write(curves: &[Curve]) -> String {
    let mut text = format!("{},{},{}\n", READS[0], BANDWIDTH[0], LATENCY[0]);
    for curve in curves {
        let reads = 100.0 - curve.writes_percent;
        for (mb_s, ns) in &curve.points {
            text.push_str(&format!("{reads},{},{ns}\n", mb_s / MB_IN_GB));
        }
    }
    text
}

/// Reads `memory_curves.csv`; points that do not rise, such as those beyond the peak, are left out.
///
/// # Errors
/// [`ReadError`], with the line for a field that is not a number, and for missing columns.
pub fn read(text: &str) -> Result<Vec<Curve>, ReadError> {
    let mut lines = text.lines().enumerate();
    let (_, header) = lines.next().unwrap_or_default();
    let names: Vec<&str> = header.split(',').map(str::trim).collect();
    let column = |known: &[&str], what| {
        let mut known = known.iter();
        let found = known.find_map(|name| names.iter().position(|column| column == name));
        found.ok_or(ReadError::Absent { format: FORMAT, what })
    };
    let reads = column(&READS, "column read_pct_rounded or rd_percentage")?;
    let bandwidth = column(&BANDWIDTH, "column bandwidth_smooth, bandwidth_mean or bandwidth")?;
    let latency = column(&LATENCY, "column latency_smooth, latency_mean or latency")?;
    let mut points: BTreeMap<u64, (f64, Vec<(f64, f64)>)> = BTreeMap::new();
    for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |column: usize| number(fields.get(column).copied().unwrap_or_default(), at + 1);
        let (reads, gb_s, ns) = (field(reads)?, field(bandwidth)?, field(latency)?);
        let writes = 100.0 - reads;
        // Positive floating-point numbers sort like their bits.
        let curve = points.entry(writes.max(0.0).to_bits());
        curve.or_insert_with(|| (writes, Vec::new())).1.push((gb_s * MB_IN_GB, ns));
    }
    curves(points.into_values())
}

/// Reads `bwlat_<percent>.txt`: MB/s and ns, in any order.
///
/// # Errors
/// [`ReadError`] for a line that is not two numbers.
pub fn read_simulator(read_percent: f64, text: &str) -> Result<Curve, ReadError> {
    let mut points = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut fields = line.split_whitespace();
        let mut field = || number(fields.next().unwrap_or_default(), at + 1);
        points.push((field()?, field()?));
    }
    let curves = curves([(100.0 - read_percent, points)].into_iter())?;
    curves.into_iter().next().ok_or(ReadError::Absent { format: FORMAT, what: "point" })
}

fn number(text: &str, line: usize) -> Result<f64, ReadError> {
    let parsed = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    parsed.ok_or_else(|| ReadError::syntax(FORMAT, line, text, "a number"))
}

fn curves(points: impl Iterator<Item = (f64, Vec<(f64, f64)>)>) -> Result<Vec<Curve>, ReadError> {
    let curve = |(writes_percent, points)| Curve { writes_percent, points: rising(points) };
    let curves: Vec<Curve> = points.map(curve).collect();
    let refused =
        |error: String| ReadError::Markup { format: FORMAT, message: format!("a curve {error}") };
    Curve::check(&curves).map_err(|error| refused(error.to_string()))?;
    Ok(curves)
}

/// Sorts by rising bandwidth, with each latency at least that of the point before; bandwidths below
/// 0, which are counter noise, are dropped.
fn rising(mut points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for (mb_s, ns) in points.into_iter().filter(|point| point.0 >= 0.0) {
        match kept.last() {
            Some(last) if mb_s <= last.0 => {}
            Some(last) => kept.push((mb_s, ns.max(last.1))),
            None => kept.push((mb_s, ns)),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first points of a curve of Mess's simulator, in its order: from full load to none.
    const SIMULATOR: &str = "\
250273.5 481.0
250547.9 465.2
217000 220.5
66096.5 110.7
-1348.5 97.6
2480.5 98.3
";

    #[test]
    fn a_file_of_the_simulator_becomes_a_curve_that_rises() {
        let curve = read_simulator(58.0, SIMULATOR).unwrap();
        let expected = [(2480.5, 98.3), (66096.5, 110.7), (217000.0, 220.5), (250273.5, 481.0)];
        assert_eq!(curve.points[..4], expected);
        assert_eq!(curve.points[4], (250547.9, 481.0), "never faster under more load");
        assert_eq!(curve.writes_percent, 42.0);
    }

    #[test]
    fn the_columns_of_mess_are_found_by_name_and_missing_ones_are_reported() {
        let text = "pause,latency,rd_percentage,bandwidth\n9,90.5,100,1\n0,200,100,30\n\
                    9,95,50,1\n0,300,50,20.5\n";
        let curves = read(text).unwrap();
        assert_eq!(curves.len(), 2);
        assert_eq!(curves[0].points, [(1000.0, 90.5), (30_000.0, 200.0)]);
        assert_eq!((curves[1].writes_percent, curves[1].points[1]), (50.0, (20_500.0, 300.0)));
        let lacking = read("rd_percentage,latency\n").unwrap_err().to_string();
        assert!(lacking.contains("no column bandwidth_smooth"), "{lacking}");
        let wrong = read("rd_percentage,latency,bandwidth\n100,fast,3\n").unwrap_err().to_string();
        assert!(wrong.contains("line 2: found `fast`, expected a number"), "{wrong}");
    }

    proptest! {
        #[test]
        fn written_curves_read_the_same(
            steps in proptest::collection::vec((1_u32..5000, 0_u32..500), 2..20),
            writes in proptest::sample::subsequence(vec![0.0, 25.0, 50.0, 100.0], 1..4),
        ) {
            let mut at = (0.0, 80.0);
            let point = |&(mb_s, ns): &(u32, u32)| {
                at = (at.0 + f64::from(mb_s), at.1 + f64::from(ns) / 10.0);
                at
            };
            let points: Vec<(f64, f64)> = steps.iter().map(point).collect();
            let curve = |&writes_percent: &f64| Curve { writes_percent, points: points.clone() };
            let curves: Vec<Curve> = writes.iter().map(curve).collect();
            let found = read(&write(&curves)).unwrap();
            prop_assert_eq!(found.len(), curves.len());
            for (found, curve) in found.iter().zip(&curves) {
                prop_assert_eq!(found.writes_percent, curve.writes_percent);
                for (a, b) in found.points.iter().zip(&curve.points) {
                    prop_assert!((a.0 - b.0).abs() < 1e-6 && a.1 == b.1, "{:?} {:?}", a, b);
                }
            }
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "(?s).{0,200}") {
            let _ = (read(&text), read_simulator(60.0, &text));
        }
    }
}
