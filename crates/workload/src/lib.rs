#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod catalogue;
mod error;
mod finished;
mod known;
mod metric;
mod need;
mod number;
mod own;
mod parse;
mod pattern;
mod reader;
mod spec;
mod workload;

pub use catalogue::needs::of as kernel_needs;
pub use error::{OutputError, PatternError, SpecError};
pub use finished::{Ending, Finished};
pub use metric::{Better, Metric, Reading};
pub use need::{KernelNeed, Tool};
pub use own::{MetricSpec, OwnMetric, Source, Stream};
pub use parse::perf_stat::counters as perf_stat_counters;
pub use pattern::Pattern;
pub use reader::Reader;
pub use spec::WorkloadSpec;
pub use workload::{NUMALAB, SCRATCH, Service, Workload};
