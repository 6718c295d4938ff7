use super::*;
use crate::machine::Core;

const STREAM: &[u8] = &[0xc5, 0xfd, 0xe7, 0x08]; // vmovntdq %ymm1,(%rax)
const WRITE: &[u8] = &[0xc5, 0xfe, 0x7f, 0x08]; // vmovdqu %ymm1,(%rax)
const SFENCE: &[u8] = &[0x0f, 0xae, 0xf8];
const CORE: &str = "mode=virtual,stages=core";
const CACHES: &str = "caches=1:32K:8:64:cpu:1+2:1M:16:64:group:4";

/// Stores half lines by this instruction, one per block.
fn stores(engine: &Engine, instruction: &[u8], halves: impl Iterator<Item = u64>) {
    let flow = block_of(&[instruction, STEP, COUNT, AGAIN]);
    for half in halves {
        engine.block_of(0, flow);
        store(engine, 0, half * 32);
    }
}

fn written(engine: &Engine) -> u64 {
    engine.counters.of(0, 0).nodes[0].misses[1].get()
}

/// Returns the number of lines, from 0 to `lines`, that a load by another vCPU of the group finds
/// in its caches.
fn in_caches(engine: &Engine, lines: u64) -> u64 {
    for line in 0..lines {
        engine.block_of(1, block_of(&[READ]));
        load(engine, 1, line * 64, 0);
    }
    lines - engine.counters.of(0, 1).nodes[0].misses[0].get()
}

#[test]
fn a_stream_past_the_caches_writes_each_line_once_and_leaves_none_in_them() {
    for (instruction, kept) in [(STREAM, 0), (WRITE, 64)] {
        let engine =
            engine_of(&format!("cpus=0.0,memory=64M.64M,latency=100.250/250.100,{CORE},{CACHES}"));
        stores(&engine, instruction, 0..64 * 2);
        assert_eq!(written(&engine), 64);
        assert_eq!(in_caches(&engine, 64), kept);
    }
}

#[test]
fn a_line_that_caches_have_leaves_them_when_it_is_written_past_them() {
    let engine =
        engine_of(&format!("cpus=0.0,memory=64M.64M,latency=100.250/250.100,{CORE},{CACHES}"));
    let read = block_of(&[READ]);
    let misses = || {
        engine.block_of(0, read);
        load(&engine, 0, 0, 0);
        engine.block(0, 1);
        engine.counters.of(0, 0).nodes[0].misses[0].get()
    };
    assert_eq!([misses(), misses()], [1, 1]);
    stores(&engine, STREAM, 0..1);
    assert_eq!(misses(), 2);
    // Lines that are read have left the buffers, too.
    stores(&engine, STREAM, 1..2);
    assert_eq!(written(&engine), 2);
}

#[test]
fn a_modified_line_goes_to_memory_before_it_is_written_past_the_caches() {
    for (first, written_back) in [(WRITE, 64), (STREAM, 0)] {
        let engine =
            engine_of(&format!("cpus=0.0,memory=64M.64M,latency=100.250/250.100,{CORE},{CACHES}"));
        stores(&engine, first, 0..64 * 2);
        stores(&engine, STREAM, 0..64 * 2);
        assert_eq!(engine.counters.of(0, 0).nodes[0].written_back.get(), written_back);
    }
}

#[test]
fn a_line_leaves_the_caches_of_all_vcpus_that_are_known_to_have_it() {
    let engine = engine_of(&format!(
        "cpus=0.1.1,memory=64M.64M,latency=100.250/250.100,mode=virtual,stages=core+owners,{CACHES}"
    ));
    let read = block_of(&[READ]);
    let misses = |vcpu: usize| {
        engine.block_of(vcpu, read);
        load(&engine, vcpu, 0, 0);
        engine.block(vcpu, 1);
        engine.counters.of(0, vcpu).nodes[0].misses[0].get()
    };
    assert_eq!([1, 2, 1, 2].map(misses), [1, 0, 1, 0]);
    stores(&engine, STREAM, 0..2);
    assert_eq!([1, 2].map(misses), [2, 0], "from memory, and the cache that both share");
    // The line has no owner: another store takes it from no cache.
    stores(&engine, WRITE, 0..1);
    assert_eq!(written(&engine), 2);
}

/// Returns an engine for a machine file of this text.
pub fn engine_of_file(machine: &str) -> Engine {
    let arguments = ["mode=virtual", "machine=it"];
    let arguments = Arguments::parse(arguments, |_| Ok(machine.to_owned())).unwrap();
    Engine::new(arguments, Addressing::Physical, PS_PER_INSTRUCTION, || Duration::ZERO)
}

