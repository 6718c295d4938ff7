//! Programs' use of memory, and the source of a profile.

use numalab_record::profile::*;
use numalab_record::*;
use serde_json::{Value, json};

fn code(offset: u64) -> Vec<CodePlace> {
    vec![CodePlace { object: "/bin/solver".to_owned(), offset, function: None, line: None }]
}

fn user(thread: u32, loaded_bytes: u64, stored_bytes: u64) -> LineUser {
    LineUser {
        thread,
        cpu_node: 0,
        loads: 1,
        stores: 1,
        loaded_bytes,
        stored_bytes,
        waited_ns: u64::from(thread),
        at: code(u64::from(thread)),
    }
}

fn line(threads: Vec<LineUser>) -> ContendedLine {
    ContendedLine { address: 64, region: "[heap]".to_owned(), changes: 9, threads }
}

#[test]
fn sharing_is_false_only_where_no_thread_uses_a_byte_that_another_stores_to() {
    let is_false = |threads| line(threads).is_false_sharing();
    assert!(is_false(vec![user(1, 0x0f, 0x0f), user(2, 0xf0, 0xf0)]));
    assert!(!is_false(vec![user(1, 0, 0x0f), user(2, 0, 0x08)]), "both store to a byte");
    assert!(!is_false(vec![user(1, 0, 0x0f), user(2, 0x08, 0)]), "one loads what another stores");
    assert!(!is_false(vec![user(1, 0x08, 0), user(2, 0, 0x0f)]), "in either order");
    assert!(!is_false(vec![user(1, 0, 1), user(2, 0, 2), user(3, 1, 4)]), "a third thread too");
    assert!(is_false(vec![user(1, 0xff, 1), user(2, 0xf0, 0)]), "loads of one byte are no harm");
    assert!(!is_false(vec![user(1, 0, 1 << 63), user(2, 1 << 63, 0)]), "up to the last byte");
    assert_eq!(line(vec![user(3, 0, 1), user(4, 0, 2)]).waited_ns(), 7);
}

#[test]
fn accesses_of_a_region_are_those_of_threads_or_of_its_parts_whichever_are_more() {
    let by = |loads, stores, either| {
        let [loads, stores] = [loads, stores].map(Some);
        RegionAccesses { loads, stores, either, ..RegionAccesses::default() }
    };
    let part = |accesses| RegionPart { accesses, ..RegionPart::default() };
    let region = |accesses, parts| Region { accesses, parts, ..Region::default() }.all_accesses();
    assert_eq!(region(vec![by(1, 2, 4), by(8, 0, 0)], vec![part(5), part(9)]), 15);
    assert_eq!(region(vec![by(1, 2, 4)], vec![part(5), part(9)]), 14);
    assert_eq!(region(Vec::new(), Vec::new()), 0);
    assert_eq!(by(u64::MAX, 1, 1).all(), u64::MAX);
    let on = |cpu_node, memory_node| RegionAccesses { cpu_node, memory_node, ..by(1, 0, 0) };
    assert!(on(0, 1).is_remote() && !on(1, 1).is_remote());
}

#[test]
fn every_place_in_the_code_is_replaced_once_by_its_frames() {
    let touches = FirstTouches { thread: 1, cpu_node: 0, pages: 1, at: code(2) };
    let accessed = AccessedAt { at: code(3), accesses: 1, remote: 0 };
    let region = |offset| Region {
        made_at: code(offset),
        first_touches: vec![touches.clone()],
        accessed_at: vec![accessed.clone()],
        ..Region::default()
    };
    let mut program = ProgramMemory {
        regions: vec![region(1), region(4)],
        contended_lines: vec![line(vec![user(7, 0, 0), user(8, 0, 0)])],
        ..ProgramMemory::default()
    };
    let named = |name: &str, place: &CodePlace| {
        let function = Some(format!("{name} {}", place.offset));
        CodePlace { function, ..place.clone() }
    };
    let mut offsets = Vec::new();
    program.name_code(|place| {
        offsets.push(place.offset);
        vec![named("inlined", place), named("outer", place)]
    });
    assert_eq!(offsets, [1, 2, 3, 4, 2, 3, 7, 8]);
    let names = |places: &[CodePlace]| places.iter().map(|of| of.function.clone()).collect();
    let made: Vec<Option<String>> = names(&program.regions[1].made_at);
    assert_eq!(made, [Some("inlined 4".to_owned()), Some("outer 4".to_owned())]);
    let stores: Vec<Option<String>> = names(&program.contended_lines[0].threads[1].at);
    assert_eq!(stores, [Some("inlined 8".to_owned()), Some("outer 8".to_owned())]);
}

