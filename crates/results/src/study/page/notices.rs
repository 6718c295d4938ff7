//! Notices of backends in words.

use numalab_record::study::{
    AcceleratorReason, Disturbance, EmulatedCosts, Load, LoadedMachine, Notice,
};
use numalab_topology::NodeSet;

use crate::system::no_effect;

const POLICY_WITHOUT_EFFECT: &str =
    "policy cannot show an effect here: all memory is on one node, whatever the policy";
const ACCELERATOR_NOT_TRIED: &str = "KVM is used if a guest runs under it here, else TCG; a trial \
     before the first block decides";
const SOFTWARE_TLB: &str = "\
    under TCG every access goes through QEMU's software TLB: the figures show the guest kernel's \
    work and QEMU's, not this processor's page walks";
const VIRTUAL_TIME: &str = "\
    the guest's time is virtual: an instruction takes a nanosecond, and an access takes the \
    latency of its node or tier";
const PLAIN_TCG: &str = "plain TCG: times are meaningless and left out; the placement of frames \
     is correct";
const EQUAL_COSTS: &str = "memory has the same latency everywhere in these guests: placement is \
     meaningful, throughput is not; --set emulate-latency=100 adds latencies, in virtual time";
const OWN_CLOCKS: &str = "\
    virtual time: each cpu of the machine has its own clock, so guests run in parallel however few \
    cpus this host has; commands see ROUNDS=1 unless the study sets another number";
const BOOTS_SIDE_BY_SIDE: &str = "\
    boots do not disturb each other's virtual time: as many run in parallel as this machine has cpus \
    and memory for, so the study may take less time than stated";
const RESTORED_GUESTS: &str = "each machine boots one guest, saves it (xl save) and restores all \
     guests from it: they allocate memory as they would at boot, in less time";
const DEBIAN_TOOLS: &str = "\
    the tools in dom0 are Debian's: they work with a Xen of their own release, or with one that has \
    the same interface versions";
const CPUS_AS_STRING: &str = "cpus-as-string shows a bug in libxl: cpus=\"...\" pins the cpus, \
     but memory comes from the node that automatic placement chooses";
const MACHINE_OF_ONE_NODE: &str =
    "on a machine with one node numa has no effect: differences there are due to chance";

/// Returns a notice to read before a study begins.
pub fn notice(notice: &Notice) -> String {
    match notice {
        Notice::KnobWithoutEffect { knob, reason } => {
            let reason = no_effect(reason);
            format!("{knob} cannot show an effect here: {reason}; only its cost can be seen")
        }
        Notice::OnlyInEnvironment { setting, variable } => format!(
            "{setting} is neither a knob nor a placement: it is only passed as {variable}, and no command of \
             this study mentions it"
        ),
        Notice::GuestOfOneNode { knob } => {
            format!("{knob} cannot have an effect: the guest's memory is on one node")
        }
        Notice::Accelerator { name, reason } => {
            format!("the guest runs under {name}: {}", accelerator_reason(reason))
        }
        Notice::QemuCanHang { version, fixed_in } => format!(
            "QEMU {version} can, rarely, hang Linux on several cpus; fixed in {fixed_in}; on \
             Debian 12: numalab guest image --fetch-qemu"
        ),
        Notice::RealNodes { nodes } => {
            let nodes: Vec<String> = nodes.iter().map(NodeSet::to_string).collect();
            let nodes = nodes.join(", ");
            format!("real nodes under KVM: memory bound to host nodes {nodes}, cpus pinned there")
        }
        Notice::EmulatedMemory { costs } => {
            let costs = match costs {
                EmulatedCosts::Distances => "remote accesses take longer, by distance",
                EmulatedCosts::Hmat => "accesses take the latencies in the HMAT",
                EmulatedCosts::Flat => "every node costs the same, as a control",
                EmulatedCosts::MachineFile => "accesses take the times in the machine file",
            };
            format!(
                "TCG with the memory emulator: {costs}, and time is virtual, the same in every run \
                 with the same seed"
            )
        }
        Notice::XenBuild { file, sha256 } => format!("xen {}: sha256 {sha256}", file.display()),
        Notice::Sentence(text) => text.clone(),
        Notice::PolicyWithoutEffect => POLICY_WITHOUT_EFFECT.to_owned(),
        Notice::AcceleratorNotTried => ACCELERATOR_NOT_TRIED.to_owned(),
        Notice::SoftwareTlb => SOFTWARE_TLB.to_owned(),
        Notice::VirtualTime => VIRTUAL_TIME.to_owned(),
        Notice::PlainTcg => PLAIN_TCG.to_owned(),
        Notice::EqualCosts => EQUAL_COSTS.to_owned(),
        Notice::OwnClocks => OWN_CLOCKS.to_owned(),
        Notice::BootsSideBySide => BOOTS_SIDE_BY_SIDE.to_owned(),
        Notice::RestoredGuests => RESTORED_GUESTS.to_owned(),
        Notice::DebianTools => DEBIAN_TOOLS.to_owned(),
        Notice::CpusAsString => CPUS_AS_STRING.to_owned(),
        Notice::MachineOfOneNode => MACHINE_OF_ONE_NODE.to_owned(),
    }
}

