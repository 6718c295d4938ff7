//! The descriptions of each kind of experiment.

use numalab_record::*;
use numalab_topology::{CpuId, NodeId};
use serde_json::json;

fn worker(cpu: u32, node: u32) -> WorkerPlan {
    WorkerPlan { cpu: CpuId(cpu), node: NodeId(node) }
}

fn latency(size_bytes: u64, team: Team) -> LatencyCell {
    let pattern = AccessPattern::Stride(256);
    LatencyCell { worker: worker(1, 0), size_bytes, pattern, pages: Pages::HUGE_2M, team }
}

fn bandwidth(workers: Vec<WorkerPlan>) -> BandwidthCell {
    BandwidthCell {
        workers,
        kernel: StreamKernel::CopyNt,
        pattern: AccessPattern::Sequential,
        size_bytes: 3 << 19,
        pages: Pages::Transparent,
        isa: IsaName("avx2".to_owned()),
    }
}

fn loaded(delay: Option<u32>) -> LoadedCell {
    LoadedCell {
        chaser: worker(0, 1),
        load: vec![worker(4, 1), worker(5, 1), worker(7, 2)],
        kernel: StreamKernel::Read,
        delay,
        size_bytes: 1 << 30,
        pages: Pages::BASE_4K,
    }
}

fn frames() -> FramesCell {
    FramesCell { work: "fill".to_owned(), cpus: vec![CpuId(0), CpuId(3)], size_bytes: 4096 }
}

fn all() -> Vec<Experiment> {
    vec![
        Experiment::Latency(latency(64 << 20, Team::Serial)),
        Experiment::Latency(latency(100_000, Team::Concurrent)),
        Experiment::Bandwidth(bandwidth(vec![worker(0, 0)])),
        Experiment::Bandwidth(bandwidth(vec![worker(0, 0), worker(2, 0), worker(3, 1)])),
        Experiment::Loaded(loaded(None)),
        Experiment::Loaded(loaded(Some(0))),
        Experiment::C2c(C2cCell { from: CpuId(1), to: CpuId(9), home: NodeId(2) }),
        Experiment::Core(CoreCell { cpu: CpuId(3) }),
        Experiment::Frames(frames()),
    ]
}

#[test]
fn ids_are_those_by_which_results_of_earlier_versions_are_found_again() {
    let ids: Vec<String> = all().iter().map(|of| of.description().id()).collect();
    let expected = [
        "latency/stride:256/2m/cpu1/node0/64M",
        "latency/stride:256/2m/cpu1/node0/100000/concurrent",
        "bandwidth/copy-nt/sequential/thp/avx2/cpu0-node0/1.5M",
        "bandwidth/copy-nt/sequential/thp/avx2/node0:0.2+node1:3/1.5M",
        "loaded/read/4k/cpu0/node1/against-node1:4.5+node2:7/1G/idle",
        "loaded/read/4k/cpu0/node1/against-node1:4.5+node2:7/1G/delay0",
        "c2c/cpu1/cpu9/home2",
        "core/cpu3",
        "frames/fill/2-cpus/4K",
    ];
    assert_eq!(ids, expected);
    for experiment in all() {
        let cell = Cell::of(experiment);
        assert!(!cell.id.0.contains(','), "{} would end a field of samples.csv", cell.id);
        assert_eq!(format!("{:>70}", cell.id).len(), 70);
    }
}

#[test]
fn every_cell_is_read_back_from_json_with_its_kind_among_its_members() {
    for experiment in all() {
        let cell = Cell::of(experiment);
        let json = serde_json::to_value(&cell).unwrap();
        assert_eq!(json["id"], cell.id.0.as_str());
        assert_eq!(serde_json::from_value::<Cell>(json).unwrap(), cell);
    }
    let kinds: Vec<_> =
        all().iter().map(|of| serde_json::to_value(of).unwrap()["kind"].clone()).collect();
    let expected = [
        "latency",
        "latency",
        "bandwidth",
        "bandwidth",
        "loaded",
        "loaded",
        "c2c",
        "core",
        "frames",
    ];
    assert_eq!(kinds, expected);
    let unknown = json!({"id": "x", "kind": "teleport"});
    let error = serde_json::from_value::<Cell>(unknown).unwrap_err().to_string();
    assert!(error.contains("unknown variant `teleport`, expected one of `latency`"), "{error}");
}

