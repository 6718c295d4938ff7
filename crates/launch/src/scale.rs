//! A scaling run: from one rank in each domain up to all of its cores.

mod banner;
mod batch;
mod directory;
mod estimate;
mod line;
mod manifest;
mod results;
mod run;
mod step;

pub use banner::{closing, opening, step_heading};
pub use batch::{Batch, Submission, submit};
pub use directory::{DirectoryError, ResultDirectory};
pub use estimate::estimate;
pub use line::{LaunchError, LauncherChoice, Line, Workload};
pub use manifest::Manifest;
pub use results::{ResultsError, is_scaling, read_scaling};
pub use run::{RunError, Runner, Tally};
pub use step::{Mode, PlacementError, Step, sizes_suffix, steps};
