//! The parsers on recorded output: every sample, and every truncation of it. `samples/index.tsv`
//! has the commands and exit codes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use numalab_workload::{
    Ending, Finished, OutputError, Reading, Workload, WorkloadSpec, perf_stat_counters,
};

/// The expected result of a sample.
enum Expected {
    /// These readings, by name and value, are among the results.
    Has(&'static [(&'static str, f64)]),
    /// An error with this text in its message.
    Refused(&'static str),
}
use Expected::{Has, Refused};

/// A workload in TOML that reads the sample, and the expected result.
const SAMPLES: [(&str, &str, Expected); 72] = [
    ("perf-sched-pipe-simple", PIPE, Has(&[("time-per-op", 3.8), ("time", 0.076)])),
    ("perf-sched-pipe-default", PIPE, Has(&[("time-per-op", 10.502_150), ("time", 0.210)])),
    ("perf-sched-pipe-T-simple", PIPE, Has(&[("time-per-op", 7.5)])),
    ("perf-sched-pipe-repeat", PIPE, Has(&[("time-per-op", 2.431_05)])),
    ("perf-stat-r", PIPE, Refused("3 values of total time in the output, expected one")),
    ("perf-sched-messaging-simple", MESSAGING, Has(&[("time", 0.725)])),
    ("perf-sched-messaging-default", MESSAGING, Has(&[("time", 0.705)])),
    ("perf-sched-messaging-t-p", MESSAGING, Has(&[("time", 0.233)])),
    ("perf-syscall-basic", SYSCALL, Has(&[("time-per-op", 0.2)])),
    ("perf-syscall-basic-default", SYSCALL, Has(&[("time-per-op", 0.332_85)])),
    // 4.669591 * 2^30 bytes.
    ("perf-mem-memset-1GB-default", MEMSET, Has(&[("throughput", 5.013_935_157_673_983)])),
    ("perf-mem-memset-1GB-default-simple", MEMSET, Has(&[("throughput", 2.350_076_711_027_552)])),
    (
        "perf-mem-memset-all",
        MEMSET,
        Has(&[
            ("throughput", 5.297_719_753_048_065),
            ("throughput x86-64-stosb", 4.577_685_665_742_848),
        ]),
    ),
    (
        "perf-mem-memset-all-simple",
        MEMSET,
        Has(&[
            ("throughput", 4.390_073_856_016_747),
            ("throughput x86-64-unrolled", 3.231_670_230_183_955),
            ("throughput x86-64-stosq", 2.151_959_724_226_391),
            ("throughput x86-64-stosb", 2.587_329_696_385_542),
        ]),
    ),
    ("perf-mem-memset-cycles", MEMSET, Refused("exit code 255: Failed to open cycles counter")),
    ("perf-mem-memcpy-simple", MEMSET, Has(&[("throughput", 2.557_270_978_712_864)])),
    ("perf-mem-memcpy-help", MEMSET, Refused("exit code 1")),
    ("perf-futex-wake-s-t64-w1", WAKE, Has(&[("time", 0.7931)])),
    ("perf-futex-wake-simple", WAKE, Has(&[("time", 0.9518)])),
    ("perf-futex-wake-verbose", WAKE, Has(&[("time", 0.1940)])),
    ("perf-futex-requeue", WAKE, Has(&[("time", 0.0200)])),
    ("perf-futex-wake-parallel", WAKE, Has(&[("time", 0.0244)])),
    ("perf-futex-hash", HASH, Has(&[("rate", 1_220_608.0)])),
    ("perf-futex-hash-s", HASH, Has(&[("rate", 1_370_624.0)])),
    ("perf-futex-lock-pi", HASH, Has(&[("rate", 164.0)])),
    ("perf-epoll-wait", HASH, Has(&[("rate", 472_489.0)])),
    ("perf-numa-mem-quick", NUMA, Has(&[("total-speed", 2.021), ("runtime-max", 0.101)])),
    ("perf-numa-mem-m", NUMA, Has(&[("total-speed", 2.060), ("convergence", 0.067)])),
    ("perf-numa-mem-simple", NUMA, Has(&[("total-speed", 4.177), ("runtime-avg", 0.025)])),
    ("perf-numa-mem-bad-node", NUMA, Refused("exit code 129")),
    ("perf-stat-json", STAT_JSON, Has(&[("page-faults", 48.0), ("task-clock", 0.606_392)])),
    (
        "perf-mem-find_bit",
        "command = ['perf']\nmetric = [{ name = 'each', better = 'lower', \
         pattern = 'for_each_set_bit took: {usec} usec' }]",
        Has(&[("each", 4.2)]),
    ),
    ("sysbench-cpu-t1", SYSBENCH, Has(&[("events-per-second", 567.47), ("time", 3.0105)])),
    (
        "sysbench-cpu-t2-report",
        SYSBENCH,
        Has(&[("events-per-second", 674.55), ("latency-p99", 48.34)]),
    ),
    (
        "sysbench-cpu-histogram",
        SYSBENCH,
        Has(&[("events-per-second", 904.43), ("latency-avg", 1.09)]),
    ),
    ("sysbench-cpu-rate", SYSBENCH, Has(&[("events-per-second", 99.76)])),
    (
        "sysbench-memory-write",
        SYSBENCH,
        Has(&[("throughput", 6291.70), ("operations", 6291.70), ("latency-max", 64.17)]),
    ),
    ("sysbench-memory-read-rnd", SYSBENCH, Has(&[("throughput", 664.86)])),
    ("sysbench-memory-local", SYSBENCH, Has(&[("throughput", 2570.68)])),
    ("sysbench-memory-hugetlb-ok", SYSBENCH, Has(&[("throughput", 7896.54)])),
    (
        "sysbench-memory-hugetlb-fail",
        SYSBENCH,
        Refused("exit code 1: FATAL: Failed to allocate buffer!"),
    ),
    (
        "sysbench-memory-none",
        SYSBENCH,
        Has(&[("operations", 2_395_827.13), ("events", 1_048_576.0)]),
    ),
    (
        "sysbench-threads",
        SYSBENCH,
        Has(&[("events", 1800.0), ("events-per-second", 599.420_560_125_212_3)]),
    ),
    ("sysbench-mutex", SYSBENCH, Has(&[("time", 0.0397)])),
    ("sysbench-fileio-rndrw", SYSBENCH, Has(&[("reads", 3331.95), ("written", 34.71)])),
    ("sysbench-fileio-prepare", SYSBENCH, Refused("no total time in the output")),
    ("sysbench-fileio-cleanup", SYSBENCH, Refused("no total time in the output")),
    ("sysbench-bad-option", SYSBENCH, Refused("FATAL: Invalid value for memory-block-size: 3K")),
    ("sysbench-unknown-test", SYSBENCH, Refused("FATAL: Cannot find benchmark 'nonesuch'")),
    ("sysbench-help", SYSBENCH, Refused("no total time in the output")),
    ("dbench-4", DBENCH, Has(&[("throughput", 410.682), ("latency-max", 111.172)])),
    ("dbench-1", DBENCH, Refused("Invalid option --warmup=1: unknown option")),
    ("dbench-4-show-execute-time", DBENCH, Refused("Invalid option --machine-readable")),
    ("dbench-bad", DBENCH, Refused("exit code 1: Child failed with status 1")),
    ("dbench-help", DBENCH, Refused("no throughput in the output")),
    ("dbench-tbench_srv", DBENCH, Refused("found \"/usr/bin/tbench\"")),
    ("redis-benchmark-refused", REDIS, Refused("not finished after 60 s")),
    ("redis-benchmark-csv", REDIS, Has(&[("GET rps", 92_165.90), ("MSET latency-p99", 4.063)])),
    ("redis-hot-csv", REDIS_HOT, Has(&[("FCALL rps", 85_616.44), ("FCALL latency-p99", 0.199)])),
    ("redis-benchmark-pipeline-csv", REDIS, Has(&[("SET rps", 392_156.88)])),
    ("redis-benchmark-threads-csv", REDIS, Has(&[("GET latency-p50", 0.055)])),
    ("redis-benchmark-version", REDIS, Refused("no table in the output")),
    (
        "redis-benchmark-q",
        "command = ['redis-benchmark']\nmetric = [\
         { name = 'SET', better = 'higher', pattern = 'SET: {rps} requests per second' },\
         { name = 'GET', better = 'higher', pattern = 'GET: {rps} requests per second' }]",
        Has(&[("SET", 58_997.05), ("GET", 106_951.87)]),
    ),
    (
        "redis-benchmark-full",
        "command = ['redis-benchmark']\nmetric = [{ name = 'rps', better = 'higher', \
         pattern = 'throughput summary: {rps} requests per second' }]",
        Has(&[("rps", 40_322.58)]),
    ),
    (
        "redis-cli-intrinsic",
        "command = ['redis-cli']\nmetric = [{ name = 'avg', better = 'lower', \
         pattern = 'avg latency: {us} microseconds' }]",
        Has(&[("avg", 0.0346)]),
    ),
    (
        "redis-cli-info-memory",
        "command = ['redis-cli']\nmetric = [{ name = 'rss', better = 'lower', \
         pattern = 'used_memory_rss:{bytes}' }]",
        Has(&[("rss", 18_264_064.0)]),
    ),
    (
        "redis-cli-info-server",
        "command = ['redis-cli']\nmetric = [{ name = 'uptime', better = 'higher', \
         pattern = 'uptime_in_seconds:{s}' }]",
        Has(&[("uptime", 68.0)]),
    ),
    ("redis-cli-memory-doctor", REDIS, Refused("no table in the output")),
    ("redis-server-log", REDIS, Refused("no table in the output")),
    ("perf-version", PIPE, Refused("total time")),
    ("perf-bench-list", WAKE, Refused("no time of waking in the output")),
    ("perf-list", HASH, Refused("no operations/sec in the output")),
];

