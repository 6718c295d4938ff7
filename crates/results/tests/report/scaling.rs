//! Scaling runs with causes that the test puts in.

use numalab_page::{Format, Style};
use numalab_record::scaling::{
    Mode, RankPlace, Scaling, ScalingFile, ScalingMetric, ScalingStep, read,
};
use numalab_results::Report;
use numalab_results::scaling::page::{name, sentence};
use numalab_results::scaling::{GroupKind, ScalingEvidence, ScalingSummary};
use numalab_topology::{Cache, CacheKind, Cpu, CpuId, CpuSet, Machine, Node, NodeId};

/// Returns two nodes of two CCDs of four cores; L2 of 512 KiB, L3 of 32 MiB.
fn machine() -> Machine {
    let cpu = |number: u32| Cpu {
        l3_group: Some(number / 4),
        node: Some(NodeId(number / 8)),
        online: true,
        id: CpuId(number),
        ..Cpu::default()
    };
    let cache = |level, size_bytes, cpus: CpuSet| Cache {
        level,
        kind: CacheKind::Unified,
        size_bytes: Some(size_bytes),
        line_bytes: Some(64),
        ways: None,
        cpus,
    };
    let set = |from: u32, to: u32| (from..to).map(CpuId).collect::<CpuSet>();
    let mut caches: Vec<Cache> =
        (0..16).map(|cpu| cache(2, 512 << 10, set(cpu, cpu + 1))).collect();
    caches.extend((0..4).map(|ccd| cache(3, 32 << 20, set(4 * ccd, 4 * ccd + 4))));
    let node = |number: u32| Node {
        cpus: set(8 * number, 8 * number + 8),
        id: NodeId(number),
        ..Node::default()
    };
    Machine {
        nodes: vec![node(0), node(1)],
        cpus: (0..16).map(cpu).collect(),
        caches,
        ..Machine::default()
    }
}

/// Sizes of 256 KiB, 16 MiB and 512 MiB.
const SIZES: [u64; 3] = [1 << 18, 16 << 20, 512 << 20];

/// Returns a step in which a rank's latency is `cost(ranks in its CCD, ranks on its node, remote)`.
fn step(
    mode: Mode,
    serial: bool,
    cpus: &[u32],
    memory: &[u32],
    cost: &dyn Fn(usize, usize, bool) -> f64,
) -> ScalingStep {
    let count = |of: &dyn Fn(usize) -> u32, rank: usize| {
        (0..cpus.len()).filter(|&other| of(other) == of(rank)).count()
    };
    let at = |size: u64| -> Vec<f64> {
        let value = |rank: usize| {
            let jitter = 1.0 + 0.002 * f64::from(u32::try_from(rank).unwrap());
            let ccd = count(&|other| cpus[other] / 4, rank);
            let fits = size * (ccd as u64) <= 32 << 20;
            match size {
                size if size <= 512 << 10 => 4.0 * jitter,
                _ if fits => 12.0 * jitter,
                _ => {
                    cost(ccd, count(&|other| memory[other], rank), cpus[rank] / 8 != memory[rank])
                        * jitter
                }
            }
        };
        (0..cpus.len()).map(value).collect()
    };
    let place = |(cpu, node): (&u32, &u32)| {
        Some(RankPlace { cpu: CpuId(*cpu), cpu_node: None, memory_node: Some(NodeId(*node)) })
    };
    ScalingStep {
        file: format!(
            "{}_domain0_{}ranks{}.csv",
            mode.name(),
            cpus.len(),
            if serial { "_serial" } else { "" }
        ),
        run: String::new(),
        mode,
        domains: vec![0],
        metric: ScalingMetric::Latency,
        serial,
        complete: true,
        sizes_bytes: SIZES.to_vec(),
        values: SIZES.iter().map(|&size| at(size)).collect(),
        medians: Vec::new(),
        places: cpus.iter().zip(memory).map(place).collect(),
        disturbed: None,
    }
}

