//! Charts of measured figures.

use insta::assert_snapshot;
use numalab_page::{
    Bar, BarGroup, BlockChanges, Chart, CurveLevel, CurvePoint, Curves, Dot, Figure, Heatmap,
    HeatmapEntry, IntervalRow, LoadPoint, Mood, RunOrder, Series, SizeCurve,
};
use numalab_stats::{Interval, Knee};

use crate::shown::{every_format, page_of};

fn figure(value: f64) -> Figure {
    Figure { value, interval: Some(Interval { lo: value * 0.98, hi: value * 1.03 }) }
}

#[test]
fn a_heat_map_has_a_cell_for_each_pair_and_none_where_nothing_was_measured() {
    let entry = |value: f64| {
        Some(HeatmapEntry { value, detail: format!("{value} ns\n<interval> & origin") })
    };
    let map = Heatmap {
        unit: "ns".to_owned(),
        rows_are: "node",
        rows: vec![0, 1, 8],
        columns_are: "node",
        columns: vec![0, 1],
        entries: vec![
            vec![entry(92.4), entry(141.0)],
            vec![entry(139.5), entry(91.0)],
            vec![None, entry(310.25)],
        ],
    };
    assert_eq!(map.range(), Some(Interval { lo: 91.0, hi: 310.25 }));
    assert_snapshot!(every_format(&page_of("a heat map", Chart::Heatmap(map))));
}

#[test]
fn a_heat_map_of_equal_values_has_one_colour() {
    let entry = Some(HeatmapEntry { value: 7.0, detail: String::new() });
    let map = Heatmap {
        unit: "GB/s".to_owned(),
        rows_are: "cpu",
        rows: vec![0, 1],
        columns_are: "node",
        columns: vec![0],
        entries: vec![vec![entry.clone()], vec![entry]],
    };
    assert_snapshot!(every_format(&page_of("equal values", Chart::Heatmap(map))));
}

#[test]
fn latency_over_size_shows_the_levels_of_the_first_curve() {
    let point = |(power, value): (u32, f64)| CurvePoint {
        size_bytes: 1 << power,
        figure: figure(value),
        cell: format!("latency/random/{power}"),
    };
    let curve = |name: &str, factor: f64| SizeCurve {
        name: name.to_owned(),
        points: (14..26)
            .map(|power| {
                let level = if power < 17 {
                    1.2
                } else if power < 22 {
                    4.5
                } else {
                    95.0
                };
                point((power, level * factor))
            })
            .collect(),
        levels: vec![
            CurveLevel {
                name: "L1".to_owned(),
                latency_ns: 1.2,
                from_bytes: 1 << 14,
                to_bytes: 1 << 16,
                capacity_bytes: Some(49_152.0),
            },
            CurveLevel {
                name: "memory".to_owned(),
                latency_ns: 95.0,
                from_bytes: 1 << 22,
                to_bytes: 1 << 25,
                capacity_bytes: None,
            },
        ],
    };
    let curves = vec![curve("random, thp", 1.0), curve("random, 4k", 1.4)];
    assert_snapshot!(every_format(&page_of("latency over size", Chart::LatencyOverSize(curves))));
}

#[test]
fn latency_over_bandwidth_marks_the_knee() {
    let point = |(load, traffic, latency): (&str, f64, f64)| LoadPoint {
        load: load.to_owned(),
        traffic_gb_per_s: traffic,
        latency: figure(latency),
        cell: format!("loaded/{load}"),
    };
    let points: Vec<LoadPoint> = [
        ("idle", 0.0, 90.0),
        ("delay 400", 12.0, 93.0),
        ("delay 40", 31.0, 118.0),
        ("full", 38.5, 260.0),
    ]
    .into_iter()
    .map(point)
    .collect();
    let knee = Knee { idle_ns: 90.0, bandwidth: 31.0, latency_ns: 118.0 };
    let with_knee = Chart::LatencyOverBandwidth(points.clone(), Some(knee));
    assert_snapshot!(every_format(&page_of("a knee", with_knee)));
    let without = Chart::LatencyOverBandwidth(points[..2].to_vec(), None);
    assert_snapshot!(every_format(&page_of("no knee", without)));
}

#[test]
fn bars_of_a_group_share_a_scale_and_have_their_intervals() {
    let bar = |label: &str, value: f64| Bar {
        label: label.to_owned(),
        figure: figure(value),
        unit: "GB/s".to_owned(),
        cell: format!("bandwidth/{label}"),
    };
    let single = Bar { figure: Figure { value: 3.0, interval: None }, ..bar("one value", 3.0) };
    let groups = vec![
        BarGroup { title: "node 0".to_owned(), bars: vec![bar("read", 21.4), bar("copy", 14.0)] },
        BarGroup { title: "node 1 <remote>".to_owned(), bars: vec![bar("read", 9.5), single] },
    ];
    assert_snapshot!(every_format(&page_of("bars", Chart::Bars(groups))));
}