/// Returns the reason for a guest's accelerator.
pub fn accelerator_reason(reason: &AcceleratorReason) -> String {
    match reason {
        AcceleratorReason::Requested => "requested".to_owned(),
        AcceleratorReason::NotTried => "not tried".to_owned(),
        AcceleratorReason::KvmWorks => "a guest ran under KVM".to_owned(),
        AcceleratorReason::KvmFails(fault) => fault.to_string(),
        AcceleratorReason::OtherArchitecture => {
            "the guest's processor differs from this machine's".to_owned()
        }
        AcceleratorReason::MemoryEmulator => "the memory emulator is a TCG plugin".to_owned(),
        AcceleratorReason::Sentence(text) => text.clone(),
    }
}

/// Returns the cause of a sample's disturbance.
pub(super) fn disturbance(disturbance: &Disturbance) -> String {
    match disturbance {
        Disturbance::Load { on: LoadedMachine::Own, load } => load_words(load),
        Disturbance::Load { on: LoadedMachine::Host, load } => {
            format!("host: {}", load_words(load))
        }
        Disturbance::Guest { guest, reason } => {
            format!("guest {guest}: {}", reason.as_deref().unwrap_or("no answer"))
        }
        Disturbance::EmulatorReport { reason } => format!("the emulator's report: {reason}"),
        Disturbance::Sentence(text) => text.clone(),
    }
}

fn load_words(load: &Load) -> String {
    match load {
        Load::Stolen { stolen_ms, of_ms } => format!("stolen {stolen_ms} of {of_ms} ms"),
        Load::Foreign { foreign_ms, of_ms } => format!("foreign {foreign_ms} of {of_ms} ms"),
        Load::Throttled { events } => format!("throttled {events}"),
        Load::Pressure { waited_ms, wall_ms } => format!("pressure {waited_ms} of {wall_ms} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_reported_with_its_figures_and_its_host() {
        let load = Load::Stolen { stolen_ms: 7, of_ms: 11 };
        let said = |on| disturbance(&Disturbance::Load { on, load });
        assert_eq!(said(LoadedMachine::Own), "stolen 7 of 11 ms");
        assert_eq!(said(LoadedMachine::Host), "host: stolen 7 of 11 ms");
    }

    #[test]
    fn a_guest_is_named_with_its_failure_or_its_missing_answer() {
        let said = |reason: Option<&str>| {
            let (guest, reason) = ("g02".to_owned(), reason.map(str::to_owned));
            disturbance(&Disturbance::Guest { guest, reason })
        };
        assert_eq!(said(Some("the domain crashed")), "guest g02: the domain crashed");
        assert_eq!(said(None), "guest g02: no answer");
    }

    #[test]
    fn a_notice_of_a_kernel_on_real_nodes_names_them() {
        let nodes = vec!["0".parse().unwrap(), "1".parse().unwrap()];
        let said = notice(&Notice::RealNodes { nodes });
        assert!(said.contains("bound to host nodes 0, 1, cpus pinned there"), "{said}");
    }
}
