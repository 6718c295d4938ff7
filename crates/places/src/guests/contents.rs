//! The contents of the guests' image that the workloads need.

use numalab_image::Contents;
use numalab_study::{BackendError, StudyPlace};
use numalab_workload::Workload;

use super::errors::bad;

/// Returns this program as process 1, and every workload's package.
pub(super) fn of(workloads: &[Workload]) -> Result<Contents, BackendError> {
    let program =
        std::env::current_exe().map_err(|error| BackendError::failed("this program", error))?;
    let mut contents = Contents::new(program);
    for workload in workloads {
        for tool in &workload.tools {
            match &tool.package {
                Some(package) if !contents.packages.contains(package) => {
                    contents.packages.push(package.clone());
                }
                Some(_) => {}
                None => {
                    let place = || StudyPlace::Workload(workload.name.clone());
                    let needed = contents.need_program(&tool.program);
                    needed.map_err(|error| bad(place(), error.to_string(), "a program"))?;
                }
            }
        }
    }
    Ok(contents)
}
