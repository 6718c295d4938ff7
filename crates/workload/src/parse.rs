//! What tools print, as readings. A parser takes all that an output tells; which of
//! its readings matter is the workload's choice.

pub(crate) mod dbench;
pub(crate) mod json;
pub(crate) mod numalab;
pub(crate) mod perf_bench;
pub(crate) mod perf_stat;
pub(crate) mod redis;
pub(crate) mod stress_ng;
pub(crate) mod sysbench;
