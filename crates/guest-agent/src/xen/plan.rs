//! What the agent in the first domain is to do.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// A range of machine addresses on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRange {
    /// The node.
    pub node: u32,
    /// Its first address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
}

/// The domains of one boot, and the jobs that they run together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XenPlan {
    /// The domains, in the order in which they are made.
    pub domains: Vec<DomainPlan>,
    /// What the first domain itself does when the others are placed, before their jobs.
    pub own_jobs: Vec<DomainJob>,
    /// The jobs, each of which all domains begin together.
    pub jobs: Vec<DomainJob>,
    /// Which machine addresses are each node's, to know where frames lie also when the
    /// hypervisor does not.
    pub memory: Vec<NodeRange>,
    /// Whether xenstored and the rest are to be started: true in a first domain of ours.
    pub start_toolstack: bool,
    /// Whether every node gets a cpupool of its own (`xl cpupool-numa-split`).
    pub split_pools: bool,
    /// Whether a domain like the first is booted and saved (`xl save`), and all domains like
    /// it are restored from it: under TCG one boots in half a minute and is restored in some
    /// seconds.
    pub restores: bool,
    /// Whether the jobs' accesses are counted, and charged, by a memory emulator.
    pub charged: bool,
    /// The kernel and the image of the domains, as files of the first domain.
    pub kernel: String,
    /// See `kernel`.
    pub image: String,
    /// How long things may take.
    pub limits: XenLimits,
}

/// One domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainPlan {
    /// Its name: letters, digits and `-`.
    pub name: String,
    /// How it is virtualised.
    pub kind: DomainKind,
    /// Its memory in MiB.
    pub memory_mib: u64,
    /// Its virtual cpus.
    pub vcpus: u32,
    /// The node it belongs to by plan, if any.
    pub home: Option<u32>,
    /// The machine's cpus it is pinned to, as a list such as `0-3`; ignored without pinning.
    pub cpus: String,
    /// How it is pinned.
    pub pinning: Pinning,
    /// The cpupool it is in, if not the first.
    pub pool: Option<String>,
}

/// How a domain is virtualised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DomainKind {
    /// Paravirtualised: needs nothing of the processor.
    #[default]
    Pv,
    /// In a container of the processor's: needs `svm` and `npt`, or VMX.
    Pvh,
}

/// What of a domain is tied to its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pinning {
    /// Nothing: the toolstack chooses (automatic placement with `numa=on`).
    #[default]
    None,
    /// Its cpus, after it has been built wherever the toolstack chose.
    Cpus,
    /// Its cpus and its memory: `cpus=["..."]`, the list form of xl.cfg(5).
    CpusAndMemory,
    /// `cpus="..."`, the string form, which by a fault of libxl places no memory.
    CpusAsString,
}

/// A job that every domain runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainJob {
    /// What it is called in reports.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Longer than this it may not take, in seconds.
    pub limit_s: u64,
    /// Whether its command has the memory emulator's markers around what counts
    /// (`numalab mark`); else all of it counts.
    pub marks_itself: bool,
}

/// How long things may take, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XenLimits {
    /// One command of the toolstack, such as `xl create`.
    pub create_s: u64,
    /// From a domain's creation to its first word.
    pub ready_s: u64,
}

impl Default for XenLimits {
    /// Many times what a quiet machine needs under TCG.
    fn default() -> Self {
        Self { create_s: 240, ready_s: 300 }
    }
}

impl Pinning {
    /// Its name in plans, arguments and reports.
    #[must_use]
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
    /// Whether what was saved of this domain can be restored as `other`.
    pub(crate) fn can_become(&self, other: &Self) -> bool {
        let of = |domain: &Self| (domain.kind, domain.memory_mib, domain.vcpus);
        self.kind == DomainKind::Pv && of(self) == of(other)
    }

    /// Its configuration for `xl create` (xl.cfg(5)).
    #[must_use]
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
            // One item for each virtual cpu: those without one could run, and have memory,
            // anywhere.
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
    fn a_saved_domain_becomes_another_one_of_its_size_wherever_that_is_pinned() {
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
    fn a_domain_that_ends_is_kept_so_that_the_reason_can_be_read() {
        let text = domain(Pinning::None).configuration("k", "i");
        for event in ["on_poweroff", "on_crash", "on_reboot"] {
            assert!(text.contains(&format!("{event} = \"preserve\"")), "{text}");
        }
    }
}
