//! Runs of ranks: each rank's figures from the cells, and steps of a scaling run from them.

use std::collections::BTreeMap;

use numalab_record::scaling::{Mode, ScalingFile, ScalingMetric, read};
use numalab_record::*;
use numalab_topology::{CpuId, NodeId};

use crate::samples::planned;

const SIZES: [u64; 2] = [2 << 20, 1 << 20];

fn placement(cpu: u32) -> Placement {
    Placement {
        cpu: CpuId(cpu),
        cpu_node: Some(NodeId(1)),
        affinity: [CpuId(cpu)].into_iter().collect(),
        memory_node: NodeId(0),
        address: 4096,
        buffer_bytes: 2 << 20,
        method: ProofMethod::MovePages,
        pages_checked: 3,
        pages_per_node: BTreeMap::from([(NodeId(0), 1), (NodeId(3), 2)]),
        bytes_per_page_size: BTreeMap::new(),
        isa: None,
    }
}

fn worker(cpu: u32) -> WorkerPlan {
    WorkerPlan { cpu: CpuId(cpu), node: NodeId(0) }
}

fn chase(cpu: u32, size_bytes: u64) -> Experiment {
    Experiment::Latency(LatencyCell {
        worker: worker(cpu),
        size_bytes,
        pattern: AccessPattern::Random,
        pages: Pages::BASE_4K,
        team: Team::Concurrent,
    })
}

fn streams(cpus: &[u32], size_bytes: u64) -> Experiment {
    Experiment::Bandwidth(BandwidthCell {
        workers: cpus.iter().copied().map(worker).collect(),
        kernel: StreamKernel::Read,
        pattern: AccessPattern::Sequential,
        size_bytes,
        pages: Pages::BASE_4K,
        isa: IsaName("avx2".to_owned()),
    })
}

/// A window of a rank: its value, its work, and whether it was disturbed.
type Window = (Metric, f64, u64, bool);

fn result(experiment: Experiment, cpus: &[u32], windows: &[Window]) -> CellResult {
    let cell = Cell::of(experiment);
    let sample = |(index, &(metric, value, work, disturbed)): (u32, &Window)| Sample {
        cell: cell.id.clone(),
        metric,
        index,
        value,
        start_ns: u64::from(index),
        duration_ns: 1,
        work,
        disturbed: disturbed.then(|| "steal".to_owned()),
    };
    let samples = (0..).zip(windows).map(sample).collect();
    let placements = cpus.iter().copied().map(placement).collect();
    CellResult { cell, ended: Some(Outcome::Precise), placements, samples }
}

fn document(teams: &[&[usize]], serial: bool, cells: Vec<CellResult>) -> Document {
    let seat = RankSeat { host: "n1".to_owned(), policy: "bind:0".to_owned() };
    let ranks = teams.iter().map(|team| team.len()).sum();
    let launch = Launch {
        launcher: "srun".to_owned(),
        meeting: "shared memory".to_owned(),
        serial,
        iterations: 20,
        warmup: 0,
        ranks: vec![seat; ranks],
        teams: teams.iter().map(|team| team.to_vec()).collect(),
    };
    let plan = cells.iter().map(|cell| cell.cell.clone()).collect();
    let run = Run { launch: Some(launch), ..planned(plan) };
    Document { run, cells }
}

/// Returns a run in which two ranks chase; rank 1's second window was disturbed, as were all its
/// windows at the second size.
fn chased() -> Document {
    let window = |ns, loads, disturbed| (Metric::Latency, ns, loads, disturbed);
    let quiet = [window(10.0, 30, false), window(20.0, 10, false)];
    let once = [window(7.0, 10, false), window(9.0, 10, true)];
    let always = [window(8.0, 10, true), window(8.0, 10, true)];
    let cells = vec![
        result(chase(4, SIZES[0]), &[4], &quiet),
        result(chase(5, SIZES[0]), &[5], &once),
        result(chase(4, SIZES[1]), &[4], &quiet),
        result(chase(5, SIZES[1]), &[5], &always),
    ];
    document(&[&[0], &[1]], true, cells)
}

