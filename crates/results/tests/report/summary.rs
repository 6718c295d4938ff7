//! Findings of a summary in runs with known truth.

use numalab_record::{AccessPattern, Document, Experiment, Team};
use numalab_results::Report;
use numalab_results::run::{LevelName, Oddity, Remote, Summary};
use numalab_topology::Allowed;

use crate::runs;

/// Returns the kinds of findings as named in JSON.
fn kinds(document: &Document) -> Vec<String> {
    let json: serde_json::Value =
        serde_json::from_str(&Summary::of(document).json().expect("it serialises"))
            .expect("it is JSON");
    let findings = json["findings"].as_array().expect("findings").iter();
    findings.map(|finding| finding["kind"].as_str().expect("a kind").to_owned()).collect()
}

#[test]
fn caches_are_found_where_the_curve_leaves_them() {
    let document = runs::one_node();
    let summary = Summary::of(&document);
    let levels = &summary.curves[0].levels;
    let names: Vec<LevelName> = levels.iter().map(|level| level.name).collect();
    use LevelName::{Cache, Memory};
    assert_eq!(names, [Cache(1), Cache(2), Cache(3), Memory]);
    for level in &levels[..3] {
        let (found, reported) = (level.capacity_bytes, level.reported_bytes);
        let ratio = found.expect("it ends") / reported.expect("it is reported") as f64;
        assert!((0.8..1.4).contains(&ratio), "{level:?}");
    }
    assert!((levels[3].latency_ns / 98.0 - 1.0).abs() < 0.02);
}

#[test]
fn a_cache_that_ends_far_below_its_reported_size_keeps_its_name_and_is_odd() {
    let mut document = runs::one_node();
    for cache in &mut document.run.machine.caches {
        if cache.level == 3 {
            cache.size_bytes = Some(260 << 20);
        }
    }
    let summary = Summary::of(&document);
    assert_eq!(summary.curves[0].levels[2].name, LevelName::Cache(3));
    assert_eq!(kinds(&document), ["cache-size"]);
}

#[test]
fn a_page_walk_is_random_minus_page_local() {
    let document = runs::one_node();
    let summary = Summary::of(&document);
    let costs: Vec<(String, f64)> =
        summary.walks.iter().map(|walk| (walk.pages.name(), walk.cost_ns)).collect();
    assert_eq!(costs.len(), 2);
    assert!(costs[0].0 == "4k" && (costs[0].1 - 98.0 * 0.36).abs() < 1.0, "{costs:?}");
    assert!(costs[1].0 == "thp" && (costs[1].1 - 98.0 * 0.07).abs() < 1.0, "{costs:?}");
}

#[test]
fn the_matrix_shows_the_share_of_page_walks_where_it_matters() {
    let pages = |document: &Document| Summary::of(document).page().markdown();
    let document = runs::two_nodes();
    let walk = &Summary::of(&document).walks[1];
    assert!(walk.cost_ns > 0.05 * 98.0, "{walk:?}");
    assert!(pages(&document).contains("the page walk is part of these latencies"));
    let mut local = document.clone();
    for cell in &mut local.cells {
        if let Experiment::Latency(latency) = &mut cell.cell.experiment
            && latency.size_bytes == 512 << 20
        {
            latency.pattern = AccessPattern::PageLocal;
        }
    }
    assert!(pages(&local).contains("These loads hit the TLB. In random order over 1G of thp"));
    assert!(!pages(&runs::eight_nodes()).contains("the page walk adds"));
}

#[test]
fn a_remote_access_costs_the_time_of_the_matrix() {
    let document = runs::two_nodes();
    let summary = Summary::of(&document);
    let Remote::Measured(cost) = &summary.remote else {
        panic!("{:?}", summary.remote);
    };
    let (nearest, farthest) = cost.extremes().expect("two pairs");
    assert!((nearest.ratio - 1.62).abs() < 0.02 && (farthest.ratio - 1.62).abs() < 0.02);
    assert_eq!(kinds(&document), ["distance-ratio"]);
}

#[test]
fn one_node_has_nothing_remote_and_an_empty_run_claims_nothing() {
    let document = runs::one_node();
    assert_eq!(Summary::of(&document).remote, Remote::OneNode);
    assert_eq!(kinds(&document), [""; 0]);
    let empty = runs::empty();
    let summary = Summary::of(&empty);
    assert_eq!(summary.remote, Remote::NotMeasured);
    assert!(summary.page().lead[2].sentence.starts_with("Nothing was planned"));
}