/// Returns sequential and interleaved steps of one node, from 1 to 8 ranks.
fn scaling(cost: &dyn Fn(usize, usize, bool) -> f64) -> Scaling {
    let order = |mode, ranks: usize| -> Vec<u32> {
        let all = match mode {
            Mode::Sequential => [0, 1, 2, 3, 4, 5, 6, 7],
            _ => [0, 4, 1, 5, 2, 6, 3, 7],
        };
        all[..ranks].to_vec()
    };
    let mut steps = Vec::new();
    for mode in [Mode::Sequential, Mode::Interleaved] {
        for ranks in [1, 2, 4, 8] {
            steps.push(step(mode, false, &order(mode, ranks), &[0; 8][..ranks], cost));
        }
    }
    Scaling { name: "TEST".to_owned(), machine: Some(machine()), steps, findings: Vec::new() }
}

/// Returns a run in which ranks of a CCD slow each other down considerably, and ranks of a node
/// slightly.
pub fn with_contention() -> Scaling {
    scaling(&|ccd, node, _| 100.0 + 20.0 * ccd as f64 + 3.0 * node as f64)
}

fn says(scaling: &Scaling, rule: &str) -> Vec<String> {
    let report = ScalingSummary::of(scaling);
    let of = report.findings.iter().filter(|found| name(found) == rule);
    of.map(|found| {
        assert!(!found.evidence.is_empty(), "{rule} without evidence");
        sentence(found)
    })
    .collect()
}

#[test]
fn statistics_are_over_the_ranks_and_efficiency_over_the_fewest() {
    let scaling = scaling(&|_, _, _| 100.0);
    let report = ScalingSummary::of(&scaling);
    let of = report
        .figures
        .iter()
        .find(|of| of.mode == Mode::Sequential && of.ranks == 4 && of.size_bytes == 512 << 20)
        .unwrap();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    close(of.mean, 100.3);
    close(of.median, 100.3);
    close(of.range, 0.6);
    close(of.deviation, (0.2_f64 / 3.0).sqrt());
    close(of.p90, 100.54);
    close(of.p99, 100.594);
    close(of.min, 100.0);
    close(of.max, 100.6);
    close(of.efficiency.unwrap(), 100.0 / 100.3);
    assert_eq!(of.baseline_ranks, Some(1));
}

#[test]
fn each_size_falls_in_the_cache_that_the_machine_has() {
    let found = says(&scaling(&|_, _, _| 100.0), "caches");
    assert!(found[0].contains("256K fall in L2 (512K): 4.00 to 4.00 ns"), "{found:?}");
    assert!(found[0].contains("16M fall in L3 (32M)"), "{found:?}");
    assert!(found[0].contains("512M fall in memory: 100 to 100 ns"), "{found:?}");
    let shared = says(&scaling(&|_, _, _| 100.0), "shared L3");
    assert!(shared[0].starts_with("16M of one rank fit in the L3 of 32M"), "{shared:?}");
    assert!(shared[0].contains("the 4 ranks of a CCD need 64M, too much for it, which costs time"));
}

#[test]
fn a_disturbed_step_is_reported_after_the_claims_from_the_others() {
    let mut scaling = with_contention();
    assert_eq!(says(&scaling, "disturbance"), Vec::<String>::new());
    scaling.steps[0].disturbed = Some(0.04);
    scaling.steps[1].disturbed = Some(0.55);
    let report = ScalingSummary::of(&scaling);
    let last = report.findings.last().expect("a finding");
    assert_eq!(name(last), "disturbance");
    let said = "other work disturbed 1 of 8 steps: nothing is concluded from it";
    assert_eq!(sentence(last), said);
    let file = scaling.steps[1].file.clone();
    assert_eq!(last.evidence, [ScalingEvidence::Disturbed { file: file.clone(), share: 0.55 }]);
    let page = report.page().html();
    assert!(page.contains(&format!("<td>55.0 % of its windows; {file}</td>")), "{page}");
}

