//! Kernels of streams, and their instruction sets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operation of a stream on each element of its arrays.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum StreamKernel {
    /// Loads only.
    Read,
    /// Stores that allocate in the cache.
    Write,
    /// Stores that bypass the cache.
    WriteNt,
    /// `a = b` with ordinary stores.
    Copy,
    /// `a = b` with stores that bypass the cache.
    CopyNt,
    /// `a = b + s * c` with ordinary stores.
    Triad,
}

impl StreamKernel {
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Write, Self::WriteNt, Self::Copy, Self::CopyNt, Self::Triad];

    /// Returns the kernel's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::WriteNt => "write-nt",
            Self::Copy => "copy",
            Self::CopyNt => "copy-nt",
            Self::Triad => "triad",
        }
    }

    /// Returns the lines that the program counts as read and as written for each line of an array.
    /// A store through the caches reads its line first; cpus that recognise full-line stores may
    /// skip that read.
    const fn lines(self) -> (u32, u32, u32) {
        match self {
            Self::Read => (1, 1, 0),
            Self::Write => (1, 1, 1),
            Self::WriteNt => (1, 0, 1),
            Self::Copy => (2, 2, 1),
            Self::CopyNt => (2, 1, 1),
            Self::Triad => (3, 3, 1),
        }
    }

    /// Returns the reads among the bytes moved in memory, in percent: 100 to 50, and less only for
    /// stores that bypass the caches.
    pub fn read_percent(self) -> f64 {
        let (_, read, written) = self.lines();
        100.0 * f64::from(read) / f64::from(read + written)
    }

    /// Returns the number of bytes moved in memory for each byte that the program moves.
    pub fn traffic_factor(self) -> f64 {
        let (counted, read, written) = self.lines();
        f64::from(read + written) / f64::from(counted)
    }
}

/// The name of an instruction set: `avx512`, `neon`; `fastest` for the machine's fastest one, which
/// each worker finds by a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct IsaName(pub String);

impl IsaName {
    /// Returns the name that leaves the choice to a trial.
    pub fn fastest() -> Self {
        Self("fastest".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_read_from_all_to_none_of_the_bytes_that_move() {
        let shares = StreamKernel::ALL.map(|kernel| kernel.read_percent().round());
        assert_eq!(shares, [100.0, 50.0, 0.0, 67.0, 50.0, 75.0]);
        let factors = StreamKernel::ALL.map(StreamKernel::traffic_factor);
        assert_eq!(factors, [1.0, 2.0, 1.0, 1.5, 1.0, 4.0 / 3.0]);
    }
}
