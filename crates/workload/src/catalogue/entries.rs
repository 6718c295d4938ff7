//! The catalogue itself. The usual arguments are those of the NUMA balancing study where
//! it has them, else a few seconds on a common machine.

use super::{Entry, Kind};
use crate::workload::NUMALAB;

/// All tools, in the order in which they are listed.
pub(super) const ENTRIES: [Entry; 18] = [
    perf(
        "perf-sched-pipe",
        "two processes that wake each other through a pipe",
        &["perf", "bench", "-f", "simple", "sched", "pipe"],
        &[],
        &["time-per-op"],
        Kind::PerfOperations { option: "-l", usual: 1_000_000 },
    ),
    perf(
        "perf-sched-messaging",
        "groups of processes that send to each other",
        &["perf", "bench", "-f", "simple", "sched", "messaging"],
        &["-l", "10000"],
        &["time"],
        Kind::PerfTime,
    ),
    perf(
        "perf-syscall-basic",
        "getppid() calls",
        &["perf", "bench", "-f", "simple", "syscall", "basic"],
        &[],
        &["time-per-op"],
        Kind::PerfOperations { option: "-l", usual: 10_000_000 },
    ),
    perf(
        "perf-mem-memset",
        "memset throughput",
        &["perf", "bench", "-f", "simple", "mem", "memset"],
        &["-s", "4GB", "-l", "5", "-f", "default"],
        &["throughput"],
        Kind::PerfMemory,
    ),
    perf(
        "perf-mem-memcpy",
        "memcpy throughput",
        &["perf", "bench", "-f", "simple", "mem", "memcpy"],
        &["-s", "1GB", "-l", "5", "-f", "default"],
        &["throughput"],
        Kind::PerfMemory,
    ),
    perf(
        "perf-futex-wake",
        "waking threads one at a time",
        &["perf", "bench", "-f", "simple", "futex", "wake"],
        &["-s", "-t", "1024", "-w", "1"],
        &["time"],
        Kind::PerfWakeups,
    ),
    perf(
        "perf-futex-hash",
        "futex hash table operations",
        &["perf", "bench", "-f", "simple", "futex", "hash"],
        &["-s", "-r", "5"],
        &["rate"],
        Kind::PerfAverage,
    ),
    perf(
        "perf-numa-mem",
        "processes and threads that work on shared and own memory",
        &["perf", "bench", "numa", "mem"],
        &["-p", "2", "-t", "2", "-P", "256", "-s", "5", "-zZ0q"],
        &["total-speed"],
        Kind::PerfNuma,
    ),
    sysbench(
        "sysbench-cpu",
        "prime numbers",
        &["--time=10", "--threads=4", "--cpu-max-prime=10000"],
        "cpu",
        &["events-per-second"],
    ),
    sysbench(
        "sysbench-memory",
        "writes or reads of memory in blocks",
        &["--memory-access-mode=rnd", "--threads=4"],
        "memory",
        &["throughput"],
    ),
    sysbench(
        "sysbench-threads",
        "threads that lock and yield",
        &["--threads=4"],
        "threads",
        &["events-per-second"],
    ),
    sysbench(
        "sysbench-mutex",
        "threads that lock mutexes",
        &["--mutex-num=1", "--threads=32"],
        "mutex",
        &["time"],
    ),
    Entry {
        name: "dbench",
        summary: "file server load",
        command: &["dbench", "-D", "{scratch}"],
        arguments: &["-t", "10", "4"],
        end: &[],
        metrics: &["throughput"],
        timeout_s: 300,
        kind: Kind::Dbench,
    },
    Entry {
        name: "redis",
        summary: "redis-benchmark on a redis-server of its own",
        command: &["redis-benchmark", "-s", "{scratch}/redis.sock", "--csv"],
        arguments: &["-n", "200000", "-c", "10", "-r", "100000", "-d", "64", "-t", "set,get"],
        end: &[],
        metrics: &["SET rps", "GET rps"],
        timeout_s: 300,
        kind: Kind::Redis,
    },
    Entry {
        name: "stress-ng",
        summary: "a stressor of stress-ng, by operations per second",
        command: &["stress-ng", "--metrics-brief"],
        arguments: &["--vm", "1", "--vm-bytes", "256M", "-t", "5"],
        end: &[],
        metrics: &[],
        timeout_s: 300,
        kind: Kind::StressNg,
    },
    Entry {
        name: "latency",
        summary: "numalab's chase: latency of dependent loads",
        command: &[NUMALAB, "latency", "--format", "json", "--quiet"],
        arguments: &["--size", "256M", "--pages", "4k", "--per", "node"],
        end: &[],
        metrics: &[],
        timeout_s: 300,
        kind: Kind::Numalab,
    },
    Entry {
        name: "bandwidth",
        summary: "numalab's streams: bytes per second",
        command: &[NUMALAB, "bandwidth", "--format", "json", "--quiet"],
        arguments: &["--kernel", "read"],
        end: &[],
        metrics: &[],
        timeout_s: 300,
        kind: Kind::Numalab,
    },
    Entry {
        name: "balancing-probe",
        summary: "memory on one node, its threads on another: does the kernel move it?",
        command: &[NUMALAB, "probe", "balancing", "--format", "json"],
        arguments: &[],
        end: &[],
        metrics: &["latency-end"],
        timeout_s: 300,
        kind: Kind::Numalab,
    },
];

const fn perf(
    name: &'static str,
    summary: &'static str,
    command: &'static [&'static str],
    arguments: &'static [&'static str],
    metrics: &'static [&'static str],
    kind: Kind,
) -> Entry {
    Entry { name, summary, command, arguments, end: &[], metrics, timeout_s: 600, kind }
}

const fn sysbench(
    name: &'static str,
    summary: &'static str,
    arguments: &'static [&'static str],
    test: &'static str,
    metrics: &'static [&'static str],
) -> Entry {
    // The test's name comes first, then its options, then `run`.
    let command: &[&str] = match test.as_bytes() {
        b"cpu" => &["sysbench", "cpu"],
        b"memory" => &["sysbench", "memory"],
        b"threads" => &["sysbench", "threads"],
        _ => &["sysbench", "mutex"],
    };
    let kind = Kind::Sysbench;
    Entry { name, summary, command, arguments, end: &["run"], metrics, timeout_s: 600, kind }
}
