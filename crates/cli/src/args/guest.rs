//! Arguments of the commands about guests.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use numalab_guest::{AcceleratorChoice, HostPages, PinPlan, QmpAddress};
use numalab_image::Architecture;
use numalab_topology::CpuSet;

use super::guest_value::{BootKernel, NodeSets};
use super::{Format, MachineArgs, MemoryEmulatorArgs, guest_value, value};

#[derive(Debug, Args)]
pub(crate) struct GuestArgs {
    #[command(subcommand)]
    pub command: GuestCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GuestCommand {
    /// Boot a guest, run a command in it, and bring back its output and exit code
    Run(Box<RunArgs>),
    /// Boot a guest and open a shell in it; the guest ends with the shell
    Shell(Box<ShellArgs>),
    /// List the running guests of this user
    #[command(after_help = "Example:\n  numalab guest list")]
    List,
    /// Show, fill or empty the cache of guest images
    Image(ImageArgs),
    /// Pin the vCPU threads of a running QEMU to host CPUs, and show where they run
    Pin(PinArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab guest run -- uname -r              2 CPUs, 1 GiB, one node
  numalab guest run --emulate 4 --cpus 8 -- numalab topology
  numalab guest run --emulate 2 --cpus 2 --memory 32G --distances '10,20;20,10' -- numactl -H
  numalab guest run --topology machine.toml --dry-run
  numalab guest run --emulate 2 --cpus 4 --with sysbench -- sysbench memory run
  numalab guest run --emulate 2 --cpus 4 --pages 2m --host-nodes '0;1' --pin auto -- numactl -H
  numalab guest run --topology machine.toml --tables built -- numalab topology
  numalab guest run --emulate 2 --cpus 8 --distances '10,21;21,10' --emulate-latency 100 \\
    -- numalab latency --size 16M --per node
  numalab guest run --kernel backports --emulate-tiers 512M@100ns,1G@300ns -- numalab topology
  numalab guest run --arch aarch64 --emulate 2 --cpus 4 -- numalab topology
  numalab guest run --kernel numalab --emulate 4 --cpus 8 -- work=chase
  numalab guest run --kernel numalab --emulate 2 --cpus 2 --memory 32G -- work=test_numa runs=3
  numalab guest run --kernel my.elf --raw --emulate 2 --cpus 2 --expect 'tests passed' \\
    --fail panic --timeout 60s -- loglevel=info
  numalab guest run --kernel numalab --emulate 2 --cpus 4 -o results -- work=exhaust dump=heap

Parameters of numalab's own kernel: alloc=numa|blind numa=on|off|fake=N|fake=SIZE,...
  policy=local|preferred:N|exact:N|bind:N,N|interleave work=chase,test_numa,storm,bandwidth,
  guests,scaling,exhaust runs=N seed=N cpus=N|LIST size=SIZE count=N threads=N order=N
  rand=inline|seed dump=heap,topology

The command's standard input is empty; --with FILE copies a file into the guest.
The exit code is the command's. With --raw it is 0 at a line that matches --expect, and 4 at one
that matches --fail or if none matches --expect; without either, it is the value that the kernel
wrote to port 0xf4 (isa-debug-exit), 0 if it powered off, and 125 after a reset, a triple fault or a
timeout. A guest contains the packages of known commands (sysbench, perf, dbench, numactl, redis,
...) that it runs, a shell with the usual tools, and numalab.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub guest: BootArgs,
    /// Copy this file or directory out of the guest (repeatable)
    #[arg(long, value_name = "PATH", requires = "output")]
    pub collect: Vec<String>,
    /// Directory for collected files, which keep their guest paths
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub raw: RawArgs,
    /// End the guest if the command, or with --raw the whole guest, takes longer, such as 30s or 5m
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    pub timeout: Option<Duration>,
    /// Output format of --kernel numalab
    #[arg(long, value_parser = value::format())]
    pub format: Option<Format>,
    /// Label of the results of --kernel numalab
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// The command, with its arguments; or the parameters of --kernel numalab or --raw
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab guest shell --emulate 4 --cpus 8
  numalab guest shell --emulate 4 --cpus 8 --with numactl --with perf")]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    pub guest: BootArgs,
    /// Command to run
    #[arg(last = true, value_name = "COMMAND", default_value = "sh")]
    pub command: Vec<String>,
}

/// The guest's machine, and how it is started.
#[derive(Debug, Args)]
pub(crate) struct BootArgs {
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Accelerator; auto uses kvm if a guest really runs under it, otherwise tcg
    #[arg(long, default_value = "auto", value_parser = value::one_of([
        (AcceleratorChoice::Auto, "auto", "KVM if a guest runs under it, otherwise TCG"),
        (AcceleratorChoice::Kvm, "kvm", "Hardware virtualisation"),
        (AcceleratorChoice::Tcg, "tcg", "QEMU's translator"),
    ]))]
    pub accel: AcceleratorChoice,
    /// Host pages behind the guest's memory
    #[arg(long, ignore_case = true, default_value = "normal", value_parser = value::one_of([
        (HostPages::Normal, "normal", "The host's base pages"),
        (HostPages::Huge { page_bytes: 2 << 20 }, "2m", "Reserved pages of 2 MiB"),
        (HostPages::Huge { page_bytes: 1 << 30 }, "1g", "Reserved pages of 1 GiB"),
        (HostPages::Shared, "memfd", "Shared memory"),
    ]))]
    pub pages: HostPages,
    /// Host nodes of each guest node's memory, such as 0;1 or !0;all (bound, not preferred)
    #[arg(long, value_name = "NODES;...", value_parser = guest_value::node_sets)]
    pub host_nodes: Option<NodeSets>,
    /// Touch all guest memory before the guest starts
    #[arg(long)]
    pub prealloc: bool,
    /// Host CPUs for vCPUs: auto (by node), 0=4;1=5-6 (per vCPU), or 0-3;4-7 (per node)
    #[arg(long, value_name = "MAP", value_parser = guest_value::pins)]
    pub pin: Option<PinPlan>,
    #[command(flatten)]
    pub memory_emulator: MemoryEmulatorArgs,
    #[command(flatten)]
    pub contents: ContentArgs,
    /// ACPI tables to use instead of QEMU's own: a directory with SRAT.bin, SLIT.bin and
    /// HMAT.bin as `machine acpi build` writes them
    #[arg(long, value_name = "DIR", conflicts_with_all = ["pages", "host_nodes", "prealloc"])]
    pub tables: Option<PathBuf>,
    /// Parameters added to Linux's command line, such as 'isolcpus=2-3 hugepages=64' (repeatable)
    #[arg(long, value_name = "PARAMETERS", allow_hyphen_values = true)]
    pub append: Vec<String>,
    /// Print QEMU's command line; start and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// The guest's kernel and programs.