#[test]
fn curves_have_a_legend_and_an_axis_that_may_be_logarithmic() {
    let series = |name: &str, factor: f64| Series {
        name: name.to_owned(),
        points: [1.0, 2.0, 4.0, 8.0, 64.0].map(|x| (x, factor * x)).to_vec(),
    };
    let mut curves = Curves {
        x_name: "ranks".to_owned(),
        x_is_logarithmic: false,
        y_name: "ns per load".to_owned(),
        series: vec![series("sequential", 10.0), series("interleaved", 5.0)],
    };
    assert_snapshot!(every_format(&page_of("curves", Chart::Curves(curves.clone()))));
    curves.x_is_logarithmic = true;
    assert_snapshot!(every_format(&page_of("over a logarithm", Chart::Curves(curves))));
}

#[test]
fn a_curve_of_one_point_and_none_at_all_are_drawn() {
    let curves = |series| Curves {
        x_name: "size".to_owned(),
        x_is_logarithmic: true,
        y_name: "ns".to_owned(),
        series,
    };
    let one = Series { name: "a".to_owned(), points: vec![(4.0, 2.0)] };
    assert_snapshot!(every_format(&page_of("one point", Chart::Curves(curves(vec![one])))));
    assert_snapshot!(every_format(&page_of("no curve", Chart::Curves(curves(Vec::new())))));
}

#[test]
fn changes_with_their_intervals_are_on_one_scale_around_the_margin() {
    let row = |name: &str, percent: f64, half: f64, mood: Mood| IntervalRow {
        name: name.to_owned(),
        percent: Some(percent),
        interval: Some(Interval { lo: percent - half, hi: percent + half }),
        margin_percent: 2.0,
        mood,
        verdict: format!("{percent:+} %, {mood}"),
        detail: format!("{name}: <{percent}>"),
    };
    let no_ratio =
        IntervalRow { percent: None, interval: None, ..row("no ratio", 0.0, 1.0, Mood::Plain) };
    let rows = vec![
        row("huge pages", -12.5, 1.5, Mood::Good),
        row("balancing", 4.0, 0.5, Mood::Bad),
        row("interleaving", 0.2, 0.9, Mood::Fine),
        row("noise", -1.0, 30.0, Mood::Odd),
        no_ratio,
    ];
    assert_snapshot!(every_format(&page_of("intervals", Chart::Intervals(rows))));
}

#[test]
fn ends_and_changes_beyond_the_drawing_are_arrows_at_its_edge() {
    let row = |percent: f64, lo: f64, hi: f64| IntervalRow {
        name: "latency".to_owned(),
        percent: Some(percent),
        interval: Some(Interval { lo, hi }),
        margin_percent: 2.0,
        mood: Mood::Bad,
        verdict: "worse".to_owned(),
        detail: String::new(),
    };
    let drawn = |rows: Vec<IntervalRow>| {
        let html = page_of("intervals", Chart::Intervals(rows)).html();
        ["<circle class=\"d-bad\"", "<path class=\"d-bad\""]
            .map(|element| html.matches(element).count())
    };
    let beside = |far: IntervalRow| vec![row(1.0, -1.0, 3.0), row(2.0, 1.0, 3.0), far];
    assert_eq!(drawn(beside(row(75.0, 5.0, 110.0))), [3, 0], "all of it fits");
    assert_eq!(drawn(beside(row(75.0, 5.0, 185.0))), [3, 1], "one end does not");
    assert_eq!(drawn(beside(row(200.0, 66.0, 490.0))), [2, 1], "nor does the change");
    assert_eq!(drawn(vec![row(75.0, 74.0, 76.0), row(151.0, 150.0, 152.0)]), [2, 0], "usual here");
}

#[test]
fn the_change_in_each_block_is_sorted_around_the_estimate() {
    let changes = BlockChanges {
        changes: vec![-3.0, 1.5, -2.0, -6.0, -2.5],
        effect: -2.5,
        interval: Some(Interval { lo: -4.5, hi: -0.5 }),
        unit: None,
        described: "five blocks & their change".to_owned(),
    };
    assert_snapshot!(every_format(&page_of("blocks", Chart::Blocks(changes.clone()))));
    let in_ns = BlockChanges { unit: Some("ns".to_owned()), interval: None, ..changes };
    assert_snapshot!(every_format(&page_of("blocks in ns", Chart::Blocks(in_ns))));
}

#[test]
fn values_in_the_order_of_the_run_are_marked_by_kind_and_disturbance() {
    let dots = (0..6_u32).map(|at| Dot {
        value: 100.0 + f64::from(at * 7 % 5),
        kind: usize::from(at % 2 == 1),
        disturbed: at == 3,
        detail: format!("sample {at} of \"a\""),
    });
    let order = RunOrder {
        dots: dots.collect(),
        names: vec!["baseline".to_owned(), "candidate".to_owned()],
        unit: "ns".to_owned(),
        described: "six values".to_owned(),
    };
    assert_snapshot!(every_format(&page_of("order", Chart::Order(order))));
}