/// Returns the bandwidth of a vCPU's writes by this instruction in 10^6 bytes per second, on memory
/// with curves.
fn written_mb_s(instruction: &[u8], writes: &str) -> f64 {
    let machine = format!(
        r#"{{"schema":"numalab-emulator-machine/1","nodes":[{{"id":0,"ranges":[[0,67108864]]}}],
        "cpus":[0],"latency_ns":[[100.0]],
        "core":{{"misses":64,"instructions":512,"ns_per_instruction":0.25}},
        "node_load":[[{{"writes_percent":0,"points":[[0,100],[9000,300]]}},{writes}]],
        "caches":[{{"level":1,"size_bytes":32768,"ways":8,"line_bytes":64,"scope":"cpu"}}]}}"#
    );
    let engine = engine_of_file(&machine);
    let halves = |from: u64, to: u64| (from..to).map(|half| half % (2 * MIB));
    stores(&engine, instruction, halves(0, 60_000));
    let begin_ps = engine.time_ps(0);
    stores(&engine, instruction, halves(60_000, 120_000));
    60_000.0 * 32.0 / (engine.time_ps(0) - begin_ps) as f64 * 1e6
}

#[test]
fn stores_past_the_caches_are_written_bytes_alone_on_a_loaded_memory() {
    let half = r#"{"writes_percent":50,"points":[[0,100],[8000,300]]}"#;
    let all = r#"{"writes_percent":50,"points":[[0,100],[8000,300]]},
        {"writes_percent":100,"points":[[0,100],[6000,300]]}"#;
    // An ordinary store reads its line first.
    let ordinary = written_mb_s(WRITE, all);
    assert!((ordinary / 4000.0 - 1.0).abs() < 0.03, "{ordinary}");
    for (writes, peak) in [(half, 8000.0), (all, 6000.0)] {
        let past = written_mb_s(STREAM, writes);
        assert!((past / peak - 1.0).abs() < 0.03, "{past} of {peak}");
    }
}

#[test]
fn writes_take_fill_buffers_and_a_store_fence_waits_for_them() {
    let engine = engine(&format!("{CORE},{CACHES}"));
    stores(&engine, STREAM, 0..8 * 2);
    let time_ps = engine.time_ps(0);
    assert!(time_ps < 50_000, "eight lines of sixteen: {time_ps}");
    engine.block_of(0, block_of(&[COUNT]));
    assert!(engine.time_ps(0) < 50_000, "nobody waits");
    engine.block_of(0, block_of(&[SFENCE]));
    let time_ps = engine.time_ps(0);
    assert!((110_000..120_000).contains(&time_ps), "{time_ps}");
    // Sixteen at a time take 100 ns: 10.24 GB/s.
    stores(&engine, STREAM, 1000 * 2..3000 * 2);
    let ns = (engine.time_ps(0) - time_ps) as f64 / 1000.0;
    let gb_s = 2000.0 * 64.0 / ns;
    assert!((10.0..10.5).contains(&gb_s), "{gb_s}");
}

#[test]
fn the_same_stores_wait_less_with_memory_that_is_nearer() {
    let alternatives = "alternatives=interleave.0+interleave.1";
    let engine = engine(&format!("{CORE},{CACHES},{alternatives}")).for_threads();
    let mut shadow = engine.shadow(0);
    let flow = block_of(&[STREAM, STEP, COUNT, AGAIN]);
    let there = [0, 1].map(|node| There::on(node, false));
    let mut active = engine.enter_as(0, 0);
    for half in 0..2000 * 2 {
        active.begin(flow.instructions, Some(flow), Some(&mut shadow));
        let access = access(Kind::Store, half * 32, 0);
        active.access_on(0, access, Some((&mut shadow, &there)));
    }
    let [here, far] = shadow.later_ps()[..] else { panic!("two placements") };
    let taken_ps = engine.time_ps(0).cast_signed();
    assert_eq!(here, 0);
    let slower = (taken_ps + far) as f64 / taken_ps as f64;
    assert!((2.4..2.6).contains(&slower), "memory of 250 ns in place of 100: {slower}");
}

#[test]
fn a_core_writes_at_most_its_limit_of_lines_past_its_caches_at_a_time() {
    let ns_a_line = |writes| {
        let mut arguments = Arguments::parse(
            format!("cpus=0,memory=64M,latency=100,{CORE},{CACHES}").split(','),
            |_| unreachable!(),
        )
        .unwrap();
        arguments.machine.core = Some(Core { writes, ..Core::TYPICAL });
        let engine =
            Engine::new(arguments, Addressing::Physical, PS_PER_INSTRUCTION, || Duration::ZERO);
        stores(&engine, STREAM, 0..4096 * 2);
        engine.time_ps(0) as f64 / 1000.0 / 4096.0
    };
    for (writes, expected) in [(None, 100.0 / 16.0), (Some(10), 10.0), (Some(40), 2.5)] {
        let ns = ns_a_line(writes);
        assert!((ns / expected - 1.0).abs() < 0.03, "{writes:?}: {ns} ns");
    }
}
