//! Experiments: the kinds of measurement, and how each describes itself.
//!
//! Each kind has a file below this one and a row of `kinds!`, which makes [`Experiment`].
//! Everything else that the program needs to know about a kind is in its [`Description`].

mod bandwidth;
mod c2c;
mod core;
mod frames;
mod latency;
mod loaded;
mod stream;
mod worker;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::pages::Pages;
use crate::pattern::AccessPattern;

pub use self::core::CoreCell;
pub use bandwidth::BandwidthCell;
pub use c2c::C2cCell;
pub use frames::FramesCell;
pub use latency::{LatencyCell, Team};
pub use loaded::LoadedCell;
pub use stream::{IsaName, StreamKernel};
pub use worker::WorkerPlan;

/// Makes [`Experiment`] from the kinds, and the lookup of a kind's cell in it.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($cell:ident),)*) => {
        /// The experiment of a cell.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum Experiment {
            $($(#[$doc])* $kind($cell),)*
        }

        impl Experiment {
            /// Returns the experiment's description of itself.
            pub fn description(&self) -> &dyn Description {
                match self {
                    $(Self::$kind(cell) => cell,)*
                }
            }
        }

        $(impl<'a> TryFrom<&'a Experiment> for &'a $cell {
            type Error = OtherKind;

            fn try_from(experiment: &'a Experiment) -> Result<Self, OtherKind> {
                match experiment {
                    Experiment::$kind(cell) => Ok(cell),
                    _ => Err(OtherKind),
                }
            }
        })*
    };
}

kinds! {
    /// A chase of dependent loads.
    Latency(LatencyCell),
    /// Streams of all workers at once.
    Bandwidth(BandwidthCell),
    /// A chase while other workers put load on the memory.
    Loaded(LoadedCell),
    /// A cache line that bounces between two cpus.
    C2c(C2cCell),
    /// L1 load-to-use relative to a dependent add, the core clock, and an atomic addition, on one
    /// cpu.
    Core(CoreCell),
    /// Frames allocated and used by numalab's own kernel.
    Frames(FramesCell),
}

/// The experiment is of another kind than the one requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherKind;

impl Experiment {
    /// Returns the cell of kind `T`, if the experiment is of that kind.
    pub fn cell<'a, T>(&'a self) -> Option<&'a T>
    where
        &'a T: TryFrom<&'a Self>,
    {
        self.try_into().ok()
    }

    /// Returns the workers and their memory: the chaser before its load, both sides of a bouncing
    /// line; empty if no node matters.
    pub fn workers(&self) -> Vec<WorkerPlan> {
        self.description().workers()
    }
}

/// Describes the experiments of one kind of measurement.
pub trait Description {
    /// Returns the kind, by which cells are grouped.
    fn kind(&self) -> &'static str;

    /// Returns the name of the cell, unique and stable.
    fn id(&self) -> String;

    /// Returns the workers and their memory; empty if no node matters.
    fn workers(&self) -> Vec<WorkerPlan> {
        Vec::new()
    }

    /// Returns the parameters in which cells of this kind differ.
    fn axes(&self) -> Axes {
        Axes::default()
    }

    /// Returns the part of the machine that a figure describes, for a machine whose largest cache
    /// has `largest_cache_bytes`; `None` if machines are not compared by it.
    fn family(&self, metric: Metric, largest_cache_bytes: u64) -> Option<Family>;
}

/// The parameters in which cells differ, as far as several kinds share them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Axes {
    /// The length in bytes of each worker's buffer.
    pub size_bytes: Option<u64>,
    pub pages: Option<Pages>,
    pub pattern: Option<AccessPattern>,
    /// The name of the kernel that runs.
    pub kernel: Option<String>,
}

/// The part of a machine that a figure describes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// The core: its clock and L1.
    Core,
    /// Latency of sizes that fit in a cache.
    CacheLatency,
    /// Latency of memory, idle or under load.
    MemoryLatency,
    /// Bandwidth.
    Bandwidth,
    /// Transfers of cache lines between cores.
    CoreToCore,
}

impl Family {
    pub const ALL: [Self; 5] =
        [Self::Core, Self::CacheLatency, Self::MemoryLatency, Self::Bandwidth, Self::CoreToCore];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::CacheLatency => "cache latency",
            Self::MemoryLatency => "memory latency",
            Self::Bandwidth => "bandwidth",
            Self::CoreToCore => "core to core",
        }
    }

    /// Returns the family with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }
}
