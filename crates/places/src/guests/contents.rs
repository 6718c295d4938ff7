//! The contents of the guests' image that the workloads need.

use numalab_image::{Architecture, Contents};
use numalab_study::{BackendError, StudyPlace};
use numalab_workload::Workload;

use super::errors::bad;

/// Returns this program as process 1, and every workload's package.
pub(super) fn guest_contents(workloads: &[Workload]) -> Result<Contents, BackendError> {
    let own = Contents::own(Architecture::of_host());
    let mut contents = own.map_err(|error| BackendError::of("guests", &error))?;
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
