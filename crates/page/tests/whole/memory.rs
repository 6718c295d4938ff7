//! Charts of a program's memory.

use insta::assert_snapshot;
use numalab_page::{
    AccessMap, Chart, MapCell, MapRow, MemoryOverTime, Moment, PhaseMark, StripPart, TimeRow,
};

use crate::shown::{every_format, page_of};

fn cell(share: f64, remote: Option<f64>) -> Option<MapCell> {
    Some(MapCell { share, remote, tip: format!("{share} of <all>") })
}

#[test]
fn regions_are_shown_with_the_nodes_that_hold_them_and_the_threads_that_use_them() {
    let part = |heat: f64, is_remote| StripPart { heat, is_remote, tip: format!("heat {heat}") };
    let table = MapRow {
        name: "table".to_owned(),
        detail: "64M, main.c:12".to_owned(),
        strip: vec![part(0.0, false), part(0.5, true), part(1.0, false)],
        memory: vec![cell(0.75, None), cell(0.25, None)],
        accesses: vec![cell(0.6, Some(0.1)), None, cell(0.3, Some(0.3))],
    };
    let heap = MapRow {
        name: "[heap] & <more>".to_owned(),
        detail: "1M".to_owned(),
        strip: Vec::new(),
        memory: vec![None, cell(1.0, None)],
        accesses: vec![None, cell(0.1, Some(0.0)), None],
    };
    let map = AccessMap {
        memory_nodes: vec![0, 1],
        threads: vec![
            ("node 0".to_owned(), vec!["main".to_owned(), "worker 1".to_owned()]),
            ("node 1".to_owned(), vec!["worker 2".to_owned()]),
        ],
        rows: vec![table, heap],
        counted: "accesses".to_owned(),
    };
    assert_snapshot!(every_format(&page_of("a map", Chart::Map(map))));
}

#[test]
fn the_use_of_memory_over_time_has_its_moments_regions_and_phases() {
    let moment = |at: u32| Moment {
        end_s: 0.5 * f64::from(at + 1),
        local: 1e6 * f64::from(at + 1),
        remote: 2e5 * f64::from(4 - at),
        unplaced: if at == 2 { 1e5 } else { 0.0 },
        running: 2.0,
        waiting: 0.5 * f64::from(at % 2),
    };
    let row = |name: &str, factor: f64| TimeRow {
        name: name.to_owned(),
        cells: (0..4).map(|at| (factor * f64::from(at), 0.25 * f64::from(at))).collect(),
    };
    let over_time = MemoryOverTime {
        moments: (0..4).map(moment).collect(),
        rows: vec![row("table", 4e5), row("all others", 1e4)],
        phases: vec![
            PhaseMark { begin_s: 0.0, end_s: 0.9, label: "1".to_owned() },
            PhaseMark { begin_s: 0.9, end_s: 2.0, label: "2".to_owned() },
        ],
        counted: "accesses".to_owned(),
        has_waits: true,
    };
    let chart = Chart::OverTime(over_time.clone());
    assert_snapshot!(every_format(&page_of("over time", chart)));
    let sampled = MemoryOverTime { has_waits: false, phases: Vec::new(), ..over_time };
    assert_snapshot!(every_format(&page_of("without waits", Chart::OverTime(sampled))));
}