const PIPE: &str = "tool = 'perf-sched-pipe'\narguments = ['-l', '20000']";
const MESSAGING: &str = "tool = 'perf-sched-messaging'";
const SYSCALL: &str = "tool = 'perf-syscall-basic'\narguments = ['--loop=100000']";
const MEMSET: &str = "tool = 'perf-mem-memset'";
const WAKE: &str = "tool = 'perf-futex-wake'";
const HASH: &str = "tool = 'perf-futex-hash'";
const NUMA: &str = "tool = 'perf-numa-mem'";
const SYSBENCH: &str = "tool = 'sysbench-cpu'";
const DBENCH: &str = "tool = 'dbench'";
const REDIS: &str = "tool = 'redis'";
const REDIS_HOT: &str = "tool = 'redis-hot'";
const STAT_JSON: &str = "command = ['perf', 'stat', '-j', 'true']\nmetric = [\
    { name = 'task-clock', better = 'lower', json = '/0/counter-value', from = 'stderr' },\
    { name = 'page-faults', better = 'lower', json = '/3/counter-value', from = 'stderr' }]";

/// Samples of commands that print no metrics themselves: counters are on standard error, which has
/// a separate test.
const COUNTERS: [&str; 2] = ["perf-stat-csv", "perf-stat-dtlb"];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

