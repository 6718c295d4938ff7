//! Boots one domain and saves it, so that all others are restored from it.

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::mount::{MountFlags, mount};

use super::create::console;
use super::{Agent, AgentError, CreatedDomain};
use crate::xen::domain::READY;
use crate::xen::event::LostPhase;
use crate::xen::plan::DomainPlan;

/// The directory of the saved domain, in the first domain's memory.
const DIRECTORY: &str = "/run/numalab/saved";
/// The name of the saved domain, which does not occur in the plan.
const NAME: &str = "saved";

impl Agent<'_> {
    /// Returns the file of a domain like this one, saved when it was waiting for its first job.
    ///
    /// # Errors
    /// [`AgentError::Refused`] if that domain does not get that far, because the others would not
    /// either.
    pub(super) fn save_one(&mut self, like: &DomainPlan) -> Result<PathBuf, AgentError> {
        let refused = |reason| AgentError::Refused { domain: NAME.to_owned(), reason };
        make_room(like.memory_mib)
            .map_err(|source| AgentError::Step { step: DIRECTORY.to_owned(), source })?;
        let domain = DomainPlan { name: NAME.to_owned(), ..like.clone() };
        let id = self.create(&domain, None).map_err(refused)?;
        self.waits_for(CreatedDomain { index: 0, name: domain.name, id })?;
        let limit = Duration::from_secs(self.plan.limits.ready_s);
        self.wait_for_state(READY, LostPhase::Boot, limit)?;
        if self.made.pop().is_none() {
            return Err(refused(format!("it did not boot{}", console(NAME))));
        }
        let file = Path::new(DIRECTORY).join(NAME);
        self.xl(&["save", &id.to_string(), &file.to_string_lossy()])?;
        Ok(file)
    }
}

/// Mounts a file system for the file, which contains a domain's memory and its state.
fn make_room(memory_mib: u64) -> std::io::Result<()> {
    fs::create_dir_all(DIRECTORY)?;
    let size = CString::new(format!("size={}M", memory_mib * 9 / 8))?;
    Ok(mount("saved", DIRECTORY, "tmpfs", MountFlags::empty(), Some(size.as_c_str()))?)
}