#[test]
fn each_rank_has_its_mean_by_loads_and_the_median_of_its_undisturbed_windows() {
    let table = chased().rank_table().expect("ranks");
    assert_eq!(
        (table.metric, table.serial, &table.sizes_bytes[..]),
        (Metric::Latency, true, &SIZES[..])
    );
    let [first, second] = &table.ranks[..] else { panic!("{table:?}") };
    assert_eq!((&first.mean[..], &first.median[..]), (&[12.5, 12.5][..], &[15.0, 15.0][..]));
    assert_eq!((&second.mean[..], &second.median[..]), (&[8.0, 8.0][..], &[7.0, 8.0][..]));
    assert_eq!((second.placement.cpu, second.memory_node()), (CpuId(5), NodeId(3)));
    assert_eq!(second.disturbed[0], BTreeMap::from([(1, "steal".to_owned())]));
    assert_eq!((second.all_windows(), second.all_disturbed()), (4, 3));
    assert_eq!(table.disturbed_share(), Some(3.0 / 8.0));
}

#[test]
fn of_streams_of_a_host_each_rank_has_its_part_by_its_number() {
    let all = |value| (Metric::Bandwidth, value, 2, false);
    let part = |value, disturbed| (Metric::RankBandwidth, value, 1, disturbed);
    let b = result(streams(&[0], SIZES[0]), &[0], &[all(7.0), all(9.0)]);
    let a =
        [all(5.0), all(5.0), part(1.0, false), part(4.0, true), part(2.0, false), part(3.0, false)];
    let a = result(streams(&[0, 1], SIZES[0]), &[0, 1], &a);
    // The ranks of a host need not be consecutive.
    let table = document(&[&[1], &[0, 2]], false, vec![b, a]).rank_table().expect("ranks");
    let means: Vec<f64> = table.ranks.iter().map(|rank| rank.mean[0]).collect();
    let medians: Vec<f64> = table.ranks.iter().map(|rank| rank.median[0]).collect();
    assert_eq!((table.metric, &means[..]), (Metric::Bandwidth, &[1.5, 8.0, 3.5][..]));
    assert_eq!(medians, [1.5, 8.0, 3.0]);
}

#[test]
fn a_size_that_broke_off_is_left_out_and_a_run_without_ranks_has_no_table() {
    let mut broken = chased();
    broken.cells[3].placements.clear();
    let table = broken.rank_table().expect("the first size");
    assert_eq!((&table.sizes_bytes[..], table.ranks[0].mean.len()), (&SIZES[..1], 1));
    broken.cells[0].placements.clear();
    assert_eq!(broken.rank_table(), None);
    let mut alone = chased();
    alone.run.launch = None;
    assert_eq!(alone.rank_table(), None);
}

#[test]
fn a_step_is_read_from_its_run_and_its_binding_from_the_plan() {
    let stem = "mine_2ranks";
    let file =
        |path: &str, text: &str| ScalingFile { path: path.to_owned(), text: text.to_owned() };
    let scale = format!(
        "{{\"schema\":\"numalab/scale-2\",\"mode\":\"interleaved\",\"domains\":[0,3],\
         \"steps\":[{{\"stem\":\"{stem}\",\"cpus\":[8,9],\"nodes\":[0,3]}}]}}"
    );
    let csv = file(&format!("{stem}.csv"), "size (MB),0,1\n1,99,99\n2,99,99\n");
    let run = file(&format!("{stem}.json"), &serde_json::to_string(&chased()).unwrap());
    let (scaling, _) = read("d", &[csv.clone(), run, file("scale.json", &scale)]).unwrap();
    let step = &scaling.steps[0];
    assert_eq!((step.mode, &step.domains[..]), (Mode::Interleaved, &[0, 3][..]));
    assert_eq!((step.metric, step.serial, step.complete), (ScalingMetric::Latency, true, true));
    // By size, regardless of the order of measurement; the CSV is an export.
    assert_eq!(step.sizes_bytes, [SIZES[1], SIZES[0]]);
    assert_eq!(step.values, [[12.5, 8.0], [12.5, 8.0]]);
    assert_eq!(step.at(SIZES[1]), Some(&[15.0, 8.0][..]));
    let place = step.places[1].expect("a place");
    assert_eq!((place.cpu, place.cpu_node), (CpuId(5), Some(NodeId(1))));
    assert_eq!((place.memory_node, step.disturbed), (Some(NodeId(3)), Some(0.375)));
    // Without the run, the plan still records the ranks' binding.
    let (scaling, _) = read("d", &[csv, file("scale.json", &scale)]).unwrap();
    assert_eq!(scaling.steps[0].places[1].map(|place| place.cpu), Some(CpuId(9)));
    assert_eq!(scaling.steps[0].values[0], [99.0, 99.0]);
}