#[test]
fn unknown_values_are_not_written_and_read_back_as_unknown() {
    let written = serde_json::to_value(RegionAccesses::default()).unwrap();
    let members: Vec<&String> = written.as_object().unwrap().keys().collect();
    assert_eq!(members, ["cpu_node", "memory_node", "thread"]);
    assert_eq!(
        serde_json::from_value::<RegionAccesses>(written).unwrap(),
        RegionAccesses::default()
    );
    let some = RegionAccesses { either: 3, latency_cycles: 7, ..RegionAccesses::default() };
    let written = serde_json::to_value(&some).unwrap();
    assert_eq!((&written["either"], &written["latency_cycles"]), (&json!(3), &json!(7)));
    // The form of earlier emulators.
    let before = json!({"thread": 1, "cpu_node": 0, "memory_node": 1, "loads": 2, "stores": 3,
        "misses": 4, "waited_ns": 5, "memory_ns": 6, "queue_ns": 7});
    let read: RegionAccesses = serde_json::from_value(before).unwrap();
    assert_eq!((read.loads, read.stores, read.misses), (Some(2), Some(3), Some(4)));
    let waits = AccessWaits { waited_ns: 5, memory_ns: 6, queue_ns: 7, ..AccessWaits::default() };
    assert_eq!(read.waits, Some(waits));
    let alike = json!({"memory_node": 0, "main_node": 1, "sharing": "one-node", "pages": 2,
        "accesses": 3, "waits": []});
    let read: PagesAlike = serde_json::from_value(alike.clone()).unwrap();
    assert_eq!((read.bound, read.sharing), (false, Sharing::OneNode));
    assert_eq!(serde_json::to_value(&read).unwrap(), alike);
}

#[test]
fn joined_stretches_keep_their_sums_and_drop_fields_that_one_lacks() {
    let of = |end_ns, waited_ns, regions: &[(usize, u64)]| Stretch {
        end_ns,
        busy_ns: 10,
        waited_ns,
        misses: Some(1),
        regions: regions
            .iter()
            .map(|&(region, local)| StretchAccesses { region, local, ..Default::default() })
            .collect(),
    };
    let stretches =
        [of(1, Some(2), &[(3, 5)]), of(2, Some(4), &[(0, 7), (3, 1)]), of(3, None, &[(9, 9)])];
    let joined = Stretch::joined(&stretches);
    assert_eq!(joined.len(), 2);
    assert_eq!(
        joined[0],
        Stretch { busy_ns: 20, misses: Some(2), ..of(2, Some(6), &[(0, 7), (3, 6)]) }
    );
    assert_eq!(joined[1], stretches[2]);
    let all = &Stretch::joined(&joined)[0];
    assert_eq!((all.end_ns, all.waited_ns, all.misses), (3, None, Some(3)));
    let order: Vec<usize> = all.regions.iter().map(|of| of.region).collect();
    assert_eq!(order, [0, 3, 9]);
    assert!(Stretch::joined(&[]).is_empty());
}

/// Returns the JSON of a value, which must read back as the same value.
fn written<
    T: serde::Serialize + for<'de> serde::Deserialize<'de> + PartialEq + core::fmt::Debug,
>(
    value: &T,
) -> Value {
    let json = serde_json::to_value(value).unwrap();
    assert_eq!(&serde_json::from_value::<T>(json.clone()).unwrap(), value);
    json
}

