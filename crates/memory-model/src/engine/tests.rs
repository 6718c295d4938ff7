use super::*;
use crate::machine::Core;
use crate::outcome::Effect;
use crate::pipeline::flow::Flow;
use crate::pipeline::speeds::Speeds;
use crate::pipeline::x86::decode;

mod again;
mod elsewhere;
mod faults;
mod interleaved;
mod owners;
mod past_caches;
mod prefetch;

impl Engine {
    /// Begins a block with this flow on a vCPU.
    pub(crate) fn block_of(&self, vcpu: usize, flow: &'static Flow) -> Step {
        self.enter(vcpu).block(flow.instructions, Some(flow))
    }
}

const MIB: u64 = 1 << 20;
const MACHINE: &str = "cpus=0.1,memory=64M.64M,latency=100.250/250.100";

fn engine(more: &str) -> Engine {
    engine_of(&format!("{MACHINE},{more}"))
}

fn engine_of(arguments: &str) -> Engine {
    let arguments = Arguments::parse(arguments.split(','), |_| unreachable!()).unwrap();
    Engine::new(arguments, Addressing::Physical, PS_PER_INSTRUCTION, || Duration::ZERO)
}

fn access(kind: Kind, address: u64, position: u32) -> Access {
    Access { address, virtual_address: address, kind, bytes: 8, position, table: None }
}

fn load(engine: &Engine, vcpu: usize, address: u64, position: u32) -> Effect {
    engine.enter(vcpu).access(access(Kind::Load, address, position)).effect
}

fn store(engine: &Engine, vcpu: usize, address: u64) -> Effect {
    engine.enter(vcpu).access(access(Kind::Store, address, 0)).effect
}

#[test]
fn the_clock_advances_by_the_cost_that_instructions_do_not_hide() {
    let engine = engine("mode=virtual,overlap=4");
    engine.block(0, 10);
    // The miss's own instruction and up to three before it overlap with the miss.
    assert_eq!(load(&engine, 0, MIB, 0), Effect::Advance(99));
    assert_eq!(load(&engine, 0, 65 * MIB, 9), Effect::Advance(246));
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
    assert_eq!(load(&engine, 0, 1 << 40, 0), Effect::None);
    assert_eq!(engine.counters.of(0, 0).other.get(), 1);
}

#[test]
fn the_cost_of_hits_counts_for_the_vcpu_and_not_for_nodes() {
    for stages in ["", ",stages=core"] {
        let engine = engine(&format!("caches=1:4K:4:64:cpu:2+2:8K:4:64:cpu:9{stages}"));
        engine.block(0, 4);
        // One load from memory, three from the first cache, and none from the second.
        for position in 0..4 {
            load(&engine, 0, 65 * MIB, position);
        }
        let figures = engine.counters.of(0, 0);
        assert_eq!(figures.nodes[1].cost_ps.get(), 250_000, "{stages}");
        assert!(figures.cost_ps.get() > 250_000, "{stages}");
    }
}

#[test]
fn counting_anew_begins_with_empty_caches() {
    let engine = engine("mode=virtual,start=marker,caches=1:4K:4:64:cpu+2:8K:4:64:group:30");
    for _ in 0..2 {
        engine.mark(0, Marker::Begin);
        engine.block(0, 2);
        assert_ne!(load(&engine, 0, MIB, 0), Effect::None);
        assert_eq!(load(&engine, 0, MIB, 1), Effect::None);
        engine.mark(0, Marker::End);
    }
    assert_eq!(engine.counters.of(0, 0).nodes[0].misses[0].get(), 2);
}

#[test]
fn a_hit_in_a_farther_cache_costs_its_latency() {
    let engine = engine("mode=virtual,overlap=1,caches=1:64:1:64:cpu+2:8K:4:64:group:30");
    engine.block(0, 3);
    load(&engine, 0, 0, 0);
    load(&engine, 0, 64, 1);
    assert_eq!(load(&engine, 0, 0, 2), Effect::Advance(29));
    assert_eq!(engine.counters.of(0, 0).nodes[0].misses[0].get(), 2);
}

