//! Notices for the reader before guests are booted.

use numalab_guest::xen::Pinning;
use numalab_record::study::Notice;
use numalab_study::BackendError;

use super::inputs::Inputs;
use super::settings::GuestTreatment;

impl Inputs {
    pub(super) fn notices(&self, wanted: &[GuestTreatment]) -> Result<Vec<Notice>, BackendError> {
        let settings = &self.settings;
        let string_form = wanted.iter().any(|wanted| wanted.pinning == Pinning::CpusAsString);
        let one_node = self.machines(wanted)?.iter().any(|machine| machine.nodes.len() < 2);
        let notices = [
            (settings.xen_in_qemu() && !settings.emulates_memory(), Notice::EqualCosts),
            (settings.emulates_memory(), Notice::OwnClocks),
            (self.side_by_side(wanted)? > 1, Notice::BootsSideBySide),
            (settings.restores(), Notice::RestoredGuests),
            (string_form, Notice::CpusAsString),
            (one_node, Notice::MachineOfOneNode),
            (!self.builds.is_empty(), Notice::DebianTools),
        ];
        let notices = notices.into_iter().filter(|(holds, _)| *holds).map(|(_, notice)| notice);
        let builds = self.builds.iter().map(|(file, build)| Notice::XenBuild {
            file: file.clone(),
            sha256: build.sha256().to_owned(),
        });
        Ok(notices.chain(builds).collect())
    }
}
