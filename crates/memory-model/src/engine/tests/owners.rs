//! Lines that move between vCPUs.

use super::*;

/// Returns a machine of two nodes, the first with two L3 groups of two vCPUs, with line ownership.
fn owners(more: &str) -> Engine {
    engine_of(&format!(
        "cpus=0.0.0.1,l3-groups=0.0.1.2,memory=64M.64M,latency=100.250/250.100,mode=virtual,\
         caches=1:32K:8:64:cpu+3:1M:16:64:group:15,stages=owners{more}"
    ))
}

#[test]
fn a_transfer_costs_the_distance_between_the_two_vcpus() {
    for (more, other, expected_ns) in
        [("", 1, 23), ("", 2, 107), ("", 3, 197), ("+core", 1, 23), ("+core", 3, 197)]
    {
        let engine = owners(more);
        let writes = block_of(&[&[0x48, 0x89, 0x08]]); // mov %rcx,(%rax)
        let hand_over = |vcpu| {
            engine.block_of(vcpu, writes);
            store(&engine, vcpu, MIB);
        };
        (0..10).for_each(|_| [0, other].into_iter().for_each(&hand_over));
        let begin_ps = engine.time_ps(0);
        (0..100).for_each(|_| [other, 0].into_iter().for_each(&hand_over));
        let ns = (engine.time_ps(0) - begin_ps) as f64 / 1000.0 / 200.0;
        assert!((ns - f64::from(expected_ns)).abs() < 1.1, "{more} {other}: {ns} ns");
    }
}

#[test]
fn threads_that_contend_for_a_line_hand_it_over_every_few_stores() {
    let engine = owners("+core").for_threads();
    let adds = block_of(&[&[0xf0, 0x48, 0x83, 0x00, 0x01]]); // lock addq $1,(%rax)
    const ADDS: u32 = 20_000;
    let mut hand_overs = 0;
    for _ in 0..ADDS {
        // In the order of time.
        let cpu = usize::from(engine.time_ps(1) < engine.time_ps(0));
        let before_ps = engine.time_ps(cpu);
        let mut active = engine.enter_as(cpu, cpu);
        active.begin(1, Some(adds), None);
        active.access_on(0, access(Kind::Store, MIB, 0), None);
        hand_overs += u32::from(active.now_ps() - before_ps > 10_000);
    }
    // In half of the 23 ns of a transfer, the line's owner adds four times, once per nanosecond.
    let each = f64::from(ADDS) / f64::from(hand_overs);
    assert!((42.0..48.0).contains(&each), "{each} adds to a hand-over");
    let add_ns = engine.time_ps(0) as f64 / 1000.0 / f64::from(ADDS);
    assert!((0.48..0.54).contains(&add_ns), "{add_ns} ns");
}

#[test]
fn a_shared_or_evicted_line_has_no_owner() {
    let engine = owners(",overlap=1");
    let touch = |vcpu: usize, address: u64, kind: Kind| {
        // All vCPUs are aligned in time.
        engine.mark(vcpu, Marker::Phase(1));
        engine.block(vcpu, 1);
        let begin_ps = engine.time_ps(vcpu);
        engine.enter(vcpu).access(access(kind, address, 0));
        (engine.time_ps(vcpu) - begin_ps) / 1000
    };
    touch(0, 0, Kind::Store);
    assert_eq!(touch(3, 0, Kind::Load), 196, "from its writer");
    assert_eq!(touch(2, 0, Kind::Load), 99, "from memory, which has it again");
    assert_eq!(touch(3, 0, Kind::Load), 0, "from its own cache");
    assert_eq!(touch(0, 0, Kind::Store), 0, "its buffer hides that readers lose the line");
    assert_eq!(touch(3, 0, Kind::Load), 196, "whose cache has lost it");
    touch(0, 4 * MIB, Kind::Store);
    // Eight ways of 64 sets, and no earlier lines.
    (1..9).for_each(|way| _ = touch(0, 4 * MIB + way * 4096, Kind::Load));
    assert_eq!(touch(3, 4 * MIB, Kind::Load), 249, "it is in memory");
}