#[test]
fn a_line_of_another_vcpu_takes_its_figure_without_the_hit_that_the_figure_has_in_it() {
    let engine = engine("mode=virtual,overlap=1,caches=1:8K:4:64:cpu:3,stages=owners");
    for vcpu in [0, 1] {
        engine.block(vcpu, 1);
        store(&engine, vcpu, MIB);
    }
    engine.block(0, 2000);
    let of_transfer = engine.arguments.machine.transfers.as_ref().unwrap().node_ns[0][1];
    let (hit_ns, instruction_ns) = (3.0, 1.0);
    let Effect::Advance(ns) = load(&engine, 0, MIB, 0) else { panic!("nothing charged") };
    assert!((ns as f64 - (of_transfer - hit_ns - instruction_ns)).abs() < 0.5, "{ns} ns");
}

#[test]
fn an_l3_group_of_any_number_is_a_group() {
    let cache = "caches=1:8K:4:64:group,l3-groups";
    let engine = engine(&format!("{cache}={}.18446744073709551615", 1_u64 << 60));
    for vcpu in [0, 1] {
        engine.block(vcpu, 1);
        load(&engine, vcpu, 0, 0);
    }
    let misses = |vcpu| engine.counters.of(0, vcpu).nodes[0].misses[0].get();
    assert_eq!((misses(0), misses(1)), (1, 1), "each group has a separate cache");
}

/// Returns the latency in ns of a chase next to eight vCPUs that together demand this share of node
/// 0's unloaded bandwidth, with one load in 300 instructions, which hide it.
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
                load(&engine, vcpu, begin_ps % MIB, 0);
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
fn a_chase_next_to_streams_slows_two_to_four_times_from_the_knee_on() {
    let ns = [30, 60, 80, 100, 120].map(chase_beside_streams);
    let [light, knee, busy, full, over] = ns;
    assert!((99.0..115.0).contains(&light), "{ns:?}");
    assert!(knee < 1.3 * light && knee > 1.05 * light, "{ns:?}");
    assert!(busy > knee && full > busy && over > full, "{ns:?}");
    assert!((2.0..4.0).contains(&(full / light)), "{ns:?}");
    assert!((2.0..5.0).contains(&(over / light)), "{ns:?}");
}

#[test]
fn load_counts_for_the_node_and_for_its_link() {
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
                    load(&engine, vcpu, address, 0);
                }
            }
        }
        let figures = engine.counters.of(0, chaser);
        figures.nodes.iter().map(|node| node.queue_ps.get()).sum::<u64>()
    };
    // Node 1 is loaded by its own vCPUs: readers of its memory wait, others do not.
    assert!(rise("node-bandwidth=500.500", 0, 64 * MIB) > 0);
    assert_eq!(rise("node-bandwidth=0.500", 0, 0), 0);
    // The link from node 0 to node 1 carries only the requests of node 0's vCPU.
    assert_eq!(rise("link-bandwidth=0.0/500.500", 0, 64 * MIB), 0);
    assert!(rise("link-bandwidth=0.100/0.0", 0, 64 * MIB) > 0);
}

#[test]
fn a_link_that_is_measured_from_end_to_end_has_the_load_of_its_memory_in_it() {
    let rise = |limits: &str| {
        let engine = engine_of(&format!("{MACHINE},mode=virtual,overlap=1,stages=load,{limits}"));
        while engine.time_ps(0) < 500_000_000 {
            engine.block(0, 1);
            load(&engine, 0, 64 * MIB, 0);
        }
        engine.counters.of(0, 0).nodes[1].queue_ps.get()
    };
    let link = rise("link-bandwidth=0.200/0.0");
    assert!(link > 0);
    assert_eq!(rise("link-bandwidth=0.200/0.0,node-bandwidth=0.200"), link);
}