/// A recorded run of a command.
struct Recorded {
    ending: Ending,
    stdout: String,
    stderr: String,
}

impl Recorded {
    fn read(name: &str) -> Self {
        let text = |end| fs::read_to_string(directory().join(format!("{name}.{end}")));
        Self {
            ending: endings().get(name).copied().unwrap_or(Ending::Exited(0)),
            stdout: text("out").unwrap_or_else(|error| panic!("{name}: {error}")),
            stderr: text("err").unwrap_or_default(),
        }
    }

    fn finished(&self) -> Finished<'_> {
        let Self { ending, stdout, stderr } = self;
        Finished { ending: *ending, stdout, stderr, elapsed_s: 1.5 }
    }
}

/// Returns the way each command ended, from the index; 124 is the exit code of `timeout 60`.
fn endings() -> BTreeMap<String, Ending> {
    let index = fs::read_to_string(directory().join("index.tsv")).expect("the index exists");
    let row = |line: &str| {
        let mut columns = line.split('\t');
        let name = columns.next()?.to_owned();
        let code: i32 = columns.next()?.strip_prefix("rc=")?.parse().ok()?;
        let ending = if code == 124 { Ending::TimedOut(60) } else { Ending::Exited(code) };
        Some((name, ending))
    };
    index.lines().map(|line| row(line).unwrap_or_else(|| panic!("index: {line}"))).collect()
}

/// Returns the workload, with all of its metrics.
fn workload(toml: &str) -> Workload {
    let spec: WorkloadSpec = toml::from_str(toml).unwrap_or_else(|error| panic!("{error}"));
    let workload = spec.resolve().unwrap_or_else(|error| panic!("{error}"));
    Workload { wanted: Vec::new(), ..workload }
}

