#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![expect(missing_docs, reason = "fields of errors and records that their names explain")]

pub mod catalogue;
mod command;
mod error;
mod expression;
mod finished;
mod json;
mod need;
mod number;
mod option;
mod own;
mod pattern;
mod perf_stat;
mod rate;
mod reader;
mod sample;
mod scale;
mod spec;
mod workload;

pub use catalogue::{kernel_needs, tier_looks};
pub use command::{NUMALAB, SCRATCH, Service};
pub use error::{ExpressionError, OutputError, PatternError, SpecError};
pub use expression::Expression;
pub use finished::{Ending, Finished};
pub use need::{KernelNeed, Tool};
pub use numalab_record::study::{Quantity, Reading};
pub use numalab_stats::Direction;
pub use own::{MetricSpec, OwnMetric, Source, Stream};
pub use pattern::Pattern;
pub use perf_stat::counters as perf_stat_counters;
pub use reader::Reader;
pub use sample::{LogSample, SampleError};
pub use spec::WorkloadSpec;
pub use workload::Workload;