#[test]
fn an_atomic_operation_waits_until_the_farthest_reader_has_lost_the_line() {
    let engine = owners("+core");
    let [add, read] = [&[0xf0, 0x48, 0x83, 0x00, 0x01][..], READ].map(|code| block_of(&[code]));
    let touch = |vcpu: usize, block, kind| {
        engine.mark(vcpu, Marker::Phase(1));
        let begin_ps = engine.time_ps(vcpu);
        engine.block_of(vcpu, block);
        engine.enter(vcpu).access(access(kind, MIB, 0));
        engine.mark(vcpu, Marker::Publish);
        (engine.time_ps(vcpu) - begin_ps) / 1000
    };
    let after = |readers: &[usize]| {
        readers.iter().for_each(|reader| _ = touch(*reader, read, Kind::Load));
        touch(0, add, Kind::Store)
    };
    after(&[0]);
    let [alone, near, far] = [&[][..], &[1], &[1, 3]].map(after);
    assert_eq!([near, far].map(|ns| ns - alone), [23, 197], "{alone} ns without readers");
}

#[test]
fn a_vcpu_that_waits_for_a_line_ends_its_turn_until_the_line_is_written() {
    let engine = owners("");
    let look = || {
        let over = engine.block(1, 1).over;
        load(&engine, 1, 0, 0);
        over
    };
    engine.block(0, 1);
    store(&engine, 0, 0);
    assert!((0..40).any(|_| look()), "it waits");
    // The other vCPU writes 4 µs later by its own clock.
    engine.block(0, 4000);
    store(&engine, 0, 0);
    let written_ps = engine.time_ps(0);
    look();
    let late_ps = engine.time_ps(1) - written_ps;
    // Eight instructions overlap with it.
    assert!((14_000..24_000).contains(&late_ps), "{late_ps} ps after it was written");
}

#[test]
fn without_line_ownership_waiting_is_not_detected() {
    let engine = engine("mode=virtual,caches=1:32K:8:64:cpu:1");
    let look = |_| {
        let over = engine.block(1, 1).over;
        load(&engine, 1, 0, 0);
        over
    };
    assert!(!(0..100).any(look), "its turn ends by time alone");
}

#[test]
fn lines_that_another_vcpu_wrote_a_while_ago_are_taken_several_at_a_time() {
    // Returns the ns of each line that is read this long after all were written.
    let read_ns = |lines: u64, later_ps: u64| {
        let engine = owners("+core").for_threads();
        let lines: Vec<u64> = (0..lines).map(|line| MIB + line * 64).collect();
        let mut writer = engine.enter_as(0, 0);
        for line in &lines {
            writer.begin(1, Some(block_of(&[&[0x48, 0x89, 0x08]])), None); // mov %rcx,(%rax)
            writer.access_on(0, access(Kind::Store, *line, 0), None);
        }
        drop(writer);
        let mut reader = engine.enter_as(3, 3);
        reader.comes_to(engine.time_ps(0) + later_ps);
        let begin_ps = reader.now_ps();
        for line in &lines {
            reader.begin(1, Some(block_of(&[READ])), None);
            reader.access_on(0, access(Kind::Load, *line, 0), None);
        }
        reader.settles();
        (reader.now_ps() - begin_ps) as f64 / 1000.0 / lines.len() as f64
    };
    let [old, new] = [read_ns(256, 2_000_000), read_ns(4, 0)];
    assert!((10.0..16.0).contains(&old), "{old} ns: sixteen of 197 ns at a time");
    assert!((190.0..200.0).contains(&new), "{new} ns: its value may be waited for");
}