#[test]
fn the_page_of_a_run_of_bandwidth_opens_with_bandwidth() {
    let document = runs::bandwidth_alone();
    let lead = Summary::of(&document).page().lead;
    let names: Vec<&str> = lead.iter().map(|lead| lead.name.as_str()).collect();
    assert_eq!(names, ["Bandwidth", "Anomalies"], "and not with what it did not measure");
    assert_eq!(
        lead[0].sentence,
        "Local memory gives 8 cpus 49.8 GB/s together, and 1 cpu alone 13.1 GB/s (read); the cpus \
         of one node read 15.2 GB/s from another's memory."
    );
}

#[test]
fn a_run_that_may_not_use_its_local_memory_says_so() {
    let mut document = runs::empty();
    document.run.machine = runs::eight_nodes().run.machine;
    let sentence = |document: &Document| Summary::of(document).page().lead[0].sentence.clone();
    assert!(sentence(&document).ends_with("this run does not compare nodes' memory."));
    let cpus = document.run.machine.nodes[0].cpus.clone();
    let memory_nodes = "1".parse().expect("a list");
    document.run.machine.allowed = Some(Allowed { cpus, memory_nodes, ..Allowed::default() });
    let said = sentence(&document);
    assert!(said.contains("memory of node 0, local to its cpus, is not allowed"), "{said}");
}

#[test]
fn distances_out_of_order_and_a_slow_node_are_named() {
    let document = runs::eight_nodes();
    let summary = Summary::of(&document);
    let order = summary.findings.iter().find_map(|finding| match &finding.what {
        Oddity::DistanceOrder { from, near, .. } => Some((from.0, near.node.0, near.distance)),
        _ => None,
    });
    assert_eq!(order, Some((0, 3, 11)));
    let slow = summary.findings.iter().find(|f| matches!(f.what, Oddity::SlowNode { .. }));
    let slow = slow.expect("node 5 is slow");
    assert_eq!((slow.threshold, slow.evidence.is_empty()), (Some(1.1), false));
    let page = summary.page().markdown();
    for sentence in [
        "from node 0, node 3 (distance 11) takes 131 ns",
        "Node 5 is slower than the other nodes: 104 ns",
    ] {
        assert!(page.contains(sentence), "{sentence}: {page}");
    }
}

#[test]
fn an_interrupted_run_reports_everything_that_went_wrong() {
    let document = runs::interrupted();
    let expected = ["failed", "unmeasured", "distance-ratio", "huge-pages-missing", "not-precise"];
    assert_eq!(kinds(&document), expected);
}

#[test]
fn disturbed_windows_are_kept_but_left_out_of_the_figure() {
    let document = runs::interrupted();
    let summary = Summary::of(&document);
    let figures = &summary.cells[5].figures[0];
    assert_eq!((figures.windows, figures.disturbed), (24, 9));
    let (kept, all) = (figures.kept.as_ref(), figures.all.as_ref());
    assert!(kept.expect("some are quiet").median < all.expect("all").median);
}

#[test]
fn a_clock_that_is_not_invariant_and_much_disturbance_are_odd() {
    let mut document = runs::one_node();
    let facts = &mut document.run.environment.facts;
    facts.insert("clock_invariant".into(), false.into());
    for cell in &mut document.cells {
        for sample in cell.samples.iter_mut().step_by(4) {
            sample.disturbed = Some("steal".into());
        }
    }
    assert_eq!(kinds(&document), ["clock-not-invariant", "disturbed"]);
}

#[test]
fn memory_on_another_node_or_without_proof_is_the_first_doubt() {
    let mut document = runs::two_nodes();
    let placement = &mut document.cells[40].placements[0];
    let pages = placement.pages_per_node.clone();
    placement.memory_node.0 += 1;
    placement.pages_per_node = pages;
    assert_eq!(kinds(&document)[0], "misplaced");
    let mut unproven = runs::one_node();
    unproven.cells[3].placements.clear();
    assert_eq!(kinds(&unproven), ["unproven"]);
}

