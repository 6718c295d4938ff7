//! Workloads, a newer kernel and a newer QEMU from packages. The first run downloads hundreds of
//! megabytes, so `NUMALAB_LONG=1` is required.

use numalab_guest::{Accelerator, Guest, Launch, Qemu, QemuNeeds, Version};
use numalab_image::{Architecture, Cache, Contents, Image, Kernel, KernelChoice};

use crate::lab::{Lab, four_nodes, init, shell};

fn long() -> bool {
    let long = std::env::var_os("NUMALAB_LONG").is_some_and(|value| value == "1");
    if !long {
        eprintln!("NOT RUN: packages of workloads and backports, without NUMALAB_LONG=1");
    }
    long
}

fn note(text: &str) {
    eprintln!("{text}");
}

/// Commands whose output proves that each program runs.
const WORKLOADS: &str = "
sysbench --threads=2 --time=1 memory run | grep -c transferred
perf --version | cut -d' ' -f1,2
perf bench -f simple sched pipe -l 100 > /dev/null && echo perf bench
dbench --timelimit=1 --directory=/tmp 1 | grep -c Throughput
numactl --hardware | grep -c 'node . cpus'
redis-server --save '' > /dev/null & sleep 1
redis-cli ping
stress-ng --version | cut -d, -f1
";

const RAN: &str = "1\nperf version\nperf bench\n1\n4\nPONG\n";

#[test]
fn workloads_run_out_of_their_packages() {
    if !long() {
        return;
    }
    let Some(mut lab) = Lab::open() else { return };
    let cache = Cache::open().unwrap();
    let kernel = Kernel::ensure(&cache, &KernelChoice::Distribution, &mut note).unwrap();
    let mut contents = Contents::new(init());
    for program in
        ["sysbench", "perf", "dbench", "numactl", "redis-server", "redis-cli", "stress-ng"]
    {
        contents.need_program(program).unwrap();
    }
    let image = Image::ensure(&cache, &kernel, &contents, &mut note).unwrap();
    lab.files = image.boot_files().clone();
    let guest = Guest { machine: four_nodes(), ..Guest::default() };
    let ran = lab.run(guest, &shell(WORKLOADS)).unwrap();
    assert!(ran.output.starts_with(RAN), "{}{}", ran.output, ran.errors);
    assert!(ran.output.contains("stress-ng"), "{}{}", ran.output, ran.errors);
}

#[test]
fn backports_give_a_newer_kernel_and_a_newer_qemu() {
    if !long() {
        return;
    }
    let Some(lab) = Lab::open() else { return };
    let cache = Cache::open().unwrap();
    let needs = QemuNeeds {
        least_version: Some(Version::new(10, 0, 0)),
        plugins: true,
        ..QemuNeeds::default()
    };
    let qemu = Qemu::find(&cache, &needs)
        .or_else(|_| Qemu::fetch_backports(&cache, Architecture::X86_64, &mut note));
    let qemu = qemu.unwrap();
    assert!(qemu.version >= Version::new(10, 0, 0), "{}", qemu.version);
    assert!(qemu.abilities.plugins && qemu.abilities.host_nodes && qemu.abilities.memfd);
    let kernel = Kernel::ensure(&cache, &KernelChoice::Backports, &mut note).unwrap();
    let image = Image::ensure(&cache, &kernel, &Contents::new(init()), &mut note).unwrap();
    let guest = Guest { machine: four_nodes(), ..Guest::default() };
    let launch = Launch::plan(guest, qemu, Accelerator::tcg(), image.boot_files()).unwrap();
    let mut output = Vec::new();
    let mut sink = |_, bytes: &[u8]| output.extend_from_slice(bytes);
    let task = shell("cat /sys/devices/system/node/online; ls /sys/kernel/mm/mempolicy");
    let outcome = launch.run(&lab.runtime, &task, &mut sink, &|| false).unwrap();
    assert_eq!(String::from_utf8(output).unwrap(), "0-3\nweighted_interleave\n");
    assert_eq!(outcome.kernel, kernel.release);
}
