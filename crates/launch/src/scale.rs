//! A scaling run: from one rank in each domain up to all of its cores.

mod banner;
mod batch;
mod directory;
mod estimate;
mod launcher;
mod line;
mod manifest;
mod plan;
mod results;
mod run;
mod step;

pub use banner::dry_run;
pub use batch::{Batch, BatchError};
pub use directory::{DirectoryError, ResultDirectory};
pub use launcher::{LaunchError, LauncherChoice, Workload};
pub use line::LaunchLine;
pub use manifest::Manifest;
pub use plan::{PlanError, PlanRemarks};
pub use results::{ResultsError, is_scaling, read_scaling};
pub use run::{RunError, Runner};
pub use step::{LaunchStep, Mode, PlacementError, sizes_suffix};
