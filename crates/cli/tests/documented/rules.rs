//! Rules for running each documented command here, and for its output.

/// Handling of a documented command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// Run as written.
    Runs,
    /// Run with `--dry-run`, because it would take minutes, boot a guest, or change settings.
    Plans,
    /// Run with `--dry-run`; a machine without those nodes or cpus may refuse it with these words.
    Needs(&'static str),
    /// Run as written; it may be refused with these words if a machine or terminal is missing, or
    /// fail its expectation on a machine of one node.
    May(&'static str),
    /// Not run, for this reason.
    Never(&'static str),
}

/// Rule for commands with this beginning, after their launcher; the longest matching one applies.
pub struct Rule {
    /// The command's first words.
    pub begins: &'static str,
    pub handling: Handling,
    /// Words of its output, in order; [`AS_SHOWN`] for all that the document shows, except that
    /// numbers may differ.
    pub shows: &'static [&'static str],
}

/// The output is that of the document, apart from numbers.
pub const AS_SHOWN: &str = "\0";

const fn rule(begins: &'static str, handling: Handling, shows: &'static [&'static str]) -> Rule {
    Rule { begins, handling, shows }
}

use Handling::{May, Needs, Never, Plans, Runs};

const NODES: Handling = Needs("expected one of ");
const CPUS: Handling = Needs("expected one of ");
/// The words of QEMU's command line.
const QEMU: &[&str] = &["qemu-system-x86_64", "-m "];
const STUDY: &[&str] = &["samples in", "Treatments, the baseline first", "Order, seed"];

/// All rules. A command without a rule fails, and so does a rule without a command.
pub const RULES: &[Rule] = &[
    rule("numalab measure", Plans, &["latency/", ", about "]),
    rule("numalab measure --quick --format json", Plans, &[]),
    rule("numalab measure --resume", Never("takes a minute; commands.rs interrupts one"), &[]),
    rule("numalab fleet health", Plans, &[", about "]),
    rule("numalab latency", Plans, &["latency/", ", about "]),
    rule("numalab latency --nodes 0,1", NODES, &["latency/", "node1"]),
    rule("numalab latency --size=1-16384", Needs("of memory needed"), &["latency/", "/16G"]),
    rule("numalab latency --ranks", Plans, &["4 ranks on this machine"]),
    rule("numalab bandwidth", Plans, &["bandwidth/", ", about "]),
    rule("numalab bandwidth --kernel read,triad", CPUS, &["bandwidth/", "triad"]),
    rule(
        "numalab bandwidth --kernel copy-nt",
        Needs("is not available here"),
        &["copy-nt", "avx2"],
    ),
    rule("numalab bandwidth --kernel triad", Plans, &["triad over 64M, 128M, 256M, 512M"]),
    rule("numalab loaded", Needs("two cores"), &["loaded/", ", about "]),
    rule("numalab loaded --kernel write --cpus", CPUS, &["loaded/"]),
    rule("numalab loaded --chaser-node 1", NODES, &["loaded/"]),
    rule("numalab loaded --surface", Needs("two cores"), &["loaded/copy-nt/", ", about "]),
    rule("numalab machine list", Runs, &["epyc-7763-nps4"]),
    rule("numalab machine show", Runs, &[]),
    rule("numalab machine capture", Plans, &[]),
    rule("numalab machine capture --from", Runs, &[]),
    rule("numalab compare captured.toml", Runs, &["load latency from node 0 to node 0"]),
    rule("numalab c2c", Needs("two cpus"), &["c2c/", ", about "]),
    rule("numalab c2c --cpus 0,8,16", CPUS, &["c2c/"]),
    rule("numalab topology", Runs, &["node"]),
    rule("numalab topology --emulate", Runs, &["-smp 8", "-numa node,nodeid=3"]),
    rule("numalab topology --emulate-tiers", Runs, &["[[access]]", "[[tier]]"]),
    rule("numalab topology --emulate 1G,1G,2G,0 --cpus 8 --dist", Runs, &["4 nodes", "8 cpus"]),
    rule("numalab topology --source arch:", Runs, &["NodeName=", "# --cpu-bind=map_cpu:0,1,2"]),
    rule(
        "numalab topology --source results:",
        Runs,
        &["<memattr name=\"ReadLatency\" flags=\"6\">"],
    ),
    rule("numalab topology --format svg", Runs, &[]),
    rule("numalab topology --source acpi:tables --format svg", Runs, &[]),
    rule("numalab machine acpi show", Runs, &["SRAT revision 3", "local APIC 0: domain 0"]),
    rule("numalab machine acpi show --system", May("/sys/firmware/acpi/tables"), &["revision"]),
    rule("numalab machine acpi check", Runs, &[]),
    rule("numalab machine acpi check --system", May("/sys/firmware/acpi/tables"), &[]),
    rule(
        "acpidump",
        Never("reads this machine's tables as root; descriptions.rs reads dumps"),
        &[],
    ),
    rule(
        "numalab machine acpi build",
        Runs,
        &["tables/SRAT.bin", "tables/SLIT.bin", "tables/APIC.bin"],
    ),
    rule("numalab study list", Runs, &["frame-allocator", "hugepages", "noise"]),
    rule("numalab study new", Runs, &["mine.toml"]),
    rule("numalab study show", Runs, &["question", "[[workload]]"]),
    rule("numalab study settings", Runs, &["[backend.", "guests"]),
    rule("numalab study run", Plans, STUDY),
    // A debug build of numalab makes the image too large for guests of the usual size.
    rule("numalab study run guest-scaling", Needs("and its content"), STUDY),
    rule(
        "numalab study run mine.toml --blocks 6",
        Runs,
        &["Does a larger block", "block 64k", "Basis of the verdicts"],
    ),
    rule("numalab study resume", Plans, &["samples in", "samples have been taken already"]),
    rule(
        "numalab study bisect",
        Never("needs a repository with history; bisect.rs makes several"),
        &[],
    ),
    rule("git bisect", Never("needs a repository with history; study.rs runs its command"), &[]),
    rule("numalab compare", Runs, &["Better", "-10.0 %"]),
    rule("numalab compare results/", Runs, &["of the baseline", "Method"]),
    rule("numalab compare results/mine-1", Runs, &["Does a larger block", "Two runs of a study"]),
    rule("numalab compare --commands", Runs, &["Is `./new` better than `./old`?"]),
    rule("numalab bind --near", Needs("no such device"), &["is near node "]),
    rule("numalab explore --ranks", Runs, &["on this host"]),
    rule("numalab explore", Runs, &["node 0", "Used for"]),
    rule("numalab explore --format openmetrics", Runs, &["numalab_node_free_bytes{"]),
    rule("numalab explore --pid 4242", Runs, &["sleep 600", "in memory, 1 thread"]),
    rule("numalab explore --pid 4242 --expect", May("not as expected: "), &[]),
    rule(
        "numalab explore --guests --expect pinned",
        Never("looks for ten minutes; explore.rs expects such things"),
        &[],
    ),
    rule("numalab explore --pid 4242 --watch", May("needs a terminal"), &[]),
    rule("numalab explore --guests", Runs, &["guest", "QEMU"]),
    rule("numalab explore --heap", Never("needs a kernel's dump; explore.rs reads several"), &[]),
    rule(
        "numalab explore --nodes --watch",
        Never("runs until it is ended; explore.rs ends one"),
        &[],
    ),
    rule("numalab fleet submit", Never("needs a cluster; slurm/fleet.rs starts one"), &[]),
    rule("numalab fleet collect", Runs, &["fleet.jsonl: ", " unchanged, 0 unreadable"]),
    rule("numalab fleet report", Runs, &["Outliers"]),
    rule("numalab fleet report /scratch/fleet --format openmetrics", Runs, &["# EOF"]),
    rule("numalab fleet report /scratch/fleet --format html", Runs, &[]),
    rule("numalab fleet report /scratch/fleet --format csv", Runs, &["host,scope,family"]),
    rule(
        "numalab bind --numa=auto --policy weighted",
        Needs("does not report the bandwidth"),
        &["interleave_weight_node0="],
    ),
    rule("numalab bind", NODES, &["[Rank 0] Binding to NUMA domain"]),
    rule("numalab scale", Plans, &["NUMA-Aware Benchmark", "NUMA binding: 0", "Batch script:"]),
    rule("numalab scale --resume", Plans, &["NUMA-Aware Benchmark", "Batch script:"]),
    rule(
        "numalab scale --arch FILE --sequential 0,1",
        Needs("its nodes are 0"),
        &["Batch script:"],
    ),
    rule("numalab scale --arch lumi_partc --interleaved 3,5 --dry-run", Runs, &[AS_SHOWN]),
    rule(
        "numalab scale --arch lumi_partc --interleaved 3,5 --submit",
        Plans,
        &["--partition=standard"],
    ),
    rule("sbatch", Never("needs a cluster; slurm/jobs.rs starts one"), &[]),
    rule("numalab guest run", Plans, QEMU),
    rule("numalab guest run --emulate 2 --cpus 4 --pages 2m", Needs("no such node"), QEMU),
    rule(
        "numalab guest run --arch aarch64",
        Needs("no qemu-system-aarch64 on this machine"),
        &["qemu-system-aarch64", "-machine virt", "-m "],
    ),
    rule("numalab guest run --kernel my.elf --raw", Plans, &["isa-debug-exit", "-kernel my.elf"]),
    rule("numalab guest run --kernel numalab", Plans, &["qemu-system-x86_64", "-append", "work="]),
    rule(
        "numalab guest run --kernel numalab -o results/mine-1",
        Plans,
        &["qemu-system-x86_64", "-append", "dump=heap"],
    ),
    rule("numalab guest shell", Plans, QEMU),
    rule("numalab guest list", Runs, &["guest"]),
    rule("numalab guest image", Plans, &["numalab"]),
    rule("numalab guest image --iso", Plans, &["would write numalab.iso"]),
    rule("numalab guest pin", CPUS, &["vCPU 0: thread "]),
    rule("numalab advise", Plans, &["qemu-x86_64 ", "-plugin", ",threads="]),
    rule("numalab advise --trials-only", Plans, &["trials on this machine, in "]),
    rule("numalab advise -- srun", Plans, &["trials on this machine, in "]),
    // The run among the results here has no memory latency.
    rule(
        "numalab advise --source results:",
        Needs("the memory emulator needs the read latency"),
        &["qemu-x86_64 "],
    ),
    rule("numalab profile", Plans, &["source: "]),
    rule("numalab profile --emulate", Plans, &["source: emulation", "qemu-x86_64 ", "-plugin"]),
    rule("numalab emulate", Plans, &["qemu-x86_64 ", "-plugin", ",threads="]),
    rule("numalab mark", Plans, &["between markers"]),
    rule("numalab knobs list", Runs, &["numa_balancing"]),
    rule("numalab knobs list --format json", Runs, &["\"knobs\""]),
    rule("numalab knobs restore", Plans, &["restore"]),
    rule("numalab knobs run", Plans, &[" would be "]),
    rule("numalab study probe tiering", Needs("one tier of memory"), &["fast tier: nodes"]),
    rule("numalab study probe balancing", CPUS, &["placed by cpu 0, read from cpu "]),
    rule(
        "numalab machine selftest --real-nodes",
        Plans,
        &["memory bound to each node", "nodes with memory"],
    ),
    rule("numalab report", Runs, &["report.md", "report.html"]),
    // The study among the results here has too few blocks.
    rule("numalab report results/noise", May("not decided"), &["report.md", "report.html"]),
    rule("numalab report results/measure-20261121-024500 --format json", Runs, &["numalab/run-2"]),
    rule("numalab report results_scaling/job_123456 --format csv", Runs, &["file,mode,domains"]),
    rule("numalab report sequential_domain0", Runs, &["1 step", "16M"]),
    rule("numalab report profile.json", Runs, &["Memory use of"]),
    rule("numalab report memory.json", Never("needs a boot; emulated/reports.rs shows one"), &[]),
    rule("numalab report m.json", Never("needs a boot; emulated/reports.rs shows one"), &[]),
    rule("numalab report FILE", Never("needs a boot; emulated/reports.rs shows one"), &[]),
    rule(". <(numalab completions bash)", Runs, &[]),
    rule("numalab completions", Runs, &[]),
    rule("numalab man", Runs, &[]),
];