#[test]
fn latency_under_load_has_its_knee_at_twice_idle() {
    let document = runs::two_nodes();
    let summary = Summary::of(&document);
    let knee = summary.loaded[0].knee.expect("a knee");
    assert!((20.9..23.6).contains(&knee.bandwidth), "{knee:?}");
    let delays: Vec<Option<u32>> =
        summary.loaded[0].points.iter().map(|point| point.delay).collect();
    assert_eq!(delays[..3], [None, Some(512), Some(128)]);
    assert_eq!(delays.last(), Some(&Some(0)));
}

#[test]
fn a_surface_is_a_family_of_curves_with_peaks_in_traffic() {
    let document = runs::surface();
    let summary = Summary::of(&document);
    assert_eq!(summary.loaded.len(), 6);
    for curve in &summary.loaded {
        let (knee, saturation) = (curve.knee.expect("a knee"), curve.saturation.expect("the end"));
        let peak = curve.peak.expect("points under load");
        // The fixture moves the same under every kernel: 23.6 of 24.4 GB/s at 2.9 times idle.
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.03;
        assert!(near(saturation.gb_per_s, 23.6) && near(saturation.latency_ns, 87.0 * 2.9));
        assert!(near(peak.gb_per_s, 24.4) && near(peak.latency_ns, 87.0 * 4.1), "{peak:?}");
        assert!(knee.bandwidth < saturation.gb_per_s);
    }
    // Two nodes share 61 GB/s.
    let reached = summary.memory_peak.expect("modules").reached.expect("streams");
    assert!((0.78..0.82).contains(&reached), "{reached}");
    let page = summary.page().markdown();
    for words in [
        "| triad | 75 |",
        "The memory modules move 61.0 GB/s on all nodes; 80 % of a node's share was reached",
        "emory channels without a module: DIMM\\_C",
        "DIMM\\_B1 at 2933 of 3200 MT/s",
        "Traffic is the data moved in memory",
    ] {
        assert!(page.contains(words), "no `{words}` in {page}");
    }
}

#[test]
fn a_guest_of_one_node_is_not_assured_that_no_access_is_remote() {
    let mut document = runs::one_node();
    let page = |document: &_| Summary::of(document).page().terminal(numalab_page::Style::Plain);
    assert!(page(&document).contains("so no access is remote"));
    document.run.environment.facts.insert("hypervisor".to_owned(), "KVM".into());
    let guest = page(&document);
    assert!(guest.contains("This guest sees one memory node"), "{guest}");
    assert!(!guest.contains("no access is remote"), "{guest}");
}

#[test]
fn packages_that_are_shown_as_one_node_have_remote_accesses() {
    let mut document = runs::one_node();
    for (package, cpu) in (0..).zip(&mut document.run.machine.cpus) {
        cpu.package = Some(package % 2);
    }
    let page = Summary::of(&document).page().terminal(numalab_page::Style::Plain);
    assert!(page.contains("memory of 2 packages is shown as one node"), "{page}");
    assert!(!page.contains("no access is remote"), "{page}");
}

#[test]
fn a_guest_with_huge_pages_that_are_small_on_the_host_is_warned() {
    let mut document = runs::one_node();
    let fact = ("hypervisor".to_owned(), "KVM".into());
    document.run.environment.facts.extend([fact]);
    assert!(!kinds(&document).contains(&"huge-pages-split".to_owned()));
    for cell in &mut document.cells {
        if cell.cell.id.0.contains("/33554432/one-line-per:4096/thp") {
            cell.samples.iter_mut().for_each(|sample| sample.value += 5.0);
        }
    }
    let summary = Summary::of(&document);
    assert!(kinds(&document).contains(&"huge-pages-split".to_owned()), "{:?}", summary.tlbs);
    let page = summary.page().terminal(numalab_page::Style::Plain);
    assert!(page.contains("huge pages are backed by small ones on its"), "{page}");
    document.run.environment.facts.remove("hypervisor");
    assert!(!kinds(&document).contains(&"huge-pages-split".to_owned()));
}