#[test]
fn modified_lines_are_written_to_memory_once_the_last_cache_evicts_them() {
    let caches = "caches=1:4K:4:64:cpu:1+2:16K:4:64:cpu:4+3:64K:16:64:group:20";
    for more in ["", ",stages=core", ",stages=core+owners"] {
        let engine = engine(&format!("mode=virtual,{caches}{more}"));
        let touch = |kind, lines: u64| {
            engine.block(0, 1);
            (0..lines).for_each(|line| {
                engine.enter(0).access(access(Kind::Load, line * 64, 0));
                engine.enter(0).access(access(kind, line * 64, 0));
            });
            engine.counters.of(0, 0).nodes[0].written_back.get()
        };
        assert_eq!(touch(Kind::Store, 128), 0, "{more}: they stay in the caches");
        let written = touch(Kind::Store, 10_000);
        assert!((8_600..=10_000).contains(&written), "{more}: {written}");
        touch(Kind::Load, 20_000);
        let all = touch(Kind::Load, 20_000);
        assert_eq!(all, 10_000, "{more}: each once, as loads modify nothing");
    }
}

/// Creates a block of these instructions, leaked like those of a plugin.
fn block_of(instructions: &[&[u8]]) -> &'static Flow {
    let instructions = instructions.iter().map(|bytes| decode(bytes));
    Box::leak(Box::new(Flow::new(instructions, &Speeds::of(&Core::TYPICAL))))
}

const FOLLOW: &[u8] = &[0x48, 0x8b, 0x00]; // mov (%rax),%rax
const READ: &[u8] = &[0x48, 0x03, 0x10]; // add (%rax),%rdx
const STEP: &[u8] = &[0x48, 0x83, 0xc0, 0x40]; // add $64,%rax
const COUNT: &[u8] = &[0xff, 0xc9]; // dec %ecx
const AGAIN: &[u8] = &[0x75, 0xf4]; // jnz

/// Returns the time in ns of an iteration of a loop with loads of these addresses.
fn turn_ns(
    engine: &Engine,
    flow: &'static Flow,
    turns: u64,
    loads: impl Fn(u64) -> Vec<u64>,
) -> f64 {
    let begin_ps = engine.time_ps(0);
    for turn in 0..turns {
        engine.block_of(0, flow);
        for (position, address) in (0..).zip(loads(turn)) {
            load(engine, 0, address, position);
        }
    }
    engine.mark(0, Marker::Publish);
    (engine.time_ps(0) - begin_ps) as f64 / 1000.0 / turns as f64
}

#[test]
fn a_line_costs_more_in_another_page_than_in_one_that_was_just_read() {
    for stages in ["", ",stages=core"] {
        let mut arguments = engine(&format!("mode=count{stages}")).arguments;
        arguments.machine.other_page_ns = 40.0;
        let each_ps = PS_PER_INSTRUCTION;
        let engine = Engine::new(arguments, Addressing::Physical, each_ps, || Duration::ZERO);
        let cost_ns = |address: u64| {
            let cost_ps = || engine.counters.of(0, 0).cost_ps.get();
            let before_ps = cost_ps();
            load(&engine, 0, address, 0);
            (cost_ps() - before_ps) / 1000
        };
        assert_eq!([0, 64, 4096, 128, 4160].map(cost_ns), [140, 100, 140, 100, 100], "{stages}");
    }
}

#[test]
fn a_chase_is_serial_and_a_stream_reaches_the_cores_line_rate() {
    let lines = |turn: u64| vec![turn * 64 % (32 * MIB)];
    let others = |turn: u64| vec![turn * 64 % (16 * MIB) + 32 * MIB];
    let chase = block_of(&[FOLLOW, COUNT, AGAIN]);
    let stream = block_of(&[READ, STEP, COUNT, AGAIN]);
    for caches in ["", ",caches=1:32K:8:64:cpu:1+2:1M:16:64:cpu:4"] {
        let engine = engine(&format!("mode=virtual,stages=core{caches}"));
        let ns = turn_ns(&engine, chase, 10_000, lines);
        assert!((99.9..100.1).contains(&ns), "{caches}: {ns} ns per load");
        let gb_s = 64.0 / turn_ns(&engine, stream, 10_000, others);
        assert!((10.0..20.0).contains(&gb_s), "{caches}: {gb_s} GB/s");
    }
}

