//! Measures how much the plugin slows a Linux boot, in QEMU's CPU time; kinds of runs alternate.
//!
//! `cargo bench -p numalab-emulator [-- ROUNDS]` (default 5). A boot runs the distribution's kernel
//! from power-on until it finds no root file system.

use std::process::Stdio;

use numalab_guest::{Qemu, QemuNeeds, Version};
use numalab_image::{Architecture, Cache, Kernel, KernelChoice};

const MACHINE: &str = "cpus=0.1.2.3,memory=512M.512M.512M.512M,report=/dev/null,\
     distances=10.12.20.22/12.10.22.20/20.22.10.12/22.20.12.10";
/// The plugin's arguments in each kind of run, and the largest slowdown allowed.
const KINDS: [(&str, Option<&str>, &str); 9] = [
    ("no plugin", None, ""),
    ("loaded, idle (start=marker)", Some("start=marker"), "1.1"),
    ("counting all accesses", Some("start=on"), "4"),
    ("counting one in ten (sample=10)", Some("start=on,sample=10"), ""),
    (
        "counting, three levels of caches",
        Some("start=on,caches=1:32K:8:64:cpu+2:1M:16:64:cpu+3:16M:16:64:group"),
        "",
    ),
    (
        "the same, and load",
        Some(
            "start=on,caches=1:32K:8:64:cpu+2:1M:16:64:cpu+3:16M:16:64:group,stages=load,\
             node-bandwidth=10000.10000.10000.10000",
        ),
        "",
    ),
    (
        "the same, and misses that overlap",
        Some(
            "start=on,caches=1:32K:8:64:cpu+2:1M:16:64:cpu+3:16M:16:64:group,stages=load+core,\
             node-bandwidth=10000.10000.10000.10000",
        ),
        "",
    ),
    (
        "the same, and lines with owners",
        Some(
            "start=on,caches=1:32K:8:64:cpu+2:1M:16:64:cpu+3:16M:16:64:group,\
             stages=load+core+owners,node-bandwidth=10000.10000.10000.10000",
        ),
        "",
    ),
    (
        "the same, and TLBs: all stages",
        Some(
            "start=on,caches=1:32K:8:64:cpu+2:1M:16:64:cpu+3:16M:16:64:group,\
             stages=load+core+owners+tlb,node-bandwidth=10000.10000.10000.10000",
        ),
        "1.5 times the caches alone",
    ),
];

fn main() {
    let rounds = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(5);
    let cache = Cache::open().expect("a cache");
    let needs = QemuNeeds {
        plugins: true,
        least_version: Some(Version::new(10, 0, 0)),
        ..QemuNeeds::default()
    };
    let mut note = |text: &str| eprintln!("{text}");
    let qemu = Qemu::find(&cache, &needs)
        .or_else(|_| Qemu::fetch_backports(&cache, Architecture::X86_64, &mut note))
        .expect("QEMU 10");
    let kernel = Kernel::ensure(&cache, &KernelChoice::Distribution, &mut note).expect("a kernel");
    // Warm-up: the first boot reads QEMU and the kernel from disk.
    boot(&qemu, &kernel, None);
    let mut seconds = vec![Vec::new(); KINDS.len()];
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        for (kind, taken) in KINDS.iter().zip(&mut seconds) {
            taken.push(boot(&qemu, &kernel, kind.1));
        }
    }
    println!("### Linux {} boot on 4 cpus and 4 nodes, QEMU {}", kernel.release, qemu.version);
    println!(
        "\nQEMU's CPU time, {rounds} boots of each kind in turn: median (minimum to maximum).\n"
    );
    println!("| plugin | s | ratio to no plugin | limit |\n|---|---|---|---|");
    for ((name, _, most), taken) in KINDS.iter().zip(&seconds) {
        let ratios = taken.iter().zip(&seconds[0]).map(|(with, without)| with / without);
        println!("| {name} | {} | {} | {most} |", spread(taken.clone()), spread(ratios.collect()));
    }
}

fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let [least, .., most] = values[..] else { return format!("{:.2}", values[0]) };
    format!("{:.2} ({least:.2} to {most:.2})", values[values.len() / 2])
}

/// Boots once and returns the CPU time in seconds.
fn boot(qemu: &Qemu, kernel: &Kernel, plugin: Option<&str>) -> f64 {
    let mut command = qemu.command();
    command.args(["-nodefaults", "-display", "none", "-no-reboot", "-machine", "q35"]);
    command.args(["-cpu", "max", "-smp", "4", "-m", "2G", "-serial", "null"]);
    for node in 0..4 {
        command.args(["-object", &format!("memory-backend-ram,id=m{node},size=512M")]);
        command.args(["-numa", &format!("node,memdev=m{node},cpus={node}")]);
    }
    command.arg("-kernel").arg(&kernel.file);
    command.args(["-append", "console=ttyS0 quiet panic=-1 no_timer_check tsc=reliable nokaslr"]);
    if let Some(plugin) = plugin {
        let tests = std::env::current_exe().expect("a path");
        let file = tests.with_file_name("libnumalab_emulator.so");
        command.arg("-plugin").arg(format!("{},{MACHINE},{plugin}", file.display()));
    }
    let before = childrens_seconds();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    assert!(status.expect("QEMU starts").success(), "{plugin:?}");
    childrens_seconds() - before
}

/// Returns the CPU time, user and system, of all children that have ended (`proc(5)`, stat).
fn childrens_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("proc");
    let behind_name = stat.rsplit_once(") ").expect("a name").1;
    let fields: Vec<&str> = behind_name.split(' ').collect();
    let ticks: f64 = [13, 14].iter().map(|&at: &usize| fields[at].parse::<f64>().unwrap()).sum();
    ticks / 100.0
}