#[test]
fn the_reach_of_the_tlb_is_on_the_page_and_in_json() {
    let document = runs::one_node();
    let summary = Summary::of(&document);
    let page = summary.page().terminal(numalab_page::Style::Plain);
    assert!(page.contains("TLB reach"), "{page}");
    let json: serde_json::Value = serde_json::from_str(&summary.json().unwrap()).unwrap();
    let small = json["results"]["tlbs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tlb| tlb["pages"] == "4k")
        .unwrap();
    assert_eq!(
        (&small["levels"][0]["holds_pages"], &small["apart_bytes"]),
        (&64.into(), &4096.into())
    );
    assert_eq!(small["levels"][1]["passed_pages"], 2048, "{small}");
    let cost = small["beyond_ns"].as_f64().unwrap();
    assert!((cost - 11.0).abs() < 0.2, "{cost}");
}

#[test]
fn windows_in_bursts_are_reported_with_the_error_of_the_intervals() {
    let mut document = runs::one_node();
    assert!(!kinds(&document).contains(&"bursty".to_owned()));
    let sizes = document.cells.iter_mut().filter(|cell| cell.cell.id.0.starts_with("latency"));
    for cell in sizes {
        let first = cell.samples[0].clone();
        let window = |index: u32| {
            // Three bursts of forty windows.
            let slow = if index % 200 < 40 { 9.0 } else { 0.0 };
            let value = 100.0 + slow + f64::from(index * 37 % 101) / 10.0;
            numalab_record::Sample { index, value, ..first.clone() }
        };
        cell.samples = (0..600).map(window).collect();
    }
    let page = Summary::of(&document).page().markdown();
    assert!(kinds(&document).contains(&"bursty".to_owned()), "{page}");
    assert!(page.contains("come in bursts in ") && page.contains("too narrow, by"), "{page}");
}

/// Returns the run with only the cells that have `part` in their id.
fn only(mut document: Document, part: &str) -> Document {
    document.cells.retain(|cell| cell.cell.id.0.contains(part));
    document.run.plan.retain(|cell| cell.id.0.contains(part));
    document
}

#[test]
fn the_latency_of_a_single_cell_is_printed() {
    let document = only(runs::one_node(), "cpu0/node0/16384/random/thp");
    assert_eq!(document.cells.len(), 1);
    let text = Summary::of(&document).page().terminal(numalab_page::Style::Plain);
    assert!(text.contains("cpu 0 → node 0") && text.contains("95 % interval"), "{text}");
}

#[test]
fn sizes_within_caches_are_never_called_memory() {
    let mut document = runs::two_nodes();
    document.cells.retain(|cell| cell.cell.id.0.contains("536870912"));
    for cell in &mut document.cells {
        if let Experiment::Latency(latency) = &mut cell.cell.experiment {
            latency.size_bytes = 16 << 10;
        }
    }
    let page = Summary::of(&document).page();
    assert!(page.lead[0].sentence.contains("16K may fit in the caches"), "{:?}", page.lead[0]);
}

#[test]
fn caches_that_qemu_reports_do_not_hide_the_cost_of_emulated_memory() {
    let mut document = runs::two_nodes();
    document.cells.retain(|cell| cell.cell.id.0.contains("536870912"));
    for cache in &mut document.run.machine.caches {
        cache.size_bytes = Some(1 << 30);
    }
    let sentence = |document: &Document| Summary::of(document).page().lead[0].sentence.clone();
    assert!(sentence(&document).contains("512M may fit in the caches"), "{}", sentence(&document));
    document.run.environment.facts.insert("time".into(), "virtual".into());
    let shown = sentence(&document);
    assert!(shown.starts_with("A remote access costs "), "{shown}");
    assert!(shown.ends_with("An emulated cache of 512M or more would hide it."), "{shown}");
}

#[test]
fn accesses_that_are_faster_in_company_are_called_noise() {
    let mut document = runs::one_node();
    let page = |document: &Document| Summary::of(document).page().markdown();
    assert!(page(&document).contains("the slowest access takes 104 ns; one at a time it takes"));
    for cell in &mut document.cells {
        if let Experiment::Latency(latency) = &cell.cell.experiment
            && latency.team != Team::Serial
        {
            cell.samples.iter_mut().for_each(|sample| sample.value *= 0.8);
        }
    }
    let page = page(&document);
    assert!(page.contains("against 97.6 ns, a difference that is noise."), "{page}");
}

#[test]
fn a_plateau_that_only_the_largest_size_leaves_is_the_cache_not_found_before() {
    let mut document = runs::one_node();
    document.cells.retain(|cell| match &cell.cell.experiment {
        Experiment::Latency(latency) => {
            latency.size_bytes <= 32 << 20 || latency.size_bytes == 1 << 30
        }
        _ => true,
    });
    for cache in &mut document.run.machine.caches {
        if cache.level == 3 {
            cache.size_bytes = Some(16 << 20);
        }
    }
    let summary = Summary::of(&document);
    let last = summary.curves[0].levels.last().expect("a level");
    assert_eq!((last.name, last.to_bytes), (LevelName::Cache(3), 32 << 20));
    let sentence = &summary.page().lead[1].sentence;
    assert!(sentence.contains("L3 takes 15.8 ns up to 32M at least"), "{sentence}");
    assert!(sentence.contains("one size alone does not show the latency of memory"), "{sentence}");
}

#[test]
fn one_slow_size_at_the_end_does_not_make_a_cache_of_memory() {
    let mut document = runs::one_node();
    let largest = document.cells.iter_mut().filter(|cell| cell.cell.id.0.contains("1073741824"));
    for sample in largest.flat_map(|cell| &mut cell.samples) {
        sample.value *= 3.0;
    }
    let summary = Summary::of(&document);
    assert_eq!(summary.curves[0].levels.last().expect("a level").name, LevelName::Memory);
}

#[test]
fn a_reported_cache_without_a_plateau_is_reported_missing() {
    let mut document = runs::one_node();
    let mut cache = document.run.machine.caches.last().expect("a cache").clone();
    (cache.level, cache.size_bytes) = (4, Some(480 << 20));
    document.run.machine.caches.push(cache);
    let page = Summary::of(&document).page();
    let sentence = &page.lead[1].sentence;
    assert!(sentence.contains("L4 (reported at 480M) was not found"), "{sentence}");
}

/// Of four sizes, "no cache ends within 16K to 256M" was said, and that L1 to L3 were not found.
#[test]
fn sizes_far_apart_are_not_said_to_hold_no_end_of_a_cache() {
    let mut document = runs::one_node();
    document.cells.retain(|result| match &result.cell.experiment {
        Experiment::Latency(cell) => {
            [1 << 14, 1 << 18, 1 << 22, 1 << 28].contains(&cell.size_bytes)
        }
        _ => true,
    });
    let sentence = Summary::of(&document).page().lead[1].sentence.clone();
    assert!(sentence.starts_with("These sizes are too far apart to show"), "{sentence}");
    assert!(!sentence.contains("found"), "{sentence}");
}

#[test]
fn a_knee_is_withheld_where_idle_windows_were_disturbed_or_slower_than_loaded_ones() {
    let is_idle = |cell: &numalab_record::CellResult| matches!(&cell.cell.experiment, Experiment::Loaded(l) if l.delay.is_none());
    let with = |change: fn(&mut numalab_record::Sample)| {
        let mut document = runs::two_nodes();
        let idle = document.cells.iter_mut().filter(|cell| is_idle(cell));
        idle.flat_map(|cell| &mut cell.samples).for_each(change);
        Summary::of(&document).page().markdown()
    };
    let disturbed = with(|sample| sample.disturbed = Some("steal".into()));
    assert!(disturbed.contains("disturbed 100 % of the windows without load"), "{disturbed}");
    let slower = with(|sample| sample.value *= 4.0);
    assert!(slower.contains("the knee is not shown, because latency was"), "{slower}");
}

#[test]
fn cycles_of_an_l1_hit_are_whole_though_the_clock_was_taken_at_another_frequency() {
    let mut document = runs::one_node();
    let of_summary = |document: &Document| {
        let summary = Summary::of(document);
        let cpu = summary.cores[0].cpu;
        summary.cycle_clock_ghz(cpu).expect("a clock") * summary.curves[0].levels[0].latency_ns
    };
    for cell in document.cells.iter_mut().filter(|cell| cell.cell.id.0.contains("core")) {
        for sample in &mut cell.samples {
            if sample.metric == numalab_record::Metric::CoreClock {
                sample.value *= 0.7;
            }
        }
    }
    let cycles = of_summary(&document);
    assert!((cycles - 5.0).abs() < 0.01, "{cycles}");
}

#[test]
fn cells_of_a_kind_without_a_section_are_on_the_page_and_no_cell_is_there_twice() {
    let page = |document: &Document| Summary::of(document).page().markdown();
    let frames = page(&runs::frames());
    let rows = ["2 cpus, 1G each | elapsed | s | 2.5", "2 cpus, 1G each | local-share | x | 1.0"];
    assert!(frames.contains("Other measurements"), "{frames}");
    assert!(rows.iter().all(|row| frames.contains(row)), "{frames}");
    assert!(!page(&runs::two_nodes()).contains("Other measurements"));
}
