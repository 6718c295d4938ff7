//! What a boot needs to know, whatever the hypervisor.

use numalab_image::Contents;
use numalab_record::study::Treatment;
use numalab_study::BackendError;
use numalab_workload::Workload;
use numalab_xen::XenBuild;

use super::layout::GuestLayout;
use super::settings::{GuestTreatment, GuestsSettings};
use crate::disturbance_watch::DisturbanceWatch;
use crate::exec;

/// Where a workload's own directory is in a guest: a tmpfs.
const SCRATCH: &str = "/tmp/scratch";

/// What a boot needs to know.
pub(super) struct BootContext<'a> {
    pub(super) settings: &'a GuestsSettings,
    pub(super) treatment: &'a Treatment,
    pub(super) wanted: &'a GuestTreatment,
    pub(super) layout: &'a GuestLayout,
    /// The hypervisor, if it is not Debian's.
    pub(super) build: Option<XenBuild>,
    /// What the guests' image holds.
    pub(super) contents: Contents,
    pub(super) workloads: &'a [Workload],
    /// Whether the boot is to be ended, because nobody needs it any more.
    pub(super) ended: &'a (dyn Fn() -> bool + Sync),
}

impl BootContext<'_> {
    /// Watches what disturbs the samples.
    pub(super) fn watch(&self) -> Result<DisturbanceWatch, BackendError> {
        DisturbanceWatch::new(self.settings.in_host_time())
    }

    /// What a shell of a guest does before a workload: an empty directory, and how often
    /// one repeats its work that can.
    pub(super) fn preparation(&self) -> String {
        let rounds = self.settings.rounds();
        format!("rm -rf {SCRATCH}; mkdir -p {SCRATCH}; cd {SCRATCH}; export ROUNDS={rounds}")
    }

    /// A workload's command line in a guest.
    pub(super) fn words(&self, workload: &Workload) -> Vec<String> {
        let words = Workload::filled_in(&workload.command, SCRATCH, "numalab");
        words.iter().map(|word| exec::filled(word, &self.treatment.settings)).collect()
    }
}