fn value_of(readings: &[Reading], name: &str) -> Option<f64> {
    let found = readings.iter().find(|reading| reading.quantity.metric == name);
    found.map(|reading| reading.value)
}

#[test]
fn every_sample_is_read_as_expected() {
    for (name, toml, expected) in &SAMPLES {
        let recorded = Recorded::read(name);
        match (workload(toml).read(&recorded.finished()), expected) {
            (Ok(readings), Has(wanted)) => {
                for (metric, value) in *wanted {
                    let found = value_of(&readings, metric);
                    let close = found.is_some_and(|found| (found / value - 1.0).abs() < 1e-9);
                    assert!(close, "{name}: {metric} is {found:?}, expected {value}");
                }
                let finite = readings.iter().all(|reading| reading.value.is_finite());
                assert!(finite, "{name}: {readings:?}");
                for reading in readings {
                    let known = workload(toml).reader.metric(&reading.quantity.metric);
                    assert_eq!(known, Some(reading.quantity), "{name}");
                }
            }
            (Err(error), Refused(words)) => {
                let message = error.to_string();
                assert!(message.contains(words), "{name}: no {words:?} in: {message}");
            }
            (other, _) => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn every_sample_is_tested() {
    let mut left: Vec<String> = fs::read_dir(directory())
        .expect("the samples exist")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".out").map(str::to_owned))
        .filter(|name| !SAMPLES.iter().any(|(sample, _, _)| sample == name))
        .filter(|name| !COUNTERS.contains(&name.as_str()))
        .collect();
    left.sort();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_sample_truncated_anywhere_gives_a_finite_value_or_an_error() {
    for (name, toml, _) in &SAMPLES {
        let recorded = Recorded::read(name);
        let workload = workload(toml);
        let whole = &recorded.stdout;
        // Every position in the last 300 bytes, which contain the results, and some before.
        let ends = (0..whole.len()).filter(|end| end + 300 > whole.len() || end % 97 == 0);
        for end in ends.filter(|end| whole.is_char_boundary(*end)) {
            let stdout = &whole[..end];
            let finished = Finished { stdout, ..recorded.finished() };
            if let Ok(readings) = workload.read(&finished) {
                let finite = readings.iter().all(|reading| reading.value.is_finite());
                assert!(finite, "{name} until {end}: {readings:?}");
            }
        }
    }
}

#[test]
fn a_missing_wanted_metric_is_an_error_with_the_available_ones() {
    let spec = WorkloadSpec {
        metrics: vec!["throughput".to_owned()],
        ..WorkloadSpec::of_tool("sysbench-mutex")
    };
    let recorded = Recorded::read("sysbench-mutex");
    let error = spec.resolve().unwrap().read(&recorded.finished()).unwrap_err();
    let OutputError::NoMetric { wanted, available } = &error else { panic!("{error}") };
    assert_eq!(wanted, "throughput");
    assert!(available.starts_with("time, events, events-per-second"), "{available}");
}

#[test]
fn wanted_metrics_are_returned_in_the_requested_order() {
    let names = ["latency-p95", "time", "throughput"].map(str::to_owned);
    let spec = WorkloadSpec { metrics: names.to_vec(), ..WorkloadSpec::of_tool("sysbench-memory") };
    let recorded = Recorded::read("sysbench-memory-write");
    let readings = spec.resolve().unwrap().read(&recorded.finished()).unwrap();
    let found: Vec<&str> =
        readings.iter().map(|reading| reading.quantity.metric.as_str()).collect();
    assert_eq!(found, names);
}

#[test]
fn counters_of_perf_stat_are_numbers_or_none() {
    let recorded = Recorded::read("perf-stat-csv");
    let counters = perf_stat_counters(&recorded.stderr).unwrap();
    assert_eq!(counters["context-switches"], Some(1.0));
    assert_eq!(counters["cpu-migrations"], Some(0.0));
    assert_eq!(counters["task-clock"], Some(0.69));
    assert_eq!(counters["cycles"], None);
    let recorded = Recorded::read("perf-stat-dtlb");
    let counters = perf_stat_counters(&recorded.stderr).unwrap();
    assert!(counters.values().all(Option::is_none), "{counters:?}");
    assert!(perf_stat_counters("").is_err());
}
