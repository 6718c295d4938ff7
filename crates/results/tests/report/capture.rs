//! Machine files from runs with known truth.

use numalab_formats::machine_toml::MachineFile;
use numalab_memory_model::probe::{self, Visits};
use numalab_record::{Document, Experiment, Metric};
use numalab_results::Report;
use numalab_results::capture::page::sentences;
use numalab_results::capture::{Captured, Remark, capture, curve_families};
use numalab_results::machine::{Access, MachineComparison, MachineFigure};
use numalab_results::run::Summary;
use numalab_topology::{NodeId, NodeSet};

use crate::runs;

fn assert_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.03, "{found}, expected {expected}");
}

fn latency_ns(figures: &MachineFile, from: u32, to: u32) -> f64 {
    let pair = (NodeId(from), NodeId(to));
    let mut access = figures.machine.access.iter();
    let found = access.find(|access| (access.initiator, access.target) == pair).expect("a pair");
    found.read_latency_ps.expect("a latency") as f64 / 1000.0
}

#[test]
fn a_machine_file_has_the_measured_figures_and_names_the_missing_ones() {
    let captured = capture(&runs::two_nodes());
    let figures = &captured.figures;
    for (from, to, ns) in [(0, 0, 86.4), (0, 1, 140.1), (1, 0, 140.1), (1, 1, 86.4)] {
        assert_near(latency_ns(figures, from, to), ns);
    }
    assert_eq!(figures.memory.cache_latency_ns.len(), 3);
    for (&found, expected) in figures.memory.cache_latency_ns.iter().zip([1.56, 4.4, 15.2]) {
        assert_near(found, expected);
    }
    let transfers = figures.memory.transfers.as_ref().expect("every kind of pair was measured");
    assert_near(transfers.group_ns, 26.0);
    assert_near(transfers.node_ns[0][1], 71.5);
    let load = figures.memory.load.first().expect("a saturated curve");
    let nodes = NodeSet::from_iter([NodeId(0)]);
    assert_eq!((figures.memory.load.len(), &load.nodes, &load.from), (1, &nodes, &None));
    let &(mb_s, ns) = load.curves[0].points.last().expect("points");
    assert_near(mb_s, 24_400.0);
    assert_near(ns, 87.0 * 4.1);
    let said = sentences(&captured).join("\n");
    for words in [
        "Latencies are for random access over 512M, thp pages.",
        "Omitted: latency under load of node 1, not measured (numalab loaded --surface).",
        "outstanding lines, by Little's law: alone it reads",
        "Omitted: the TLB",
    ] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    assert!(!said.contains("latency from node"), "{said}");
}

#[test]
fn a_surface_gives_a_curve_for_each_share_of_writes() {
    let document = runs::surface();
    let captured = capture(&document);
    let load = &captured.figures.memory.load[0];
    let writes: Vec<f64> = load.curves.iter().map(|curve| curve.writes_percent).collect();
    assert_eq!(writes, [0.0, 25.0, 33.3, 50.0, 100.0]);
    let families = curve_families(&Summary::of(&document));
    assert_eq!((families.len(), &families[0].curves), (1, &load.curves));
    for curve in &load.curves {
        assert!(
            curve.points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1)
        );
    }
}

/// Captures a run in which one cpu chases while the other reads 24.4 GB/s, as it does alone, and
/// the chase never takes longer than 30 ns; both together read `together_gb_per_s`.
fn read_by_two(together_gb_per_s: f64) -> Captured {
    let mut document = runs::one_node();
    for cell in &mut document.cells {
        let is_loaded = matches!(cell.cell.experiment, Experiment::Loaded(_));
        let read = match cell.cell.id.0.as_str() {
            "bandwidth/read/Sequential/cpu0-0/node0-0" => Some(24.4),
            "bandwidth/read/Sequential/cpu0-1/node0-0" => Some(together_gb_per_s),
            _ => None,
        };
        for sample in &mut cell.samples {
            match sample.metric {
                Metric::Latency if is_loaded => sample.value = 97.0 + (sample.value - 97.0) / 10.0,
                _ => sample.value = read.unwrap_or(sample.value),
            }
        }
    }
    capture(&document)
}

#[test]
fn memory_that_gives_more_cores_no_more_is_saturated_even_without_long_waits() {
    let full = read_by_two(25.0);
    let curve =
        &full.figures.memory.load.first().expect("24.4 GB/s by one are all that there is").curves
            [0];
    assert_near(curve.points.last().expect("points").0, 24_400.0);
    let left = read_by_two(46.0);
    assert!(left.figures.memory.load.is_empty());
    // The extra latency of a load at 24.4 GB/s is 30 ns of outstanding lines: 11.5 of 64 bytes.
    let lines = |of: &Captured| {
        let core = of.figures.memory.core.expect("a core");
        core.misses + core.prefetch.expect("some are prefetched")
    };
    let more = lines(&full) - lines(&left);
    assert!((11..=12).contains(&more), "{more}");
    let said = sentences(&left).join("\n");
    assert!(said.contains("because 24.4 GB/s of traffic did not saturate it"), "{said}");
}

