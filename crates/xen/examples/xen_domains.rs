//! Boots Xen on two nodes and shows the nodes of the memory of two domains: `cargo run --release -p
//! numalab-guest --example xen_domains -- on`
#![forbid(unsafe_code)]

use std::error::Error;

use numalab_guest::{Qemu, Runtime};
use numalab_image::{Architecture, Cache, Contents};
use numalab_topology::{Cpu, CpuId, Distances, Machine, Node, NodeId};
use numalab_xen::{DomainJob, DomainPlan, Pinning, XenFiles, XenMachine, XenPlan, run};

fn main() -> Result<(), Box<dyn Error>> {
    if numalab_guest_agent::init::is_wanted() {
        numalab_guest_agent::init::main();
    }
    let numa = std::env::args().nth(1).unwrap_or_else(|| "on".to_owned());
    let mut note = |text: &str| eprintln!("{text}");
    let cache = Cache::open()?;
    let mut contents = Contents::new(std::env::current_exe()?);
    contents.need_program("dbench")?;
    let files = XenFiles::ensure(&cache, &contents, &mut note)?;
    eprintln!("{files:?}");
    let emulated = std::env::args().nth(2);
    let emulator = |plugin: String| numalab_guest::MemoryEmulator {
        plugin: plugin.into(),
        mode: numalab_guest::EmulatorMode::Virtual,
        machine: numalab_formats::memory_emulator::describe(
            &machine(),
            &numalab_formats::memory_emulator::MemoryCosts {
                caches: numalab_formats::memory_emulator::parse_caches("32K,1M").unwrap(),
                ..Default::default()
            },
        )
        .unwrap(),
    };
    let machine = XenMachine {
        memory_emulator: emulated.map(emulator),
        machine: machine(),
        arguments: ["loglvl=all", "dom0_mem=768M", "dom0_max_vcpus=1"]
            .map(ToOwned::to_owned)
            .into_iter()
            .chain([format!("numa={numa}")])
            .collect(),
        ..XenMachine::default()
    };
    let domain = |node: u32| DomainPlan {
        name: format!("d{node}"),
        memory_mib: 192,
        vcpus: 1,
        home: Some(node),
        cpus: format!("{}-{}", 2 * node, 2 * node + 1),
        pinning: Pinning::CpusAndMemory,
        ..DomainPlan::default()
    };
    let job = DomainJob {
        marks_itself: false,
        name: "uname".to_owned(),
        command: ["sh", "-c", "mkdir -p /tmp/d; dbench -D /tmp/d -t 1 1 || (head -c 20000000 /dev/zero > /tmp/x; sort < /etc/passwd; cat /proc/uptime)"].map(ToOwned::to_owned).to_vec(),
        limit_s: 60,
    };
    let plan =
        XenPlan { domains: vec![domain(1), domain(0)], jobs: vec![job], ..XenPlan::default() };
    let needs = machine.memory_emulator.as_ref().map(|e| e.needs(Architecture::X86_64, 4));
    let qemu = Qemu::find(&cache, &needs.unwrap_or_default())?;
    let launch = machine.launch(&files, qemu)?;
    let plan = machine.fitted(&plan);
    let runtime = Runtime::open()?;
    let report = run(&launch, &runtime, &plan, &mut |event| eprintln!("{event:?}"), &|| false)?;
    println!("{report:#?}");
    Ok(())
}

/// Returns two nodes of two cpus and 1 GiB.
fn machine() -> Machine {
    let node = |id: u32| Node {
        id: NodeId(id),
        online: true,
        cpus: [CpuId(2 * id), CpuId(2 * id + 1)].into_iter().collect(),
        memory_bytes: 1 << 30,
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
    Machine {
        nodes: vec![node(0), node(1)],
        cpus: (0..4).map(cpu).collect(),
        distances: Distances::uniform(2, 20),
        ..Machine::default()
    }
}