#[test]
fn sources_have_a_name_and_the_unit_of_their_counts() {
    let event =
        SampledEvent { event: "cpu/mem-loads/".to_owned(), period: 9, least_latency_cycles: None };
    let samples = ProfileSource::Samples {
        unit: SamplingUnit::Ibs,
        events: vec![event],
        taken: 1,
        lost: 2,
        throttled: 3,
    };
    let expected = json!({"name": "samples", "unit": "ibs", "taken": 1, "lost": 2, "throttled": 3,
        "events": [{"event": "cpu/mem-loads/", "period": 9}]});
    assert_eq!(written(&samples), expected);
    let sources = [
        samples,
        ProfileSource::Emulation { one_in: 4 },
        ProfileSource::Faults { balancing: true },
        ProfileSource::Damon { sample_us: 5, rounds: 6 },
        ProfileSource::Referenced { rounds: 1, interval_ns: 2, soft_dirty: false },
    ];
    for (source, name) in sources.iter().zip(SourceName::ALL) {
        assert_eq!(source.name(), name);
        assert_eq!(written(source)["name"], name.name());
        assert_eq!(written(&name), name.name());
        assert_eq!(format!("{name:>12}").len(), 12);
    }
    assert!(SourceName::ALL.is_sorted(), "the best one comes first");
    assert!(serde_json::from_value::<ProfileSource>(json!({"name": "guess"})).is_err());
}

#[test]
fn limits_and_obstacles_are_kinds_with_facts() {
    let reason = || "EPERM".to_owned();
    let unseen = [
        (CannotSee::LaterAccesses, "later-accesses", json!({})),
        (CannotSee::FastLoads { cycles: 30 }, "fast-loads", json!({"cycles": 30})),
        (CannotSee::PageNodes { reason: reason() }, "page-nodes", json!({"reason": "EPERM"})),
        (CannotSee::PagesBeyond { most: 7 }, "pages-beyond", json!({"most": 7})),
        (CannotSee::CallsWithoutFramePointers, "calls-without-frame-pointers", json!({})),
    ];
    for (value, kind, mut facts) in unseen {
        facts["kind"] = kind.into();
        assert_eq!(written(&value), facts);
    }
    let hindrances = [
        (Hindrance::NoPmu, "no-pmu", json!({})),
        (Hindrance::PerfParanoid { level: -1 }, "perf-paranoid", json!({"level": -1})),
        (Hindrance::TooFewFiles { limit: 9 }, "too-few-files", json!({"limit": 9})),
        (Hindrance::PerfRefused { reason: reason() }, "perf-refused", json!({"reason": "EPERM"})),
        (
            Hindrance::DamonWithoutProcesses { operations: vec!["paddr".to_owned()] },
            "damon-without-processes",
            json!({"operations": ["paddr"]}),
        ),
    ];
    for (value, kind, mut facts) in hindrances {
        facts["kind"] = kind.into();
        assert_eq!(written(&value), facts);
    }
}

#[test]
fn targets_and_ends_are_read_back_and_words_are_those_of_either_target() {
    let command = Target::Command(vec!["a".to_owned(), "-b".to_owned()]);
    let process = Target::Process { process: 7, command: vec!["c".to_owned()] };
    assert_eq!(written(&command), json!({"command": ["a", "-b"]}));
    assert_eq!(written(&process), json!({"process": {"process": 7, "command": ["c"]}}));
    assert_eq!((command.words().len(), process.words()), (2, &["c".to_owned()][..]));
    for (ended, expected) in [
        (Ended::Exited(3), json!({"exited": 3})),
        (Ended::Signalled(9), json!({"signalled": 9})),
        (Ended::ProcessEnded, json!("process-ended")),
        (Ended::TimeOver, json!("time-over")),
        (Ended::Interrupted, json!("interrupted")),
    ] {
        assert_eq!(written(&ended), expected);
    }
}
