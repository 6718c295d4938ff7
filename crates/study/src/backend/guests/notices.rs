//! What a reader should know before guests are booted.

use numalab_xen::Pinning;

use super::builds;
use super::inputs::Inputs;
use super::settings::{GuestTreatment, HypervisorKind};
use crate::backend::contract::BackendError;

const COSTS_NOTHING: &str = "memory costs the same everywhere in these guests: where it lies is \
    meaningful, throughput is not; --set emulate-latency=100 gives it costs, in virtual time";
const OWN_CLOCKS: &str = "virtual time: every cpu of the machine has its own, so that guests run \
    side by side whatever this host has; commands see ROUNDS=1 unless the study says another";
const SIDE_BY_SIDE: &str = "boots do not disturb each other's virtual time: as many as this machine \
    has cpus and memory for run side by side, which shortens the time that is stated";
const OWN_XEN: &str = "the tools in dom0 are Debian's: they speak to a Xen of their own release, \
    or to one with the same interface versions";
const STRING_FORM: &str = "cpus-as-string shows a fault of libxl: cpus=\"...\" pins the cpus, but \
    memory comes from the node that automatic placement takes";
const ONE_NODE: &str =
    "where the machine has one node numa cannot act: what differs there is chance";

impl Inputs {
    /// What a reader should know of these treatments.
    pub(super) fn notices(&self, wanted: &[GuestTreatment]) -> Result<Vec<String>, BackendError> {
        let settings = &self.settings;
        let in_qemu = settings.hypervisor == HypervisorKind::Xen && !settings.on_this_dom0;
        let string_form = wanted.iter().any(|wanted| wanted.pinning == Pinning::CpusAsString);
        let one_node = self.machines(wanted)?.iter().any(|machine| machine.nodes.len() < 2);
        let told = [
            (in_qemu && !settings.emulates_memory(), COSTS_NOTHING),
            (settings.emulates_memory(), OWN_CLOCKS),
            (self.side_by_side(wanted)? > 1, SIDE_BY_SIDE),
            (string_form, STRING_FORM),
            (one_node, ONE_NODE),
            (!self.builds.is_empty(), OWN_XEN),
        ];
        let told = told.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text.to_owned());
        let builds = builds::facts(&self.builds);
        Ok(told.chain(builds.map(|(xen, content)| format!("{xen}: {content}"))).collect())
    }
}