#[derive(Debug, Args)]
pub(crate) struct ContentArgs {
    /// The guest's processor: x86_64, or aarch64 (a `virt` machine with Debian's arm64 kernel and
    /// packages, under TCG)
    #[arg(long = "arch", value_name = "ARCH", default_value = Architecture::of_host().name(), value_parser = guest_value::architecture)]
    pub architecture: Architecture,
    /// The kernel: linux (the distribution's), backports (Debian's newer one), numalab (its
    /// own bare-metal kernel, parameters after --), or a file: a Linux image with virtio-console
    /// built in, or with --raw anything that a PC boots
    #[arg(long, value_name = "KERNEL", default_value = "linux", value_parser = guest_value::kernel)]
    pub kernel: BootKernel,
    /// Add this program to the guest: a known name (sysbench, perf, ...) or a file (repeatable)
    #[arg(long, value_name = "PROGRAM")]
    pub with: Vec<String>,
    /// Load this kernel module and its dependencies, such as brd (RAM disks) (repeatable)
    #[arg(long, value_name = "MODULE")]
    pub module: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab guest image                        what is in the cache
  numalab guest image --build --with perf    build the image of a guest with perf in advance
  numalab guest image --fetch-qemu           Debian's newer QEMU, unpacked, not installed
  numalab guest image --iso numalab.iso -- work=chase,bandwidth
                                             numalab's own kernel for a real machine; its
                                             results appear on the first serial port
  numalab guest image --clean                empty the cache")]
pub(crate) struct ImageArgs {
    /// Build the image that a guest with these options boots
    #[arg(long)]
    pub build: bool,
    #[command(flatten)]
    pub contents: ContentArgs,
    /// Unpack the QEMU of Debian's backports into the cache
    #[arg(long)]
    pub fetch_qemu: bool,
    /// Write an image that boots numalab's own kernel on any PC, by BIOS or UEFI
    #[arg(long, value_name = "FILE", conflicts_with_all = ["build", "fetch_qemu", "clean"])]
    pub iso: Option<PathBuf>,
    /// Parameters of the kernel on the image of --iso
    #[arg(last = true, value_name = "WORD", requires = "iso")]
    pub words: Vec<String>,
    /// Remove everything from the cache
    #[arg(long, conflicts_with_all = ["build", "fetch_qemu"])]
    pub clean: bool,
    /// Show what would be done; do nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  numalab guest pin --qmp /run/vm.qmp                       each guest node to a host node
  numalab guest pin --qmp 4444 --vcpus 8 --map '0-3;16-19'
  numalab guest pin --qmp localhost:4444 --map '0=4;1=5-6' --dry-run")]
pub(crate) struct PinArgs {
    /// QMP address of the running QEMU: a socket file, HOST:PORT, or a PORT of this machine
    #[arg(long, value_name = "SOCKET|PORT")]
    pub qmp: QmpAddress,
    /// With a list for each node: pin only the first N vCPUs
    #[arg(long, value_name = "N", requires = "map")]
    pub vcpus: Option<u32>,
    /// Host CPUs for vCPUs: auto (by node, the default), 0=4;1=5-6 (per vCPU), or 0-3;16-19 (per
    /// node)
    #[arg(long, value_name = "MAP", value_parser = guest_value::pins)]
    pub map: Option<PinPlan>,
    /// Host CPUs for QEMU's other threads
    #[arg(long, value_name = "CPUS", value_parser = value::host_cpus)]
    pub helpers: Option<CpuSet>,
    /// Show where vCPUs would be pinned; change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// A kernel, firmware or disk known only by its console output.
#[derive(Debug, Args)]
pub(crate) struct RawArgs {
    /// Boot the file of --kernel unchanged: bzImage, multiboot or PVH kernel, firmware, ISO or disk
    /// image; its first serial port is the output
    #[arg(long)]
    pub raw: bool,
    /// Exit 0 at the first console line that matches; exit 4 if the guest ends without one
    #[arg(long, value_name = "REGEX", requires = "raw")]
    pub expect: Option<regex::Regex>,
    /// Exit 4 at the first console line that matches
    #[arg(long, value_name = "REGEX", requires = "raw")]
    pub fail: Option<regex::Regex>,
    /// Initramfs of a Linux image, or modules of a multiboot kernel
    #[arg(long, value_name = "FILE", requires = "raw")]
    pub initrd: Option<PathBuf>,
    /// Disk or ISO image in an AHCI drive; what the guest writes to it is lost (repeatable)
    #[arg(long, value_name = "FILE", requires = "raw")]
    pub disk: Vec<PathBuf>,
}
