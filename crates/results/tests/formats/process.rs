//! The page of a process, with its threads, devices and pages.

use numalab_record::explore::{
    DeviceUse, HugePageMode, MappingKind, MappingView, NodeRoom, PageSizes, ProcessView, Sampled,
    ThreadView, Unseen, View,
};
use numalab_results::Report;
use numalab_results::explore::Explored;
use numalab_topology::{DeviceKind, NodeId};

use crate::explored::{MIB, bytes, cpus, cpus_by_node, thread};
use crate::whole;

fn mapping(start: u64, policy: &str, kind: MappingKind, on: &[(u32, u64)]) -> MappingView {
    MappingView {
        start,
        size_bytes: None,
        policy: policy.to_owned(),
        kind,
        file: (kind == MappingKind::File).then(|| "/usr/lib/x86_64-linux-gnu/libm.so.6".to_owned()),
        bytes_by_node: bytes(on),
        own: kind != MappingKind::File,
        page_bytes: 4096,
        transparent_huge_bytes: Some(MIB),
    }
}

fn room(total_bytes: u64, available_bytes: u64) -> NodeRoom {
    NodeRoom { total_bytes, available_bytes }
}

fn process() -> ProcessView {
    let pool = MappingView {
        page_bytes: 2 * MIB,
        ..mapping(0x7000, "bind:1", MappingKind::HugePool, &[(1, 8 * MIB)])
    };
    ProcessView {
        process: 42,
        command: "./solver --input /scratch/a/very/long/path/that/goes/on/and/on".to_owned(),
        threads: vec![
            thread(42, 0, Some(0.1), 12_345),
            thread(43, 2, Some(0.9), 5),
            thread(44, 3, Some(0.75), 700),
            ThreadView { node: None, ..thread(45, 9, None, 0) },
        ],
        mappings: vec![
            mapping(0x1000, "default", MappingKind::File, &[(0, 64 * MIB)]),
            mapping(0x2000, "default", MappingKind::Heap, &[(0, 6 * MIB), (1, 2 * MIB)]),
            mapping(0x3000, "default", MappingKind::Stack, &[]),
            pool,
        ],
        bytes_by_node: bytes(&[(0, 70 * MIB), (1, 10 * MIB)]),
        own_bytes_by_node: bytes(&[(0, 6 * MIB), (1, 2 * MIB)]),
        page_sizes: Some(PageSizes {
            resident: 80 * MIB,
            anonymous: 70 * MIB,
            transparent_huge: MIB,
            reserved_huge: 8 * MIB,
            swapped: 20 * MIB,
        }),
        sampled: Some(Sampled { pages: 100, pages_by_node: bytes(&[(0, 60), (1, 20)]) }),
        remote_share: Some(0.625),
        devices: vec![DeviceUse {
            address: "0000:81:00.0".to_owned(),
            name: "nvme0".to_owned(),
            kind: DeviceKind::Storage,
            node: Some(NodeId(2)),
            files: vec!["/dev/nvme0n1".to_owned(), "/dev/nvme0n1p1".to_owned()],
        }],
        cpus_by_node: cpus_by_node(),
        room_by_node: [(NodeId(0), room(1 << 30, 512 * MIB))].into(),
        huge_rooms: Vec::new(),
        numa_balancing: Some(false),
        transparent_huge_pages: Some(HugePageMode::Madvise),
        unseen: vec![
            Unseen::TouchedByThread,
            Unseen::SumsByMapping { pages: 12 },
            Unseen::HugePagesByMapping { most_mappings: 1000 },
            Unseen::PageSample { reason: "EPERM".to_owned() },
        ],
    }
}

#[test]
fn a_process_with_every_kind_of_problem_is_as_it_was_in_every_format() {
    whole::compare("process", &Explored::of(View::Process(process())));
}

#[test]
fn the_largest_mapping_comes_first_even_if_it_is_a_file() {
    let small = |at: u64| mapping(at << 12, "default", MappingKind::Anonymous, &[(0, 4096)]);
    let mut mappings: Vec<MappingView> = (1..=60).map(small).collect();
    mappings.insert(0, mapping(0xf_f000, "default", MappingKind::File, &[(0, 4096)]));
    mappings.push(mapping(0xff_f000, "default", MappingKind::File, &[(1, 512 * MIB)]));
    let page = Explored::of(View::Process(ProcessView { mappings, ..process() })).page();
    let part = page.parts.iter().find(|part| part.title == "Mappings").unwrap();
    let rows = &part.panels[0].table.rows;
    assert_eq!(rows[0][..2], ["fff000", "512 MiB"]);
    assert_eq!(rows[1][0], "1000");
    assert_eq!(rows.last().unwrap()[0], "ff000", "of equal size, files come last");
}

#[test]
fn a_redacted_process_shows_neither_arguments_nor_paths() {
    let mut view = process();
    view.command =
        "./solver --token=a-secret-of-anna --input rates --steps 1000 --name of-bob".into();
    view.mappings[0].file = Some("/home/anna/of-bob/and/of/others/table.bin".to_owned());
    view.mappings[1].file = Some("/usr/lib/x86_64-linux-gnu/libm.so.6".to_owned());
    let page = Explored::of(View::Process(view)).page();
    let text = page.clone().markdown();
    assert!(text.contains("of-bob") && text.contains("…and/of/others/table.bin"), "{text}");
    let text = page.redacted().markdown();
    for left_in in ["anna", "of-bob", "--steps", "others/table.bin"] {
        assert!(!text.contains(left_in), "{left_in}: {text}");
    }
    assert!(text.contains("linux-gnu/libm.so.6"), "{text}");
    assert!(text.contains("Left out of this page: command, paths;"), "{text}");
}