#[test]
fn a_load_of_what_was_just_stored_does_not_wait_for_a_line_that_another_vcpu_is_taking() {
    let engine = owners("+core").for_threads();
    let adds = block_of(&[&[0x48, 0x01, 0x08]]); // add %rcx,(%rax)
    const ADDS: u32 = 20_000;
    let mut taken = 0;
    for _ in 0..ADDS {
        // In the order of time, to different words of a line.
        let cpu = usize::from(engine.time_ps(1) < engine.time_ps(0));
        let before_ps = engine.time_ps(cpu);
        let mut active = engine.enter_as(cpu, cpu);
        active.begin(1, Some(adds), None);
        for kind in [Kind::Load, Kind::Store] {
            active.access_on(0, access(kind, MIB + 8 * cpu as u64, 0), None);
        }
        taken += u32::from(active.now_ps() - before_ps > 10_000);
    }
    let each = f64::from(ADDS) / f64::from(taken);
    assert!(each > 5.0, "{each} adds for each time that the line is taken");
}

#[test]
fn a_reader_keeps_a_line_until_the_request_of_a_store_arrives_unless_it_polls_it() {
    // Returns the ns of a load this long after another vCPU's store to a line that both have read.
    let read_ns = |later_ps: u64, polls: bool| {
        let engine = owners("+core").for_threads();
        let touch = |vcpu: usize, now_ps: u64, kind: Kind, address: u64| {
            let code = if kind == Kind::Store { &[0x48, 0x89, 0x08][..] } else { READ };
            let mut active = engine.enter_as(vcpu, vcpu);
            active.comes_to(now_ps);
            active.begin(1, Some(block_of(&[code])), None);
            active.access_on(0, access(kind, address, 0), None);
            active.settles();
            active.now_ps().saturating_sub(now_ps) / 1000
        };
        touch(0, 0, Kind::Store, MIB);
        touch(1, 2_000_000, Kind::Load, MIB);
        touch(1, 4_000_000, Kind::Load, if polls { MIB } else { 2 * MIB });
        touch(0, 6_000_000, Kind::Store, MIB);
        touch(1, 6_000_000 + later_ps, Kind::Load, MIB)
    };
    assert_eq!([read_ns(5_000, false), read_ns(15_000, false)], [0, 0], "two thirds of 23 ns");
    assert_eq!([read_ns(16_000, false), read_ns(5_000, true)], [23, 23]);
}

#[test]
fn readers_of_a_line_that_is_written_again_and_again_take_it_once_for_many_loads() {
    let engine = owners("+core").for_threads();
    let [writes, reads] = [&[0x48, 0x89, 0x08][..], READ].map(|code| block_of(&[code; 4]));
    const LOADS: u32 = 10_000;
    let (mut taken, mut loads) = (0, 0);
    while loads < LOADS {
        // In the order of time.
        let cpu = usize::from(engine.time_ps(1) < engine.time_ps(0));
        let (block, kind) = if cpu == 0 { (writes, Kind::Store) } else { (reads, Kind::Load) };
        let before_ps = engine.time_ps(cpu);
        let mut active = engine.enter_as(cpu, cpu);
        active.begin(4, Some(block), None);
        // The line of a flag, and one that the vCPU has for itself.
        for (position, address) in [(0, MIB), (1, 2 * MIB + 4096 * cpu as u64)] {
            active.access_on(0, access(kind, address, position), None);
        }
        if cpu == 1 {
            loads += 1;
            taken += u32::from(active.now_ps() - before_ps > 10_000);
        }
    }
    let each = f64::from(LOADS) / f64::from(taken);
    assert!((6.0..40.0).contains(&each), "{each} loads for each time that the line is taken");
}

#[test]
fn a_vcpu_that_exchanges_a_word_again_waits_until_the_other_one_has_written_it() {
    let engine = owners("");
    // A vCPU whose turn was first, by more than the lead of one that has just written.
    engine.block(0, 20_000);
    store(&engine, 0, MIB);
    engine.block(1, 1);
    store(&engine, 1, MIB);
    assert!(engine.time_ps(1) < 1_000_000, "it came first by its own time");
    store(&engine, 0, MIB);
    load(&engine, 1, MIB, 0);
    assert!(engine.time_ps(1) >= 20_000_000, "{} ps", engine.time_ps(1));
}
