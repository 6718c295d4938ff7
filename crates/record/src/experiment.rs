//! What is done in a cell: the kinds of measurement, and what each says of itself.
//!
//! A kind is a file below this one and a row of `kinds!`, which makes [`Experiment`]. All that others need to know of
//! it, they ask its [`Description`] for.

mod bandwidth;
mod c2c;
mod core;
mod frames;
mod latency;
mod loaded;
mod stream;
mod worker;

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

/// Makes [`Experiment`] of the kinds, and what finds a kind's cell in it.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($cell:ident),)*) => {
        /// What is done in a cell.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        pub enum Experiment {
            $($(#[$doc])* $kind($cell),)*
        }

        impl Experiment {
            /// What its kind says of it.
            #[must_use]
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
    /// A chase while other workers load the memory.
    Loaded(LoadedCell),
    /// A cache line going back and forth between two cpus.
    C2c(C2cCell),
    /// L1 load-to-use over a dependent add, the core clock, and an atomic addition, on one cpu.
    Core(CoreCell),
    /// Frames handed out and used by a kernel of our own.
    Frames(FramesCell),
}

/// The experiment is of another kind than was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherKind;

impl Experiment {
    /// The cell of this kind, if it is one.
    #[must_use]
    pub fn cell<'a, T>(&'a self) -> Option<&'a T>
    where
        &'a T: TryFrom<&'a Self>,
    {
        self.try_into().ok()
    }

    /// Who works, and on which memory: the chaser before its load, both sides of a line that
    /// goes back and forth; nobody where no node matters.
    #[must_use]
    pub fn workers(&self) -> Vec<WorkerPlan> {
        self.description().workers()
    }
}

/// What a kind of measurement says of one of its experiments.
pub trait Description {
    /// The kind, under which cells are taken together with others.
    fn kind(&self) -> &'static str;

    /// The name of the cell, unique and stable.
    fn id(&self) -> String;

    /// Who works, and on which memory; nobody where no node matters.
    fn workers(&self) -> Vec<WorkerPlan> {
        Vec::new()
    }

    /// What cells of it differ in.
    fn axes(&self) -> Axes {
        Axes::default()
    }

    /// What a figure tells about on a machine with a largest cache of so many bytes; `None` where
    /// machines are not compared by it.
    fn family(&self, metric: Metric, largest_cache_bytes: u64) -> Option<Family>;
}

/// What cells of a kind differ in, as far as several kinds share it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Axes {
    /// The length in bytes of each worker's buffer.
    pub size_bytes: Option<u64>,
    /// The pages.
    pub pages: Option<Pages>,
    /// The order of visits.
    pub pattern: Option<AccessPattern>,
    /// What is done, by name.
    pub kernel: Option<String>,
}

/// What a figure tells about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// The core: its clock and L1.
    Core,
    /// Latency of sizes that a cache holds.
    CacheLatency,
    /// Latency of memory, idle or loaded.
    MemoryLatency,
    /// Bandwidth.
    Bandwidth,
    /// Cache lines from core to core.
    CoreToCore,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 5] =
        [Self::Core, Self::CacheLatency, Self::MemoryLatency, Self::Bandwidth, Self::CoreToCore];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::CacheLatency => "cache latency",
            Self::MemoryLatency => "memory latency",
            Self::Bandwidth => "bandwidth",
            Self::CoreToCore => "core to core",
        }
    }

    /// The family of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }
}