/// Returns each sentence with its command.
fn said(view: View) -> Vec<(String, String)> {
    let lead = Explored::of(view).page().lead;
    lead.into_iter().map(|of| (of.sentence, of.command.unwrap_or_default())).collect()
}

#[test]
fn threads_are_named_by_number_up_to_two_and_memory_that_is_tied_is_moved() {
    let all_on_1 = |threads: Vec<ThreadView>| {
        let of = ProcessView {
            threads,
            devices: Vec::new(),
            page_sizes: None,
            mappings: Vec::new(),
            unseen: Vec::new(),
            ..process()
        };
        said(View::Process(of)).remove(0)
    };
    let remote = |number| ThreadView { allowed: cpus("2"), ..thread(number, 2, Some(0.9), 1) };
    let one = all_on_1(vec![remote(7)]);
    assert_eq!(one.0, "Thread 7 runs on node 1; 75 % of the memory it touched is on node 0.");
    assert_eq!(one.1, "migratepages 42 0 1");
    let two = all_on_1(vec![remote(7), remote(8)]);
    assert_eq!(
        two.0,
        "Threads 7 and 8 run on node 1; 75 % of the process's own memory is on node 0."
    );
    let three = all_on_1(vec![remote(7), remote(8), remote(9)]);
    assert!(three.0.starts_with("Thread 7 and 2 more run on node 1"), "{three:?}");
    let free = all_on_1(vec![thread(7, 2, Some(0.9), 1)]);
    assert_eq!(free.1, "taskset -acp 0,1 42");
}

#[test]
fn a_shared_segment_is_interleaved_alone_by_numactl_or_by_the_program() {
    let of = |name: &str| {
        let segment = MappingView {
            kind: MappingKind::Shared,
            policy: "default".to_owned(),
            file: Some(name.to_owned()),
            bytes_by_node: [(NodeId(0), 900 * MIB)].into(),
            ..process().mappings.remove(0)
        };
        let view = ProcessView {
            threads: Vec::new(),
            devices: Vec::new(),
            page_sizes: None,
            mappings: vec![segment],
            unseen: Vec::new(),
            room_by_node: [(NodeId(0), room(1 << 30, MIB)), (NodeId(1), room(1 << 30, 900 * MIB))]
                .into(),
            ..process()
        };
        said(View::Process(view)).remove(0).1
    };
    let after = "before its first touch; 450 MiB on each node";
    let call = "numa_interleave_memory(p, bytes, numa_parse_nodestring(\"0,1\"))  # numa(3), in the \
                program: ";
    for (name, alone) in [
        (
            "/dev/shm/pg",
            "numactl --length=$(stat -c %s /dev/shm/pg) --file=/dev/shm/pg --interleave=0,1  # ",
        ),
        (
            "/SYSV050040a2 (deleted)",
            "numactl --length=SIZE --shmid=5 --shm=FILE --interleave=0,1  # ",
        ),
        (
            "/dev/shm/a b",
            "numactl --length=$(stat -c %s '/dev/shm/a b') --file='/dev/shm/a b' --interleave=0,1  # ",
        ),
        ("/SYSV00000000 (deleted)", call),
        ("/dev/zero (deleted)", call),
        ("/memfd:cache (deleted)", call),
    ] {
        assert!(of(name).starts_with(&format!("{alone}{after}")), "{name}: {}", of(name));
    }
    assert!(of("/SYSV050040a2 (deleted)").ends_with("; FILE: of the program's ftok()"));
}

#[test]
fn huge_pages_are_requested_allowed_or_diagnosed_by_the_kernels_mode() {
    let of = |mode| {
        let view = ProcessView {
            threads: Vec::new(),
            devices: Vec::new(),
            mappings: Vec::new(),
            unseen: Vec::new(),
            page_sizes: Some(PageSizes { anonymous: 64 * MIB, ..PageSizes::default() }),
            transparent_huge_pages: Some(mode),
            ..process()
        };
        said(View::Process(view)).remove(0)
    };
    let (sentence, command) = of(HugePageMode::Never);
    assert!(sentence.starts_with("0 % of its 64 MiB of anonymous memory is on huge pages: 16384 pages of 4 KiB where 32 of 2 MiB would do"), "{sentence}");
    assert!(sentence.ends_with("; transparent huge pages are off."), "{sentence}");
    assert_eq!(command, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
    let (sentence, command) = of(HugePageMode::Always);
    assert!(
        sentence.ends_with(", although transparent huge pages are on: memory may be fragmented.")
    );
    assert_eq!(command, "numalab explore --nodes");
    let (sentence, command) = of(HugePageMode::Madvise);
    assert!(
        sentence.ends_with("for programs that request them (madvise).")
            && command.starts_with("GLIBC_TUNABLES=glibc.malloc.hugetlb=1 ./")
            && command.contains("\nnumalab knobs run thp_enabled=always -- ./"),
        "{command}"
    );
}
