//! The plan for the agent in the first domain.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// A range of machine addresses on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRange {
    pub node: u32,
    /// First address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
}

/// The domains of one boot, and the jobs that they run together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XenPlan {
    /// The domains, in the order of creation.
    pub domains: Vec<DomainPlan>,
    /// Jobs of the first domain itself, after the others are placed and before their jobs.
    pub own_jobs: Vec<DomainJob>,
    /// The jobs, each of which all domains begin together.
    pub jobs: Vec<DomainJob>,
    /// The machine addresses of each node, which give the nodes of frames even if the hypervisor
    /// does not know them.
    pub memory: Vec<NodeRange>,
    /// True if xenstored and the other daemons must be started, as in our own first domain.
    pub start_toolstack: bool,
    /// True if every node gets a separate cpupool (`xl cpupool-numa-split`).
    pub split_pools: bool,
    /// True if a domain like the first is booted and saved (`xl save`), and all domains like it are
    /// restored from it: under TCG a domain takes half a minute to boot and some seconds to
    /// restore.
    pub restores: bool,
    /// True if a memory emulator counts, and charges, the jobs' accesses.
    pub charged: bool,
    /// The kernel and the image of the domains, as files of the first domain.
    pub kernel: String,
    /// The image of the domains; see `kernel`.
    pub image: String,
    pub limits: XenLimits,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainPlan {
    /// Name of the domain: letters, digits and `-`.
    pub name: String,
    pub kind: DomainKind,
    pub memory_mib: u64,
    pub vcpus: u32,
    /// The node that the domain should be on according to the plan, if any.
    pub home: Option<u32>,
    /// The machine's cpus that the domain is pinned to, as a list such as `0-3`; ignored without
    /// pinning.
    pub cpus: String,
    pub pinning: Pinning,
    /// The domain's cpupool, if not the first.
    pub pool: Option<String>,
}

/// The kind of virtualisation of a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DomainKind {
    /// Paravirtualised, which needs no processor support.
    #[default]
    Pv,
    /// With hardware virtualisation: needs `svm` and `npt`, or VMX.
    Pvh,
}

/// The parts of a domain that are bound to its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pinning {
    /// Nothing: the toolstack chooses (automatic placement with `numa=on`).
    #[default]
    None,
    /// Cpus only, after the toolstack has built the domain where it chose.
    Cpus,
    /// Cpus and memory: `cpus=["..."]`, the list form of xl.cfg(5).
    CpusAndMemory,
    /// `cpus="..."`, the string form, which because of a bug in libxl does not place memory.
    CpusAsString,
}

/// A job that every domain runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainJob {
    pub name: String,
    pub command: Vec<String>,
    /// Time limit in seconds.
    pub limit_s: u64,
    /// True if its command marks the measured part for the memory emulator (`numalab mark`);
    /// otherwise all of it counts.
    pub marks_itself: bool,
}

/// Time limits, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XenLimits {
    /// One command of the toolstack, such as `xl create`.
    pub create_s: u64,
    /// From a domain's creation to its first response.
    pub ready_s: u64,
}

impl Default for XenLimits {
    /// Returns limits that are many times the duration on a quiet machine under TCG.
    fn default() -> Self {
        Self { create_s: 240, ready_s: 300 }
    }
}

impl Pinning {
    /// Returns the kind's name in plans, arguments and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Cpus => "cpus",
            Self::CpusAndMemory => "cpus-and-memory",
            Self::CpusAsString => "cpus-as-string",
        }
    }
}

impl DomainPlan {
    /// Returns true if the saved state of this domain can be restored as `other`.
    pub(crate) fn can_become(&self, other: &Self) -> bool {
        let of = |domain: &Self| (domain.kind, domain.memory_mib, domain.vcpus);
        self.kind == DomainKind::Pv && of(self) == of(other)
    }

    /// Returns the domain's configuration for `xl create` (xl.cfg(5)).
    pub fn configuration(&self, kernel: &str, image: &str) -> String {
        let kind = match self.kind {
            DomainKind::Pv => "pv",
            DomainKind::Pvh => "pvh",
        };
        let mut text = format!(
            "name = \"{}\"\ntype = \"{kind}\"\nkernel = \"{kernel}\"\nramdisk = \"{image}\"\n\
             extra = \"console=hvc0 quiet rdinit=/init panic=-1\"\n\
             memory = {memory}\nmaxmem = {memory}\nvcpus = {}\n\
             on_poweroff = \"preserve\"\non_crash = \"preserve\"\non_reboot = \"preserve\"\n",
            self.name,
            self.vcpus,
            memory = self.memory_mib,
        );
        match self.pinning {
            // One item for each vCPU: a vCPU without one could run, and have memory, anywhere.
            Pinning::CpusAndMemory => {
                let items = vec![format!("\"{}\"", self.cpus); self.vcpus as usize];
                let _ = writeln!(text, "cpus = [{}]", items.join(", "));
            }
            Pinning::CpusAsString => {
                let _ = writeln!(text, "cpus = \"{}\"", self.cpus);
            }
            Pinning::None | Pinning::Cpus => {}
        }
        if let Some(pool) = &self.pool {
            let _ = writeln!(text, "pool = \"{pool}\"");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(pinning: Pinning) -> DomainPlan {
        DomainPlan {
            name: "d1".to_owned(),
            memory_mib: 128,
            vcpus: 1,
            cpus: "4-7".to_owned(),
            pinning,
            ..DomainPlan::default()
        }
    }

    #[test]
    fn a_saved_domain_becomes_another_one_of_its_size_with_any_pinning() {
        let saved = domain(Pinning::None);
        let elsewhere = DomainPlan { cpus: "0-3".to_owned(), ..domain(Pinning::CpusAndMemory) };
        assert!(saved.can_become(&elsewhere));
        assert!(!saved.can_become(&DomainPlan { memory_mib: 129, ..saved.clone() }));
        assert!(!saved.can_become(&DomainPlan { vcpus: 2, ..saved.clone() }));
        let pvh = DomainPlan { kind: DomainKind::Pvh, ..saved };
        assert!(!pvh.can_become(&pvh), "only PV domains are saved");
    }

    #[test]
    fn only_the_pinning_that_places_memory_uses_the_list_form() {
        let of = |pinning| domain(pinning).configuration("/boot/vmlinux", "/boot/domain.cpio");
        assert!(of(Pinning::CpusAndMemory).contains("\ncpus = [\"4-7\"]\n"));
        assert!(of(Pinning::CpusAsString).contains("\ncpus = \"4-7\"\n"));
        for free in [Pinning::None, Pinning::Cpus] {
            assert!(!of(free).contains("cpus = \"4") && !of(free).contains("cpus = ["));
        }
    }

    #[test]
    fn every_virtual_cpu_is_pinned() {
        let two = DomainPlan { vcpus: 2, ..domain(Pinning::CpusAndMemory) };
        assert!(two.configuration("k", "i").contains("\ncpus = [\"4-7\", \"4-7\"]\n"));
    }

    #[test]
    fn an_ended_domain_is_kept_so_that_the_reason_can_be_read() {
        let text = domain(Pinning::None).configuration("k", "i");
        for event in ["on_poweroff", "on_crash", "on_reboot"] {
            assert!(text.contains(&format!("{event} = \"preserve\"")), "{text}");
        }
    }
}
