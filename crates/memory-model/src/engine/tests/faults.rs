//! The kernel's work: the time of page faults and system calls, and what faults leave in the caches.

use core::ops::Range;

use super::*;
use crate::machine::{Calls, Fault, Faults, SystemCall};
use crate::space::Page;

/// Returns a model with times of page faults (500 ns for a first load, 1.5 µs for a first store) and of
/// system calls.
fn with_faults(more: &str) -> Engine {
    let mut arguments = engine(more).arguments;
    arguments.machine.faults = Some(Faults {
        load_ns: 500.0,
        store_ns: 1500.0,
        copy_ns: 2000.0,
        file_ns: 3000.0,
        free_ns: 100.0,
        unmap_ns: 10.0,
        huge_ns: None,
    });
    let [call_ns, yield_ns, map_ns, page_ns, wake_ns] = [160.0, 450.0, 1700.0, 150.0, 9000.0];
    arguments.machine.calls = Some(Calls {
        call_ns,
        yield_ns,
        map_ns,
        page_ns,
        wake_ns,
        read_ns: 400.0,
        write_ns: 700.0,
        grow_ns: 1500.0,
        new_page_ns: 500.0,
        pipe_page_ns: 330.0,
        open_ns: 0.0,
        fork_ns: 80_000.0,
        fork_page_ns: 100.0,
        fork_map_ns: 600.0,
        execute_ns: 50_000.0,
        cpuid_ns: 3_000.0,
    });
    Engine::new(arguments, Addressing::Physical, PS_PER_INSTRUCTION, || Duration::ZERO)
        .for_threads()
}

#[test]
fn a_page_fault_begins_when_everything_in_flight_has_ended() {
    let engine = with_faults("mode=count,stages=core");
    let mut active = engine.enter_as(0, 0);
    active.begin(4, Some(block_of(&[READ, STEP, COUNT, AGAIN])), None);
    let began_ps = active.now_ps();
    active.access_on(0, access(Kind::Load, 0, 0), None);
    assert!(active.now_ps() - began_ps < 10_000, "the load is in flight");
    active.faults(Fault::Load, None);
    let took_ns = (active.now_ps() - began_ps) / 1000;
    assert!((598..=602).contains(&took_ns), "{took_ns}");
    drop(active);
    let figures = engine.counters.of(0, 0);
    assert_eq!((figures.faults.get(), figures.faults_ps.get()), (1, 500_000));
}

#[test]
fn a_system_call_takes_its_time_and_that_of_the_bytes_that_it_moves() {
    let engine = with_faults("mode=count,stages=core");
    let mut active = engine.enter_as(0, 0);
    let calls = [SystemCall::Other, SystemCall::Yield, SystemCall::Map, SystemCall::Move(8192)];
    let took_ns = calls.map(|call| {
        let began_ps = active.now_ps();
        active.calls(call, None);
        (active.now_ps() - began_ps) / 1000
    });
    assert_eq!(took_ns, [160, 450, 1700, 460]);
    drop(active);
    let figures = engine.counters.of(0, 0);
    assert_eq!((figures.calls.get(), figures.calls_ps.get()), (4, 2_770_000));
    assert_eq!(figures.faults.get(), 0);
}

#[test]
fn processes_take_their_captured_times_and_calls_without_one_that_of_any_call() {
    let engine = with_faults("mode=count,stages=core");
    let mut active = engine.enter_as(0, 0);
    let fork = SystemCall::Fork(20, 10);
    let took_ns = [fork, SystemCall::Execute, SystemCall::Cpuid(2), SystemCall::Open].map(|call| {
        let began_ps = active.now_ps();
        active.calls(call, None);
        (active.now_ps() - began_ps) / 1000
    });
    assert_eq!(took_ns, [88_000, 50_000, 6_000, 160]);
    active.frees(3, 4, None);
    drop(active);
    assert_eq!(engine.counters.of(0, 0).faults_ps.get(), 340_000);
}

#[test]
fn files_take_the_time_of_their_kind_of_call_and_of_new_pages_and_pipes_that_of_all_but_the_first()
{
    let calls = with_faults("mode=count,stages=core").arguments.machine.calls.expect("times");
    let writes = |added| SystemCall::Write(8192, added);
    let pipes = [0, 4096, 65536].map(SystemCall::Pipe);
    let all = [&[SystemCall::Read(2048), writes(0), writes(2)][..], &pipes].concat();
    let took_ns: Vec<f64> = all.into_iter().map(|call| calls.takes_ns(call)).collect();
    assert_eq!(took_ns, [475.0, 1000.0, 3500.0, 160.0, 310.0, 5260.0]);
}

#[test]
fn lines_that_the_kernel_copies_are_waited_for_only_if_they_come_from_memory() {
    let engine = with_faults("mode=count,stages=core,caches=1:32K:8:64:cpu:1");
    let mut active = engine.enter_as(0, 0);
    let page = Page { frame: 16 * MIB, node: 0, bound: false, table: 0, is_shared: false };
    let mut took_ps = |bytes: Range<u64>| {
        let began_ps = active.now_ps();
        active.copies_lines(page, 5, bytes, Kind::Load, None);
        active.now_ps() - began_ps
    };
    // 16 of the 100 ns each at a time.
    assert_eq!([took_ps(0..2048), took_ps(0..2048), took_ps(2040..2112)], [200_000, 0, 6_250]);
}

#[test]
fn lines_that_the_kernel_cleared_are_in_the_caches_those_around_the_fault_nearest() {
    let engine = with_faults("mode=count,stages=core,caches=1:32K:8:64:cpu:1+2:512K:8:64:cpu:4");
    let mut active = engine.enter_as(0, 0);
    let page = |frame| Page { frame, node: 0, bound: false, table: 0, is_shared: false };
    active.writes_page(page(16 * MIB), 5, false);
    active.writes_page(page(8 * MIB + 300 * 4096), 512 + 300, true);
    let mut missed = |address| active.access_on(0, access(Kind::Load, address, 0), None).missed;
    let near = [300, 299, 305, 280].map(|at| missed(8 * MIB + at * 4096 + 64));
    assert_eq!(near, [false; 4]);
    assert!(missed(8 * MIB) && missed(16 * MIB), "the last 2 MiB left no room for it");
}
