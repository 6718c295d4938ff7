use proptest::prelude::*;

use super::*;
use crate::perf::{Operation, ServedBy};

const FAULT: u64 = 7;
const LOAD: u64 = 8;

fn layouts() -> HashMap<u64, SampleLayout> {
    let layout = |is_memory_sample| SampleLayout { is_memory_sample };
    HashMap::from([(FAULT, layout(false)), (LOAD, layout(true))])
}

/// Builds a record with a header and numbers in order.
fn record(kind: u32, misc: u32, body: &[u8]) -> Vec<u8> {
    let misc = u16::try_from(misc).unwrap();
    let size = u16::try_from(8 + body.len()).unwrap();
    let header = [&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &size.to_ne_bytes()].concat();
    [header, body.to_vec()].concat()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Returns the fields that end every record except samples.
fn trailer(time: u64) -> Vec<u8> {
    words(&[pair(40, 41), time, pair(3, 0), FAULT])
}

fn registers() -> Vec<u64> {
    if SampleLayout::has_registers() { vec![2, 0x7ffd_0000] } else { Vec::new() }
}

fn sampled(id: u64, misc: u32, rest: &[u64]) -> Option<SampleRecord> {
    let head = [id, 0x401_000, pair(40, 41), 99, 0xdead_b000, pair(3, 0)];
    let calls = [4, USER_CONTEXT, 0x401_000, 0x402_000, 0x403_000];
    let body = [&head[..], &calls, &registers(), rest].concat();
    match parse(&record(sys::PERF_RECORD_SAMPLE, misc, &words(&body)), &layouts()) {
        Some(PerfRecord::Sample(sample)) => Some(sample),
        None => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_fault_has_its_address_code_thread_and_cpu() {
    let sample = sampled(FAULT, sys::PERF_RECORD_MISC_USER, &[]).unwrap();
    let expected = SampleRecord {
        time_ns: 99,
        process: 40,
        thread: 41,
        cpu: 3,
        calls: vec![0x401_000, 0x402_000, 0x403_000],
        address: 0xdead_b000,
        stack_pointer: SampleLayout::has_registers().then_some(0x7ffd_0000),
        access: None,
        latency_cycles: 0,
    };
    assert_eq!(sample, expected);
}

#[test]
fn a_memory_sample_has_its_latency_and_data_source() {
    let source = u64::from(sys::PERF_MEM_OP_LOAD)
        | u64::from(sys::PERF_MEM_LVLNUM_RAM) << sys::PERF_MEM_LVLNUM_SHIFT;
    let sample = sampled(LOAD, sys::PERF_RECORD_MISC_USER, &[312, source]).unwrap();
    assert_eq!(sample.latency_cycles, 312);
    let access = sample.access.unwrap();
    assert_eq!((access.operation, access.served_by), (Some(Operation::Load), ServedBy::Memory));
}

#[test]
fn work_of_the_kernel_is_attributed_to_the_calls_of_the_program() {
    let sample = sampled(FAULT, sys::PERF_RECORD_MISC_KERNEL, &[]).unwrap();
    assert_eq!(sample.calls, [0x401_000, 0x402_000, 0x403_000], "not the kernel's instruction");
    assert_eq!(sampled(12, sys::PERF_RECORD_MISC_USER, &[]), None, "an event without a layout");
}

#[test]
fn mappings_programs_threads_and_losses_are_parsed() {
    let of = |kind, misc, body: &[u8]| {
        parse(&record(kind, misc, &[body, &trailer(55)].concat()), &layouts())
    };
    let map =
        [&words(&[pair(40, 41), 0x7000, 0x3000, 0x1000, 0, 0, 0, 0]), &b"/lib/x.so\0\0\0"[..]];
    let expected = MapRecord {
        time_ns: 55,
        process: 40,
        start: 0x7000,
        end: 0xa000,
        offset: 0x1000,
        name: "/lib/x.so".to_owned(),
    };
    assert_eq!(of(sys::PERF_RECORD_MMAP2, 0, &map.concat()), Some(PerfRecord::Map(expected)));
    let name = [&words(&[pair(40, 41)]), &b"cat\0\0\0\0\0"[..]].concat();
    let exec = PerfRecord::Exec { time_ns: 55, process: 40, name: "cat".to_owned() };
    assert_eq!(of(sys::PERF_RECORD_COMM, sys::PERF_RECORD_MISC_COMM_EXEC, &name), Some(exec));
    let named = PerfRecord::Named { time_ns: 55, process: 40, thread: 41, name: "cat".to_owned() };
    assert_eq!(of(sys::PERF_RECORD_COMM, 0, &name), Some(named));
    let born = words(&[pair(50, 40), pair(50, 41), 54]);
    let forked = PerfRecord::Forked { time_ns: 55, parent: 40, process: 50, thread: 50 };
    assert_eq!(of(sys::PERF_RECORD_FORK, 0, &born), Some(forked));
    let ended = PerfRecord::Ended { time_ns: 55, process: 50, thread: 50 };
    assert_eq!(of(sys::PERF_RECORD_EXIT, 0, &born), Some(ended));
    let lost = words(&[FAULT, 12]);
    assert_eq!(of(sys::PERF_RECORD_LOST, 0, &lost), Some(PerfRecord::Lost { records: 12 }));
    assert_eq!(of(sys::PERF_RECORD_THROTTLE, 0, &[]), Some(PerfRecord::Throttled));
    assert_eq!(of(sys::PERF_RECORD_READ, 0, &lost), None);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(
        kind in 0_u32..22,
        misc in any::<u16>(),
        id in 6_u64..9,
        body in prop::collection::vec(any::<u8>(), 0..160),
    ) {
        let body = [&id.to_ne_bytes()[..], &body].concat();
        let _ = parse(&record(kind, misc.into(), &body), &layouts());
        let _ = parse(&body, &layouts());
    }
}