/// Means are slowed by other work, medians are not.
#[test]
fn contention_that_the_medians_deny_is_not_claimed() {
    let mut scaling = with_contention();
    scaling.steps.retain(|step| step.mode == Mode::Sequential && step.ranks() <= 2);
    scaling.steps[1].values[2] = vec![220.0, 330.0];
    scaling.steps[0].medians = vec![vec![4.0], vec![12.0], vec![122.2]];
    scaling.steps[1].medians = vec![vec![4.0, 4.0], vec![12.0, 12.0], vec![120.2, 123.6]];
    let found = says(&scaling, "contention");
    assert!(found[0].contains("no slowdown beyond the spread of the ranks"), "{found:?}");
    let report = ScalingSummary::of(&scaling);
    let text = report.page().terminal(Style::Plain);
    assert!(!text.contains("275"), "no mean of the disturbed ranks is shown: {text}");
}

#[test]
fn nothing_is_claimed_from_disturbed_steps() {
    let mut scaling = with_contention();
    let claimed = ScalingSummary::of(&scaling).findings.len();
    assert!(claimed > 3);
    for step in &mut scaling.steps {
        step.disturbed = Some(if step.ranks() > 1 { 0.3 } else { 0.0 });
    }
    let rules: Vec<&str> = ScalingSummary::of(&scaling).findings.iter().map(name).collect();
    assert_eq!(rules, ["caches", "disturbance"], "of one rank alone");
    scaling.steps.iter_mut().for_each(|step| step.disturbed = Some(0.3));
    let report = ScalingSummary::of(&scaling);
    let said: Vec<String> = report.findings.iter().map(sentence).collect();
    assert_eq!(said, ["other work disturbed every step: nothing is concluded from them"]);
}

#[test]
fn a_cache_as_slow_as_memory_is_not_reported_to_hold_anything() {
    let mut scaling = scaling(&|_, _, _| 200.0);
    for step in &mut scaling.steps {
        step.values[1].fill(190.0);
    }
    let found = says(&scaling, "caches");
    let expected = "16M would fit in L3 (32M), but take as long as memory: 190 to 190 ns";
    assert!(found[0].contains(expected), "{found:?}");
    assert!(found[0].contains("256K fall in L2"), "{found:?}");
}

#[test]
fn the_slowdown_among_ranks_of_a_ccd_is_attributed_to_the_ccd() {
    let scaling = scaling(&|ccd, _, _| 100.0 + 20.0 * ccd as f64);
    let found = says(&scaling, "CCD");
    assert!(
        found[0].starts_with(
            "4 ranks with 4 on a node's memory, at 512M each: packed 4 to a CCD they are"
        ),
        "{found:?}"
    );
    assert!(found[0].contains("28.6 % slower than 2 to a CCD"), "{found:?}");
}

#[test]
fn the_cost_of_memory_controllers_is_not_attributed_to_the_ccd() {
    let scaling = scaling(&|_, node, _| 100.0 + 20.0 * node as f64);
    let found = says(&scaling, "CCD");
    assert!(found[0].contains("makes no difference beyond the spread"), "{found:?}");
    // Interleaved ranks, from 1 to 8, load both, so neither alone may be blamed for the slowdown.
    let crowd = says(&scaling, "contention");
    assert!(crowd.iter().all(|said| said.contains("cannot separate them")), "{crowd:?}");
    // From 1 to 2 interleaved ranks only the load on the node grows.
    let node = says(&scaling, "memory controllers");
    assert_eq!(node.len(), 1);
    assert!(node[0].starts_with("interleaved, node 0: 2 ranks instead of 1"), "{node:?}");
    assert!(node[0].contains("at 512M each: 16.8 % slower"), "{node:?}");
}

#[test]
fn ranks_that_do_not_slow_each_other_are_reported_so() {
    let found = says(&scaling(&|_, _, _| 100.0), "contention");
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|said| said.contains("no slowdown beyond the spread")), "{found:?}");
}

