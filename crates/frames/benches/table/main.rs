//! The table of the README: this allocator and its peers in one run. `cargo bench -p
//! numalab-frames`, with `-- --quick` for a shorter one.

mod giant;
mod harness;
mod subjects;
mod workloads;

use std::time::Instant;

use harness::{Samples, print_table};
use numalab_frames::{CpuFences, Frames, RemoteFences};
use rustix::thread::{MembarrierCommand, membarrier};
use subjects::{ArrayStack, Bitmap, Buddy, ByRequest, Depot, FRAMES, ours};
use workloads::{Packing, ROWS, repeat};

type Figures = [Samples; ROWS.len()];

fn heavy() {
    membarrier(MembarrierCommand::PrivateExpedited).expect("registered at the start");
}

/// Returns fences by Linux's `membarrier`.
fn remote() -> RemoteFences {
    // SAFETY: 1. `membarrier` returns once every thread has run a full barrier. 2. Each cpu of a
    // subject is used by one thread at a time.
    unsafe { RemoteFences::new(heavy) }
}

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    membarrier(MembarrierCommand::RegisterPrivateExpedited).expect("Linux 4.14 or later");
    println!("# numalab-frames: frame allocators compared\n");
    println!(
        "- {}; quartiles in parentheses{}",
        machine_line(),
        if quick { "; quick" } else { "" }
    );
    println!(
        "- two threads: with NUMA on each has a separate node, with NUMA off both are on one node\n\
         - a frame's number goes from `alloc` to `free` in a register, as a caller passes it\n\
         - by request: as the adapters for OSTD and the x86_64 crate call it, NUMA on"
    );
    if cfg!(feature = "checked") {
        println!("- numalab-frames in its checked build");
    }
    println!();
    side_by_side(if quick { 5 } else { 11 });
    initialisation();
    fragmentation(if quick { 2_000_000 } else { 8_000_000 });
    giant::run();
}

fn machine_line() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split(": ").nth(1)).unwrap_or("?").to_owned()
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let (name, family, model) = (field("model name"), field("cpu family"), field("model\t"));
    format!("{name} (family {family}, model {model}), {cpus} cpus")
}

fn side_by_side(repetitions: usize) {
    let floor = ArrayStack::new();
    let on = ours(2, FRAMES, remote());
    let by_request = ByRequest(ours(2, FRAMES, remote()));
    let off = ours(1, FRAMES, remote());
    let full = ours(2, FRAMES, CpuFences);
    let (depot, bitmap, buddy) = (Depot::new(), Bitmap::new(), Buddy::new());
    let mut figures: [Figures; 8] = Default::default();
    for _ in 0..repetitions {
        figures[0][0].add(floor.pair_ns(2_000_000));
        let [_, a, b, c, d, e, f, g] = &mut figures;
        repeat(&on, 1, a);
        repeat(&by_request, 1, b);
        repeat(&off, 1, c);
        repeat(&full, 1, d);
        repeat(&depot, 4, e);
        repeat(&bitmap, 4, f);
        repeat(&buddy, 40, g);
    }
    let head = [
        "",
        "array stack",
        "ours, NUMA on",
        "ours, by request",
        "ours, NUMA off",
        "ours, full fences",
        "frame-alloc 0.1 (depot)",
        "bitmap-allocator 0.4",
        "buddy_system_allocator 0.13",
    ];
    let rows: Vec<Vec<String>> = ROWS
        .iter()
        .enumerate()
        .map(|(row, name)| {
            let cells = figures.iter().map(|subject| subject[row].cell());
            std::iter::once((*name).to_owned()).chain(cells).collect()
        })
        .collect();
    print_table(&head, &rows);
}

fn initialisation() {
    let gib = 4;
    let machine = subjects::machine(2, gib << 17, vec![numalab_frames::NodeIndex(0)]);
    let words = machine.metadata_words().expect("the machine is valid");
    let mut figures = Samples::default();
    let mut metadata: Vec<_> = (0..words).map(|_| numalab_frames::Word::new(0)).collect();
    for _ in 0..21 {
        let start = Instant::now();
        let made = Frames::new(machine, &mut metadata, CpuFences);
        std::hint::black_box(made.expect("the metadata suffices"));
        figures.add(start.elapsed().as_secs_f64() * 1e6 / gib as f64);
    }
    let kib = words as f64 * 8.0 / 1024.0 / gib as f64;
    let rows = [vec![format!("{kib:.1}"), figures.cell()]];
    print_table(&["metadata, KiB per GiB", "init, us per GiB"], &rows);
}

fn fragmentation(replacements: u64) {
    let gib = 4 << 18;
    let row = |name: &str, packing: Packing, ideal: &str| {
        let Packing { free_blocks, allocatable, refill_ns } = packing;
        let cells = [free_blocks.to_string(), allocatable.to_string(), ideal.to_owned()];
        let name = std::iter::once(name.to_owned());
        name.chain(cells).chain([format!("{refill_ns:.1}")]).collect::<Vec<_>>()
    };
    let fresh = || -> Frames<'static, RemoteFences> { ours(1, gib, remote()) };
    let rows = [
        row("F1: half freed at random, 47 rounds of a tenth", workloads::churn_half(&fresh()), "-"),
        row(
            "F2: half in use, random replacements",
            workloads::replace_half(&fresh(), replacements),
            "1024",
        ),
    ];
    let head = [
        "4 GiB, 2,048 blocks of 2 MiB",
        "wholly free",
        "allocatable ones among them",
        "ideal",
        "ns per replacement",
    ];
    print_table(&head, &rows);
}
