use std::process::Command;
use std::time::{Duration, Instant};

use super::*;
use crate::mapping::Mapping;
use crate::perf::{DataSource, SampleRecord, ServedBy};
use crate::system_page::base_pages;
use crate::tests::in_own_process;

/// Records this process on all cpus; prints a note and returns `None` if the kernel refuses.
fn recording() -> Option<Recording> {
    let cpus = crate::current_affinity().unwrap();
    match Recording::open(Followed::Now(std::process::id()), None, &cpus) {
        Ok(recording) => Some(recording),
        Err(PerfError::Hindered(why)) if std::env::var_os("NUMALAB_REQUIRE_TOOLS").is_none() => {
            eprintln!("NOT RUN: {why:?}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs the named test in a separate process, where no other test's threads fill the rings; returns
/// `None` in the parent.
fn alone(test: &str) -> Option<Recording> {
    let path = format!("perf::recording::tests::{test}");
    if in_own_process(&path, Duration::from_secs(600)) { recording() } else { None }
}

fn samples(batch: &Batch, of: &Mapping) -> Vec<SampleRecord> {
    let span = of.span();
    let within = |sample: &&SampleRecord| {
        (span.address..span.address + span.len_bytes)
            .contains(&usize::try_from(sample.address).unwrap())
    };
    let samples = batch.records.iter().filter_map(|record| match record {
        PerfRecord::Sample(sample) => Some(sample),
        _ => None,
    });
    samples.filter(within).cloned().collect()
}

#[inline(never)]
fn touch(mapping: &mut Mapping) {
    for page in mapping.as_bytes_mut().chunks_mut(4096) {
        std::hint::black_box(page)[7] = 1;
    }
}

#[test]
fn the_first_touch_of_a_page_is_sampled_with_its_address_and_code() {
    let test = "the_first_touch_of_a_page_is_sampled_with_its_address_and_code";
    let Some(mut recording) = alone(test) else { return };
    let mut mapping = Mapping::new(256 << 12, base_pages()).unwrap();
    touch(&mut mapping);
    let batch = recording.drain();
    let samples = samples(&batch, &mapping);
    assert_eq!((samples.len(), batch.lost), (256, 0));
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    let here = std::ptr::from_ref(&thread) as u64;
    for (at, sample) in samples.iter().enumerate() {
        assert_eq!(sample.address, (mapping.span().address + at * 4096 + 7) as u64);
        assert_eq!(sample.thread, u32::try_from(thread).unwrap());
        assert_eq!(sample.process, std::process::id());
        assert!(here.abs_diff(sample.stack_pointer.unwrap()) < 1 << 20, "{sample:x?}");
        assert_eq!(sample.access, None);
    }
    // Without optimisation the store is in `touch` itself.
    let code = touch as *const () as u64;
    let in_touch = |address: &u64| (code..code + 4096).contains(address);
    assert!(samples[0].calls.iter().any(in_touch), "{code:x}: {:x?}", samples[0]);
    assert!(samples.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns));
    let mapped = batch.records.iter().find_map(|record| match record {
        PerfRecord::Map(map) if map.start == mapping.span().address as u64 => Some(map.clone()),
        _ => None,
    });
    assert_eq!(mapped.unwrap().name, "//anon");
}

/// Hardware events have more fields and come through the same rings. A software event, which every
/// machine has, represents them here.
#[test]
fn hardware_events_and_page_faults_are_parsed_by_their_own_layouts() {
    let test = "hardware_events_and_page_faults_are_parsed_by_their_own_layouts";
    if alone(test).is_none() {
        return;
    }
    let event = MemoryEvent {
        name: "software/minor-faults/".to_owned(),
        unit_type: perf_event_open_sys::bindings::PERF_TYPE_SOFTWARE,
        config: [perf_event_open_sys::bindings::PERF_COUNT_SW_PAGE_FAULTS_MIN.into(), 0, 0],
        period: 2,
        least_latency_cycles: None,
        precise: 0,
        helper: None,
        cpus: None,
        may_exclude_kernel: true,
    };
    let kind = numalab_record::profile::SamplingUnit::Pebs;
    let unit = MemoryUnit { kind, events: vec![event] };
    let cpus = crate::current_affinity().unwrap();
    let own = Followed::Now(std::process::id());
    let mut recording = Recording::open(own, Some(&unit), &cpus).unwrap();
    let mut mapping = Mapping::new(256 << 12, base_pages()).unwrap();
    touch(&mut mapping);
    let samples = samples(&recording.drain(), &mapping);
    let (of_unit, faults): (Vec<_>, Vec<_>) =
        samples.iter().partition(|sample| sample.access.is_some());
    assert_eq!((faults.len(), of_unit.len()), (256, 128), "one in two");
    let nothing = DataSource { operation: None, served_by: ServedBy::Unknown };
    assert!(of_unit.iter().all(|sample| sample.access == Some(nothing)), "{of_unit:?}");
    assert!(of_unit.iter().all(|sample| sample.stack_pointer.is_some() && sample.cpu < 4096));
}

#[test]
fn records_that_wrap_around_the_rings_are_all_read() {
    let test = "records_that_wrap_around_the_rings_are_all_read";
    let Some(mut recording) = alone(test) else { return };
    let mut seen = 0;
    let mut bytes = 0;
    while bytes < 3 * recording.ring_bytes() {
        let mut mapping = Mapping::new(512 << 12, base_pages()).unwrap();
        touch(&mut mapping);
        let batch = recording.drain();
        assert_eq!(batch.lost, 0);
        seen += samples(&batch, &mapping).len();
        // The smallest size of a record.
        bytes += 512 * 80;
    }
    assert_eq!(seen * 80, bytes);
}

#[test]
fn records_that_do_not_fit_are_counted_as_lost() {
    let test = "records_that_do_not_fit_are_counted_as_lost";
    let Some(mut recording) = alone(test) else { return };
    // Each cpu has a ring: spread over several, the records might fit.
    let _pinned = crate::pin(crate::current_affinity().unwrap().first().unwrap()).unwrap();
    let pages = recording.ring_bytes() / 64;
    for _ in 0..pages.div_ceil(8192) {
        let mut mapping = Mapping::new(8192 << 12, base_pages()).unwrap();
        touch(&mut mapping);
    }
    // Losses are reported after the next record that fits.
    let mut all = recording.drain();
    let mut mapping = Mapping::new(64 << 12, base_pages()).unwrap();
    touch(&mut mapping);
    let last = recording.drain();
    all.lost += last.lost;
    assert!(all.lost > 0);
    // Reading the rings touches memory too, possibly at an address used before.
    assert!(samples(&last, &mapping).len() >= 64, "it goes on");
}

#[test]
fn threads_and_programs_that_are_started_later_are_followed() {
    let test = "threads_and_programs_that_are_started_later_are_followed";
    let Some(mut recording) = alone(test) else { return };
    let thread = std::thread::spawn(|| {
        let mut mapping = Mapping::new(16 << 12, base_pages()).unwrap();
        touch(&mut mapping);
        (rustix::thread::gettid().as_raw_nonzero().get(), mapping)
    });
    let (thread, mapping) = thread.join().unwrap();
    let script = "exec cat /dev/null";
    assert!(Command::new("sh").args(["-c", script]).status().unwrap().success());
    let batch = recording.drain();
    let of_thread = samples(&batch, &mapping);
    assert_eq!(of_thread.len(), 16);
    assert!(of_thread.iter().all(|sample| i64::from(sample.thread) == i64::from(thread)));
    let names = batch.records.iter().filter_map(|record| match record {
        PerfRecord::Exec { name, .. } => Some(name.as_str()),
        _ => None,
    });
    assert_eq!(names.collect::<Vec<_>>(), ["sh", "cat"]);
    let files =
        |record: &&PerfRecord| matches!(record, PerfRecord::Map(map) if map.name.ends_with("/cat"));
    assert!(batch.records.iter().any(|record| files(&record)));
    let (own, cat) = (std::process::id(), |record: &&PerfRecord| match record {
        PerfRecord::Forked { parent, process, .. } => *parent != *process,
        _ => false,
    });
    let forked = batch.records.iter().find(cat);
    assert!(
        matches!(forked, Some(PerfRecord::Forked { parent, .. }) if *parent == own),
        "{forked:?}"
    );
}

#[test]
fn a_full_ring_wakes_who_waits_and_an_idle_one_does_not() {
    let test = "a_full_ring_wakes_who_waits_and_an_idle_one_does_not";
    let Some(mut recording) = alone(test) else { return };
    let _ = recording.drain();
    let begun = Instant::now();
    let toucher = std::thread::spawn(|| {
        for _ in 0..12 {
            let mut mapping = Mapping::new(8192 << 12, base_pages()).unwrap();
            touch(&mut mapping);
        }
    });
    recording.wait(Duration::from_secs(60));
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    toucher.join().unwrap();
}

#[test]
fn a_missing_process_is_an_error() {
    let cpus = crate::current_affinity().unwrap();
    let error = Recording::open(Followed::Now(u32::MAX), None, &cpus).unwrap_err();
    assert_eq!(error, PerfError::NoProcess { process: u32::MAX });
}

#[test]
fn a_forbidding_paranoid_level_differs_from_other_refusals() {
    let tree = tempfile::tempdir().unwrap();
    let file = tree.path().join("proc/sys/kernel/perf_event_paranoid");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let root = Root::at(tree.path());
    let refused = |errno| hindrance(&root, errno);
    assert!(matches!(refused(Errno::NOSYS), Hindrance::PerfRefused { .. }));
    std::fs::write(&file, "3\n").unwrap();
    assert_eq!(refused(Errno::ACCESS), Hindrance::PerfParanoid { level: 3 });
    assert!(matches!(refused(Errno::NOSYS), Hindrance::PerfRefused { .. }));
    std::fs::write(&file, "2\n").unwrap();
    assert!(matches!(refused(Errno::PERM), Hindrance::PerfRefused { .. }), "a filter");
    assert!(matches!(refused(Errno::MFILE), Hindrance::TooFewFiles { .. }));
}
