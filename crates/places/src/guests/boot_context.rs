//! The context of a boot, for every hypervisor.

use numalab_guest::xen::XenBuild;
use numalab_image::Contents;
use numalab_record::study::Treatment;
use numalab_study::BackendError;
use numalab_workload::Workload;

use super::layout::GuestLayout;
use super::settings::{GuestTreatment, GuestsSettings};
use crate::disturbance_watch::DisturbanceWatch;
use crate::exec;

/// The scratch directory of a workload in a guest, on a tmpfs.
const SCRATCH: &str = "/tmp/scratch";

/// Everything that a boot of guests needs, apart from their hypervisor.
pub(super) struct BootContext<'a> {
    pub(super) settings: &'a GuestsSettings,
    pub(super) treatment: &'a Treatment,
    pub(super) wanted: &'a GuestTreatment,
    pub(super) layout: &'a GuestLayout,
    /// The user's hypervisor, if it is not Debian's.
    pub(super) build: Option<XenBuild>,
    /// The contents of the guests' image.
    pub(super) contents: Contents,
    pub(super) workloads: &'a [Workload],
    /// Returns true if the boot is no longer needed and must end.
    pub(super) ended: &'a (dyn Fn() -> bool + Sync),
}

impl BootContext<'_> {
    pub(super) fn watch(&self) -> Result<DisturbanceWatch, BackendError> {
        DisturbanceWatch::new(self.settings.in_host_time())
    }

    /// Returns the shell commands before a workload: they create an empty directory and set the
    /// number of rounds for workloads that can repeat.
    pub(super) fn preparation(&self) -> String {
        let rounds = self.settings.rounds();
        format!("rm -rf {SCRATCH}; mkdir -p {SCRATCH}; cd {SCRATCH}; export ROUNDS={rounds}")
    }

    /// Returns a workload's command line in a guest.
    pub(super) fn words(&self, workload: &Workload) -> Vec<String> {
        let words = Workload::filled_in(&workload.command, SCRATCH, "numalab");
        words.iter().map(|word| exec::filled(word, &self.treatment.settings)).collect()
    }
}