#[test]
fn remote_memory_is_compared_with_local_memory_of_the_same_step() {
    let mut scaling = scaling(&|_, _, _| 100.0);
    let cost = |_: usize, _: usize, remote: bool| if remote { 180.0 } else { 90.0 };
    let cpus = [0, 1, 2, 3, 8, 9, 10, 11];
    scaling.steps = vec![step(Mode::Sequential, false, &cpus, &[0; 8], &cost)];
    let found = says(&scaling, "local and remote");
    assert!(found[0].contains("remote memory is 102 % slower: 182 ns over 4 ranks"), "{found:?}");
    let groups = ScalingSummary::of(&scaling).groups;
    let by_node: Vec<(u32, usize)> = groups
        .iter()
        .filter(|group| group.kind == GroupKind::CpuNode)
        .map(|group| (group.number, group.ranks))
        .collect();
    assert_eq!(by_node, [(0, 4), (1, 4)]);
}

#[test]
fn ranks_at_the_same_time_are_compared_with_one_at_a_time() {
    let mut scaling = scaling(&|_, _, _| 150.0);
    let cpus = [0, 1, 2, 3, 4, 5, 6, 7];
    scaling.steps.push(step(Mode::Sequential, true, &cpus, &[0; 8], &|_, _, _| 100.0));
    let found = says(&scaling, "concurrent and serial");
    assert!(found[0].contains("8 ranks at the same time are 50.0 % slower"), "{found:?}");
}

#[test]
fn without_placement_nothing_is_claimed_about_ccds_and_nodes() {
    let mut scaling = scaling(&|ccd, _, _| 100.0 + 20.0 * ccd as f64);
    scaling.machine = None;
    scaling.steps.iter_mut().for_each(|step| step.places.fill(None));
    let report = ScalingSummary::of(&scaling);
    let rules: Vec<&str> = report.findings.iter().map(name).collect();
    assert!(!rules.contains(&"CCD") && !rules.contains(&"caches"), "{rules:?}");
    assert!(rules.contains(&"placement"));
    let crowd = says(&scaling, "contention");
    assert!(
        crowd[0].ends_with("because the nodes or the CCDs of the ranks are not recorded"),
        "{crowd:?}"
    );
}

/// The JSON has each finding as values: its kind, figures, threshold and evidence.
#[test]
fn findings_are_values_in_json() {
    let scaling = scaling(&|ccd, _, _| 100.0 + 20.0 * ccd as f64);
    let json: serde_json::Value =
        serde_json::from_str(&ScalingSummary::of(&scaling).json().unwrap()).unwrap();
    let findings = json["findings"].as_array().unwrap();
    let ccd = findings.iter().find(|found| found["kind"] == "ccd").unwrap();
    assert_eq!(ccd["threshold"], 0.03);
    assert_eq!((&ccd["packed"], &ccd["spread"]), (&4.into(), &2.into()));
    assert!((ccd["difference"]["ratio"].as_f64().unwrap() - 1.286).abs() < 0.001, "{ccd}");
    assert_eq!(ccd["evidence"][0]["kind"], "ranks");
}

/// The figures of the suite's own example (EPYC 7A53, 8 ranks, two on each node).
#[test]
fn a_published_csv_of_the_suite_is_read_and_shown_in_every_format() {
    let csv = "size (MB),0,1,2,3\n1,11.53,11.43,11.48,11.16\n32,37.73,37.00,37.64,37.32\n512,114.71,103.95,120.04,103.49\n";
    let file = ScalingFile {
        path: "sequential_domains0,1_4ranks_1-512MB.csv".to_owned(),
        text: csv.to_owned(),
    };
    let (scaling, _) = read("results_scaling/job_1", &[file]).unwrap();
    let report = ScalingSummary::of(&scaling);
    let page = report.page();
    let text = page.terminal(Style::Plain);
    assert!(text.contains("sequential 0,1, 4 x 512M"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(page.markdown().contains("| sequential 0,1, 4 x 512M | 111 |"), "{}", page.markdown());
    assert!(page.html().contains("<svg") && !page.html().contains("http:"));
    let csv = report.exported(Format::Csv).unwrap();
    assert!(csv.contains(",sequential,0 1,false,latency,ns,4,1048576,11.4,11.455,"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!(json["scaling"]["steps"][0]["values"][2][1], 103.95);
}
