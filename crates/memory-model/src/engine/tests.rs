use super::*;

const MIB: u64 = 1 << 20;
const MACHINE: &str = "cpus=0.1,memory=64M.64M,latency=100.250/250.100";

fn engine(more: &str) -> Engine {
    engine_of(&format!("{MACHINE},{more}"))
}

fn engine_of(arguments: &str) -> Engine {
    let arguments = Arguments::parse(arguments.split(','), |_| unreachable!()).unwrap();
    Engine::new(arguments, Addressing::Physical, PS_PER_INSTRUCTION, || Duration::ZERO)
}

fn load(vcpu: usize, address: u64, position: u32) -> Access {
    Access { vcpu, address, kind: Kind::Load, position }
}

#[test]
fn the_clock_goes_on_by_what_instructions_do_not_hide() {
    let engine = engine("mode=virtual,overlap=4");
    engine.block(0, 10);
    // Its own instruction and up to three before it run beside the miss.
    assert_eq!(engine.access(load(0, MIB, 0)), Effect::Advance(99));
    assert_eq!(engine.access(load(0, 65 * MIB, 9)), Effect::Advance(246));
    assert_eq!(engine.time_ps(0), (10 + 99 + 246) * 1000);
    let figures = engine.counters.of(0, 0);
    assert_eq!(figures.cost_ps.get(), 350_000);
    assert_eq!(figures.nodes[1].accesses[0].get(), 1);
}

#[test]
fn another_vcpus_turn_moves_the_clock_to_its_own_time() {
    let engine = engine("mode=virtual");
    assert_eq!(engine.block(0, 3000).clock_ns, 0);
    let first = engine.block(1, 1000);
    assert_eq!((first.clock_ns, first.over), (-3000, false));
    assert_eq!(engine.block(0, 1).clock_ns, 2000);
    let (change, moved_ns) = engine.mark(0, Marker::Phase(3));
    assert_eq!((change, moved_ns), (Change::Phase, 0));
    assert_eq!(engine.time_ps(1), engine.time_ps(0), "a phase begins for all at once");
}

#[test]
fn memory_of_no_node_costs_nothing() {
    let engine = engine("mode=virtual");
    assert_eq!(engine.access(load(0, 1 << 40, 0)), Effect::None);
    assert_eq!(engine.counters.of(0, 0).other.get(), 1);
}

#[test]
fn counting_anew_begins_with_empty_caches() {
    let engine = engine("mode=virtual,start=marker,caches=1:4K:4:64:cpu+2:8K:4:64:group:30");
    for _ in 0..2 {
        engine.mark(0, Marker::Begin);
        engine.block(0, 2);
        assert_ne!(engine.access(load(0, MIB, 0)), Effect::None);
        assert_eq!(engine.access(load(0, MIB, 1)), Effect::None);
        engine.mark(0, Marker::End);
    }
    assert_eq!(engine.counters.of(0, 0).nodes[0].misses[0].get(), 2);
}

#[test]
fn a_hit_in_a_farther_cache_costs_what_it_says() {
    let engine = engine("mode=virtual,overlap=1,caches=1:64:1:64:cpu+2:8K:4:64:group:30");
    engine.block(0, 3);
    engine.access(load(0, 0, 0));
    engine.access(load(0, 64, 1));
    assert_eq!(engine.access(load(0, 0, 2)), Effect::Advance(29));
    assert_eq!(engine.counters.of(0, 0).nodes[0].misses[0].get(), 2);
}

#[test]
fn an_l3_group_of_any_number_is_a_group() {
    let cache = "caches=1:8K:4:64:group,l3-groups";
    let engine = engine(&format!("{cache}={}.18446744073709551615", 1_u64 << 60));
    for vcpu in [0, 1] {
        engine.block(vcpu, 1);
        engine.access(load(vcpu, 0, 0));
    }
    let misses = |vcpu| engine.counters.of(0, vcpu).nodes[0].misses[0].get();
    assert_eq!((misses(0), misses(1)), (1, 1), "each group has a cache of its own");
}

/// What a chase's load takes, in ns, beside eight vCPUs that would together ask for this part of
/// node 0's bandwidth if it were without load: a load in 300 instructions, which hide it.
fn chase_beside_streams(asked_percent: u64) -> f64 {
    const STREAMS: usize = 8;
    let mb_s = STREAMS as u64 * 64 * 1000 / 300 * 100 / asked_percent;
    let engine = engine_of(&format!(
        "cpus=0.0.0.0.0.0.0.0.0,memory=64M.64M,latency=100.250/250.100,mode=virtual,overlap=1000,\
         stages=load,node-bandwidth={mb_s}.0"
    ));
    let (mut loads, mut taken_ps) = (0, 0);
    for turn in 1..=400 {
        for vcpu in 0..=STREAMS {
            while engine.time_ps(vcpu) < turn * 5_000_000 {
                let begin_ps = engine.time_ps(vcpu);
                engine.block(vcpu, if vcpu == 0 { 3 } else { 300 });
                engine.access(load(vcpu, begin_ps % MIB, 0));
                if vcpu == 0 && turn > 200 {
                    loads += 1;
                    taken_ps += engine.time_ps(0) - begin_ps;
                }
            }
        }
    }
    f64::from(u32::try_from(taken_ps / 1000).unwrap()) / f64::from(loads)
}

#[test]
fn a_chase_beside_streams_slows_from_their_knee_on_by_two_to_four_times() {
    let ns = [30, 60, 80, 100, 120].map(chase_beside_streams);
    let [light, knee, busy, full, over] = ns;
    assert!((99.0..115.0).contains(&light), "{ns:?}");
    assert!(knee < 1.3 * light && knee > 1.05 * light, "{ns:?}");
    assert!(busy > knee && full > busy && over > full, "{ns:?}");
    assert!((2.0..4.0).contains(&(full / light)), "{ns:?}");
    assert!((2.0..5.0).contains(&(over / light)), "{ns:?}");
}

#[test]
fn load_is_of_the_node_and_of_the_link_that_carries_it() {
    let rise = |more: &str, chaser: usize, target: u64| {
        let engine = engine_of(&format!(
            "cpus=0.1.1,memory=64M.64M,latency=100.250/250.100,mode=virtual,overlap=1,\
             stages=load,{more}"
        ));
        for turn in 1..=100 {
            for vcpu in 0..3 {
                let address = if vcpu == chaser { target } else { 64 * MIB };
                while engine.time_ps(vcpu) < turn * 5_000_000 {
                    engine.block(vcpu, 1);
                    engine.access(load(vcpu, address, 0));
                }
            }
        }
        let figures = engine.counters.of(0, chaser);
        figures.nodes.iter().map(|node| node.queue_ps.get()).sum::<u64>()
    };
    // Node 1 is loaded by its own vCPUs: who reads there waits, who reads elsewhere does not.
    assert!(rise("node-bandwidth=500.500", 0, 64 * MIB) > 0);
    assert_eq!(rise("node-bandwidth=0.500", 0, 0), 0);
    // The link from node 0 to node 1 carries only what node 0's vCPU asks for.
    assert_eq!(rise("link-bandwidth=0.0/500.500", 0, 64 * MIB), 0);
    assert!(rise("link-bandwidth=0.100/0.0", 0, 64 * MIB) > 0);
}
