//! How a workload's output becomes readings.

use serde::{Deserialize, Serialize};

use crate::error::OutputError;
use crate::finished::Finished;
use crate::metric::Reading;
use crate::own::{OwnMetric, Source};
use crate::parse::perf_bench::{self, Benchmark};
use crate::parse::{dbench, json, numalab, redis, stress_ng, sysbench};
use crate::pattern::Pattern;

/// Which parser reads the output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reader {
    /// `perf bench` that prints seconds for so many operations: sched pipe, syscall.
    PerfOperations(u64),
    /// `perf bench` that prints seconds: sched messaging.
    PerfTime,
    /// `perf bench mem`.
    PerfMemory,
    /// `perf bench futex` that prints a time: wake, wake-parallel, requeue.
    PerfWakeups,
    /// `perf bench` that prints an average rate: futex hash, futex lock-pi, epoll.
    PerfAverage,
    /// `perf bench numa mem`.
    PerfNuma,
    /// `sysbench` of any test.
    Sysbench,
    /// `dbench`.
    Dbench,
    /// `redis-benchmark --csv`.
    RedisBenchmark,
    /// `stress-ng --metrics-brief`.
    StressNg,
    /// numalab's own commands with `--format json`.
    Numalab,
    /// Metrics that the user describes.
    Own(Vec<OwnMetric>),
}

impl Reader {
    /// All readings in the output of a command that ended well.
    ///
    /// # Errors
    /// What is wrong with the output.
    pub fn read(&self, finished: &Finished<'_>) -> Result<Vec<Reading>, OutputError> {
        let text = finished.stdout;
        match self {
            Self::PerfOperations(count) => perf_bench::parse(Benchmark::Operations(*count), text),
            Self::PerfTime => perf_bench::parse(Benchmark::Time, text),
            Self::PerfMemory => perf_bench::parse(Benchmark::Memory, text),
            Self::PerfWakeups => perf_bench::parse(Benchmark::Wakeups, text),
            Self::PerfAverage => perf_bench::parse(Benchmark::Average, text),
            Self::PerfNuma => perf_bench::parse(Benchmark::Numa, text),
            Self::Sysbench => sysbench::parse(text),
            Self::Dbench => dbench::parse(text),
            Self::RedisBenchmark => redis::parse(text),
            Self::StressNg => stress_ng::parse(finished.stderr),
            Self::Numalab => numalab::parse(text),
            Self::Own(metrics) => metrics.iter().map(|own| read_own(own, finished)).collect(),
        }
    }
}

fn read_own(own: &OwnMetric, finished: &Finished<'_>) -> Result<Reading, OutputError> {
    let text = own.stream.of(finished);
    let value = match &own.source {
        Source::ExitTime => finished.elapsed_s,
        Source::Json(pointer) => json::value(text, pointer)?,
        Source::Pattern(pattern) => {
            let name = &own.metric.name;
            let parsed = Pattern::parse(pattern);
            let unreadable = |_| OutputError::missing(name, "a pattern that was checked", pattern);
            parsed.map_err(unreadable)?.last(name, text)?
        }
    };
    Ok(own.metric.clone().at(value))
}
