//! What a scaling run is: enough to do it again, and to finish it.

use numalab_formats::ReadError;
use numalab_formats::architecture::{self, Architecture};
use numalab_topology::NodeId;
use serde::{Deserialize, Serialize};

use super::line::{LauncherChoice, Workload};
use super::step::{Mode, Step};

/// A scaling run, as `scale.json` keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Manifest {
    /// That of [`Kind::Scale`](numalab_record::Kind::Scale).
    pub schema: String,
    /// The system of the architecture file.
    pub system: String,
    /// The partition of the architecture file.
    pub partition: String,
    /// In which order cores are taken.
    pub mode: Mode,
    /// The nodes.
    pub domains: Vec<NodeId>,
    /// Sizes as typed.
    pub memory_sizes: String,
    /// Who starts the ranks, as asked.
    pub launcher: LauncherChoice,
    /// What they do.
    pub workload: Workload,
    /// Options for every rank's command.
    #[serde(default)]
    pub options: Vec<String>,
    /// Whether second threads are used.
    #[serde(default)]
    pub with_smt: bool,
    /// A word for the directory's name.
    pub label: Option<String>,
    /// The architecture file's text.
    pub arch: String,
    /// The steps, fewest ranks first.
    pub steps: Vec<Step>,
}

impl Manifest {
    /// The architecture, read from its text.
    ///
    /// # Errors
    /// As `numalab_formats::architecture::read`.
    pub fn architecture(&self) -> Result<Architecture, ReadError> {
        Ok(architecture::read(&self.arch)?.value)
    }
}
