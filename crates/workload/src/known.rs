//! The metrics of a tool by name, for those who plan before anything has run. A test
//! compares them with what the parsers find in real output.

use numalab_record::Metric as Measured;

use crate::metric::Metric;
use crate::reader::Reader;

impl Reader {
    /// The metric of this name, if the output can have it.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<Metric> {
        match self {
            Self::PerfOperations(_) => match name {
                "time-per-op" => Some(Metric::lower(name, "us")),
                _ => exactly(name, "time", "s", Metric::lower),
            },
            Self::PerfTime => exactly(name, "time", "s", Metric::lower),
            Self::PerfMemory => {
                let known = name == "throughput" || name.starts_with("throughput ");
                known.then(|| Metric::higher(name, "GB/s"))
            }
            Self::PerfWakeups => exactly(name, "time", "ms", Metric::lower),
            Self::PerfAverage => exactly(name, "rate", "ops/s", Metric::higher),
            Self::PerfNuma => match name {
                "total-speed" | "thread-speed" => Some(Metric::higher(name, "GB/s")),
                "runtime-max" | "runtime-avg" | "convergence" => Some(Metric::lower(name, "s")),
                _ => None,
            },
            Self::Sysbench => sysbench(name),
            Self::Dbench => match name {
                "throughput" => Some(Metric::higher(name, "MB/s")),
                _ => exactly(name, "latency-max", "ms", Metric::lower),
            },
            Self::RedisBenchmark => match name.split_once(' ')?.1 {
                "rps" => Some(Metric::higher(name, "requests/s")),
                column if column.starts_with("latency-") => Some(Metric::lower(name, "ms")),
                _ => None,
            },
            Self::StressNg => {
                let known = name.ends_with(" rate") || name.ends_with(" cpu-rate");
                known.then(|| Metric::higher(name, "ops/s"))
            }
            Self::Numalab => numalab(name),
            Self::Own(metrics) => {
                let own = metrics.iter().find(|own| own.metric.name == name);
                own.map(|own| own.metric.clone())
            }
        }
    }
}

fn exactly(
    name: &str,
    known: &str,
    unit: &str,
    make: impl Fn(String, String) -> Metric,
) -> Option<Metric> {
    (name == known).then(|| make(name.to_owned(), unit.to_owned()))
}

fn sysbench(name: &str) -> Option<Metric> {
    Some(match name {
        "time" => Metric::lower(name, "s"),
        "events" => Metric::higher(name, "events"),
        "events-per-second" => Metric::higher(name, "events/s"),
        "operations" | "reads" | "writes" | "fsyncs" => Metric::higher(name, "ops/s"),
        "throughput" | "read" | "written" => Metric::higher(name, "MiB/s"),
        _ if name.starts_with("latency-") => Metric::lower(name, "ms"),
        _ => return None,
    })
}

/// `latency`, or `latency` and a cell, as documents have them; a probe's are of one's own.
fn numalab(name: &str) -> Option<Metric> {
    let first = name.split(' ').next().unwrap_or(name);
    if let Some(measured) = Measured::from_name(first) {
        let unit = measured.unit().to_string();
        let make = if measured.lower_is_better() { Metric::lower } else { Metric::higher };
        return Some(make(name.to_owned(), unit));
    }
    match name {
        "latency-begin" | "latency-end" => Some(Metric::lower(name, "ns")),
        "local" => Some(Metric::higher(name, "%")),
        _ => None,
    }
}