#[test]
fn an_atomic_addition_is_as_much_longer_as_it_was_than_a_hit() {
    let mut document = runs::one_node();
    let captured = capture(&document);
    let (core, hit_ns) = (
        captured.figures.memory.core.expect("a core"),
        captured.figures.memory.cache_latency_ns[0],
    );
    assert_near(core.atomic_ns.expect("measured") + hit_ns, 5.7);
    assert!(!captured.remarks.contains(&Remark::NoAtomicAdd));
    let samples = document.cells.iter_mut().flat_map(|cell| &mut cell.samples);
    samples
        .filter(|sample| sample.metric == Metric::AtomicAdd)
        .for_each(|sample| sample.metric = Metric::Frame);
    let older = capture(&document);
    assert_eq!(older.figures.memory.core.expect("a core").atomic_ns, None);
    assert!(older.remarks.contains(&Remark::NoAtomicAdd));
}

#[test]
fn a_walk_that_takes_longer_than_its_access_has_a_time_beyond_it() {
    let captured = capture(&runs::one_node());
    // A walk of the model takes the measured time, 11 ns beyond the nearest TLB.
    let tlb = captured.figures.memory.tlb.as_ref().expect("a TLB");
    assert!((3.0..6.0).contains(&tlb.walk_ns), "{}", tlb.walk_ns);
    assert_near(probe::translation_ns(&captured.figures.caches(), tlb, 8192, Visits::Random), 11.0);
    let said = sentences(&captured).join("\n");
    assert!(said.contains(" ns beyond its accesses"), "{said}");
}

#[test]
fn a_cores_non_temporal_stores_are_limited_to_a_number_of_lines_at_a_time() {
    let core = capture(&runs::one_node()).figures.memory.core.expect("a core");
    let lines = f64::from(core.writes.expect("write-nt by one core"));
    let reads = f64::from(core.misses + core.prefetch.expect("some are prefetched"));
    assert!(lines != reads && (0.3..3.0).contains(&(lines / reads)), "{lines}, {reads}");
}

#[test]
fn an_emulated_core_runs_dependent_adds_at_their_measured_rate() {
    let mut document = runs::one_node();
    let each_ns = |document: &Document| {
        let captured = capture(document);
        captured.figures.memory.core.expect("a core").ns_per_instruction
    };
    let real_ns = each_ns(&document);
    document.run.environment.facts.insert("time".into(), "each vCPU's own".into());
    assert_near(each_ns(&document) / real_ns, 2.0);
}

#[test]
fn an_empty_run_gives_its_topology_and_reports_the_rest_as_left_out() {
    let captured = capture(&runs::empty());
    let figures = &captured.figures;
    assert!(figures.memory.cache_latency_ns.is_empty() && figures.memory.load.is_empty());
    assert_eq!((&figures.memory.core, &figures.memory.transfers), (&None, &None));
    let said = sentences(&captured);
    assert!(said.iter().all(|sentence| sentence.starts_with("Omitted: ")), "{said:?}");
    assert!(said.len() == 4, "{said:?}");
}

fn names() -> [String; 2] {
    ["epyc.toml", "results/again"].map(str::to_owned)
}

#[test]
fn a_machine_file_and_a_run_are_shown_side_by_side() {
    let file = capture(&runs::two_nodes()).figures;
    let mut result = file.clone();
    let slow = result.machine.access.iter_mut().find(|access| access.initiator != access.target);
    let slow = slow.and_then(|access| access.read_latency_ps.as_mut()).expect("a remote pair");
    *slow += *slow / 10;
    result.memory.transfers = None;
    let compared = MachineComparison::of(&file, &result, 5.0);
    let worse: Vec<_> = compared.worse().map(|pair| &pair.what).collect();
    let latency = MachineFigure::Latency { access: Access::Load, from: NodeId(0), to: NodeId(1) };
    assert_eq!(worse, [&latency]);
    let json: serde_json::Value =
        serde_json::from_str(&compared.document(names()).json().expect("JSON")).expect("JSON");
    assert_eq!(json["pairs"][0]["unit"], "ns");
    assert!(json["pairs"].to_string().contains("load latency from node 0 to node 1"), "{json}");
    let page = compared.document(names()).page().markdown();
    let row = |start: &str| {
        let mut lines = page.lines().filter(|line| line.starts_with(&format!("| {start} |")));
        lines.next().unwrap_or_else(|| panic!("no {start} in {page}")).to_owned()
    };
    assert!(row("load latency from node 0 to node 1").ends_with("| ns | +10.0 % |"), "{page}");
    assert!(row("line within an L3 group, one way").ends_with("| – | ns | – |"), "{page}");
    let csv = compared.document(names()).exported(numalab_page::Format::Csv).expect("rows");
    assert!(csv.starts_with("what,unit,file,result,difference_percent\n"), "{csv}");
    assert!(
        compared.document(names()).json().expect("JSON").contains("numalab/machine-comparison-2")
    );
}
