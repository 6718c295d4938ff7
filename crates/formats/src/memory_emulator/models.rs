//! Sources of latencies and bandwidths.

/// The source of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LatencyModel {
    /// The machine's distances, scaled so that 10 is this number of nanoseconds.
    Distance {
        /// The latency of local memory in nanoseconds.
        local_ns: f64,
    },
    /// The latencies from the machine's firmware (HMAT).
    Firmware,
    /// The same latency everywhere, whatever is reported to the guest: the control experiment.
    Flat {
        /// The latency of any memory in nanoseconds.
        ns: f64,
    },
}

impl Default for LatencyModel {
    /// Returns 100 ns for local memory.
    fn default() -> Self {
        Self::Distance { local_ns: 100.0 }
    }
}

/// The source of bandwidths, in 10^6 bytes per second, 0 for no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BandwidthModel {
    /// No limit.
    #[default]
    Unlimited,
    /// Bandwidth of each node's memory: one for all, or one for each.
    Nodes(Vec<u64>),
    /// Bandwidth from each node's cpus (row) to each node's memory (column).
    Links(Vec<Vec<u64>>),
    /// The read bandwidths from the machine's firmware (HMAT), as links.
    Firmware,
}