#[test]
fn a_cell_is_recognised_as_its_own_kind_only() {
    for experiment in all() {
        let found = [
            experiment.cell::<LatencyCell>().is_some(),
            experiment.cell::<BandwidthCell>().is_some(),
            experiment.cell::<LoadedCell>().is_some(),
            experiment.cell::<C2cCell>().is_some(),
            experiment.cell::<CoreCell>().is_some(),
            experiment.cell::<FramesCell>().is_some(),
        ];
        assert_eq!(found.iter().filter(|found| **found).count(), 1, "{experiment:?}");
    }
    let core = Experiment::Core(CoreCell { cpu: CpuId(3) });
    assert_eq!(core.cell::<CoreCell>(), Some(&CoreCell { cpu: CpuId(3) }));
    assert_eq!(<&LatencyCell>::try_from(&core), Err(OtherKind));
}

#[test]
fn all_workers_with_proof_of_place_are_listed() {
    let workers: Vec<usize> = all().iter().map(|of| of.workers().len()).collect();
    assert_eq!(workers, [1, 1, 1, 3, 4, 4, 2, 0, 0]);
    assert_eq!(all()[4].workers()[0], worker(0, 1), "the chaser comes first");
    assert_eq!(all()[6].workers(), [worker(1, 2), worker(9, 2)], "both at the line's home");
}

#[test]
fn axes_are_the_members_that_a_kind_shares_with_others() {
    let axes = |at: usize| all()[at].description().axes();
    let latency = Axes {
        size_bytes: Some(64 << 20),
        pages: Some(Pages::HUGE_2M),
        pattern: Some(AccessPattern::Stride(256)),
        kernel: None,
    };
    assert_eq!(axes(0), latency);
    assert_eq!(axes(2).kernel.as_deref(), Some("copy-nt"));
    assert_eq!(
        (axes(2).pages, axes(2).pattern),
        (Some(Pages::Transparent), Some(AccessPattern::Sequential))
    );
    assert_eq!((axes(4).pattern, axes(4).kernel.as_deref()), (None, Some("read")));
    assert_eq!(axes(6), Axes::default());
    assert_eq!((axes(8).size_bytes, axes(8).kernel.as_deref()), (Some(4096), Some("fill")));
}

#[test]
fn latency_is_of_a_cache_up_to_twice_the_largest_one() {
    let family = |size, cache| latency(size, Team::Serial).family(Metric::Latency, cache);
    assert_eq!(family(64 << 20, 32 << 20), Some(Family::CacheLatency));
    assert_eq!(family((64 << 20) + 1, 32 << 20), Some(Family::MemoryLatency));
    assert_eq!(family(1, 0), Some(Family::MemoryLatency));
    assert_eq!(family(1 << 40, u64::MAX), Some(Family::CacheLatency), "of any machine file");
}

#[test]
fn families_of_all_others_follow_from_kind_and_metric() {
    let family = |at: usize, metric| all()[at].description().family(metric, 1 << 20);
    assert_eq!(family(2, Metric::Bandwidth), Some(Family::Bandwidth));
    assert_eq!(family(4, Metric::Bandwidth), Some(Family::Bandwidth));
    assert_eq!(family(4, Metric::Latency), Some(Family::MemoryLatency));
    assert_eq!(family(6, Metric::RoundTrip), Some(Family::CoreToCore));
    assert_eq!(family(7, Metric::AtomicAdd), Some(Family::Core));
    assert_eq!(family(8, Metric::Frame), None);
    let kinds: Vec<&str> = all().iter().map(|of| of.description().kind()).collect();
    assert_eq!(
        kinds[2..],
        ["bandwidth", "bandwidth", "loaded", "loaded", "core-to-core", "core", "frames"]
    );
}
