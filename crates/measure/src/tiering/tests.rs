use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A probe of 64 MiB on two tiers of a node each.
fn probe() -> TieringProbe {
    let [fast, slow] = [0, 1].map(|node| NodeSet::from_iter([NodeId(node)]));
    let tiers = Tiers {
        cpu: numalab_topology::CpuId(0),
        fast: fast.clone(),
        slow: slow.clone(),
        each: vec![fast, slow],
    };
    TieringProbe {
        size_bytes: 64 << 20,
        heat: Heat::Hot { bytes: 8 << 20, percent: 90 },
        access: TierAccess::Dependent,
        moves_every: None,
        place: TierPlace::Tier(1),
        time: SECOND,
        tiers,
    }
}

/// Returns the readings of a quarter of a second of accesses and its end, as names, values, units.
fn readings(probe: &TieringProbe, counted: u64) -> Vec<String> {
    let all = Stretch { loads: 1000, ns: 250e3, predicted_ns: 200e3, fast: counted / 4, counted };
    let end = Stretch { loads: 100, ns: 10e3, fast: counted / 2, ..all };
    let found = probe.readings(all, end, Some(50.0), [7.0, 2.0, 0.0]);
    let shown = |of: &Reading| format!("{} {} {}", of.quantity.metric, of.value, of.quantity.unit);
    found.iter().map(shown).collect()
}

#[test]
fn accesses_and_placements_are_described_in_words() {
    let probe = probe();
    assert_eq!(probe.accesses(), "90 % of the accesses to 8 MiB");
    assert_eq!(probe.placed(), "placed on tier 2 of 2");
    let zipf = TieringProbe {
        heat: Heat::Zipf,
        access: TierAccess::Independent,
        moves_every: Some(Duration::from_millis(1500)),
        place: TierPlace::FirstTouch,
        ..probe.clone()
    };
    assert_eq!(
        zipf.accesses(),
        "the page of rank n with weight 1/n, many at a time, elsewhere every 1.5 s"
    );
    assert_eq!(zipf.placed(), "placed by the kernel, the hottest part touched last");
    let uniform = TieringProbe { heat: Heat::Uniform, ..probe };
    assert_eq!(uniform.accesses(), "all pages equally");
}

#[test]
fn memory_is_placed_on_the_node_of_its_tier_or_left_to_the_kernel() {
    let on = |place| TieringProbe { place, ..probe() }.placed_on();
    assert_eq!(on(TierPlace::Tier(0)), Some(NodeId(0)));
    assert_eq!(on(TierPlace::Tier(1)), Some(NodeId(1)));
    assert_eq!(on(TierPlace::Tier(2)), None);
    assert_eq!(on(TierPlace::FirstTouch), None);
}

#[test]
fn the_hot_set_has_moved_once_for_each_whole_interval() {
    let moves = |every: Option<Duration>, passed| {
        TieringProbe { moves_every: every, ..probe() }.moves(passed)
    };
    assert_eq!(moves(None, 100 * SECOND), 0);
    assert_eq!(moves(Some(2 * SECOND), 2 * SECOND - Duration::from_nanos(1)), 0);
    assert_eq!(moves(Some(2 * SECOND), 7 * SECOND), 3);
    assert_eq!(moves(Some(Duration::ZERO), 7 * SECOND), 0, "never");
}

#[test]
fn readings_without_an_emulators_counts_have_no_prediction() {
    let figures = readings(&probe(), 0);
    assert_eq!(
        figures,
        [
            "latency-end 100 ns",
            "latency 250 ns",
            "hot-fast 50 %",
            "promoted 7 pages",
            "demoted 2 pages",
            "failed 0 pages"
        ]
    );
}

#[test]
fn readings_with_counts_have_a_prediction_and_the_share_at_the_end() {
    let figures = readings(&probe(), 1000);
    assert_eq!(figures[2..4], ["predicted 200 ns", "fast-accesses 50 %"]);
    let independent = TieringProbe { access: TierAccess::Independent, ..probe() };
    assert_eq!(readings(&independent, 1000)[2], "bandwidth 0.256 GB/s", "64 bytes in 250 ns");
}

#[test]
fn stretches_add_up_and_one_without_loads_has_no_infinite_mean() {
    let mut all = Stretch { loads: 10, ns: 1000.0, predicted_ns: 900.0, fast: 4, counted: 10 };
    all.add(Stretch { loads: 30, ns: 1000.0, predicted_ns: 100.0, fast: 6, counted: 30 });
    assert_eq!((all.loads, all.fast, all.counted), (40, 10, 40));
    assert_eq!((all.mean_ns(), all.predicted_ns), (50.0, 1000.0));
    assert_eq!(Stretch::default().mean_ns(), 0.0);
}