#[test]
fn a_stream_of_small_loads_asks_for_each_line_once() {
    let engine = engine("mode=virtual,stages=core");
    // Eight loads of a line, and the loop's end.
    let unrolled = [[0x48, 0x03, 0x50]; 8];
    let mut code: Vec<&[u8]> = unrolled.iter().map(<[u8; 3]>::as_slice).collect();
    code.extend([STEP, COUNT, AGAIN]);
    let words = |turn: u64| (0..8).map(|word| (turn * 64 + word * 8) % (32 * MIB)).collect();
    let gb_s = 64.0 / turn_ns(&engine, block_of(&code), 10_000, words);
    assert!((10.0..20.0).contains(&gb_s), "{gb_s} GB/s");
    assert_eq!(engine.counters.of(0, 0).nodes[0].misses[0].get(), 10_000);
}

#[test]
fn a_chase_has_the_latency_of_the_nearest_cache_that_holds_it() {
    let engine = engine(
        "mode=virtual,stages=core,\
         caches=1:32K:8:64:cpu:1+2:1M:16:64:cpu:4+3:16M:16:64:group:15",
    );
    let chase = block_of(&[FOLLOW, COUNT, AGAIN]);
    for (bytes, expected_ns) in [(16 << 10, 1.0), (256 << 10, 4.0), (4 * MIB, 15.0)] {
        // Seven is coprime to the number of lines, so this is one cycle over all of them.
        let lines = |turn: u64| vec![turn * 7 * 64 % bytes];
        turn_ns(&engine, chase, bytes / 64 + 8, lines);
        let ns = turn_ns(&engine, chase, bytes / 64, lines);
        assert!((ns / expected_ns - 1.0).abs() < 0.02, "{bytes} bytes: {ns} ns");
    }
}

#[test]
fn two_chases_in_one_loop_take_the_time_of_one() {
    let engine = engine("mode=virtual,stages=core");
    // mov (%rax),%rax; mov (%rbx),%rbx
    let flow = block_of(&[FOLLOW, &[0x48, 0x8b, 0x1b], COUNT, AGAIN]);
    let ns = turn_ns(&engine, flow, 1000, |turn| vec![turn * 128, turn * 128 + 64 * MIB]);
    // The second chase is remote.
    assert!((249.0..252.0).contains(&ns), "{ns} ns for both");
}

#[test]
fn the_clock_follows_the_cores_own_instruction_rate() {
    let engine = engine("mode=virtual,stages=core");
    let block = block_of(&[COUNT; 8]);
    let moved: i64 = (0..100).map(|_| engine.block_of(0, block).clock_ns).sum();
    // QEMU counts a nanosecond for each of 800 instructions, the core takes a quarter of that.
    assert_eq!(moved, -600);
    assert_eq!(engine.time_ps(0), 200_000);
}

#[test]
fn a_machine_without_stages_keeps_its_recorded_times() {
    let engine = engine("mode=virtual,overlap=4,caches=1:4K:4:64:cpu,node-bandwidth=1000.500");
    let mut random = 1_u64;
    for _ in 0..20_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let vcpu = usize::from(random >> 63 == 1);
        engine.block(vcpu, 1 + (random >> 40) % 20);
        let kind = if random >> 62 & 1 == 1 { Kind::Store } else { Kind::Load };
        let address = (random >> 20) % (128 * MIB) / if random & 7 == 0 { 1 } else { 4096 };
        engine.enter(vcpu).access(access(kind, address, 0));
    }
    // Recorded before stages existed, and again since modified lines take bandwidth.
    assert_eq!([engine.time_ps(0), engine.time_ps(1)], [2_755_440_987, 2_765_723_987]);
}
