//! Measures the start of a plain guest of 8 cpus and 4 nodes: the first build of its image, then
//! boots to the command's first output.
//!
//! Usage: `first_output INIT [BOOTS]`, with `NUMALAB_CACHE` set to an empty
//! directory to measure the first build.
#![forbid(unsafe_code)]

use std::error::Error;
use std::time::Instant;

use numalab_guest::{AcceleratorChoice, Boot, Guest, GuestError, Runtime, Task};
use numalab_guest_agent::{Job, Stream};
use numalab_image::{Cache, Contents, KernelChoice};
use numalab_topology::{Cpu, CpuId, Distances, Machine, Node, NodeId};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let init = arguments.next().ok_or("usage: first_output INIT [BOOTS]")?;
    let boots: u32 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let cache = Cache::open()?;
    for boot in 0..boots {
        one_boot(&init, boot)?;
    }
    println!("cache: {:.1} MB", cache.size_bytes()? as f64 / 1e6);
    Ok(())
}

fn one_boot(init: &str, number: u32) -> Result<(), GuestError> {
    let started = Instant::now();
    let mut note = |text: &str| println!("  {text}");
    let runtime = Runtime::open()?;
    let guest = Guest { machine: machine(), ..Guest::default() };
    let choice = KernelChoice::Distribution;
    let boot = Boot::find(&guest, AcceleratorChoice::Auto, &choice, &mut note)?;
    let kernel = boot.kernel(&guest, &choice, &mut note)?;
    let image = boot.image(&kernel, &Contents::new(init), &mut note)?;
    let ready = started.elapsed();
    let launch = boot.launch(guest, image.boot_files())?;
    let task =
        Task { job: Job::new(["cat", "/sys/devices/system/node/online"]), ..Task::default() };
    let mut first = None;
    let mut sink = |_: Stream, _: &[u8]| {
        first.get_or_insert_with(|| started.elapsed());
    };
    let outcome = launch.run(&runtime, &task, &mut sink, &|| false)?;
    println!(
        "boot {number}: ready {ready:.2?}, first output {:.2?} after the command, total {:.2?}; \
         guest {:?}; {:?}",
        first.unwrap_or_default(),
        started.elapsed(),
        outcome.times,
        boot.accelerator,
    );
    Ok(())
}

/// Returns 8 cpus, 4 nodes of 1 GiB, distances 10/12/20/22.
fn machine() -> Machine {
    let node = |id: u32| Node {
        id: NodeId(id),
        online: true,
        memory_bytes: 1 << 30,
        cpus: [CpuId(2 * id), CpuId(2 * id + 1)].into_iter().collect(),
        ..Node::default()
    };
    let cpu = |id: u32| Cpu {
        id: CpuId(id),
        online: true,
        node: Some(NodeId(id / 2)),
        package: Some(id / 2),
        core: Some(id),
        l3_group: Some(id / 2),
        ..Cpu::default()
    };
    let mut distances = Distances::uniform(4, 20);
    for (from, to, distance) in [(0, 1, 12), (2, 3, 12), (0, 3, 22), (1, 2, 22)] {
        distances.set(from, to, distance);
        distances.set(to, from, distance);
    }
    Machine {
        nodes: (0..4).map(node).collect(),
        cpus: (0..8).map(cpu).collect(),
        distances,
        ..Machine::default()
    }
}
