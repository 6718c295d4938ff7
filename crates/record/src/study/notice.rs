//! Notices for the reader before a study begins, as facts; the report has the wording.

use std::path::PathBuf;

use numalab_topology::NodeSet;
use serde::{Deserialize, Serialize};

use super::accelerator::AcceleratorReason;
use crate::no_effect::NoEffect;

/// A finding of a backend that limits what its samples can show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Notice {
    /// A knob cannot show an effect on this machine.
    KnobWithoutEffect { knob: String, reason: NoEffect },
    /// A setting is only passed as an environment variable, and no command mentions it.
    OnlyInEnvironment {
        setting: String,
        /// The variable that has its value.
        variable: String,
    },
    /// A memory policy cannot show an effect: all memory is on one node.
    PolicyWithoutEffect,
    /// A knob concerning nodes cannot have an effect, because the guest's memory is on one node.
    GuestOfOneNode { knob: String },
    /// The accelerator under which QEMU runs the guest.
    Accelerator {
        /// `kvm` or `tcg`.
        name: String,
        /// The reason for this choice.
        reason: AcceleratorReason,
    },
    /// KVM is tried only at the start, so it is unknown whether it works.
    AcceleratorNotTried,
    /// This QEMU can hang Linux on several CPUs.
    QemuCanHang {
        /// QEMU's version.
        version: String,
        /// The first version without this bug.
        #[serde(alias = "mended_in")]
        fixed_in: String,
    },
    /// Without KVM, accesses go through QEMU's software TLB.
    SoftwareTlb,
    /// The guest's time is virtual.
    VirtualTime,
    /// numalab's kernel runs on real nodes under KVM.
    RealNodes {
        /// The host nodes behind each guest node.
        nodes: Vec<NodeSet>,
    },
    /// numalab's kernel runs under the memory emulator.
    EmulatedMemory {
        /// The cost model of accesses.
        costs: EmulatedCosts,
    },
    /// numalab's kernel runs under plain TCG, where its times have no meaning.
    PlainTcg,
    /// Memory costs the same everywhere in these guests.
    EqualCosts,
    /// Guests run in virtual time, each CPU with a separate clock.
    OwnClocks,
    /// Several guests boot at once, so the study takes less time than stated.
    BootsSideBySide,
    /// One guest is booted and saved, and all guests are restored from it.
    RestoredGuests,
    /// The tools in dom0 are from a different build than the hypervisor.
    DebianTools,
    /// `cpus="..."` pins a domain's CPUs but not its memory.
    CpusAsString,
    /// One of the machines has only one node, so `numa` has no effect on it.
    MachineOfOneNode,
    /// A hypervisor supplied by the user.
    XenBuild {
        file: PathBuf,
        /// The SHA-256 of its content.
        sha256: String,
    },
    /// A sentence, as in journals up to 0.1.0.
    #[serde(untagged)]
    Sentence(String),
}

/// The source of access costs in the memory emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EmulatedCosts {
    /// The machine's distances.
    Distances,
    /// The machine's HMAT.
    Hmat,
    /// Every node costs the same.
    Flat,
    /// A machine file.
    MachineFile,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::KvmFault;

    #[test]
    fn a_notice_is_read_back_and_so_is_a_sentence_of_an_earlier_journal() {
        let (knob, name) = ("numa_balancing".to_owned(), "tcg".to_owned());
        let fault = KvmFault::Hung { limit_s: 6 };
        let notices = vec![
            Notice::KnobWithoutEffect { knob, reason: NoEffect::OneNode },
            Notice::Accelerator { name, reason: AcceleratorReason::KvmFails(fault) },
            Notice::PolicyWithoutEffect,
            Notice::Sentence("the guest runs under tcg: asked for".to_owned()),
        ];
        let json = serde_json::to_string(&notices).unwrap();
        let expected = concat!(
            r#"[{"kind":"knob-without-effect","knob":"numa_balancing","#,
            r#""reason":"one-node"},{"kind":"accelerator","name":"tcg","#,
            r#""reason":{"kvm-fails":{"hung":{"limit_s":6}}}},{"kind":"policy-without-effect"},"#,
            r#""the guest runs under tcg: asked for"]"#
        );
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<Vec<Notice>>(&json).unwrap(), notices);
    }

    #[test]
    fn reasons_kept_as_sentences_in_earlier_journals_are_read() {
        let (sentence, text) = ("memory is on one node".to_owned(), "asked for".to_owned());
        let json = format!(
            r#"[{{"kind":"knob-without-effect","knob":"smt","reason":"{sentence}"}},
                {{"kind":"accelerator","name":"tcg","reason":"{text}"}}]"#
        );
        let reason = NoEffect::Sentence(sentence);
        let expected = [
            Notice::KnobWithoutEffect { knob: "smt".to_owned(), reason },
            Notice::Accelerator {
                name: "tcg".to_owned(),
                reason: AcceleratorReason::Sentence(text),
            },
        ];
        assert_eq!(serde_json::from_str::<Vec<Notice>>(&json).unwrap(), expected);
    }
}
