//! How much slower Linux boots with the plugin: QEMU's processor time, several kinds in turn.
//!
//! `cargo bench -p numalab-emulator [-- ROUNDS]` (5). A boot is the distribution's kernel from
//! power-on to the point where it finds no root file system.

use std::process::Stdio;

use numalab_guest::{Qemu, QemuNeeds, Version};
use numalab_image::{Cache, Kernel, KernelChoice};

const MACHINE: &str = "cpus=0.1.2.3,memory=512M.512M.512M.512M,report=/dev/null,\
     distances=10.12.20.22/12.10.22.20/20.22.10.12/22.20.12.10";
/// What the plugin is told, and the most that it may take.
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
        "all stages: TLBs too",
        Some(
            "start=on,caches=1:32K:8:64:cpu+2:1M:16:64:cpu+3:16M:16:64:group,\
             stages=load+core+owners+tlb,node-bandwidth=10000.10000.10000.10000",
        ),
        "1.5 times the caches' alone",
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
        .or_else(|_| Qemu::fetch_backports(&cache, &mut note))
        .expect("QEMU 10");
    let kernel = Kernel::ensure(&cache, &KernelChoice::Distribution, &mut note).expect("a kernel");
    // The first one reads QEMU and the kernel from the disk.
    boot(&qemu, &kernel, None);
    let mut seconds = vec![Vec::new(); KINDS.len()];
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        for (kind, taken) in KINDS.iter().zip(&mut seconds) {
            taken.push(boot(&qemu, &kernel, kind.1));
        }
    }
    println!("### Boot of Linux {} on 4 cpus and 4 nodes, QEMU {}", kernel.release, qemu.version);
    println!(
        "\nQEMU's processor time, {rounds} boots of each kind in turn: median (least to most).\n"
    );
    println!("| plugin | s | to no plugin | target, at most |\n|---|---|---|---|");
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

/// Boots once; the processor time that it took.
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

/// Processor time of all children that have ended, user's and system's (`proc(5)`, stat).
fn childrens_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("proc");
    let behind_name = stat.rsplit_once(") ").expect("a name").1;
    let fields: Vec<&str> = behind_name.split(' ').collect();
    let ticks: f64 = [13, 14].iter().map(|&at: &usize| fields[at].parse::<f64>().unwrap()).sum();
    ticks / 100.0
}
